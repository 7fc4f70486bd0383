"""A consumer of several topics, partitioned or not, outside groups (AMB-59)."""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from time import monotonic
from types import TracebackType
from typing import Self, Unpack

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import Duration
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.offset_store import sync_store
from lance_sdk._io.at_exit import leaving_time
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import LanceError, UsageError
from lance_sdk.groups._member.member_reader import MemberReader
from lance_sdk.groups._member.membership import LONGEST_WAIT, SeekTarget, Topic, TopicsView
from lance_sdk.groups._member.reader import TopicReader
from lance_sdk.groups._member.topics_settings import (
    TopicsSettings,
    check_topics,
    fitting,
    new_topics,
    topics_stats,
    wholes_of,
)
from lance_sdk.groups._member.wakeup import Wakeup
from lance_sdk.groups._protocol.membership import AssignedTopic
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher
from lance_sdk.offsets.contract import Commit, OffsetStore, TopicIdentity
from lance_sdk.options import ConsumerOptions
from lance_sdk.stats import TopicsStats
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL
from lance_spec.bodies import TopicInfo

__all__ = ["TopicsConsumer"]

_log = logging.getLogger(__name__)


@shows_options(ConsumerConfig)
class TopicsConsumer(TopicsView):
    """Reads several topics, partitioned or not, over one connection to each of their servers.

    ::

        with TopicsConsumer("lance://localhost:1992", ["orders", "news"]) as consumer:
            for record in consumer:
                print(record.topic, record.offset, record.value)

    Records of one topic, or of one partition, come in their order. Each topic has its own
    position: one that cannot be read holds up no other, see `errors`. One thread reads.

    Args:
        url: where the topics are; a topic in it is read where ``topics`` names none.
        topics: names or numbers; the name of a partitioned topic stands for its partitions.
        pattern: a regular expression: topics whose whole name fits are read, too, and those
            that are created later. It also fits the partitions of a topic whose name fits. One
            that is deleted is left when the next look finds that it is gone.
        refresh_interval: seconds between two looks for topics that fit the pattern, and for
            partitions that the named topics got; what comes late is read from its beginning.
        max_poll_records: most records that a batch of `poll` or `batches` has; 0 leaves batches
            as they arrive.
        **options: the fields of `lance_sdk.config.ConsumerConfig`, for each topic. With
            ``offsets``, a store, and ``consumer`` the position in each topic is committed, and
            reading goes on from there; ``start`` counts where nothing is committed.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    _settings: TopicsSettings

    def __init__(
        self,
        url: str | URL,
        topics: Sequence[str | int] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        refresh_interval: Duration = 30.0,
        max_poll_records: int = 0,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._settings = check_topics(
            url,
            topics,
            pattern=pattern,
            refresh_interval=refresh_interval,
            max_poll_records=max_poll_records,
            options=options,
        )
        self._reading = MemberReader(self._settings)
        self._reader = TopicReader(self._settings.server, self._settings.options)
        self._starts: dict[int, SeekTarget] = {}
        self._pending = []
        self._news = Wakeup()
        self._armed: object = None
        self._store: OffsetStore | None = None
        self._commits = 0

    def __repr__(self) -> str:
        names = ",".join(topic.label for topic in self.assignment)
        return f"<TopicsConsumer {self._settings.server.server_url()} [{names}]>"

    # Records

    def __iter__(self) -> Iterator[Record]:
        """Yield records of all topics; ends with ``stop_at_end`` when all are at their end.

        Raises:
            ConsumeError: a topic cannot be consumed from here.
            OffsetStoreError: a position could not be committed, for good.
            UsageError: the consumer is not open.
        """
        reading = self._reading
        reading.resume()
        while True:
            records = reading.records
            for record in records:
                reading.note(record)
                yield record
                if self._commit_due():
                    self._attend()
                if reading.records is not records:
                    break  # the application sought
            else:
                if self._next(None) is None:
                    return

    def batches(self) -> Iterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        while (batch := self.poll()) is not None:
            yield batch

    def poll(
        self, timeout: float | None = None, *, max_records: int | None = None
    ) -> RecordBatch | None:
        """Return the next records of some topic as a batch.

        Args:
            timeout: seconds to wait for some; by default until there are some.
            max_records: most records in the batch; by default ``max_poll_records``.

        Returns:
            The batch; None when the time ran out, or at the end of all with ``stop_at_end``.

        Raises:
            ConsumeError: a topic cannot be read on; see `errors`.
            OffsetStoreError: a position could not be committed, for good.
            UsageError: the consumer is not open.
        """
        self._attend()
        most = self._limit(max_records)
        batch = self._reading.rest()
        if batch is None:
            batch = self._next(timeout)
        return None if batch is None else self._reading.whole(self._piece(batch, most))

    def _next(self, timeout: float | None) -> RecordBatch | None:
        deadline = deadline_after(LONGEST_WAIT if timeout is None else timeout)
        while True:
            self._news.clear()
            self._attend()
            self._armed = self._reader.arm(self._news.wake, self._armed)
            found = self._reader.take(self._reading.taken)
            if found is not None:
                topic, batch = found
                return self._reading.hand_over(topic.id, batch)
            now = monotonic()
            if self._reader.look(lambda core: core.ended):
                return None
            if timeout is not None and now >= deadline:
                return None
            if not self._news.wait(min(deadline, self._attention_at(now)) - now):
                self._reader.wake()  # Ctrl-C may have come between a change and the wake-up

    # Positions

    def seek(self, topic: Topic, where: SeekTarget) -> None:
        """Go on from somewhere else in one topic; also after its error.

        Args:
            topic: one of the topics that are read, or its name.
            where: ``beginning``, ``end``, an ``offset`` or ``next_offset`` of a record, or a
                datetime with a time zone (AMB-37).

        Raises:
            ConfigError: when it is none of these.
            UsageError: the topic is not read by this consumer.
        """
        self._move(topic, where)

    def pause(self, *topics: Topic) -> None:
        """Hand nothing of these topics out and fetch nothing until `resume`.

        Args:
            *topics: topics that are read, or their names.

        Raises:
            UsageError: one is not read by this consumer.
        """
        self._pause(topics)

    def resume(self, *topics: Topic) -> None:
        """Go on with paused topics; with others it does nothing.

        Args:
            *topics: topics that are read, or their names.

        Raises:
            UsageError: one is not read by this consumer.
        """
        self._resume(topics)

    def lag(self) -> dict[TopicIdentity, int]:
        """Return the bytes between position and end of each topic, in one round trip.

        Raises:
            DeadlineExceeded: the server did not answer within ``request_timeout``.
            UsageError: the consumer is not open.
        """
        return self._lags(self._reader.ends(self.assignment))

    def commit(self) -> None:
        """Commit everything that was handed out; durable when it returns.

        Raises:
            OffsetStoreError: it could not be kept.
            UsageError: there is no store, or the consumer is not open.
        """
        self._reader.check_open()
        if self._store is None:
            raise UsageError("commit() needs offsets= and consumer=")
        self._reading.done()
        self._save(self._reading.commits())

    def _save(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if self._store is not None:
                self._store.save(commit)
                self._reading.committed([commit])
                self._commits += 1

    def stats(self) -> TopicsStats:
        """Return the counters as they stand now."""
        fetchers = self._reader.look(MultiFetcher.fetchers)
        return topics_stats(fetchers, self._commits, self._reader.stats())

    # What is due

    def _attend(self) -> None:
        """Do what is due: commits, and a look for new topics and partitions."""
        self._reader.check_open()
        self._reading.done()
        commits = [*self._places(), *self._reading.automatic(monotonic())]
        self._save_unattended(commits)
        if (topics := self._look_around()) is not None:
            self._let_go(self._gone(topics, self._settings.topics))
            later = fitting(topics, self._wholes, self._settings.pattern)
            self._take_up(later, late=True)

    def _let_go(self, topics: Sequence[TopicIdentity]) -> None:
        """Read topics no more; others of their names may come."""
        self._stop_reading(topics)
        self._reading.drop(topics)
        for topic in topics:
            _log.info("%r: topic %r was deleted, and is not read any more", self, topic.label)
            if self._store is not None:
                self._store.release(self._settings.group, topic)

    def _save_unattended(self, commits: Sequence[Commit]) -> None:
        """Commit; what can be tried again is tried again at the next automatic commit."""
        try:
            self._save(commits)
        except LanceError as error:
            self._reading.submitted(commits)
            if not error.retryable:
                raise
            _log.warning("%r: positions were not committed: %s", self, error)
        else:
            self._reading.submitted(commits)

    def _take_up(self, topics: Sequence[TopicInfo], *, late: bool = False) -> None:
        """Begin to read those topics that are not read yet."""
        for topic in new_topics(topics, self.assignment):
            commit = None
            if self._store is not None:
                commit = self._store.claim(self._settings.group, topic, 0)
            self._reading.begin([AssignedTopic(topic, commit, 0)])
            if late:
                self._late |= {topic.id}
            self._begin_reading(topic)

    # Opening and closing

    def open(self) -> Self:
        """Connect, and find the topics; a ``with`` block does it by itself.

        Raises:
            ConnectFailed: no host could be used; every attempt is listed.
            TopicNotFound: a topic does not exist.
            OffsetStoreError: the store cannot be used.
            UsageError: it is open already, or was closed.
        """
        self._reader.open()
        try:
            if self._settings.offsets is not None:
                self._store = sync_store(self._settings.offsets)
            settings = self._settings
            found = self._reader.find_topics(settings.topics, settings.pattern)
            self._wholes = wholes_of(found, settings.topics)
            self._take_up(found)
        except BaseException:
            self._release()
            self._reader.close(0.0)
            raise
        if self._wholes or self._settings.pattern is not None:
            self._refresh_at = monotonic() + self._settings.refresh_interval
        return self

    def close(self, timeout: float | None = None) -> None:
        """Commit what is done, and disconnect; always returns.

        Args:
            timeout: seconds for the connection to end; by default ``close_timeout``.
        """
        self._close(timeout, failed=False)

    def _close(self, timeout: float | None, *, failed: bool) -> None:
        if self._reader.usable and self._settings.auto_commit != "off":
            if failed:
                self._reading.leave()
            else:
                self._reading.done()
            try:
                self._save(self._reading.commits())
            except LanceError as error:
                _log.warning("%r: the last positions were not committed: %s", self, error)
        self._release()
        self._reader.close(timeout)

    def _release(self) -> None:
        store, self._store = self._store, None
        if store is None:
            return
        try:
            for topic in self.assignment:
                store.release(self._settings.group, topic)
            if isinstance(self._settings.offsets, str):
                store.close()
        except LanceError as error:
            _log.warning("%r: the offset store was not released: %s", self, error)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(leaving_time(kind), failed=kind is not None)

    def __del__(self) -> None:
        reader = getattr(self, "_reader", None)
        if reader is not None and reader.usable:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=1)
            reader.let_go()
