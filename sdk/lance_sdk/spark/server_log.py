"""Topics at a server."""

import logging
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from lance_sdk import Client, Consumer
from lance_sdk._server_errors import InvalidOffset
from lance_sdk.errors import (
    DeadlineExceeded,
    LogTruncated,
    MisalignedOffset,
    TopicNotFound,
    TransportError,
)
from lance_sdk.offsets.contract import Fingerprint, TopicIdentity
from lance_sdk.spark.columns import Parted, to_batch
from lance_sdk.spark.contract import Piece, TopicView
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.losses import lost, planned_range
from lance_sdk.spark.marks import Cut, Mark
from lance_sdk.spark.options import Options, RecordFormat
from lance_sdk.spark.packing import wanted_bytes
from lance_sdk.spark.storage import ReadMemory
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo
from lance_spec.records import record_bounds

_SMALLEST_PIECE: Final = 1 << 20
"""Bytes below which a piece costs more in starting a task than in reading."""
_log = logging.getLogger(__name__)
_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 2.0
T = TypeVar("T")
_AHEAD: Final = 4
"""Fetches that a reader holds ahead of the conversion."""


def patiently(work: Callable[[], T], options: Options, sleep: Callable[[float], None]) -> T:
    """Do what asks a server; wait for one that is away, for ``catchUpTimeout``, with one warning.

    Raises:
        TransportError: it was away all the time.
    """
    until, wait, warned = monotonic() + options.catch_up_timeout, _FIRST_WAIT, False
    while True:
        try:
            return work()
        except TransportError as error:
            left = until - monotonic()
            if left <= 0:
                raise
            if not warned:
                _log.warning(
                    "%s: %s; waiting for it for %.0f s (catchUpTimeout)",
                    options.servers,
                    error,
                    options.catch_up_timeout,
                )
                warned = True
        sleep(min(wait, left))
        wait = min(2 * wait, _LONGEST_WAIT)


def open_consumer(options: Options, topic: str, start: Any) -> Consumer:
    """Return a consumer that ends where the log ends now."""
    return Consumer(
        options.url(topic),
        start=start,
        stop_at_end=True,
        mode="poll",
        max_fetch_bytes=options.fetch_bytes,
        prefetch_bytes=_AHEAD * options.fetch_bytes,
        on_opaque=options.on_opaque,
        **options.client_options(),
    )


def batches_of(consumer: Consumer, options: Options) -> Iterator[RecordBatch]:
    """Yield batches to the end of the log.

    Raises:
        DeadlineExceeded: the server has sent nothing for ``catchUpTimeout``.
    """
    patience = options.catch_up_timeout
    while True:
        asked = monotonic()
        batch = consumer.poll(patience)
        if batch is not None:
            yield batch
        elif monotonic() - asked < patience:
            return
        else:
            raise DeadlineExceeded(
                f"{consumer!r}: nothing came for {patience:.0f} s; look after the server, or raise "
                "catchUpTimeout"
            )


@dataclass(frozen=True, slots=True)
class ServerPiece:
    """A range of a topic at a server.

    Attributes:
        options: of the query.
        topic: the topic's name.
        start: byte offset at which it begins.
        end: byte offset at which it ends.
        crc: CRC32C that its records had when they were planned, where they were read then.
        identity: which topic it is, where that is known.
        fingerprint: of its last records, where it was planned with one.
    """

    options: Options
    topic: str
    start: int
    end: int
    crc: int | None = None
    identity: TopicIdentity | None = None
    fingerprint: Fingerprint | None = None

    @property
    def size(self) -> int:
        """Bytes to read for it."""
        return self.end - self.start

    def shown_as(self, form: RecordFormat) -> "ServerPiece":
        """Return the same piece in another form of records."""
        return replace(self, options=replace(self.options, record_format=form))

    def read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            DataLost: they are gone, or are not those that were planned.
        """
        if not self._is_there():
            return
        crc, memory, tail = 0, ReadMemory(), _Tail(self.fingerprint)
        for batch in self._batches():
            records = Parted.of(memory.copy(batch.data))
            records = records.between(0, self.end - batch.offset)
            data = memoryview(batch.data)[: records.place(len(records))]
            crc = crc32c(data, crc)
            tail.add(data, batch.offset)
            if len(records):
                yield to_batch(schema, records, self.options.origin(self.topic, batch.offset))
        if self.options.fail_on_data_loss:
            self._check(crc, tail)

    def _is_there(self) -> bool:
        """Look whether the topic is still the one that was planned.

        Raises:
            DataLost: it is gone, or another one has its name, and ``failOnDataLoss`` holds.
        """
        if self.identity is None:
            return True
        try:
            with Client(self.options.url(), **self.options.client_options()) as client:
                now = TopicIdentity.of(client.get_topic(self.topic))
            difference = self.identity.difference(now)
        except TopicNotFound:
            difference = "it is gone"
        if difference is None:
            return True
        text = f"topic {self.topic!r} is not the one that was planned: {difference}"
        if self.options.fail_on_data_loss:
            raise DataLost(f"{text}; failOnDataLoss=false leaves its records out")
        lost(text, self.size)
        return False

    def _check(self, crc: int, tail: "_Tail") -> None:
        if (self.crc is not None and crc != self.crc) or not tail.fits():
            raise DataLost(
                f"topic {self.topic!r}: the records from offset {self.start} to {self.end} are not "
                "those that were there when the batch was planned; the log was cut or replaced"
            )

    def _batches(self) -> Iterator[RecordBatch]:
        """Yield what the server has in the range; the last batch may reach beyond it."""
        start = self.start
        while start < self.end:
            try:
                yield from self._consume(start)
            except (InvalidOffset, LogTruncated) as error:
                earliest = getattr(error, "earliest", None)
                if self.options.fail_on_data_loss:
                    raise DataLost(f"topic {self.topic!r}, offset {start}: {error}") from error
                if earliest is None or not start < earliest:
                    return
                start = earliest
            except MisalignedOffset as error:
                raise MisalignedOffset(
                    f"topic {self.topic!r}: offset {start} lies inside a record; begin at an "
                    "offset that a row had",
                    start,
                ) from error
            else:
                return

    def _consume(self, start: int) -> Iterator[RecordBatch]:
        with open_consumer(self.options, self.topic, start) as consumer:
            for batch in batches_of(consumer, self.options):
                if batch.offset >= self.end:
                    return
                yield batch
                if batch.next_offset >= self.end:
                    return
            if consumer.end is not None and consumer.end < self.end:
                raise LogTruncated(f"the log ends at {consumer.end}, before {self.end}", start)


class _Tail:
    """Keeps the bytes that a fingerprint covers while a range goes by."""

    def __init__(self, known: Fingerprint | None) -> None:
        self._known = known
        self._kept = bytearray()
        self._from = 0

    def add(self, data: memoryview, offset: int) -> None:
        """Take the next bytes of the range."""
        if self._known is None or offset + len(data) <= self._known.start:
            return
        if not self._kept:
            self._from = max(offset, self._known.start)
        self._kept += data[max(0, self._known.start - offset) :]

    def fits(self) -> bool:
        """Whether those are the planned ones; what begins before the range is not judged."""
        known = self._known
        return known is None or self._from > known.start or known.matches(self._kept)


class ServerLog:
    """Topics at a server.

    Args:
        options: of the query.
        sleep: waits for a server that is away.
    """

    def __init__(self, options: Options, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"<ServerLog {self._options.servers}>"

    def look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the topics of the query; one that was named must be there.

        Args:
            known: topics that need not be there any more.

        Raises:
            TopicNotFound: it is not.
        """
        return patiently(lambda: self._look(known), self._options, self._sleep)

    def _look(self, known: Collection[str]) -> list[TopicView]:
        options = self._options
        with Client(options.url(), **options.client_options()) as client:
            if options.topics_pattern is None:
                names = list(options.topics)
            else:
                names = [info.name for info in client.list_topics() if options.wants(info.name)]
            found = []
            for name in names:
                try:
                    found.append(client.get_topic(name))
                except TopicNotFound:
                    if name not in known and options.topics_pattern is None:
                        raise
        return [self._view(info) for info in found]

    def at(self, view: TopicView, moment: datetime) -> int:
        """Return the offset of the first record that arrived at a time or later."""
        return self._reached(view.name, moment)

    def plan(self, view: TopicView, start: int, end: int) -> list[Piece]:
        """Cut a range: into one piece, or as many as are asked for, which costs reading it once."""
        if start >= end:
            return []
        if self._options.min_partitions == 1:
            return [ServerPiece(self._options, view.name, start, end, identity=view.identity)]
        mark = Mark(view.identity, start, start)
        walked = self.advance(mark, replace(view, end=end), end - start)
        return self._cut(walked, walked.start, walked.offset)

    def advance(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        """Read on from a mark, so that the next one stands on a record's boundary."""
        return patiently(lambda: self._advance(mark, view, limit), self._options, self._sleep)

    def _advance(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        size = wanted_bytes(min(limit, max(0, view.end - mark.offset)), self._options)
        walk = _Walk(mark, limit, max(_SMALLEST_PIECE, size))
        begin = walk.begin(view.start)
        with open_consumer(self._options, view.name, begin) as consumer:
            for batch in batches_of(consumer, self._options):
                if not walk.take(batch, view.end):
                    break
        return walk.mark()

    def pieces(self, mark: Mark) -> list[Piece]:
        """Return the pieces of a micro-batch, held against what the server has now.

        A batch that was planned from files has no cuts: it is one piece here.

        Raises:
            DataLost: the topic is gone, is another one, or lacks a part of the batch, and
                ``failOnDataLoss`` holds; else what is left is returned.
        """
        if mark.offset <= mark.start:
            return []
        name = mark.topic.label
        now = {view.name: view for view in self.look({name})}
        fail = self._options.fail_on_data_loss
        start, end = planned_range(mark, now.get(name), fail=fail)
        return self._cut(mark, start, end) if start < end else []

    def _cut(self, mark: Mark, start: int, end: int) -> list[Piece]:
        """Return the pieces of a mark as far as they lie in a range."""
        found: list[Piece] = []
        begin = mark.start
        for cut in mark.cuts or (Cut(mark.offset),):
            first, behind = max(begin, start), min(cut.end, end)
            if first < behind:
                whole = (first, behind) == (begin, cut.end)
                piece = ServerPiece(
                    self._options,
                    mark.topic.label,
                    first,
                    behind,
                    cut.crc if whole else None,
                    mark.topic,
                    mark.fingerprint if behind == mark.offset else None,
                )
                found.append(piece)
            begin = cut.end
        return found

    def _view(self, info: TopicInfo) -> TopicView:
        end = info.end_offset
        if end is None:  # a published server does not say (AMB-06)
            end = self._reached(info.name, "end")
        return TopicView(TopicIdentity.of(info), info.start_offset or 0, end)

    def _reached(self, topic: str, where: Any) -> int:
        """Return at which offset a consumer finds the first record behind a place."""
        with open_consumer(self._options, topic, where) as consumer:
            for batch in batches_of(consumer, self._options):
                return batch.offset
            position = consumer.position
        if position is None:
            raise TopicNotFound(f"the server does not say where topic {topic!r} ends")
        return position


class _Walk:
    """Reads on from a mark: compares what is before it, and cuts what is behind it."""

    def __init__(self, mark: Mark, limit: int, piece_bytes: int) -> None:
        self._mark = mark
        self._left = limit
        self._piece_bytes = piece_bytes
        self._proof = b""
        self._proving: Fingerprint | None = None
        self._offset = mark.offset
        self._fingerprint = mark.fingerprint
        self._cuts: list[Cut] = []
        self._piece = 0
        self._crc = 0

    def begin(self, earliest: int) -> int:
        """Return where to read from: where the fingerprint begins, if that is still there."""
        known = self._mark.fingerprint
        if known is None or known.start < earliest:
            return self._mark.offset
        self._proving = known
        return known.start

    def take(self, batch: RecordBatch, end: int) -> bool:
        """Take a batch; return whether more is wanted."""
        data, offset = batch.data, batch.offset
        if self._proving is not None and self._offset > offset:
            size = min(len(data), self._offset - offset)
            self._proof += data[:size]
            data, offset = data[size:], offset + size
        if self._proving is not None and len(self._proof) >= self._proving.length:
            self._judge(self._proving)
        if not data:
            return True
        return self._walk(data, offset, min(len(data), end - offset))

    def mark(self) -> Mark:
        """Return how far the walk came."""
        if self._piece:
            self._cuts.append(Cut(self._offset, self._crc))
        if self._offset == self._mark.offset:
            return self._mark.resting()
        return self._mark.moved(self._offset, self._fingerprint, tuple(self._cuts))

    def _judge(self, known: Fingerprint) -> None:
        if not known.matches(self._proof[: known.length]):
            raise DataLost(
                f"topic {self._mark.topic.label!r}: the records before offset {known.end} are not "
                "those that the query has read; the log was cut and grew again, or was replaced. "
                "Begin with another checkpointLocation, or say failOnDataLoss=false to go on"
            )
        self._proving = None

    def _walk(self, data: bytes, offset: int, size: int) -> bool:
        taken = size
        if size > self._left or size < len(data):
            bounds = np.frombuffer(record_bounds(data), np.int64)
            fitting = bounds[bounds <= min(size, self._left)]
            taken = int(fitting[-1])
            if not taken and not self._cuts and not self._piece and size:
                taken = int(bounds[1])  # a record larger than the limit is taken all the same
        if not taken:
            return False
        self._add(data[:taken], offset)
        self._left -= taken
        return self._left > 0 and taken == len(data)

    def _add(self, data: bytes, offset: int) -> None:
        self._crc = crc32c(data, self._crc)
        self._piece += len(data)
        self._offset = offset + len(data)
        self._fingerprint = Fingerprint.of(data, self._offset)
        if self._piece >= self._piece_bytes:
            self._cuts.append(Cut(self._offset, self._crc))
            self._piece = self._crc = 0
