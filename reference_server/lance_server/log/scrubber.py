"""Scrubbing: closed segments are read against their checksums, slowly, so that damage is found.

A batch is compared when it is read for the first time, which for old records may be never. The
scrubber reads everything once in some days, a little at a time, and tells what is damaged.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from lance_server.log.recovery.recovery_report import Finding, RecoveryReport
from lance_server.log.segments.segment_files import Segment
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.log.topic import Topic
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler, Timer
from lance_server.storage.contract import StorageBackend, opened, read_at
from lance_spec.checksum import CRC32C
from lance_spec.messages.engine import SidecarEntry

_log = logging.getLogger(__name__)
PAUSE: Final = 10.0
"""Seconds between two pieces of the work."""
_DAY: Final = 24 * 3600
Topics: TypeAlias = Callable[[], Iterable[Topic]]
"""Returns the topics that there are now."""


class _ScrubPosition(NamedTuple):
    """Where the next piece begins: the topic, the segment by its base, the entry."""

    topic_id: int = -1
    base_offset: int = 0
    entry: int = 0


class _Piece(NamedTuple):
    """The result of reading a piece.

    Attributes:
        behind: number of the next entry, or None at the end of the segment.
        size: bytes of data that were read.
        damage: (offset, length, what is wrong) of each range.
    """

    behind: int | None
    size: int
    damage: list[tuple[int, int, str]]


class Scrubber:
    """Reads closed segments in turn. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: where work runs.
        report: takes what is damaged.
        days: in how many days everything is read once; 0 means that nothing is.

    Attributes:
        size: bytes of data that were compared.
        passes: how often everything was read.
    """

    def __init__(
        self, storage: StorageBackend, scheduler: Scheduler, report: RecoveryReport, days: float
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._report = report
        self._days = days
        self._position = _ScrubPosition()
        self._timer: Timer | None = None
        self._stopped = False
        self.size = 0
        self.passes = 0

    def __repr__(self) -> str:
        return f"<Scrubber at {self._position}, {self.size} bytes, {self.passes} passes>"

    def start(self, topics: Topics) -> None:
        """Read a piece every few seconds from now on, until `stop`."""
        if self._days:
            self._timer = self._scheduler.call_later(PAUSE, lambda: self._go_on(topics))

    def stop(self) -> None:
        """Begin no further piece."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self, topics: Topics, budget: int | None = None) -> None:
        """Read on, until so many bytes were read: by default the share of ten seconds."""
        if self._stopped:
            return
        following = _closed(topics(), self._position.topic_id)
        found = next((each for each in following if _place_of(*each) >= self._position[:2]), None)
        if found is None:
            self.passes += self._position != _ScrubPosition()
            self._position = _ScrubPosition()
            self.start(topics)
            return
        topic, segment = found
        resumed = _place_of(topic, segment) == self._position[:2]
        first = self._position.entry if resumed else 0
        most = self._share(topics) if budget is None else budget
        piece = self._scheduler.run("read", lambda: self._compare(segment, first, most))
        piece.wake(lambda: self._compared(topic, segment, piece, topics, most))

    def _share(self, topics: Topics) -> int:
        """Return how many bytes are to be read in ten seconds.

        It is of what there is now, not when the pass began: topics that grow faster than they
        were read then would keep the pass from ever ending.
        """
        total = sum(segment.size for topic in topics() for segment in _closed_of(topic))
        return int(total * PAUSE / (self._days * _DAY)) + 1

    def _compared(
        self,
        topic: Topic,
        segment: Segment,
        piece: Completion[_Piece],
        topics: Topics,
        budget: int,
    ) -> None:
        behind, left = None, 0
        if piece.error is None:
            found = piece.result()
            behind, left = found.behind, budget - found.size
            self.size += found.size
            for offset, length, note in found.damage:
                self._report.add(
                    Finding("damage", topic.id, segment.data_path, offset, length, note)
                )
        elif not isinstance(piece.error, FileNotFoundError):  # else it was dropped or merged
            _log.error("%s cannot be scrubbed: %s", segment.data_path, piece.error)
        if behind is None:
            self._position = _ScrubPosition(topic.id, segment.base_offset + 1)
        else:
            self._position = _ScrubPosition(topic.id, segment.base_offset, behind)
        if left > 0:  # a small segment is not worth a pause of its own
            self._go_on(topics, left)
        else:
            self.start(topics)

    def _compare(self, segment: Segment, first: int, budget: int) -> _Piece:
        """Compare batches with their checksums until so many bytes were read (any thread)."""
        size, damage = 0, list[tuple[int, int, str]]()
        with (
            opened(self._storage, segment.data_path) as data,
            opened(self._storage, segment.sidecar_path) as sidecar,
        ):
            for number, entry in enumerate(read_entries(self._storage, sidecar, first), first):
                if size >= budget:
                    return _Piece(number, size, damage)
                if entry is None:
                    damage.append((0, 0, f"entry {number} does not match its checksum (scrub)"))
                    continue
                length, start = entry.stored_length, entry.relative_offset
                size += length
                if problem := self._problem(data, entry):
                    damage.append((start, length, f"the batch {problem} (scrub)"))
        return _Piece(None, size, damage)

    def _problem(self, data: int, entry: SidecarEntry) -> str | None:
        """Return what is wrong with a batch, or None."""
        try:
            stored = read_at(self._storage, data, entry.stored_length, entry.relative_offset)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return f"cannot be read: {error.strerror}"
        matches = CRC32C.compute(stored) == entry.stored_crc
        return None if matches else "does not match its checksum"


def _closed(topics: Iterable[Topic], first: int) -> Iterator[tuple[Topic, Segment]]:
    """Yield the closed segments of topics from an id on, in the order in which they are read."""
    later = (each for each in topics if each.id >= first)
    for topic in sorted(later, key=lambda each: each.id):
        for segment in _closed_of(topic):
            yield topic, segment


def _closed_of(topic: Topic) -> Iterator[Segment]:
    """Yield the segments of a topic that are closed, if its log is certain."""
    segments = topic.partition.segment_list if topic.partition.settled else ()
    return (segment for segment in segments if segment.live is None)


def _place_of(topic: Topic, segment: Segment) -> tuple[int, int]:
    return topic.id, segment.base_offset
