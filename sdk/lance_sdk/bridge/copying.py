"""Copying: from a source to a target, with notes of how far it is."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from lance_sdk.bridge.contract import (
    Envelope,
    Place,
    RecordsGoneError,
    Source,
    SourceChangedError,
    Target,
)

_NOTE_EVERY: Final = 1.0
"""Seconds of copying between two notes."""


class Progress(Protocol):
    """Is told how far copying is."""

    def add(self, records: int, data: int) -> None:
        """Count records that were handed over, and their bytes."""
        ...


class Lane:
    """Stores the records of one partition, and notes how far it is.

    Args:
        target: where they go.
        progress: is told of every batch, or None.
        note: is told where to go on; everything before that place is stored then.
        clock: monotonic seconds.

    Attributes:
        place: what was noted last, or None.
    """

    def __init__(
        self,
        target: Target,
        *,
        progress: Progress | None = None,
        note: Callable[[Place], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._progress = progress
        self._note = note
        self._clock = clock
        self._last: Envelope | None = None
        self._noted = clock()
        self.place: Place | None = None

    def __repr__(self) -> str:
        return f"<Lane to {self._target!r}, noted {self.place}>"

    def take(self, records: Sequence[Envelope]) -> None:
        """Store records; note the place about once a second, and when there are none.

        Raises:
            LanceError: they cannot be stored; what was noted holds.
        """
        if records:
            self._target.write(records)
            self._last = records[-1]
            if self._progress is not None:
                self._progress.add(len(records), sum(len(each.value) for each in records))
        if not records or self._clock() - self._noted >= _NOTE_EVERY:
            self.settle()

    def settle(self) -> None:
        """Have everything stored, and note it if it is new.

        Raises:
            LanceError: it cannot be stored; what was noted holds.
        """
        if self._last is not None:
            self._target.flush()
            self.place = Place.behind(self._last)
            self._last = None
            if self._note is not None:
                self._note(self.place)
        self._noted = self._clock()


def copy(
    batches: Iterable[Sequence[Envelope]],
    target: Target,
    *,
    progress: Progress | None = None,
    note: Callable[[Place], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Place | None:
    """Store records in a target.

    Args:
        batches: the records, see `Source.batches`.
        target: where they go.
        progress: is told of every batch.
        note: is told where to go on, about once a second, whenever there is nothing to copy, and
            at the end; everything before that place is stored then.
        clock: monotonic seconds.

    Returns:
        Where to go on; None when there was nothing to copy.

    Raises:
        LanceError: a record cannot be read or stored; what was noted holds.
    """
    lane = Lane(target, progress=progress, note=note, clock=clock)
    for records in batches:
        lane.take(records)
    lane.settle()
    return lane.place


def check(source: Source, place: Place) -> None:
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
    if Place.behind(first) != place:
        raise SourceChangedError(
            f"the record at offset {place.offset} of the source is not the last one that was "
            "copied: the topic was made again; remove the state file to copy it from its beginning"
        )
