"""Records out of a topic, for threads."""

import math
from collections.abc import Iterator
from datetime import datetime
from time import monotonic
from typing import Any, Literal, Unpack

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.commit_policy import CommitPlan
from lance_sdk._api.consumer_core import as_start, build_consumer
from lance_sdk._api.consumer_position import ConsumerPosition
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.factory import no_answer
from lance_sdk._api.lifecycle import Lifecycle
from lance_sdk._api.offset_store import sync_store
from lance_sdk._protocol.completion import Completion
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import LanceError
from lance_sdk.offsets.contract import Commit, OffsetStore
from lance_sdk.options import ConsumerOptions
from lance_sdk.stats import ConsumerStats
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL
from lance_sdk.values.codecs import codec_for

__all__ = ["Consumer"]


@shows_options(ConsumerConfig)
class Consumer(Lifecycle):
    """Reads the records of one topic, from any offset, ahead of the application.

    ::

        with Consumer("lance://localhost:1992/orders", stop_at_end=True) as consumer:
            for record in consumer:
                print(record.offset, record.value)

    The constructor does no I/O. One thread reads; others may `seek`, `close` or look.

    Args:
        url: where the topic lives, see `lance_sdk.url`.
        **options: the fields of `lance_sdk.config.ConsumerConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(self, url: str | URL, **options: Unpack[ConsumerOptions]) -> None:
        self._core = build_consumer(url, options)
        super().__init__(self._core)
        self._driver.room = self._core.session.room
        config = self._core.config
        self._fetcher = self._core.fetcher
        self._cursor = ConsumerPosition(commits=config.offsets is not None)
        self._values = None if config.values is None else codec_for(config.values)
        self._plan = CommitPlan(config, self._fetcher, self._cursor, self._core.url.label)
        self._store: OffsetStore | None = None
        self._claimed = False

    def __repr__(self) -> str:
        return self._core.show("Consumer", self._state, self.position)

    def __iter__(self) -> Iterator[Record]:
        """Yield records; ends at the end of the log with ``stop_at_end``, else goes on.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            OffsetStoreError: a position could not be committed, for good.
            UsageError: the consumer is not open.
        """
        cursor, automatic = self._cursor, self._plan.automatic
        cursor.resume()
        while True:
            records = cursor.records
            for record in records:
                cursor.last = record
                yield record
                if automatic:
                    self._commit_if_due()
                if cursor.records is not records:
                    break  # a seek: the rest of the batch is not wanted any more
            else:
                if (batch := self._next_batch(None)) is None:
                    return
                cursor.load(batch)

    def values(self) -> Iterator[Any]:
        """Yield what the records say, as ``values=`` or their types tell; None for a tombstone.

        Ends and raises as iteration does; after an `UndecodableRecord` the next call goes on
        after that record.

        Raises:
            UndecodableRecord: a record is not what was to be read.
        """
        for record in self:
            yield record.decode(self._values)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        while (batch := self.poll()) is not None:
            yield batch

    def poll(self, timeout: float | None = None) -> RecordBatch | None:
        """Return the next records as a batch.

        Args:
            timeout: seconds to wait for some; by default until there are some.

        Returns:
            The batch; None when the time ran out, or at the end with ``stop_at_end``.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            UsageError: the consumer is not open.
        """
        if (rest := self._cursor.rest()) is not None:
            return self._cursor.skip(rest, self._cursor.taken)
        batch = self._next_batch(timeout)
        return None if batch is None else self._cursor.skip(batch, batch)

    def seek(self, where: int | datetime | Literal["beginning", "end"]) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped.

        Args:
            where: ``beginning``, ``end``, an ``offset`` or ``next_offset`` of a record, or a
                datetime with a time zone: the first record the server stored then or later
                (AMB-37). Where the server cannot tell, reading on raises `Unsupported`.

        Raises:
            ConfigError: when it is none of these.
            UsageError: the consumer is not open.
        """
        with self._driver.lock:
            self._driver.check()
            self._fetcher.seek(as_start(where, "seek({})"), monotonic())
            self._cursor.clear()
        self._driver.wake()

    def pause(self) -> None:
        """Hand nothing out and fetch nothing until `resume`; the connection is kept alive.

        Raises:
            UsageError: the consumer is not open.
        """
        with self._driver.lock:
            self._driver.check()
            self._fetcher.pause(self._cursor.give_back(), monotonic())
        self._driver.wake()

    def resume(self) -> None:
        """Go on after `pause`.

        Raises:
            UsageError: the consumer is not open.
        """
        with self._driver.lock:
            self._driver.check()
            self._fetcher.resume()
        self._driver.wake()

    def commit(self, offset: int | None = None) -> int:
        """Commit how far the application has come; durable when it returns.

        Args:
            offset: a record's ``next_offset``, never ahead of what was handed out; by default
                after everything that was.

        Returns:
            The committed offset.

        Raises:
            OffsetStoreError: it could not be kept.
            ServerError: likewise, with ``offsets="server"``.
            UsageError: there is no store, no position yet, or the consumer is not open.
        """
        self._driver.check()
        commit = self._plan.commit(offset, self.position)
        self._save(commit)
        return commit.offset

    @property
    def paused(self) -> bool:
        """Whether `pause` was called, and `resume` not yet."""
        return self._fetcher.paused

    @property
    def committed(self) -> int | None:
        """The offset committed last, or found at the start; None when there is none."""
        return self._plan.committed

    @property
    def position(self) -> int | None:
        """Offset of the next record to be handed out; None while seeking the end."""
        position = self._cursor.position
        return self._fetcher.offset if position is None else position

    @property
    def end(self) -> int | None:
        """Offset after the last byte of the log, as far as it is known."""
        return self._fetcher.end

    @property
    def lag(self) -> int | None:
        """Bytes between position and end, as far as they are known."""
        position, end = self.position, self.end
        return None if position is None or end is None else max(0, end - position)

    def stats(self) -> ConsumerStats:
        """Return the counters as they stand now."""
        with self._driver.lock:
            return self._core.stats(self.position)

    def _next_batch(self, timeout: float | None) -> RecordBatch | None:
        deadline = math.inf if timeout is None else deadline_after(timeout)
        self._cursor.finish()
        while True:
            found = self._take()
            if not isinstance(found, Completion):
                return found
            self._commit_if_due()
            until = min(deadline, self._plan.due if self._plan.pending() is not None else deadline)
            left = None if until == math.inf else until - monotonic()
            if not self._driver.wait(found, left) and monotonic() >= deadline:
                return None

    def _take(self) -> RecordBatch | Completion | None:
        """Return a batch, None at the end, or what to wait for."""
        driver, fetcher = self._driver, self._fetcher
        with driver.lock:
            fetcher.reclaim(self._cursor.taken)
            batch = fetcher.take()
            if batch is None:
                if fetcher.error is not None:
                    raise fetcher.error.with_traceback(None)
                if fetcher.ended:
                    return None
                driver.check()
                return fetcher.gate()
        driver.wake()  # there is room for another Fetch now
        if hooks := driver.dispatcher.hooks:
            hooks.call("on_records", self._core.handed_out(self._name, batch))
        return batch

    # Commits

    def _begin(self) -> None:
        offsets = self._core.config.offsets
        if self._plan.wanted and not self._plan.at_server:
            self._store = sync_store(offsets)
        super()._begin()

    def _opened(self) -> None:
        if not self._plan.wanted:
            return
        found = self._look_up() if self._store is None else self._claim(self._store)
        self._plan.begin(found)
        start = as_start(self._core.config.start) if found is None else found.offset
        with self._driver.lock:
            self._fetcher.begin(start, None if found is None else found.fingerprint, monotonic())
        self._driver.wake()

    def _claim(self, store: OffsetStore) -> Commit | None:
        topic = self._plan.topic
        found = store.claim(self._plan.consumer, topic, self._plan.generation)
        self._claimed = True
        if found is not None:
            found.check_topic(topic)
        return found

    def _look_up(self) -> Commit | None:
        with self._driver.lock:
            found = self._fetcher.look_up(self._plan.consumer_id)
        self._driver.wake()
        offset = self._settled(found)
        return self._plan.make(offset) if offset else None

    def _settled(self, outcome: Completion, timeout: float | None = None) -> Any:
        limit = seconds("request_timeout", self._core.config.request_timeout)
        if not self._driver.wait(outcome, limit if timeout is None else timeout):
            what, situation = "the commit", self._session.situation()
            raise no_answer(what, limit if timeout is None else timeout, self._url, situation)
        if outcome.error is not None:
            raise outcome.error.with_traceback(None)
        return outcome.value

    def _save(self, commit: Commit, timeout: float | None = None) -> None:
        """Keep a commit, and tell the hooks how it went."""
        began = monotonic()
        try:
            if self._store is None:
                self._commit_at_server(commit.offset, timeout)
            else:
                self._store.save(commit)
        except Exception as error:
            self._tell_commit(commit, began, error)
            raise
        self._plan.committed = commit.offset
        self._tell_commit(commit, began, None)

    def _tell_commit(self, commit: Commit, began: float, error: Exception | None) -> None:
        self._plan.later(failed=error is not None)
        told = self._plan.event(self._name, commit.offset, began, error)
        self._driver.dispatcher.hooks.call("on_commit", told)

    def _commit_at_server(self, offset: int, timeout: float | None) -> None:
        with self._driver.lock:
            call = self._fetcher.commit(self._plan.consumer_id, offset, monotonic())
        self._driver.wake()
        self._settled(call, timeout)

    def _commit_if_due(self) -> None:
        """Commit on the application's own thread: never ahead of what it was given."""
        if monotonic() < self._plan.due:
            return
        if (offset := self._plan.pending()) is None:
            self._plan.later()
            return
        try:
            self._save(self._plan.make(offset))
        except LanceError as error:
            if not error.retryable:
                raise
            self._driver.dispatcher.warn("commit", f"a position was not committed: {error}")

    def _finish(self, until: float, *, failed: bool) -> float:
        if self._plan.automatic and self._driver.usage_error is None:
            self._commit_last(until, failed=failed)
        return until

    def _commit_last(self, until: float, *, failed: bool) -> None:
        if (offset := self._plan.pending(failed=failed)) is None:
            return
        try:
            self._save(self._plan.make(offset), max(0.0, until - monotonic()))
        except LanceError as error:
            text = f"the last position, {offset}, was not committed: {error}"
            self._driver.dispatcher.warn("commit", text)

    def _end(self, timeout: float) -> None:
        del timeout
        store, self._store = self._store, None
        if store is None:
            return
        try:
            if self._claimed:  # else it is another consumer's
                store.release(self._plan.consumer, self._plan.topic)
            if isinstance(self._core.config.offsets, str):
                store.close()
        except LanceError as error:
            self._driver.dispatcher.warn("release", f"the offset store was not released: {error}")
