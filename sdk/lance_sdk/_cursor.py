"""Where the application is in what was handed to it: the same for both faces."""

from typing import TYPE_CHECKING

from lance_sdk.types import Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator


class Cursor:
    """Flattens batches into records, and knows which record comes next.

    A loop over records may be left in the middle of a batch and begun again: the rest of the
    batch is still here, for the next loop or for `rest`.

    Attributes:
        records: the records of the batch that have not been handed out; replaced by a seek.
        last: the record handed out last, or None when a whole batch was.
    """

    __slots__ = ("_batch", "_position", "last", "records")

    def __init__(self) -> None:
        self._batch: RecordBatch | None = None
        self._position: int | None = None
        self.records: Iterator[Record] = iter(())
        self.last: Record | None = None

    @property
    def position(self) -> int | None:
        """Offset behind what was handed out; None when nothing was since the last seek."""
        return self._position if self.last is None else self.last.next_offset

    def load(self, batch: RecordBatch) -> None:
        """Begin a batch that is handed out record by record."""
        self._batch = batch
        self._position = batch.offset
        self.records = iter(batch)
        self.last = None

    def skip(self, batch: RecordBatch) -> RecordBatch:
        """Take note that a batch is handed out as a whole, and return it."""
        self.clear()
        self._position = batch.next_offset
        return batch

    def rest(self) -> RecordBatch | None:
        """Return what is left of a batch begun record by record, if anything is."""
        batch, position = self._batch, self.position
        if batch is None or position is None or position >= batch.next_offset:
            return None
        count = sum(1 for _ in self.records)
        return RecordBatch(batch.topic, position, count, batch.data[position - batch.offset :])

    def clear(self) -> None:
        """Forget everything: the application goes on from somewhere else."""
        self._batch = None
        self._position = None
        self.records = iter(())
        self.last = None
