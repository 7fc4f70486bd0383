"""Reading on from a checkpoint at a server, so that the next one stands on a record's boundary."""

import numpy as np
from crc32c import crc32c

from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.contract import EVERYTHING
from lance_sdk.spark.streaming.checkpoint import Cut, TopicCheckpoint
from lance_sdk.types import RecordBatch
from lance_spec.records import record_bounds


def replaced(checkpoint: TopicCheckpoint, known: Fingerprint) -> DataLost:
    """Return the error for a log whose records are not those that a query has read."""
    return DataLost(
        f"topic {checkpoint.topic.label!r}: the records before offset {known.end} are not those "
        "that the query has read; the log was cut and grew again, or was replaced. Begin with "
        "another checkpointLocation, or say failOnDataLoss=false to go on"
    )


class Walk:
    """Reads on from a checkpoint: compares what is before it, and cuts what is behind it."""

    def __init__(
        self, checkpoint: TopicCheckpoint, limit: int, split_bytes: int, records: int = EVERYTHING
    ) -> None:
        self._checkpoint = checkpoint
        self._left = limit
        self._records = 0
        self._most_records = records
        self._split_bytes = split_bytes
        self._proof = b""
        self._proving: Fingerprint | None = None
        self._offset = checkpoint.offset
        self._fingerprint = checkpoint.fingerprint
        self._cuts: list[Cut] = []
        self._split = 0
        self._crc = 0

    def begin(self, earliest: int) -> int:
        """Return where to read from: where the fingerprint begins, if that is still there."""
        known = self._checkpoint.fingerprint
        if known is None or known.start < earliest:
            return self._checkpoint.offset
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
        count = batch.count if data is batch.data else None
        return self._walk(data, offset, min(len(data), end - offset), count)

    def checkpoint(self) -> TopicCheckpoint:
        """Return how far the walk came."""
        if self._split:
            self._cuts.append(Cut(self._offset, self._crc))
        if self._offset == self._checkpoint.offset:
            return self._checkpoint.resting()
        cuts = tuple(self._cuts)
        return self._checkpoint.moved(self._offset, self._fingerprint, cuts, self._records)

    def _judge(self, known: Fingerprint) -> None:
        if not known.matches(self._proof[: known.length]):
            raise replaced(self._checkpoint, known)
        self._proving = None

    def _walk(self, data: bytes, offset: int, size: int, count: int | None) -> bool:
        """Take what there is room for; return whether there is room for more.

        Args:
            data: whole records.
            offset: of the first one.
            size: bytes of those that may be taken.
            count: how many records there are, where that is known.
        """
        room, taken = self._most_records - self._records, size
        if count is None or size < len(data) or size > self._left or count > room:
            bounds = np.frombuffer(record_bounds(data), np.int64)
            fitting = bounds[bounds <= min(size, self._left)][: room + 1]
            taken, count = int(fitting[-1]), len(fitting) - 1
            if not taken and not self._cuts and not self._split and size:
                taken, count = int(bounds[1]), 1  # a record that is too large is taken all the same
        if not taken:
            return False
        self._add(data[:taken], offset)
        self._left -= taken
        self._records += count
        return self._left > 0 and count < room and taken == len(data)

    def _add(self, data: bytes, offset: int) -> None:
        self._crc = crc32c(data, self._crc)
        self._split += len(data)
        self._offset = offset + len(data)
        self._fingerprint = Fingerprint.of(data, self._offset)
        if self._split >= self._split_bytes:
            self._cuts.append(Cut(self._offset, self._crc))
            self._split = self._crc = 0
