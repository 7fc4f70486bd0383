"""Records out of a topic, for tasks."""
# ruff: noqa: ASYNC109 - both faces take the same parameters

from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Generic, Literal, Self, TypeVar, Unpack

from lance_sdk._assembly import build_consumer
from lance_sdk._core.outcome import Outcome
from lance_sdk._cursor import Cursor
from lance_sdk.aio._face import AsyncFace
from lance_sdk.config import check_start
from lance_sdk.options import ConsumerOptions
from lance_sdk.stats import ConsumerStats
from lance_sdk.types import Record, RecordBatch
from lance_sdk.url import URL

__all__ = ["AsyncConsumer"]

T = TypeVar("T")


class AsyncConsumer(AsyncFace):
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
        self._fetcher = self._core.fetcher
        self._cursor = Cursor()

    def __repr__(self) -> str:
        return self._core.show("AsyncConsumer", self._state, self.position)

    def __aiter__(self) -> AsyncIterator[Record]:
        """Yield records; ends at the end of the log with ``stop_at_end``, else goes on.

        Raises:
            ConsumeError: the log cannot be consumed from here.
            ServerError: the server refused in a way that cannot be retried.
            UsageError: the consumer is not open.
        """
        return _Iterator(self._next_record)

    def batches(self) -> AsyncIterator[RecordBatch]:
        """Yield records as batches, the faster way; ends and raises as iteration does."""
        return _Iterator(self.poll)

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
        batch = self._cursor.rest() or await self._next_batch(timeout)
        return None if batch is None else self._cursor.skip(batch)

    async def seek(self, where: int | Literal["beginning", "end"]) -> None:
        """Go on from somewhere else; what was fetched ahead is dropped.

        Args:
            where: ``beginning``, ``end``, or an ``offset`` or ``next_offset`` of a record.

        Raises:
            ConfigError: when it is none of these.
            UsageError: the consumer is not open.
        """
        check_start(where)
        self._pump.check()
        self._fetcher.seek(where)
        self._cursor.clear()
        self._pump.wake()

    @property
    def position(self) -> int | None:
        """Offset of the next record to be handed out; None while seeking the end."""
        position = self._cursor.position
        return self._fetcher.offset if position is None else position

    @property
    def end(self) -> int | None:
        """Offset behind the last byte of the log, as far as it is known."""
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
        while (record := next(cursor.records, None)) is None:
            if (batch := await self._next_batch(None)) is None:
                return None
            cursor.load(batch)
        cursor.last = record
        return record

    async def _next_batch(self, timeout: float | None) -> RecordBatch | None:
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            found = self._take()
            if not isinstance(found, Outcome):
                return found
            left = None if deadline is None else max(0.0, deadline - monotonic())
            if not await self._pump.wait(found, left):
                return None

    def _take(self) -> RecordBatch | Outcome | None:
        """Return a batch, None at the end, or what to wait for."""
        fetcher = self._fetcher
        batch = fetcher.take()
        if batch is None:
            if fetcher.error is not None:
                raise fetcher.error.with_traceback(None)
            if fetcher.ended:
                return None
            self._pump.check()
            return fetcher.gate()
        self._pump.wake()  # there is room for another Fetch now
        return batch


class _Iterator(Generic[T]):
    """Iterates until None; unlike an async generator it may be left without being closed."""

    __slots__ = ("_next",)

    def __init__(self, advance: "Callable[[], Awaitable[T | None]]") -> None:
        self._next = advance

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if (item := await self._next()) is None:
            raise StopAsyncIteration
        return item
