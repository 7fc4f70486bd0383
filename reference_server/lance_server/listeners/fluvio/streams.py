"""StreamFetch: records of a partition, from some offset on and as they come.

After a response nothing more is sent on a stream until the client says how far it is: that is
the protocol's flow control.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.connection import Connection
from lance_server.listeners.fluvio.refusals import DONE, FluvioRefusal, from_log, told
from lance_server.log.log_manager import Topic
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.reading.record_index import BatchLocation
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion, settled
from lance_spec.errors import DecodeError
from lance_spec.fluvio.batches import pack_batches
from lance_spec.fluvio.record_mapping import from_tlv
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE
from lance_spec.messages.fluvio import (
    Batch,
    ErrorCode,
    OffsetEvicted,
    RecordSet,
    StreamFetchRequest,
    StreamFetchResponse,
)
from lance_spec.messages.fluvio import Outcome as Told
from lance_spec.records import decode_records

T = TypeVar("T")
_IN_PLACE: Final = 32 * 1024
_LOOKS: Final = 5
_LARGEST: Final = MAX_RECORD_VALUE + RECORD_HEADER_SIZE


class Stream:
    """One stream of one connection.

    Args:
        cluster: where the log is.
        connection: where the client is.
        topic: the log's topic of the partition.
        asked: what the client wants.
        number: its id.

    Attributes:
        asked: what the client wants.
        topic: the log's topic of the partition.
        number: its id.
    """

    def __init__(
        self,
        cluster: Cluster,
        connection: Connection,
        topic: Topic,
        asked: StreamFetchRequest,
        number: int,
    ) -> None:
        self._cluster = cluster
        self._connection = connection
        self._options = cluster.options
        self._partition = topic.partition
        self._moved = asyncio.Event()
        self._acked = asyncio.Event()
        self._ack = asked.offset
        self.topic = topic
        self.asked = asked
        self.number = number

    def __repr__(self) -> str:
        return f"<Stream {self.number} of {self.asked.topic}-{self.asked.partition} at {self._ack}>"

    def acknowledge(self, offset: int) -> None:
        """Note that the client has everything before an offset."""
        self._ack = offset
        self._acked.set()

    async def run(self, correlation: int, version: int) -> None:
        """Send records until it is cancelled, or cannot go on."""
        self._partition.watch(self._moved.set)
        try:
            place = BatchLocation(-1, -1)
            while True:
                place = await self._next(place, correlation, version)
        except FluvioRefusal as refusal:
            await self._connection.send(
                correlation, self._response([], refusal.outcome).encode(version)
            )
        finally:
            self._partition.unwatch(self._moved.set)

    async def _next(self, place: BatchLocation, correlation: int, version: int) -> BatchLocation:
        """Send what stands at the acknowledged offset; return where the next one begins."""
        while self._check(self._ack) == self._partition.end_record:
            self._moved.clear()
            await self._moved.wait()
        wanted = self._ack
        if place.record != wanted:
            place = await self._looked_up(
                lambda: self._cluster.record_index.find(self._partition, wanted)
            )
            self._check(wanted)  # retention may have dropped it meanwhile
        hold = self._cluster.quota.new_holder()
        try:
            await hold.wait_for(2 * self._max_bytes())
            records, place = await self._read(place, wanted)
            if records.batches:
                body = self._response(records.batches, DONE).encode(version)
                del records
                self._acked.clear()
                await self._connection.send(correlation, body)
        finally:
            hold.release()
        if place.record > wanted:
            await self._acked.wait()
        return place

    def _check(self, offset: int) -> int:
        """Return an offset that can be read, now or later.

        Raises:
            FluvioRefusal: it cannot.
        """
        start, end = self._partition.log_start.record, self._partition.end_record
        name = self.topic.file.identity.name
        if self._cluster.engine.find(self.topic.id) is not self.topic:
            raise FluvioRefusal(ErrorCode.TOPIC_DELETED, f"topic '{name}' was deleted")
        if 0 <= offset < start:
            detail = OffsetEvicted(offset=offset, next_available=start)
            raise FluvioRefusal(ErrorCode.OFFSET_EVICTED, f"offset {offset} is gone", detail)
        text = f"offset {offset} of topic '{name}' is not in {start} to {end}"
        if offset > end:  # of the code for it published clients make an empty stream
            raise told(text)
        if offset < 0:
            raise FluvioRefusal(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        return offset

    def _max_bytes(self) -> int:
        return min(max(self.asked.max_bytes, 1), self._options.max_chunk)

    def _response(self, batches: list[Batch], outcome: Told) -> StreamFetchResponse:
        return StreamFetchResponse(
            topic=self.asked.topic,
            stream_id=self.number,
            partition=self.asked.partition,
            outcome=outcome,
            high_watermark=self._partition.end_record,
            log_start_offset=self._partition.log_start.record,
            aborted=None,
            records=RecordSet(batches=batches),
        )

    # Reading -----------------------------------------------------------------------------------

    async def _read(self, place: BatchLocation, wanted: int) -> tuple[RecordSet, BatchLocation]:
        """Return records from a place on, none before the wanted one, and where they end.

        Raises:
            FluvioRefusal: they cannot be read.
        """
        fetched = await self._fetch(place.offset, self._max_bytes())
        if not fetched.record_count and fetched.buffer:  # one record, larger than that
            fetched = await self._fetch(place.offset, _LARGEST)
        if not fetched.record_count:
            following = await self._number_at(fetched.next_offset)
            return RecordSet(batches=[]), self._behind_gap(wanted, fetched.next_offset, following)
        behind = BatchLocation(fetched.next_offset, place.record + fetched.record_count)
        if behind.record <= wanted:  # a batch before the wanted record, cut short
            return RecordSet(batches=[]), behind
        if len(fetched.buffer) <= _IN_PLACE:
            return self._packed(fetched, place, wanted), behind
        async with self._cluster.readers:
            return await asyncio.to_thread(self._packed, fetched, place, wanted), behind

    def _behind_gap(self, wanted: int, offset: int, following: int) -> BatchLocation:
        """Go on after offsets that were never given to a record."""
        if following > wanted:
            raise self._unreadable(wanted, following)
        return BatchLocation(offset, following)

    def _packed(self, fetched: Fetched, place: BatchLocation, wanted: int) -> RecordSet:
        found = decode_records(fetched.buffer)
        if len(found) != fetched.record_count:
            following = place.record + fetched.record_count
            raise self._unreadable(wanted, following)
        skipped = wanted - place.record if wanted > place.record else 0
        records = [from_tlv(kind, value) for kind, value in found[skipped:]]
        return RecordSet(batches=list(pack_batches(records, place.record + skipped)))

    async def _number_at(self, offset: int) -> int:
        return await self._looked_up(
            lambda: self._cluster.record_index.number_at(self._partition, offset)
        )

    async def _looked_up(self, look: Callable[[], Completion[T]]) -> T:
        """Return what is found; a segment that is merged with others meanwhile is looked for again.

        Raises:
            FluvioRefusal: the disk failed.
        """
        for _ in range(_LOOKS):
            try:
                return await settled(look())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise from_log(error) from error
        raise from_log(FileNotFoundError("segments come and go"))

    async def _fetch(self, offset: int, max_bytes: int) -> Fetched:
        try:
            found = self._cluster.engine.fetch(self.topic, Range(start=offset, max_bytes=max_bytes))
            return await settled(found) if isinstance(found, Completion) else found
        except Refusal as refusal:
            self._check(self._ack)  # where retention has dropped it, that is the reason
            behind = refusal.details.get("next_offset")
            if not isinstance(behind, int):
                raise from_log(refusal) from refusal
            number = await self._number_at(behind)
            raise self._unreadable(self._ack, number) from refusal
        except (DecodeError, OSError) as error:
            raise from_log(error) from error

    def _unreadable(self, wanted: int, following: int) -> FluvioRefusal:
        return told(
            f"the records from offset {wanted} of '{self.asked.topic}' partition "
            f"{self.asked.partition} on cannot be read; go on from offset {following}"
        )
