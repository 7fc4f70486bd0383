"""What is done to the log from time to time.

Old segments are closed, expired ones go, small ones are merged, and closed ones get their
indexes. All of it is done topic by topic and step by step, between the writes of clients.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from lance_server.log.compaction import CompactionPolicy, candidates, merge, place, sweep
from lance_server.log.dedup import WindowLimits
from lance_server.log.indexes import index_names, index_segment
from lance_server.log.partition import Partition
from lance_server.log.retention import expired, prune_windows, remove_retired
from lance_server.log.segment import Segment
from lance_server.log.topic_file import TopicFile
from lance_server.outcome import Outcome
from lance_server.scheduling import Scheduler, Timer
from lance_server.storage.contract import StorageBackend

_log = logging.getLogger(__name__)
_NANOSECONDS: Final = 1_000_000_000
T = TypeVar("T")
Steps: TypeAlias = Generator[Outcome[Any], Any, None]
"""Yields what must be waited for; gets its result, or its error thrown."""


class _StoppedError(Exception):
    """A step's turn came after the end."""


class Kept(Protocol):
    """A topic, as far as its upkeep goes."""

    file: TopicFile
    partition: Partition


class Upkeep:
    """Keeps topics in order. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: where work runs.
        clock: the server's time in nanoseconds.
        window: the size of the duplicate windows.
        segment_age_secs: seconds after which a segment is closed; 0 means never by age.
        compaction: which segments are merged; None means none.
        node: this server's number, for sort keys.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        clock: Callable[[], int],
        window: WindowLimits,
        *,
        segment_age_secs: int,
        compaction: CompactionPolicy | None,
        node: int,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._clock = clock
        self._window = window
        self._segment_age_secs = segment_age_secs
        self._compaction = compaction
        self._node = node
        self._busy: set[TopicFile] = set()
        self._merging: dict[TopicFile, tuple[Sequence[Segment], Segment]] = {}
        """Merges that were recorded and are not finished: their sources, and what they become."""
        self._timer: Timer | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"<Upkeep busy with {len(self._busy)} topics>"

    def start(self, topics: Callable[[], Iterable[Kept]], interval: float) -> None:
        """Visit all topics now and every ``interval`` seconds until `stop`."""
        for topic in list(topics()):
            self.visit(topic)
        self._timer = self._scheduler.call_later(interval, lambda: self.start(topics, interval))

    def stop(self) -> None:
        """Begin nothing any more: what is not done by now is for the next start."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def plan(self, topic: Kept) -> Sequence[Segment]:
        """Return the segments that a visit would drop, oldest first; nothing is changed."""
        segments = topic.partition.segment_list
        return segments[: expired(segments, topic.file.retention, self._clock())]

    def visit(self, topic: Kept) -> None:
        """Do what is due for a topic, unless that is being done."""
        if topic.file in self._busy or self._stopped:
            return
        if self._is_old(topic):
            topic.partition.roll()
        self._busy.add(topic.file)
        self._go_on(topic, self._steps(topic), None)

    def _is_old(self, topic: Kept) -> bool:
        limits = (self._segment_age_secs, topic.file.retention.max_age_secs)
        age = min((limit for limit in limits if limit), default=0)
        begun_ns = topic.partition.begun_ns
        return bool(age and begun_ns and begun_ns + age * _NANOSECONDS < self._clock())

    def _go_on(self, topic: Kept, steps: Steps, last: Outcome[Any] | None) -> None:
        """Take the next step with what the last one brought."""
        try:
            if last is not None and last.error is not None:
                following = steps.throw(last.error)
            else:
                following = steps.send(None if last is None else last.result())
        except (StopIteration, _StoppedError):
            self._busy.discard(topic.file)
        except OSError as error:
            self._busy.discard(topic.file)
            _log.warning("topic %d: upkeep is tried again: %s", topic.file.identity.id, error)
        else:
            following.wake(lambda: self._go_on(topic, steps, following))

    def _run(self, work: Callable[[], T]) -> Outcome[T]:
        """Run a step on the thread of topic files, unless this was stopped by then."""

        def unless_stopped() -> T:
            if self._stopped:
                raise _StoppedError
            return work()

        return self._scheduler.run("meta", unless_stopped)

    def _steps(self, topic: Kept) -> Steps:
        yield from self._finish_merge(topic)
        yield from self._retain(topic)
        yield from self._compact(topic)
        yield from self._index(topic)

    def _retain(self, topic: Kept) -> Steps:
        partition, file = topic.partition, topic.file
        gone = self.plan(topic)
        if not gone and not file.retiring:
            return
        floor = partition.floor_behind(gone)
        keys = [segment.name.key for segment in gone]
        yield self._run(lambda: file.retire(keys, floor))
        partition.drop(gone, floor)
        if gone:
            _log.info(
                "topic %d: retention drops %d segments; it begins at offset %d now",
                file.identity.id,
                len(gone),
                floor.offset,
            )
        now_ns, present = self._clock(), partition.batches
        yield self._run(lambda: self._remove(file, now_ns, present))

    def _remove(self, file: TopicFile, now_ns: int, present: int) -> None:
        remove_retired(self._storage, file)
        prune_windows(self._storage, file.folder, self._window, now_ns, present)

    def _compact(self, topic: Kept) -> Steps:
        partition, file = topic.partition, topic.file
        while self._compaction is not None:
            sources = candidates(
                partition.segment_list, self._compaction, partition.max_segment_size
            )
            if not sources:
                return
            merged = yield self._run(lambda: merge(self._storage, file, sources))  # noqa: B023 - it is awaited before the loop goes on
            if merged is None:
                for segment in sources:
                    segment.unmergeable = True
                continue
            self._merging[file] = sources, merged
            yield from self._finish_merge(topic)

    def _finish_merge(self, topic: Kept) -> Steps:
        """Finish the merge that was recorded, if there is one; each step may be repeated."""
        partition, file = topic.partition, topic.file
        if file not in self._merging:
            return
        sources, merged = self._merging[file]
        yield self._run(lambda: place(self._storage, file))
        if sources[0] in partition.segment_list:
            partition.replace(sources, merged)
            _log.info("topic %d: %d segments are one now", file.identity.id, len(sources))
        yield self._run(lambda: sweep(self._storage, file))
        del self._merging[file]

    def _index(self, topic: Kept) -> Steps:
        segments = topic.partition.segment_list
        due = [each for each in segments if each.live is None and not each.indexed]
        if not due:
            return
        names = yield self._run(lambda: set(self._storage.list_dir(topic.file.folder)))
        for segment in due:
            if not names.issuperset(index_names(segment.name.key)):
                yield self._run(lambda: index_segment(self._storage, segment, self._node))  # noqa: B023 - as above
            segment.indexed = True
