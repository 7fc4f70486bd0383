"""Copying: from a source to a target, with notes of how far it is."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from lance_sdk.bridge.contract import (
    ComparedTarget,
    CopyPosition,
    Envelope,
    RecordsGoneError,
    Source,
    SourceChangedError,
    Target,
)

_NOTE_EVERY: Final = 1.0
"""Seconds of copying between two notes, where what is written again is stored once."""
_PIECE: Final = 64 * 1024
"""Bytes of records after which is noted what another run would double."""


class CopyProgress(Protocol):
    """Is told how far copying is."""

    def add(self, records: int, data: int) -> None:
        """Count records that were handed over, and their bytes."""
        ...


class PartitionCopy:
    """Stores the records of one partition, and notes how far it is.

    Where the target stores once what is written again, a run that ended in whatever way is
    repeated from the last note. The repetition has to have the same batches, so what is written
    is noted before it is, and is flushed nowhere but at its end. Where the target does not, each
    piece is flushed and noted by itself, and that one piece is all that a repetition can double;
    where the target's end can be compared, what it has of the piece is not written again.

    Args:
        target: where they go; it is open.
        progress: is told of every batch, or None.
        note: is told where to go on; everything before that place is stored then.
        intend: is told up to where in the source is written next, before it is.
        written: up to where an earlier run may have written after its last note.
        ended: where the target ended at that note; None where that is not known.
        clock: monotonic seconds.

    Attributes:
        place: what was noted last, or None.
        repeats: up to where records are being repeated, or None.
    """

    def __init__(
        self,
        target: Target,
        *,
        progress: CopyProgress | None = None,
        note: Callable[[CopyPosition], None] | None = None,
        intend: Callable[[int], None] | None = None,
        written: int | None = None,
        ended: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._progress = progress
        self._note = note
        self._intend = intend
        self._clock = clock
        self._last: Envelope | None = None
        self._noted = clock()
        self.place: CopyPosition | None = None
        self.repeats = written if target.stores_once else None
        self._compared = target if isinstance(target, ComparedTarget) else None
        self._ended = ended

    def __repr__(self) -> str:
        return f"<PartitionCopy to {self._target!r}, noted {self.place}>"

    def take(self, records: Sequence[Envelope]) -> None:
        """Store records, and note the place when that is due, or when there are none.

        Raises:
            LanceError: they cannot be stored; what was noted holds.
        """
        if self._target.stores_once:
            self._take_once(records)
        else:
            for piece in _pieces(records):
                if missing := self._missing(piece):
                    self._write(missing)
                self.settle()
        if not records or self._clock() - self._noted >= _NOTE_EVERY:
            self.settle()

    def _take_once(self, records: Sequence[Envelope]) -> None:
        if self.repeats is not None and records:
            last = self.repeats
            count = bisect_right(records, last, key=lambda each: each.following)
            if count:
                self._write(records[:count])
            if count == len(records) and records[-1].following < last:
                return
            self.repeats = None
            self.settle()
            records = records[count:]
        if records:
            if self._intend is not None:
                self._intend(records[-1].following)
            self._write(records)

    def _missing(self, records: Sequence[Envelope]) -> Sequence[Envelope]:
        """Return those of some records that no earlier run stored after its last note."""
        if self._compared is None or self._compared.end is None or self._ended is None:
            return records
        count = self._compared.stored(records, self._ended)
        self._ended = self._compared.end if count == len(records) else None
        if count:
            self._last = records[count - 1]
        return records[count:]

    @property
    def end(self) -> int | None:
        """Where the target ends after what was copied, or None where that cannot be told."""
        return None if self._compared is None else self._compared.end

    def _write(self, records: Sequence[Envelope]) -> None:
        self._target.write(records)
        self._last = records[-1]
        if self._progress is not None:
            self._progress.add(len(records), sum(len(each.value) for each in records))

    def settle(self) -> None:
        """Have everything stored, and note it if it is new; nothing in the middle of a repetition.

        Raises:
            LanceError: it cannot be stored; what was noted holds.
        """
        self._noted = self._clock()
        if self._last is None or self.repeats is not None:
            return
        self._target.flush()
        self.place = CopyPosition.behind(self._last)
        self._last = None
        if self._note is not None:
            self._note(self.place)


def _pieces(records: Sequence[Envelope]) -> Iterator[Sequence[Envelope]]:
    """Cut records where the place is to be noted."""
    begin, size = 0, 0
    for end, record in enumerate(records, 1):
        size += len(record.value)
        if size >= _PIECE or end == len(records):
            yield records[begin:end]
            begin, size = end, 0


def copy(
    batches: Iterable[Sequence[Envelope]],
    target: Target,
    *,
    progress: CopyProgress | None = None,
    note: Callable[[CopyPosition], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CopyPosition | None:
    """Store records in a target.

    Args:
        batches: the records, see `Source.batches`.
        target: where they go.
        progress: is told of every batch.
        note: is told where to go on, at least once a second, whenever there is nothing to copy,
            and at the end; everything before that place is stored then.
        clock: monotonic seconds.

    Returns:
        Where to go on; None when there was nothing to copy.

    Raises:
        LanceError: a record cannot be read or stored; what was noted holds.
    """
    part = PartitionCopy(target, progress=progress, note=note, clock=clock)
    for records in batches:
        part.take(records)
    part.settle()
    return part.place


def check(source: Source, place: CopyPosition) -> None:
    """Judge whether a source is the one that was copied before.

    Args:
        source: begins with the record that was copied last, and is not followed.
        place: where copying ended.

    Raises:
        SourceChangedError: another record stands there, or none.
    """
    first = None
    with source:
        try:
            first = next((records[0] for records in source.batches() if records), None)
        except RecordsGoneError:
            return  # retention took it; nobody can tell any more
    if first is None:
        raise SourceChangedError(
            f"the source has no record at offset {place.offset}, the last one that was copied: "
            "it was made again or lost its end; remove the state file to copy it from its beginning"
        )
    if CopyPosition.behind(first) != place:
        raise SourceChangedError(
            f"the record at offset {place.offset} of the source is not the last one that was "
            "copied: the topic was made again; remove the state file to copy it from its beginning"
        )
