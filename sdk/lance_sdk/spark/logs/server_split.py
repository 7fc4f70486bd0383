"""A range of a topic at a server, and how its records are read."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from lance_sdk import Client
from lance_sdk._errors.server import InvalidOffset
from lance_sdk.errors import LogTruncated, MisalignedOffset, TopicDeleted, TopicNotFound
from lance_sdk.offsets.contract import FINGERPRINT_BYTES, Fingerprint, TopicIdentity
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.files.storage import ReadMemory
from lance_sdk.spark.logs.bulk_fetch import Piece, can_fetch_in_bulk, fetched_in_bulk
from lance_sdk.spark.logs.losses import lost
from lance_sdk.spark.logs.server_calls import ReadBefore, batches_of, open_consumer, patiently
from lance_sdk.spark.logs.stored_times import StoredTimes
from lance_sdk.spark.options import Options, RecordFormat
from lance_sdk.spark.rows.columns import TIME_COLUMNS, Parted, to_batch
from lance_sdk.types import BatchTimes, RecordBatch
from lance_spec.records import record_bounds


@dataclass(frozen=True, slots=True)
class ServerSplit:
    """A range of a topic at a server.

    Attributes:
        options: of the query.
        topic: the topic's name.
        start: byte offset at which it begins.
        end: byte offset at which it ends.
        crc: CRC32C that its records had when they were planned, where they were read then.
        identity: which topic it is, where that is known.
        fingerprint: of its last records, where it was planned with one.
        stop: its end, where a record is known to end there, so that nothing after it is fetched.
    """

    options: Options
    topic: str
    start: int
    end: int
    crc: int | None = None
    identity: TopicIdentity | None = None
    fingerprint: Fingerprint | None = None
    stop: int | None = None

    @property
    def size(self) -> int:
        """Bytes to read for it."""
        return self.end - self.start

    def shown_as(self, form: RecordFormat) -> "ServerSplit":
        """Return the same split in another form of records."""
        return replace(self, options=replace(self.options, record_format=form))

    def read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            DataLost: they are gone, or are not those that were planned.
        """
        with Client(self.options.url(), **self.options.client_options()) as client:
            if self._is_there(client):
                yield from self._read(client, schema)

    def _read(self, client: Client, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        stored = self._stored_times(client, schema)
        crc, memory, tail = 0, ReadMemory(), _Tail(self.fingerprint)
        for piece in self.pieces(client, memory):
            data = self._in_range(piece)
            if self.crc is not None:
                crc = crc32c(data, crc)
            tail.add(data, piece.offset)
            if not data:
                continue
            target = memory.unused(len(data)) if data.readonly else data
            records = Parted.of(target, data)
            times = None if stored is None else stored.of(records, piece.offset)
            yield to_batch(schema, records, self.options.origin(self.topic, piece.offset), times)
        if self.options.fail_on_data_loss:
            self._check(crc, tail)

    def _in_range(self, piece: Piece) -> memoryview:
        """Return the records of a piece that end in the range."""
        if piece.next_offset <= self.end:
            return piece.data
        bounds = np.frombuffer(record_bounds(piece.data), np.int64)
        inside = bounds[bounds <= self.end - piece.offset]
        return piece.data[: int(inside[-1])]

    def pieces(self, client: Client, memory: ReadMemory) -> Iterator[Piece]:
        """Yield what the server has in the range: in bulk, and by a consumer from there on.

        Args:
            client: of the server.
            memory: what is received into; see `Piece`.
        """
        start, last = self.start, b""
        if self.identity is not None and can_fetch_in_bulk(self.options, client):
            number = self.identity.id
            for piece in fetched_in_bulk(
                self.options, number, memory, start=start, end=self.end, stop=self.stop
            ):
                start, last = piece.next_offset, bytes(piece.data[-FINGERPRINT_BYTES:])
                yield piece
        before = Fingerprint.over(last, start) if last else None
        for batch in self.batches(start, before):
            yield Piece(batch.offset, memoryview(batch.data))

    def _stored_times(self, client: Client, schema: pa.Schema) -> StoredTimes | None:
        """Return what tells when the records were stored, where a column asks for it."""
        if TIME_COLUMNS.isdisjoint(schema.names):
            return None
        topic = self.topic if self.identity is None else self.identity.id

        def ask(start: int, end: int) -> BatchTimes:
            return patiently(
                lambda: client.batch_times(topic, start, end), self.options, time.sleep
            )

        return StoredTimes(ask, self.start, self.end)

    def _is_there(self, client: Client) -> bool:
        """Look whether the topic is still the one that was planned.

        Raises:
            DataLost: it is gone, or another one has its name, and ``failOnDataLoss`` holds.
        """
        if self.identity is None:
            return True
        try:
            now = TopicIdentity.of(client.get_topic(self.topic))
            difference = self.identity.difference(now)
        except (TopicNotFound, TopicDeleted):
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

    def batches(
        self, start: int | None = None, before: Fingerprint | None = None
    ) -> Iterator[RecordBatch]:
        """Yield what the server has in the range; the last batch may reach beyond it.

        Args:
            start: where to begin; the range's beginning by default.
            before: of what was read before that.
        """
        start = self.start if start is None else start
        while start < self.end:
            try:
                yield from self._consume(start, before)
            except (InvalidOffset, LogTruncated) as error:
                earliest = getattr(error, "earliest", None)
                if self.options.fail_on_data_loss:
                    raise DataLost(f"topic {self.topic!r}, offset {start}: {error}") from error
                if earliest is None or not start < earliest:
                    return
                start, before = earliest, None
            except MisalignedOffset as error:
                raise MisalignedOffset(
                    f"topic {self.topic!r}: offset {start} lies inside a record; begin at an "
                    "offset that a row had",
                    start,
                ) from error
            else:
                return

    def _consume(self, start: int, before: Fingerprint | None) -> Iterator[RecordBatch]:
        known = (
            None if before is None or self.identity is None else ReadBefore(self.identity, before)
        )
        with open_consumer(self.options, self.topic, start, self.stop, known) as consumer:
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
