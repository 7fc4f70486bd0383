"""The application's position in the records that it got: the same for both APIs."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lance_sdk.types import Buffer, Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINGERPRINTED = 64 * 1024
"""Bytes of records before an offset that are enough to recognise it by."""


def rest_of(batch: RecordBatch, offset: int) -> RecordBatch | None:
    """Return the records of a batch from an offset on; None where there are none."""
    if offset >= batch.next_offset:
        return None
    rest = replace(batch, offset=offset, data=batch.data[offset - batch.offset :])
    return replace(rest, count=sum(1 for _ in rest))


class ConsumerPosition:
    """Flattens batches into records, and knows which record comes next.

    A loop over records may be left in the middle of a batch and begun again: the rest of the
    batch is still here, for the next loop or for `rest`.

    Args:
        commits: whether `records_before` is needed: the two batches taken up last are kept for it.

    Attributes:
        records: the records of the batch that have not been handed out; replaced by a seek.
        last: the record handed out last, or None when a whole batch was.
        taken: the batch that was fetched last and has arrived here.
    """

    __slots__ = (
        "_anchor",
        "_begun",
        "_commits",
        "_newest",
        "_position",
        "_previous",
        "_whole",
        "last",
        "records",
        "taken",
    )

    def __init__(self, *, commits: bool) -> None:
        self._commits = commits
        self._newest: RecordBatch | None = None
        self._previous: RecordBatch | None = None
        self._anchor = 0
        self._whole: RecordBatch | None = None
        self._position: int | None = None
        self._begun: int | None = None
        self.records: Iterator[Record] = iter(())
        self.last: Record | None = None
        self.taken: RecordBatch | None = None

    @property
    def position(self) -> int | None:
        """Offset after what was handed out; None when nothing was since the last seek."""
        return self._position if self.last is None else self.last.next_offset

    @property
    def unfinished(self) -> int | None:
        """Offset after what the application is done with: it came back for more after it."""
        return self._begun if self.last is None else self.last.offset

    def load(self, batch: RecordBatch) -> None:
        """Begin a batch that is handed out record by record."""
        self._take_up(batch)
        records = iter(batch)
        # In one step: Ctrl-C comes before, and the batch is reclaimed, or after it.
        self.last, self.records = None, records
        self._position = self._begun = batch.offset
        self._whole = self.taken = batch

    def skip(self, batch: RecordBatch, taken: RecordBatch | None) -> RecordBatch:
        """Take note that a batch is handed out as a whole, and return it.

        Args:
            batch: the batch, or what is left of one.
            taken: the batch that was taken last.
        """
        self._take_up(batch)
        end, nothing = batch.next_offset, iter(())
        # In one step, as in `load`.
        self._whole = self.last = None
        self.records, self.taken = nothing, taken
        self._begun, self._position = batch.offset, end
        return batch

    def finish(self) -> None:
        """Take note that the application came back: it is done with what it was given."""
        self._position = self._begun = self.position
        self.last = None

    def rest(self) -> RecordBatch | None:
        """Return what is left of a batch begun record by record, if anything is."""
        batch, position = self._whole, self.position
        return None if batch is None or position is None else rest_of(batch, position)

    def resume(self) -> None:
        """Go on in a batch that a loop has left: Ctrl-C in it may have ended the iterator."""
        if (rest := self.rest()) is not None:
            self.records = iter(rest)

    def give_back(self) -> RecordBatch | None:
        """Return what is left of a batch; the application gets it again later."""
        rest, position = self.rest(), self.position
        begun = self.unfinished
        self.clear()
        self._position, self._begun = position, begun
        return rest

    def clear(self) -> None:
        """Forget everything: the application goes on from somewhere else."""
        self._whole = self._position = self._begun = self.last = None
        self.records = iter(())

    def _take_up(self, batch: RecordBatch) -> None:
        if self._commits:
            self._previous, self._newest = self._newest, batch
            self._anchor = batch.offset

    def records_before(self, offset: int) -> Buffer:
        """Return whole records that end at an offset, as far as they are at hand.

        They begin where a batch began or where `records_before` was asked for before, so that the
        cost of a commit does not grow with the batch.
        """
        batches = (self._newest, self._previous)
        held = (each for each in batches if each and each.offset < offset <= each.next_offset)
        if (batch := next(held, None)) is None or batch.opaque:
            return b""
        begin = self._anchor if batch.offset <= self._anchor < offset else batch.offset
        if offset - begin > _FINGERPRINTED:
            self._anchor = offset
        return memoryview(batch.data)[begin - batch.offset : offset - batch.offset]
