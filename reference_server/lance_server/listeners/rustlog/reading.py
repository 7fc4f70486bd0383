"""Fetch: records of a partition by their numbers, as many as an answer takes."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from lance_server.listeners.rustlog.codecs import MAX_FRAME, Form
from lance_server.listeners.rustlog.refusals import RustlogRefusal, reason
from lance_server.listeners.rustlog.values import plain
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.reading.record_index import BatchLocation, RecordIndex
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion, settled
from lance_spec.errors import DecodeError
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE
from lance_spec.messages.rustlog import ErrorCode
from lance_spec.records import decode_records

_IN_PLACE: Final = 32 * 1024
_LEAST: Final = 4 * 1024
_LARGEST: Final = MAX_RECORD_VALUE + RECORD_HEADER_SIZE
_HEAD: Final = 64
"""Bytes of an answer that are not for records."""


@dataclass(slots=True)
class Basket:
    """The records of one answer.

    Attributes:
        form: the dialect of the answer.
        max_bytes: most bytes as the client counts them, unless a single record has more.
        records: what was taken.
        full: whether nothing more fits.
    """

    form: Form
    max_bytes: int
    records: list[bytes] = field(default_factory=list)
    full: bool = False
    _counted: int = 0
    _written: int = _HEAD

    def take(self, record: bytes) -> bool:
        """Take a record if it fits, or is the first; return whether it was taken."""
        counted = self._counted + len(record) + self.form.overhead
        written = self._written + len(record) * self.form.expansion + self.form.record_size
        if self.records and (counted > self.max_bytes or written > MAX_FRAME):
            self.full = True
            return False
        self._counted, self._written = counted, written
        self.records.append(record)
        return True

    @property
    def room(self) -> int:
        """Bytes of the log to ask for next."""
        return max(min(self.max_bytes, MAX_FRAME) - self._counted, _LEAST)


class RecordReading:
    """Reads for one connection; a read that goes on where the last one ended finds it at once.

    Args:
        engine: the log.
        record_index: where records stand.
        readers: who takes apart much data holds it.
    """

    def __init__(
        self, engine: LogManager, record_index: RecordIndex, readers: asyncio.Semaphore
    ) -> None:
        self._engine = engine
        self._record_index = record_index
        self._readers = readers
        self._last: tuple[Topic | None, BatchLocation] = (None, BatchLocation(0, 0))

    def __repr__(self) -> str:
        return f"<RecordReading at {self._last[1]}>"

    async def read(self, topic: Topic, start: int, basket: Basket) -> None:
        """Put records from number ``start`` on, which is there, into a basket.

        Raises:
            RustlogRefusal: not even the first one can be read.
        """
        place = await self._place(topic, start)
        try:
            while not basket.full and place.record < topic.partition.end_record:
                place = await self._more(topic, place, start, basket)
        except RustlogRefusal:
            if not basket.records:
                raise
        self._last = (topic, place)

    async def _place(self, topic: Topic, start: int) -> BatchLocation:
        known, place = self._last
        if known is topic and place.record == start:
            return place
        return await settled(self._record_index.find(topic.partition, start))

    async def _more(
        self, topic: Topic, place: BatchLocation, start: int, basket: Basket
    ) -> BatchLocation:
        """Take what stands at a place; return where to go on."""
        wanted = max(start, place.record)
        fetched = await self._fetch(topic, place, wanted, basket.room)
        if not fetched.record_count and fetched.buffer:  # one record, larger than that
            fetched = await self._fetch(topic, place, wanted, _LARGEST)
        if not fetched.record_count:
            return await self._behind_gap(topic, fetched.next_offset, wanted)
        if len(fetched.buffer) <= _IN_PLACE:
            return _taken(fetched, place, start, basket)
        async with self._readers:
            return await asyncio.to_thread(_taken, fetched, place, start, basket)

    async def _behind_gap(self, topic: Topic, offset: int, wanted: int) -> BatchLocation:
        """Go on after offsets that were never given to a record."""
        number = await settled(self._record_index.number_at(topic.partition, offset))
        if number > wanted:
            raise _unreadable(wanted, number)
        return BatchLocation(offset, number)

    async def _fetch(
        self, topic: Topic, place: BatchLocation, wanted: int, max_bytes: int
    ) -> Fetched:
        try:
            found = self._engine.fetch(topic, Range(start=place.offset, max_bytes=max_bytes))
            return await settled(found) if isinstance(found, Completion) else found
        except Refusal as refusal:
            behind = refusal.details.get("next_offset")
            if not isinstance(behind, int):
                raise _failed(refusal) from refusal
            number = await settled(self._record_index.number_at(topic.partition, behind))
            raise _unreadable(wanted, number) from refusal
        except (DecodeError, OSError) as error:
            raise _failed(error) from error


def _taken(fetched: Fetched, place: BatchLocation, start: int, basket: Basket) -> BatchLocation:
    """Put what was fetched into a basket, nothing before ``start``; return where to go on."""
    found = decode_records(fetched.buffer)
    skipped = max(start - place.record, 0)
    for index in range(skipped, len(found)):
        if not basket.take(plain(*found[index])):
            before = sum(RECORD_HEADER_SIZE + len(value) for _, value in found[:index])
            return BatchLocation(place.offset + before, place.record + index)
    return BatchLocation(fetched.next_offset, place.record + fetched.record_count)


def _failed(error: Exception) -> RustlogRefusal:
    return RustlogRefusal(ErrorCode.FETCH_FAILED, f"Fetch failed: {reason(error)}")


def _unreadable(wanted: int, following: int) -> RustlogRefusal:
    text = f"the records from offset {wanted} on cannot be read; go on from offset {following}"
    return RustlogRefusal(ErrorCode.FETCH_FAILED, f"Fetch failed: {text}")
