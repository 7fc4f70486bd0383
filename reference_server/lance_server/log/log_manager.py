"""The log of all topics: opening it, serving it, closing it."""

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lance_server.errors import DataDirError
from lance_server.log.clock import Clock, ClockWatch
from lance_server.log.dedup import WindowLimits
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.flusher import Flusher
from lance_server.log.log_options import LogOptions
from lance_server.log.maintenance import Maintenance
from lance_server.log.metadata.catalog import TopicIdAllocator
from lance_server.log.metadata.consumer_offsets import FILE_NAME as CONSUMERS_FILE
from lance_server.log.metadata.consumer_offsets import ConsumerOffsets
from lance_server.log.metadata.partition_description import base_name
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.metadata.topic_folders import TopicFolders
from lance_server.log.partition import Partition
from lance_server.log.partitioned_topics import PartitionedTopics, wait_for_all
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.reading.segment_cache import SegmentCache
from lance_server.log.recovery.recovery_report import Finding, RecoveryReport
from lance_server.log.recovery.startup import LogOpener, Opened, save_clean_marker
from lance_server.log.reopening import Reopener
from lance_server.log.retention.expiry_clock import ExpiryClock
from lance_server.log.retention.rules import tell_if_best_effort
from lance_server.log.scrubber import Scrubber
from lance_server.log.segments.batch_times import BatchTimes
from lance_server.log.single_node import SingleNode
from lance_server.log.snapshot import SnapshotMaker, Snapshots
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal, storage_refusal, topic_not_found
from lance_server.runtime.completion import Completion, pass_on
from lance_server.runtime.disk_backlog import Backlog
from lance_server.runtime.platform import boottime_ns
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend, WouldBlockError
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError
from lance_spec.limits import DEFAULT_TOPIC_ID

if TYPE_CHECKING:
    from lance_server.log.copies import CopyOffers

__all__ = ["Clock", "LogManager", "LogOptions", "Topic"]

_log = logging.getLogger(__name__)


class LogManager(SingleNode):
    """Everything that is stored. Belongs to the event loop's thread.

    Attributes:
        report: what was found when it was opened.
        backlog: what is on its way to the disk.
        flusher: when batches become durable.
        upkeep: what is done to topics from time to time.
        scrubber: reads closed segments against their checksums.
        expiry: whether the clock may be believed when something is to expire.
        partitioned: topics that are created, changed and deleted as one.
        snapshots: copies of the data directory while it is served.
        copies: those that a node of a cluster offers to others, or None.
        creating: topics that are being created, by name.
    """

    def __init__(
        self,
        data_dir: Path,
        storage: StorageBackend,
        scheduler: Scheduler,
        options: LogOptions,
        clock: Clock,
        *,
        stopwatch: Callable[[], float] = time.perf_counter,
        boottime: Callable[[], int] = boottime_ns,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._options = options
        self.clock = clock
        self._data_dir = data_dir
        self._cache = SegmentCache(storage, max_files=options.open_segments)
        folder = data_dir / "segments"
        self._catalog = TopicIdAllocator(storage, folder)
        self._folders = TopicFolders(storage, self._catalog, folder, options.window, clock)
        self._topics: dict[int, Topic] = {}
        self._by_name: dict[str, int] = {}
        self.creating: dict[str, Completion[Topic]] = {}
        self._unavailable: dict[int, str] = {}
        self._reopener = Reopener(scheduler)
        self._opener: LogOpener | None = None
        self._reserve = DiskReserve(storage, data_dir, options.disk_reserve)
        self.expiry = ExpiryClock(storage, data_dir, clock, boottime)
        self.partitioned = PartitionedTopics(
            self, self._catalog, self._folders, scheduler, self._reserve
        )
        self._watch = ClockWatch()
        self.backlog = Backlog()
        self.flusher = Flusher(storage, scheduler, options.flush, self.backlog, stopwatch)
        self.upkeep = Maintenance(
            storage,
            scheduler,
            self.expiry,
            options.window,
            self._reserve,
            commit_retention_secs=options.commit_retention_secs,
            segment_age_secs=options.segment_age_secs,
            compaction=options.compaction,
            node=options.node,
        )
        self.snapshots: SnapshotMaker = Snapshots(self, data_dir, storage, scheduler, self.upkeep)
        self.copies: CopyOffers | None = None
        self.report = RecoveryReport()
        self.scrubber = Scrubber(storage, scheduler, self.report, options.scrub_days)

    def __repr__(self) -> str:
        return f"<LogManager {self._data_dir}: topics={len(self._topics)}, {self.flusher!r}>"

    @classmethod
    def open(
        cls,
        data_dir: Path,
        storage: StorageBackend,
        scheduler: Scheduler,
        options: LogOptions | None = None,
        clock: Clock = time.time_ns,
        *,
        stopwatch: Callable[[], float] = time.perf_counter,
        boottime: Callable[[], int] = boottime_ns,
    ) -> Self:
        """Bring a data directory back and return its log, ready to serve.

        Args:
            data_dir: the directory.
            storage: the backend.
            scheduler: the loop and its worker threads.
            options: how the log behaves.
            clock: the server's wall clock in nanoseconds.
            stopwatch: seconds, for how long flushes take.
            boottime: nanoseconds that pass whatever is done to the wall clock.

        Raises:
            DataDirError: it cannot be used; the message names the file.
            OSError: the disk refused.
        """
        engine = cls(
            data_dir,
            storage,
            scheduler,
            options or LogOptions(),
            clock,
            stopwatch=stopwatch,
            boottime=boottime,
        )
        opener = LogOpener(
            data_dir,
            storage,
            engine._catalog,
            limits=engine._options.window,
            report=engine.report,
            reserve=engine._reserve,
            clock=clock,
            expiry=engine.expiry,
        )
        engine._opener = opener
        for opened in opener.open():
            engine._serve(engine._add(opened), opened.problem, opener)
        for topic_id, reason in opener.refused.items():
            engine._serve_later(topic_id, reason, opener)
        engine._unavailable = opener.unavailable
        engine.partitioned.load()
        created = sum(1 for _ in engine.topics())
        noun = "topic" if created == 1 else "topics"
        _log.info("log opened: %d %s and the default one, %s", created, noun, engine.report)
        return engine

    def _add(self, opened: Opened) -> Topic:
        opened.window.expires = lambda: self.expiry.trusted
        partition = Partition(
            self._storage,
            self._cache,
            opened.file,
            opened.log,
            opened.window,
            backlog=self.backlog,
            on_dirty=self.flusher.mark_dirty,
            segment_size=self._options.segment_size,
            synced=self._options.synced,
            on_doubt=lambda partition: self._on_doubt(opened.file.identity.id, partition),
            on_roll=lambda: self._on_roll(opened.file.identity.id),
        )
        consumers = ConsumerOffsets(
            self._storage, self._scheduler, opened.file.folder, clock=self.expiry.now_ns
        )
        topic = Topic(opened.file, partition, consumers)
        self._register(topic)
        return topic

    def _register(self, topic: Topic) -> None:
        self._topics[topic.id] = topic
        topic.part = self.partitioned.part_of(topic.id)
        if topic.id != DEFAULT_TOPIC_ID:
            self._by_name[topic.file.identity.name] = topic.id

    def _load_consumers(self, topic: Topic) -> None:
        """Read a topic's committed offsets; without them its consumers begin again.

        Raises:
            OSError: the disk refused.
        """
        path = topic.file.folder / CONSUMERS_FILE
        try:
            kind, problem = "repaired", topic.consumers.load()
        except (DataDirError, DecodeError) as error:
            kind, problem = "damage", f"committed offsets are lost: {error}"
        if problem:
            self.report.add(Finding(kind, topic.id, path, 0, 0, problem))

    # Topics that the disk does not let be written to -------------------------------------------

    @property
    def problems(self) -> dict[int, str]:
        """Why topics cannot be written to or cannot be served, by id."""
        return {**self._unavailable, **self._reopener.reasons}

    def _serve(self, topic: Topic, problem: str | None, opener: LogOpener) -> None:
        """Serve a topic that was found; what the disk refused is tried again until it succeeds."""
        if problem is None:
            try:
                self._load_consumers(topic)
            except OSError as error:
                problem = str(error)
            else:
                return
        self._serve_unsettled(topic, problem, opener)

    def _serve_unsettled(self, topic: Topic, problem: str, opener: LogOpener) -> None:
        """Serve what can be read of a topic, and settle it as soon as the disk allows it."""
        topic.partition.close_unsettled(problem)
        topic.consumers.closed = problem

        def settle() -> Opened:
            opened = opener.open_topic(topic.id, topic.file)
            assert opened is not None, "it has a file"
            self._load_consumers(topic)
            return opened

        def done(opened: Opened) -> None:
            opened.window.expires = lambda: self.expiry.trusted
            topic.partition.adopt(opened.log, opened.window)
            topic.consumers.closed = None

        self._reopener.close(topic.id, problem, settle, done, at_once=False)

    def _serve_later(self, topic_id: int, reason: str, opener: LogOpener) -> None:
        """Serve a topic of which nothing is known, as soon as the disk lets it be opened."""

        def done(opened: Opened | None) -> None:
            if opened is None:
                return
            name = opened.file.identity.name
            if name in self._by_name or name in self.creating:
                self._unavailable[topic_id] = f"its name {name!r} was given to another topic"
                _log.error("topic %d: %s", topic_id, self._unavailable[topic_id])
            else:
                self._serve(self._add(opened), opened.problem, opener)

        self._reopener.close(
            topic_id, reason, lambda: opener.open_topic(topic_id), done, at_once=False
        )

    def _on_roll(self, topic_id: int) -> None:
        topic = self._topics.get(topic_id)
        if topic is not None:
            self.upkeep.rolled(topic)

    def _on_doubt(self, topic_id: int, partition: Partition) -> None:
        """Bring a topic back that closed itself for writing."""
        if topic_id in self._topics:  # or else it is being deleted
            self._reopener.close(
                topic_id, str(partition.closed), partition.recover, lambda _: partition.reopen()
            )

    # What belongs to topics, for other protocols -------------------------------------------------

    @property
    def storage(self) -> StorageBackend:
        """What the log is kept on."""
        return self._storage

    @property
    def scheduler(self) -> Scheduler:
        """When the log's work runs."""
        return self._scheduler

    # Topics ----------------------------------------------------------------------------------

    @property
    def window(self) -> WindowLimits:
        """How far back repeated batches are recognised."""
        return self._options.window

    def topic(self, topic_id: int, *, text: str = "Topic not found") -> Topic:
        """Return a topic.

        Args:
            topic_id: its number.
            text: how the published server words its absence for this command.

        Raises:
            Refusal: there is none, there is none any more, or it cannot be served.
        """
        topic = self._topics.get(topic_id)
        if topic is not None:
            return topic
        if reason := self.problems.get(topic_id):
            raise Refusal(ErrorCode.STORAGE_ERROR, f"Topic {topic_id} cannot be served: {reason}")
        raise topic_not_found(topic_id, existed=topic_id < self._catalog.next_id, text=text)

    def find(self, topic_id: int) -> Topic | None:
        """Return a topic that can be served, or None."""
        return self._topics.get(topic_id)

    def topic_named(self, name: str) -> Topic | None:
        """Return the topic with a name in Unicode NFC, or None."""
        topic_id = self._by_name.get(name)
        return None if topic_id is None else self._topics.get(topic_id)

    def topics(self) -> Iterator[Topic]:
        """Yield the topics that were created, by id; the default topic is not listed (AMB-34)."""
        return (self._topics[key] for key in sorted(self._topics) if key != DEFAULT_TOPIC_ID)

    def topics_with_default(self) -> list[Topic]:
        """Return all topics, by id."""
        return [self._topics[key] for key in sorted(self._topics)]

    def topic_figures(self) -> dict[str, dict[str, int]]:
        """Return what is counted of each topic, by its id."""
        return {
            str(topic.id): {
                "end_offset": topic.partition.end_offset,
                "record_count": topic.partition.end_record,
                "segments": topic.partition.segments,
            }
            for topic in list(self._topics.values())
        }

    def create_topic(self, name: str, retention: Retention) -> Completion[Topic]:
        """Create a topic; the outcome is settled when it is durable.

        Args:
            name: a valid name in Unicode NFC.
            retention: its policy.

        Raises:
            Refusal: the name is taken, or there are too many topics.
        """
        busy = self.partitioned.busy
        for first in (self.creating.get(name), busy.get(name), busy.get(base_name(name) or "")):
            if first is not None:
                return self._create_after(first, name, retention)
        if name in self._by_name:
            raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists")
        self.partitioned.check_name(name)
        if not self.room():
            raise Refusal(
                ErrorCode.UNKNOWN_ERROR,
                f"The server holds {self._options.max_topics} topics, its limit; delete some",
            )
        outcome = self.creating[name] = Completion()
        built = self._scheduler.run("meta", lambda: self._folders.build(name, retention))
        built.wake(lambda: self._created(name, built, outcome))
        return outcome

    def _create_after(
        self, first: Completion[Any], name: str, retention: Retention
    ) -> Completion[Topic]:
        """Wait for another creation of a name: who is refused must find the topic listed."""
        outcome: Completion[Topic] = Completion()

        def go_on() -> None:
            try:
                again = self.create_topic(name, retention)
            except Refusal as refusal:
                outcome.fail(refusal)
            else:
                again.wake(lambda: pass_on(again, outcome))

        first.wake(go_on)
        return outcome

    def _created(self, name: str, built: Completion[Opened], outcome: Completion[Topic]) -> None:
        del self.creating[name]
        if built.error is not None:
            outcome.fail(_as_refusal(built.error))
        else:
            outcome.settle(self.adopt(built.result()))

    def delete_topic(self, topic_id: int, *, text: str) -> Completion[None]:
        """Delete a topic; batches that were accepted before are settled first.

        Raises:
            Refusal: there is no such topic, or it is the default one.
        """
        topic = self.topic(topic_id, text=text)
        if topic_id == DEFAULT_TOPIC_ID:
            raise Refusal(ErrorCode.ACCESS_DENIED, "The default topic cannot be deleted", text=text)
        self.partitioned.check_alone(topic)
        outcome: Completion[None] = Completion()
        wait_for_all(self.withdraw(topic), lambda: self._erase(topic, outcome))
        return outcome

    def _erase(self, topic: Topic, outcome: Completion[None]) -> None:
        self.abandon(topic)
        erased = self._scheduler.run(
            "meta", lambda: self._reserve.with_room(lambda: self._folders.erase(topic.file))
        )
        erased.wake(lambda: self._erased(topic, erased, outcome))

    def _erased(
        self, topic: Topic, erased: Completion[OSError | None], outcome: Completion[None]
    ) -> None:
        if erased.error is not None:
            self.restore(topic)
        error = erased.error or erased.result()
        if error is not None:
            outcome.fail(_as_refusal(error))
        else:
            outcome.settle(None)

    # The registry of partitioned topics --------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all topics, and those that are being given."""
        return [*self._by_name, *self.creating]

    def room(self) -> int:
        """Return how many topics may be created."""
        return max(0, self._options.max_topics + 1 - len(self._topics) - len(self.creating))

    def adopt(self, opened: Opened) -> Topic:
        """Serve a topic that was created."""
        tell_if_best_effort(opened.file.identity.id, opened.file.retention)
        return self._add(opened)

    def withdraw(self, topic: Topic) -> list[Completion[Any]]:
        """Serve a topic no more; return what is to be waited for before its folder goes."""
        topic.partition.deleted = True
        del self._topics[topic.id]
        del self._by_name[topic.file.identity.name]
        attempt, snapshot = self._reopener.forget(topic.id), self.snapshots.under_way
        waiting: list[Completion[Any] | None] = [topic.partition.last_outcome, attempt, snapshot]
        return [each for each in waiting if each is not None]

    def abandon(self, topic: Topic) -> None:
        """Close the files of a topic that was withdrawn."""
        topic.partition.abandon()
        topic.partition.notify()

    def restore(self, topic: Topic) -> None:
        """Serve a topic again that could not be deleted."""
        topic.partition.deleted = False
        self._register(topic)
        if topic.partition.closed is not None and self._opener is not None:
            self._serve_unsettled(topic, topic.partition.closed, self._opener)

    def confirm_clock(self) -> Completion[None]:
        """Take the wall clock for right; the completion is settled when that is durable."""
        self.expiry.confirm()
        return self._scheduler.run("meta", self.expiry.save)

    def set_retention(self, topic: Topic, retention: Retention) -> Completion[None]:
        """Change the retention of a topic, or of all partitions; settled when it is durable."""
        tell_if_best_effort(topic.id, retention)
        if topic.part is not None:
            topics = self.partitioned.topics_of(topic.part.topic)
            changed = self.partitioned.set_retention(topic.part.topic, retention)
        else:
            topics = [topic]
            changed = self._scheduler.run(
                "meta", lambda: self._reserve.with_room(lambda: topic.file.set_retention(retention))
            )
        for each in topics:
            changed.wake(partial(self.upkeep.visit, each))
        return changed

    def start_upkeep(self, interval: float) -> None:
        """Keep every topic within its retention from now on.

        Args:
            interval: seconds between two looks at it.
        """
        self.upkeep.start(self._topics.values, interval)
        self.scrubber.start(self._topics.values)

    # Data ------------------------------------------------------------------------------------

    def now_ns(self, topic: Topic, now: int = 0) -> int:
        """Return the server time of a batch that arrives at a topic, now or just then (AMB-51)."""
        now = now or self.clock()
        stamp = topic.partition.next_time(now)
        if stamp > now:
            self._watch.note(stamp - now, topic.file.identity.name)
        return stamp

    @property
    def clock_behind_ns(self) -> int:
        """Nanoseconds that the clock is behind the newest batch of all topics; 0 as a rule."""
        newest = max((each.partition.last_ns for each in self._topics.values()), default=0)
        behind = max(0, newest - self.clock())
        if not behind:
            self._watch.caught_up()
        return behind

    def fetch_at_once(self, topic: Topic, wanted: Range) -> Fetched | None:
        """Read from a topic as `fetch` does, or return None where the disk is to be waited for.

        Raises:
            Refusal: there is nothing that can be read at this offset.
        """
        try:
            return topic.partition.read_cached(wanted)
        except WouldBlockError:
            return None
        except OSError as error:
            raise storage_refusal(error) from error

    def fetch(self, topic: Topic, wanted: Range) -> Fetched | Completion[Fetched]:
        """Read from a topic: at once from memory, or else on a worker thread.

        Raises:
            Refusal: there is nothing that can be read at this offset.
        """
        fetched = self.fetch_at_once(topic, wanted)
        if fetched is not None:
            return fetched
        return self._scheduler.run("read", topic.partition.reading(wanted))

    def offset_for_time(self, topic: Topic, time_ns: int) -> Completion[int]:
        """Find the first batch that arrived at a server time or later (AMB-37).

        The outcome is its offset, or the end of the topic when there is none yet.
        """
        return self._scheduler.run("read", topic.partition.finding_time(time_ns))

    def batch_times(self, topic: Topic, start: int, end: int) -> Completion[BatchTimes]:
        """Find when the batches of a range were stored (AMB-61)."""
        return self._scheduler.run("read", topic.partition.telling_times(start, end))

    # The end ---------------------------------------------------------------------------------

    def close(self) -> Completion[None]:
        """Make everything durable, close all segments, leave the mark of a clean stop.

        The outcome fails with the `OSError` that kept it from being a clean one.
        """
        self.upkeep.stop()
        self._reopener.stop()
        self.scrubber.stop()
        outcome: Completion[None] = Completion()
        self.flusher.when_idle().wake(lambda: self._seal(outcome))
        return outcome

    def _seal(self, outcome: Completion[None]) -> None:
        topics = list(self._topics.values())  # as they are now: the worker meets no change
        last_attempts = list(self._reopener.works.values())
        sealed = self._scheduler.run("meta", lambda: self._seal_all(topics, last_attempts))
        sealed.wake(lambda: outcome.fail(sealed.error) if sealed.error else outcome.settle(None))

    def _seal_all(self, topics: list[Topic], attempts: list[Callable[[], object]]) -> None:
        errors: list[Exception] = []
        seals = [topic.partition.seal for topic in topics]
        for work in [*attempts, *seals, self._folders.undo]:
            try:
                work()
            except (OSError, DataDirError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        settled = [topic for topic in topics if topic.partition.settled]
        ends = {str(topic.id): topic.partition.written_end for topic in settled}
        self.expiry.save()
        self._storage.finish()
        save_clean_marker(self._storage, self._data_dir, ends)

    def release(self) -> None:
        """Close all files, whatever state they are in."""
        for topic in self._topics.values():
            topic.partition.abandon()
        self._cache.close()
        self._storage.release()


def _as_refusal(error: Exception) -> Exception:
    return storage_refusal(error) if isinstance(error, OSError) else error
