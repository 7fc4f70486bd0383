"""The fetch buffer: records that were fetched and not yet taken by the application."""

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_sdk._protocol.consume.reassembly import Reassembly
from lance_sdk._protocol.consume.truncation_check import LogFingerprint, TakeFingerprint
from lance_sdk.types import RecordBatch

if TYPE_CHECKING:
    from lance_sdk.values.contract import Codec


class FetchBuffer:
    """The place up to which a log was read, and the whole records up to there.

    Args:
        label: how records name the topic.
        codec: how their ``value`` reads the payload; None leaves it as bytes.

    Attributes:
        pieces: puts records together that were cut.
        buffered: bytes waiting to be taken.
        records: records received so far.
        received_bytes: bytes of them.
    """

    def __init__(self, label: str, codec: "Codec | None" = None) -> None:
        self._label = label
        self._codec = codec
        self._ready: deque[RecordBatch] = deque()
        self._newest: RecordBatch | None = None
        self._taken: RecordBatch | None = None
        self.pieces = Reassembly(0)
        self.buffered = 0
        self.records = 0
        self.received_bytes = 0

    def __repr__(self) -> str:
        return f"<FetchBuffer {self.pieces!r} buffered={self.buffered}>"

    def __bool__(self) -> bool:
        return bool(self._ready)

    @property
    def offset(self) -> int:
        """Offset of the next record that `take` will give."""
        return self._ready[0].offset if self._ready else self.pieces.offset

    def place(self, offset: int) -> None:
        """Go on somewhere else, with what is there still to be taken."""
        self.pieces = Reassembly(offset)

    def clear(self) -> None:
        """Drop what was not taken."""
        self._ready.clear()
        self._taken = None
        self.buffered = 0

    def add(self, offset: int, count: int, data: bytes, *, opaque: bool = False) -> None:
        """Append whole records, or bytes that are not records."""
        batch = RecordBatch(self._label, offset, count, data, opaque, self._codec)
        self._newest = batch
        self._ready.append(batch)
        self.buffered += len(data)
        self.records += count
        self.received_bytes += len(data)

    def take(self) -> RecordBatch | None:
        """Take the next batch, if one is there."""
        if not self._ready:
            return None
        batch = self._ready[0]
        left = self.buffered - len(batch.data)
        assert left >= 0, "only what was counted is taken"
        self._taken, self.buffered = batch, left  # in one step with the next line
        self._ready.popleft()
        return batch

    def put_back(self, batch: RecordBatch) -> None:
        """Put a batch, or what is left of it, before everything else."""
        self.buffered += len(batch.data)
        self._ready.appendleft(batch)

    def reclaim(self, arrived: RecordBatch | None) -> None:
        """Put the batch that was taken last back, unless it is the one that has arrived.

        Ctrl-C in a program's thread may have come after `take`.
        """
        batch = self._taken
        if batch is not None and batch is not arrived and not self._is_next(batch):
            self.put_back(batch)
        self._taken = None

    def _is_next(self, batch: RecordBatch) -> bool:
        return bool(self._ready) and self._ready[0] is batch

    def tail(self, size: int) -> bytes:
        """Return the last bytes before the next one to fetch, as far as they are here."""
        if not size:
            return b""
        return (self.last_records[-size:] + self.pieces.held_bytes)[-size:]

    @property
    def last_records(self) -> bytes:
        """Whole records that end at the place reached, where some are here."""
        newest = self._newest
        if newest is None or newest.opaque or newest.next_offset != self.pieces.offset:
            return b""
        return newest.data

    def moved(self, offset: int) -> None:
        """Take note that the place reached has another offset now, and so has what waits."""
        shift = offset - self.pieces.offset
        self._taken = None
        self._ready = deque(replace(batch, offset=batch.offset + shift) for batch in self._ready)
        if self._newest is not None:
            left = self._newest.data[-offset:]  # what stood before it is gone
            self._newest = replace(self._newest, offset=offset - len(left), data=left)
        self.pieces = Reassembly(offset)

    def fingerprint(self, take: TakeFingerprint) -> LogFingerprint | None:
        """Return what the last records before the place reached are recognised by (AMB-30)."""
        newest = self._newest
        if newest is None or newest.opaque or newest.next_offset != self.pieces.offset:
            return None
        return take(newest.data, newest.next_offset)
