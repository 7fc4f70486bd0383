"""The log of all topics: opening it, serving it, closing it."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from lance_server.backlog import Backlog
from lance_server.errors import DataDirError
from lance_server.log.cache import SegmentCache
from lance_server.log.clock import Clock, ClockWatch
from lance_server.log.consumers import FILE_NAME as CONSUMERS_FILE
from lance_server.log.consumers import ConsumerOffsets
from lance_server.log.dedup import WindowLimits
from lance_server.log.flusher import Flusher
from lance_server.log.folders import TopicFolders
from lance_server.log.log_options import LogOptions
from lance_server.log.opening import LogOpener, Opened, save_clean_marker
from lance_server.log.partition import Partition
from lance_server.log.reader import Fetched, Range
from lance_server.log.report import Finding, RecoveryReport
from lance_server.log.topic import Topic
from lance_server.log.topic_file import Retention
from lance_server.log.topics import Catalog
from lance_server.log.upkeep import Upkeep
from lance_server.outcome import Outcome, pass_on
from lance_server.refusals import Refusal, storage_refusal, topic_not_found
from lance_server.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend, WouldBlockError
from lance_spec.enums import ErrorCode
from lance_spec.errors import DecodeError
from lance_spec.limits import DEFAULT_TOPIC_ID

__all__ = ["Clock", "Engine", "LogOptions", "Topic"]

_log = logging.getLogger(__name__)


class Engine:
    """Everything that is stored. Belongs to the event loop's thread.

    Attributes:
        report: what was found when it was opened.
        backlog: what is on its way to the disk.
        flusher: when batches become durable.
        upkeep: what is done to topics from time to time.
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
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._options = options
        self._clock = clock
        self._data_dir = data_dir
        self._cache = SegmentCache(storage, max_files=options.open_segments)
        folder = data_dir / "segments"
        self._catalog = Catalog(storage, folder)
        self._folders = TopicFolders(storage, self._catalog, folder, options.window, clock)
        self._topics: dict[int, Topic] = {}
        self._by_name: dict[str, int] = {}
        self._creating: dict[str, Outcome[Topic]] = {}
        self._unavailable: dict[int, str] = {}
        self._watch = ClockWatch()
        self.backlog = Backlog()
        self.flusher = Flusher(storage, scheduler, options.flush, stopwatch)
        self.upkeep = Upkeep(
            storage,
            scheduler,
            clock,
            options.window,
            segment_age_secs=options.segment_age_secs,
            compaction=options.compaction,
            node=options.node,
        )
        self.report = RecoveryReport()

    def __repr__(self) -> str:
        return f"<Engine {self._data_dir}: topics={len(self._topics)}, {self.flusher!r}>"

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
    ) -> Self:
        """Bring a data directory back and return its log, ready to serve.

        Args:
            data_dir: the directory.
            storage: the backend.
            scheduler: the loop and its worker threads.
            options: how the log behaves.
            clock: the server's wall clock in nanoseconds.
            stopwatch: seconds, for how long flushes take.

        Raises:
            DataDirError: it cannot be used; the message names the file.
            OSError: the disk refused.
        """
        engine = cls(
            data_dir, storage, scheduler, options or LogOptions(), clock, stopwatch=stopwatch
        )
        opener = LogOpener(
            data_dir, storage, engine._catalog, engine._options.window, engine.report, clock=clock
        )
        for opened in opener.open():
            engine._load_consumers(engine._add(opened))
        engine._unavailable = opener.unavailable
        created = sum(1 for _ in engine.topics())
        noun = "topic" if created == 1 else "topics"
        _log.info("log opened: %d %s and the default one, %s", created, noun, engine.report)
        return engine

    def _add(self, opened: Opened) -> Topic:
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
        )
        consumers = ConsumerOffsets(
            self._storage, self._scheduler, opened.file.folder, clock=self._clock
        )
        topic = Topic(opened.file, partition, consumers)
        self._register(topic)
        return topic

    def _register(self, topic: Topic) -> None:
        self._topics[topic.id] = topic
        if topic.id != DEFAULT_TOPIC_ID:
            self._by_name[topic.file.identity.name] = topic.id

    def _load_consumers(self, topic: Topic) -> None:
        """Read a topic's committed offsets; without them its consumers begin anew."""
        path = topic.file.folder / CONSUMERS_FILE
        try:
            kind, problem = "repaired", topic.consumers.load()
        except (DataDirError, DecodeError) as error:
            kind, problem = "damage", f"committed offsets are lost: {error}"
        if problem:
            self.report.add(Finding(kind, topic.id, path, 0, 0, problem))

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
        if reason := self._unavailable.get(topic_id):
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

    def create_topic(self, name: str, retention: Retention) -> Outcome[Topic]:
        """Create a topic; the outcome is settled when it is durable.

        Args:
            name: a valid name in Unicode NFC.
            retention: its policy.

        Raises:
            Refusal: the name is taken, or there are too many topics.
        """
        if name in self._creating:
            return self._create_after(self._creating[name], name, retention)
        if name in self._by_name:
            raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists")
        if len(self._topics) + len(self._creating) > self._options.max_topics:
            raise Refusal(
                ErrorCode.UNKNOWN_ERROR,
                f"The server holds {self._options.max_topics} topics, its limit; delete some",
            )
        outcome = self._creating[name] = Outcome()
        built = self._scheduler.run("meta", lambda: self._folders.build(name, retention))
        built.wake(lambda: self._created(name, built, outcome))
        return outcome

    def _create_after(
        self, first: Outcome[Topic], name: str, retention: Retention
    ) -> Outcome[Topic]:
        """Wait for another creation of a name: who is refused must find the topic listed."""
        outcome: Outcome[Topic] = Outcome()

        def go_on() -> None:
            try:
                again = self.create_topic(name, retention)
            except Refusal as refusal:
                outcome.fail(refusal)
            else:
                again.wake(lambda: pass_on(again, outcome))

        first.wake(go_on)
        return outcome

    def _created(self, name: str, built: Outcome[Opened], outcome: Outcome[Topic]) -> None:
        del self._creating[name]
        if built.error is not None:
            outcome.fail(_as_refusal(built.error))
        else:
            outcome.settle(self._add(built.result()))

    def delete_topic(self, topic_id: int, *, text: str) -> Outcome[None]:
        """Delete a topic; batches that were accepted before are settled first.

        Raises:
            Refusal: there is no such topic, or it is the default one.
        """
        topic = self.topic(topic_id, text=text)
        if topic_id == DEFAULT_TOPIC_ID:
            raise Refusal(ErrorCode.ACCESS_DENIED, "The default topic cannot be deleted", text=text)
        del self._topics[topic_id]
        del self._by_name[topic.file.identity.name]
        outcome: Outcome[None] = Outcome()
        last = topic.partition.last_outcome
        if last is None:
            self._erase(topic, outcome)
        else:
            last.wake(lambda: self._erase(topic, outcome))
        return outcome

    def _erase(self, topic: Topic, outcome: Outcome[None]) -> None:
        topic.partition.abandon()
        topic.partition.notify()
        erased = self._scheduler.run("meta", lambda: self._folders.erase(topic.file))
        erased.wake(lambda: self._erased(topic, erased, outcome))

    def _erased(
        self, topic: Topic, erased: Outcome[OSError | None], outcome: Outcome[None]
    ) -> None:
        if erased.error is not None:
            self._register(topic)
        error = erased.error or erased.result()
        if error is not None:
            outcome.fail(_as_refusal(error))
        else:
            outcome.settle(None)

    def set_retention(self, topic: Topic, retention: Retention) -> Outcome[None]:
        """Change a topic's retention policy; the outcome is settled when it is durable."""
        changed = self._scheduler.run("meta", lambda: topic.file.set_retention(retention))
        changed.wake(lambda: self.upkeep.visit(topic))
        return changed

    def start_upkeep(self, interval: float) -> None:
        """Keep every topic within its retention from now on.

        Args:
            interval: seconds between two looks at it.
        """
        self.upkeep.start(self._topics.values, interval)

    # Data ------------------------------------------------------------------------------------

    def now_ns(self, topic: Topic) -> int:
        """Return the server time of a batch that arrives now at a topic (AMB-51)."""
        now = self._clock()
        stamp = topic.partition.next_time(now)
        if stamp > now:
            self._watch.note(stamp - now, topic.file.identity.name)
        return stamp

    @property
    def clock_behind_ns(self) -> int:
        """Nanoseconds that the clock is behind the newest batch of all topics; 0 as a rule."""
        newest = max(topic.partition.last_ns for topic in self._topics.values())
        behind = max(0, newest - self._clock())
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

    def fetch(self, topic: Topic, wanted: Range) -> Fetched | Outcome[Fetched]:
        """Read from a topic: at once from memory, or else on a worker thread.

        Raises:
            Refusal: there is nothing that can be read at this offset.
        """
        fetched = self.fetch_at_once(topic, wanted)
        if fetched is not None:
            return fetched
        return self._scheduler.run("read", topic.partition.reading(wanted))

    def offset_for_time(self, topic: Topic, time_ns: int) -> Outcome[int]:
        """Find the first batch that arrived at a server time or later (AMB-37).

        The outcome is its offset, or the end of the topic when there is none yet.
        """
        find = topic.partition.finding_time(time_ns)
        return self._scheduler.run("read", find)

    # The end ---------------------------------------------------------------------------------

    def close(self) -> Outcome[None]:
        """Make everything durable, close all segments, leave the mark of a clean stop.

        The outcome fails with the `OSError` that kept it from being a clean one.
        """
        self.upkeep.stop()
        outcome: Outcome[None] = Outcome()
        self.flusher.when_idle().wake(lambda: self._seal(outcome))
        return outcome

    def _seal(self, outcome: Outcome[None]) -> None:
        topics = list(self._topics.values())  # as they are now: the worker meets no change
        sealed = self._scheduler.run("meta", lambda: self._seal_all(topics))
        sealed.wake(lambda: outcome.fail(sealed.error) if sealed.error else outcome.settle(None))

    def _seal_all(self, topics: list[Topic]) -> None:
        errors: list[OSError] = []
        for topic in topics:
            try:
                topic.partition.seal()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        ends = {str(topic.id): topic.partition.written_end for topic in topics}
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
