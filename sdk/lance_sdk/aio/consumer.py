"""Records out of a topic, for tasks."""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from time import monotonic
from typing import Any, Literal, Self, Unpack

from anyio import to_thread

import lance_sdk.values.reading  # noqa: F401 - records load it where they are read: on the event loop
from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import seconds
from lance_sdk._api.commit_policy import CommitPlan
from lance_sdk._api.consumer_core import as_start, build_consumer
from lance_sdk._api.consumer_position import ConsumerPosition
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._api.factory import no_answer
from lance_sdk._protocol.completion import Completion
from lance_sdk.aio._iteration import UntilNone
from lance_sdk.aio._lifecycle import AsyncLifecycle
from lance_sdk.aio._offset_store import async_store
from lance_sdk.config import ConsumerConfig
from lance_sdk.errors import LanceError
from lance_sdk.offsets.contract import AsyncOffsetStore, Commit
from lance_sdk.options import ConsumerOptions
from lance_sdk.stats import ConsumerStats
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL
from lance_sdk.values.codecs import codec_for

__all__ = ["AsyncConsumer"]


@shows_options(ConsumerConfig)
class AsyncConsumer(AsyncLifecycle):
    """Reads the records of one topic, from any offset, ahead of the application.

    ::

        async with AsyncConsumer("lance://localhost:1992/orders", stop_at_end=True) as consumer:
            async for record in consumer:
                print(record.offset, record.value)

    The constructor does no I/O and binds to no event loop. One task reads.

    Args:
        url: where the topic lives, see `lance_sdk.url`.
        **options: the fields of `lance_sdk.config.ConsumerConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(self, url: str | URL, **options: Unpack[ConsumerOptions]) -> None:
        self._core = build_consumer(url, options)
        super().__init__(self._core)
        config = self._core.config
        self._fetcher = self._core.fetcher
        self._cursor = ConsumerPosition(commits=config.offsets is not None)
        self._values = None if config.values is None else codec_for(config.values)
        self._plan = CommitPlan(config, self._fetcher, self._cursor, self._core.url.label)
        self._store: AsyncOffsetStore | None = None
        self._claimed = False

    def __repr__(self) -> str:
        return self._core.show("AsyncConsumer", self._state, self.position)

    def __aiter__(self) -> AsyncIterator[Record]:
        """Yield records; ends at the end of the log with ``stop_at_end``, else goes on.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            OffsetStoreError: a position could not be committed, for good.
            UsageError: the consumer is not open.
        """
        return UntilNone(self._next_record)

    def values(self) -> AsyncIterator[Any]:
        """Yield what the records say, as ``values=`` or their types tell; None for a tombstone.

        Ends and raises as iteration does; after an `UndecodableRecord` the next call goes on
        after that record.

        Raises:
            UndecodableRecord: a record is not what was to be read.
        """
        return _Values(self._next_record, self._values)

    def batches(self) -> AsyncIterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        return UntilNone(self.poll)

    async def poll(self, timeout: float | None = None) -> RecordBatch | None:
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
        batch = await self._next_batch(timeout)
        return None if batch is None else self._cursor.skip(batch, batch)

    async def seek(self, where: int | datetime | Literal["beginning", "end"]) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped.

        Args:
            where: ``beginning``, ``end``, an ``offset`` or ``next_offset`` of a record, or a
                datetime with a time zone: the first record the server stored then or later
                (AMB-37). Where the server cannot tell, reading on raises `Unsupported`.

        Raises:
            ConfigError: when it is none of these.
            UsageError: the consumer is not open.
        """
        self._driver.check()
        self._fetcher.seek(as_start(where, "seek({})"), monotonic())
        self._cursor.clear()
        self._driver.wake()

    async def pause(self) -> None:
        """Hand nothing out and fetch nothing until `resume`; the connection is kept alive.

        Raises:
            UsageError: the consumer is not open.
        """
        self._driver.check()
        self._fetcher.pause(self._cursor.give_back(), monotonic())
        self._driver.wake()

    async def resume(self) -> None:
        """Go on after `pause`.

        Raises:
            UsageError: the consumer is not open.
        """
        self._driver.check()
        self._fetcher.resume()
        self._driver.wake()

    async def commit(self, offset: int | None = None) -> int:
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
        await self._save(commit)
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
        return self._core.stats(self.position)

    async def _next_record(self) -> Record | None:
        cursor = self._cursor
        if cursor.last is not None and self._plan.automatic:
            await self._commit_if_due()
        while (record := next(cursor.records, None)) is None:
            if (batch := await self._next_batch(None)) is None:
                return None
            cursor.load(batch)
        cursor.last = record
        return record

    async def _next_batch(self, timeout: float | None) -> RecordBatch | None:
        deadline = math.inf if timeout is None else deadline_after(timeout)
        self._cursor.finish()
        while True:
            found = self._take()
            if not isinstance(found, Completion):
                return found
            await self._commit_if_due()
            until = min(deadline, self._plan.due if self._plan.pending() is not None else deadline)
            left = None if until == math.inf else max(0.0, until - monotonic())
            if not await self._driver.wait(found, left) and monotonic() >= deadline:
                return None

    def _take(self) -> RecordBatch | Completion | None:
        """Return a batch, None at the end, or what to wait for."""
        fetcher = self._fetcher
        batch = fetcher.take()
        if batch is None:
            if fetcher.error is not None:
                raise fetcher.error.with_traceback(None)
            if fetcher.ended:
                return None
            self._driver.check()
            return fetcher.gate()
        self._driver.wake()  # there is room for another Fetch now
        if hooks := self._driver.dispatcher.hooks:
            hooks.call("on_records", self._core.handed_out(self._name, batch))
        return batch

    # Commits

    async def _begin(self) -> None:
        offsets = self._core.config.offsets
        if self._plan.wanted and not self._plan.at_server:
            self._store = await to_thread.run_sync(async_store, offsets)
        await super()._begin()

    async def _opened(self) -> None:
        if not self._plan.wanted:
            return
        found = await self._look_up() if self._store is None else await self._claim(self._store)
        self._plan.begin(found)
        start = as_start(self._core.config.start) if found is None else found.offset
        self._fetcher.begin(start, None if found is None else found.fingerprint, monotonic())
        self._driver.wake()

    async def _claim(self, store: AsyncOffsetStore) -> Commit | None:
        topic = self._plan.topic
        found = await store.claim(self._plan.consumer, topic, self._plan.generation)
        self._claimed = True
        if found is not None:
            found.check_topic(topic)
        return found

    async def _look_up(self) -> Commit | None:
        found = self._fetcher.look_up(self._plan.consumer_id)
        self._driver.wake()
        offset = await self._settled(found)
        return self._plan.make(offset) if offset else None

    async def _settled(self, outcome: Completion, timeout: float | None = None) -> Any:
        limit = seconds("request_timeout", self._core.config.request_timeout)
        if not await self._driver.wait(outcome, limit if timeout is None else timeout):
            what, situation = "the commit", self._session.situation()
            raise no_answer(what, limit if timeout is None else timeout, self._url, situation)
        if outcome.error is not None:
            raise outcome.error.with_traceback(None)
        return outcome.value

    async def _save(self, commit: Commit, timeout: float | None = None) -> None:
        """Keep a commit, and tell the hooks how it went."""
        began = monotonic()
        try:
            if self._store is None:
                await self._commit_at_server(commit.offset, timeout)
            else:
                await self._store.save(commit)
        except Exception as error:
            self._tell_commit(commit, began, error)
            raise
        self._plan.committed = commit.offset
        self._tell_commit(commit, began, None)

    def _tell_commit(self, commit: Commit, began: float, error: Exception | None) -> None:
        self._plan.later(failed=error is not None)
        told = self._plan.event(self._name, commit.offset, began, error)
        self._driver.dispatcher.hooks.call("on_commit", told)

    async def _commit_at_server(self, offset: int, timeout: float | None) -> None:
        call = self._fetcher.commit(self._plan.consumer_id, offset, monotonic())
        self._driver.wake()
        await self._settled(call, timeout)

    async def _commit_if_due(self) -> None:
        """Commit in the application's own task: never ahead of what it was given."""
        if monotonic() < self._plan.due:
            return
        if (offset := self._plan.pending()) is None:
            self._plan.later()
            return
        try:
            await self._save(self._plan.make(offset))
        except LanceError as error:
            if not error.retryable:
                raise
            self._driver.dispatcher.warn("commit", f"a position was not committed: {error}")

    async def _finish(self, until: float, *, failed: bool) -> float:
        if self._plan.automatic and self._driver.usage_error is None:
            await self._commit_last(until, failed=failed)
        return until

    async def _commit_last(self, until: float, *, failed: bool) -> None:
        if (offset := self._plan.pending(failed=failed)) is None:
            return
        try:
            await self._save(self._plan.make(offset), max(0.0, until - monotonic()))
        except LanceError as error:
            text = f"the last position, {offset}, was not committed: {error}"
            self._driver.dispatcher.warn("commit", text)

    async def _end(self, timeout: float) -> None:
        del timeout
        store, self._store = self._store, None
        if store is None:
            return
        try:
            if self._claimed:  # else it is another consumer's
                await store.release(self._plan.consumer, self._plan.topic)
            if isinstance(self._core.config.offsets, str):
                await store.close()
        except LanceError as error:
            self._driver.dispatcher.warn("release", f"the offset store was not released: {error}")


class _Values:
    """Iterates over what records say."""

    __slots__ = ("_codec", "_next")

    def __init__(self, advance: Callable[[], Awaitable[Record | None]], codec: Any) -> None:
        self._next = advance
        self._codec = codec

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if (record := await self._next()) is None:
            raise StopAsyncIteration
        return record.decode(self._codec)
