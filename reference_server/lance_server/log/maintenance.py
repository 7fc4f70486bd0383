"""Maintenance: the work that is done to the log from time to time.

Old segments are closed, expired ones go, small ones are merged, and closed ones get their
indexes. All of it is done topic by topic and step by step, between the writes of clients.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from lance_server.log.dedup import WindowLimits
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.retention.enforcement import RetentionEnforcer, Steps
from lance_server.log.retention.expiry_clock import ExpiryClock
from lance_server.log.segments.compaction import CompactionPolicy, candidates, merge, place, sweep
from lance_server.log.segments.indexes import index_names, index_segment
from lance_server.log.topic import Topic
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler, Timer
from lance_server.storage.contract import StorageBackend

if TYPE_CHECKING:
    from lance_server.log.metadata.topic_file import TopicFile
    from lance_server.log.segments.segment_files import Segment

_log = logging.getLogger(__name__)
_NANOSECONDS: Final = 1_000_000_000
T = TypeVar("T")


class _StoppedError(Exception):
    """A step's turn came after the end."""


class Maintenance:
    """Keeps topics in order. Belongs to the event loop's thread.

    Args:
        storage: the backend.
        scheduler: where work runs.
        expiry: the server's time, as far as it may be believed.
        window: the size of the duplicate windows.
        reserve: given up where retention needs room to free some.
        commit_retention_secs: seconds for which the commit of a consumer that is not connected is
            kept; 0 means for ever.
        segment_age_secs: seconds after which a segment is closed; 0 means never by age.
        compaction: which segments are merged; None means none.
        node: this server's number, for sort keys.

    Attributes:
        retention: drops what topics need not keep.
    """

    def __init__(
        self,
        storage: StorageBackend,
        scheduler: Scheduler,
        expiry: ExpiryClock,
        window: WindowLimits,
        reserve: DiskReserve,
        *,
        commit_retention_secs: int,
        segment_age_secs: int,
        compaction: CompactionPolicy | None,
        node: int,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._expiry = expiry
        self._live: WeakKeyDictionary[TopicFile, tuple[str, int]] = WeakKeyDictionary()
        """Which segment a topic is written to, and since when, by the machine's time."""
        self._reserve = reserve
        self.retention = RetentionEnforcer(storage, expiry, window, reserve, self._run)
        self._commit_retention_secs = commit_retention_secs
        self._segment_age_secs = segment_age_secs
        self._compaction = compaction
        self._node = node
        self._busy: set[TopicFile] = set()
        self._again: set[TopicFile] = set()
        """Topics of which a segment was closed while they were busy."""
        self._waiting: dict[TopicFile, list[Callable[[], None]]] = {}
        """Work that wants a topic's files for itself."""
        self._merging: dict[TopicFile, tuple[Sequence[Segment], Segment]] = {}
        """Merges that were recorded and are not finished: their sources, and what they become."""
        self._timer: Timer | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"<Maintenance busy with {len(self._busy)} topics>"

    def start(self, topics: Callable[[], Iterable[Topic]], interval: float) -> None:
        """Visit all topics now and every ``interval`` seconds until `stop`."""
        self._expiry.check()
        for topic in list(topics()):
            self.visit(topic)
        self._scheduler.run("meta", self._fill_reserve)
        if self._expiry.is_due():
            saved = self._run(self._expiry.save)
            saved.wake(lambda: self._tell_if_unsaved(saved))
        self._timer = self._scheduler.call_later(interval, lambda: self.start(topics, interval))

    def stop(self) -> None:
        """Begin nothing any more: what is not done by now is for the next start."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _tell_if_unsaved(self, saved: Completion[None]) -> None:
        """Tell why the time was not recorded: after a week of that a start doubts the clock."""
        if saved.error is not None and not self._stopped:
            _log.warning("the time could not be recorded; it is tried again: %s", saved.error)

    def _fill_reserve(self) -> None:
        if not self._stopped:
            self._reserve.fill()

    def visit(self, topic: Topic) -> None:
        """Do what is due for a topic, unless that is being done."""
        if topic.file in self._busy or self._stopped or not topic.partition.settled:
            return
        if self._is_old(topic):
            topic.partition.roll()
        self._expire_commits(topic)
        self._busy.add(topic.file)
        self._go_on(topic, self._steps(topic), None)

    def _expire_commits(self, topic: Topic) -> None:
        now_ns = self.retention.believed_ns()
        if self._commit_retention_secs and now_ns is not None:
            topic.consumers.expire(now_ns - self._commit_retention_secs * _NANOSECONDS)

    def alone(self, topic: Topic, begin: Callable[[], Callable[[], T]]) -> Completion[T]:
        """Run work for which nothing else may be done to a topic's files but writing batches.

        A merge that was recorded is finished first.

        Args:
            topic: the topic.
            begin: called on the event loop's thread when it is time; returns the work.
        """
        outcome: Completion[T] = Completion()

        def start() -> None:
            self._busy.add(topic.file)
            self._go_on(topic, self._alone(topic, begin, outcome), None)

        if topic.file in self._busy:
            self._waiting.setdefault(topic.file, []).append(start)
        else:
            start()
        return outcome

    def _alone(
        self,
        topic: Topic,
        begin: Callable[[], Callable[[], T]],
        outcome: Completion[T],
    ) -> Steps:
        try:
            yield from self._finish_merge(topic)
            result = yield self._run(begin())
        except _StoppedError:
            outcome.fail(OSError(errno.ECANCELED, "the server is stopping"))
        except Exception as error:  # noqa: BLE001 - it is handed to whoever waits
            outcome.fail(error)
        else:
            outcome.settle(result)

    def _is_wanted(self, topic: Topic) -> bool:
        """Whether something waits for the files of a topic: the rest is for the next visit."""
        return topic.file in self._waiting or topic.file in self._again

    def rolled(self, topic: Topic) -> None:
        """Note that a segment was begun or closed; keep the topic within its limit in bytes."""
        live = topic.partition.live_key
        if live is not None:
            self._live[topic.file] = live, self._expiry.boottime_ns()
        self._keep_limit(topic)

    def _keep_limit(self, topic: Topic) -> None:
        if not topic.file.retention.max_bytes or self._stopped or not topic.partition.settled:
            return
        if topic.file in self._busy:
            self._again.add(topic.file)
        else:
            self._busy.add(topic.file)
            self._go_on(topic, self._limiting(topic), None)

    def _end(self, topic: Topic) -> None:
        self._busy.discard(topic.file)
        if waiting := self._waiting.pop(topic.file, None):
            first, *others = waiting
            if others:
                self._waiting[topic.file] = others
            first()
            return
        if topic.file in self._again:
            self._again.discard(topic.file)
            self._keep_limit(topic)

    def _is_old(self, topic: Topic) -> bool:
        limits = (self._segment_age_secs, topic.file.retention.max_age_secs)
        age = min((limit for limit in limits if limit), default=0)
        live = topic.partition.live_key
        if live is None:
            return False
        known, since = self._live.get(topic.file, (None, 0))
        if live != known:  # it begins at this moment: who waited for its batch is here first
            self._live[topic.file] = live, self._expiry.boottime_ns()
            return False
        return bool(age and since + age * _NANOSECONDS < self._expiry.boottime_ns())

    def _go_on(self, topic: Topic, steps: Steps, last: Completion[Any] | None) -> None:
        """Take the next step with what the last one brought."""
        try:
            if last is not None and last.error is not None:
                following = steps.throw(last.error)
            else:
                following = steps.send(None if last is None else last.result())
        except (StopIteration, _StoppedError):
            self._end(topic)
        except OSError as error:
            self._end(topic)
            _log.warning("topic %d: upkeep is tried again: %s", topic.file.identity.id, error)
        except Exception:  # noqa: BLE001 - it is told; a topic that stays busy is kept in order no more
            self._end(topic)
            _log.exception("topic %d: upkeep failed; it is tried again", topic.file.identity.id)
        else:
            following.wake(lambda: self._go_on(topic, steps, following))

    def _run(self, work: Callable[[], T]) -> Completion[T]:
        """Run a step on the thread of topic files, unless this was stopped by then."""

        def unless_stopped() -> T:
            if self._stopped:
                raise _StoppedError
            return work()

        return self._scheduler.run("meta", unless_stopped)

    def _steps(self, topic: Topic) -> Steps:
        yield from self._finish_merge(topic)
        yield from self.retention.steps(topic)
        yield from self._compact(topic)
        yield from self._index(topic)

    def _limiting(self, topic: Topic) -> Steps:
        yield from self._finish_merge(topic)  # before what it makes may be dropped
        yield from self.retention.steps(topic)

    def _compact(self, topic: Topic) -> Steps:
        partition, file = topic.partition, topic.file
        while self._compaction is not None and not self._is_wanted(topic):
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

    def _finish_merge(self, topic: Topic) -> Steps:
        """Finish the merge that was recorded, if there is one; each step may be repeated."""
        partition, file = topic.partition, topic.file
        if file not in self._merging:
            return
        sources, merged = self._merging[file]
        yield self._run(lambda: place(self._storage, file))
        if sources[0] in partition.segment_list:
            partition.replace(sources, merged)
            _log.info("topic %d: %d segments are one now", file.identity.id, len(sources))
        yield self._run(lambda: self._reserve.with_room(lambda: sweep(self._storage, file)))
        del self._merging[file]

    def _index(self, topic: Topic) -> Steps:
        segments = topic.partition.segment_list
        due = [each for each in segments if each.live is None and not each.indexed]
        if not due:
            return
        names = yield self._run(lambda: set(self._storage.list_dir(topic.file.folder)))
        problem: OSError | None = None
        for segment in due:
            if self._is_wanted(topic):
                break
            if not names.issuperset(index_names(segment.name.key)):
                try:
                    yield self._run(lambda: index_segment(self._storage, segment, self._node))  # noqa: B023 - as above
                except OSError as error:  # the others are indexed nevertheless
                    problem = error
                    continue
            segment.indexed = True
        if problem is not None:
            raise problem
