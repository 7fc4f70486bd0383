"""A copy from its beginning to its end, through whatever happens to the connections."""

import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.bridge.contract import (
    Envelope,
    RecordsGoneError,
    Source,
    SourceChangedError,
    Target,
)
from lance_sdk.bridge.copying import CopyProgress, PartitionCopy, check
from lance_sdk.bridge.endpoints import ReadOptions
from lance_sdk.bridge.shutdown import Stop
from lance_sdk.bridge.state import CopyState
from lance_sdk.errors import LanceError

_BASE: Final = 0.1
_CAP: Final = 5.0
_LOOK_AGAIN: Final = 0.25
"""Seconds in which every partition that is followed is looked at once."""
_Way: TypeAlias = tuple[Iterator[Sequence[Envelope]], PartitionCopy]
"""From a partition to where its records go."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What opens both ends.

    Attributes:
        partitions: returns which partitions of the source are read.
        source: returns the source, to be read in some way.
        target: returns where a partition goes, of so many.
    """

    partitions: Callable[[], Sequence[int | None]]
    source: Callable[[ReadOptions], Source]
    target: Callable[[int | None, int], Target]


class _SourceFailedError(Exception):
    """A source cannot be read on; what came before is still on its way to the target."""

    def __init__(self, error: LanceError) -> None:
        super().__init__(str(error))
        self.error = error


class Bridge:
    """Copies all partitions of a topic.

    Args:
        ends: what opens both ends.
        state: how far it is; it is kept up to date.
        stop: asks for the end.
        progress: is told of every batch.
        tell: is told of errors that pass.
        follow: whether to go on at the end of the source.
        wait_at_start: whether an error that passes is tried again also before both ends were
            reached for the first time; otherwise it ends the copy, since the address may be wrong.
        retry_for: seconds for which an error that passes is tried again while nothing is copied;
            None means for ever.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        ends: Ends,
        state: CopyState,
        stop: Stop,
        *,
        progress: CopyProgress,
        tell: Callable[[LanceError], None],
        follow: bool = False,
        wait_at_start: bool = False,
        retry_for: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ends = ends
        self._state = state
        self._stop = stop
        self._progress = progress
        self._tell = tell
        self._follow = follow
        self._retry_for = math.inf if retry_for is None else retry_for
        self._clock = clock
        self._opened = wait_at_start

    def __repr__(self) -> str:
        return f"<Bridge {self._state!r}>"

    def run(self) -> None:
        """Copy until the end, or until that is asked for.

        Raises:
            SourceChangedError: the source is not the one that was copied before.
            RecordsGoneError: it does not keep what was to be copied next.
            LanceError: it cannot go on; what was noted holds.
        """
        backoff = Backoff(_BASE, _CAP, random.SystemRandom())
        deadline: float | None = None
        while self._stop.asked is None:
            before = dict(self._state.places)
            try:
                self._copy()
            except LanceError as error:
                if not (self._opened and error.retryable):
                    raise
                if deadline is None or self._state.places != before:
                    backoff.reset()
                    deadline = self._clock() + self._retry_for
                if self._clock() >= deadline:
                    raise
                self._tell(error)
                self._stop.pause(backoff.next_delay())
            else:
                return

    def _copy(self) -> None:
        partitions = self._ends.partitions()
        with ExitStack() as stack:
            ways = [self._way(stack, each, len(partitions)) for each in partitions]
            self._opened = True
            try:
                for part, records in self._stop.until(_in_turn(ways)):
                    part.take(records)
            except _SourceFailedError as failed:
                for _, part in ways:
                    part.settle()  # what came is not to be copied once more
                raise _told(failed.error) from failed.error.__cause__
            for _, part in ways:
                part.settle()
                if part.repeats is not None and self._stop.asked is None:
                    raise SourceChangedError(
                        f"the source ends before offset {part.repeats}, up to where an earlier run "
                        "copied: it was made again or lost its end; remove the state file to copy "
                        "it from its beginning"
                    )

    def _way(self, stack: ExitStack, partition: int | None, count: int) -> _Way:
        number = partition or 0
        source = stack.enter_context(self._source(partition, count))
        target = stack.enter_context(self._ends.target(partition, count))
        part = PartitionCopy(
            target,
            progress=self._progress,
            note=lambda place: self._state.save(number, place, part.end),
            intend=partial(self._state.intend, number),
            written=self._state.written.get(number),
            ended=self._state.ends.get(number),
        )
        if part.end is not None and number not in self._state.ends:
            self._state.begin(number, part.end)
        return source.batches(), part

    def _source(self, partition: int | None, count: int) -> Source:
        """Return a partition from where it is to be read on, once that means what it meant."""
        reading = ReadOptions(partition=partition, follow=self._follow, wait=_LOOK_AGAIN / count)
        place = self._state.places.get(partition or 0)
        if place is None:
            return self._ends.source(reading)
        check(self._ends.source(replace(reading, start=place.offset, follow=False)), place)
        return self._ends.source(replace(reading, start=place.following))


def _told(error: LanceError) -> LanceError:
    """Return an error of a source as its user is to read it."""
    if not isinstance(error, RecordsGoneError):
        return error
    return RecordsGoneError(
        f"records were removed from the source before they were copied: {error}; remove the "
        "state file to go on with the first one that is kept"
    )


def _in_turn(ways: Sequence[_Way]) -> Iterator[tuple[PartitionCopy, Sequence[Envelope]]]:
    """Yield the next records of each partition that has not ended; nothing of one that ends."""
    waiting = deque(ways)
    while waiting:
        batches, part = waiting.popleft()
        try:
            records = next(batches, None)
        except LanceError as error:
            raise _SourceFailedError(error) from error
        if records is not None:
            waiting.append((batches, part))
        yield part, records or ()
