"""Consuming, for the async client."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

import anyio

from lance_sdk.errors import ClosedError, ConfigError, LanceError, UsageError
from lance_sdk.fluvio import _consuming, _topics
from lance_sdk.fluvio._asks import Ask, Steps
from lance_sdk.fluvio._async_driver import AsyncDriver
from lance_sdk.fluvio._consuming import PartitionStream
from lance_sdk.fluvio._retries import Retries, is_passing, time_left
from lance_sdk.fluvio.aio.connections import AsyncConnections
from lance_sdk.fluvio.errors import FluvioRefused, located
from lance_sdk.fluvio.types import ReceivedRecord

T = TypeVar("T")


class AsyncFluvioConsumer:
    """Reads one partition, on a connection of its own: closing that is how a stream ends.

    A lost connection is taken up again at `offset`, for `FluvioSettings.retry_for` seconds.
    """

    def __init__(self, client: AsyncConnections, stream: PartitionStream, end: int | None) -> None:
        self._client = client
        self._settings = client.settings
        self._stream = stream
        self._end = end
        self._driver: AsyncDriver | None = None
        self._number = 0
        self._retries = Retries(client.settings.retry_for)
        self._closed = False
        self._unacknowledged = False
        self._last = -1

    def __repr__(self) -> str:
        place = f"{self._stream.topic!r}-{self._stream.partition}"
        state = "closed" if self._closed else f"at {self.offset}"
        return f"<AsyncFluvioConsumer {place} {state}>"

    @property
    def offset(self) -> int:
        """Offset of the next record to be received."""
        return self._stream.offset

    @property
    def lag(self) -> int:
        """How many records there were after the last one when it came."""
        return max(self._stream.high_watermark - self._stream.offset, 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Begin the stream at `offset`, on a new connection.

        Raises:
            FluvioRefused: nobody leads the partition.
            TransportError: the leader could not be reached in time.
        """
        await self._drop()
        await self._again(self._opened, None)

    async def close(self) -> None:
        """End the stream."""
        self._closed = True
        await self._drop()

    async def _drop(self) -> None:
        driver, self._driver = self._driver, None
        self._stream.id = None
        self._unacknowledged = False
        if driver is not None:
            await driver.close()

    async def poll(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - both APIs take the same parameters
    ) -> list[ReceivedRecord]:
        """Return records as they came together; nothing when none came in time.

        Args:
            timeout: seconds to wait, beside those for connecting again; None waits for as long
                as it takes.

        Raises:
            FluvioRefused: the stream cannot go on.
            TransportError: the connection could not be taken up again in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        records = await self._again(lambda: self._received(deadline), deadline) or []
        if self._end is not None:
            records = [each for each in records if each.offset < self._end]
        return records

    async def _again(self, work: Callable[[], Awaitable[T]], deadline: float | None) -> T | None:
        """Do what needs a connection until it succeeds; nothing when the deadline passes first."""
        try:
            while True:
                try:
                    found = await work()
                except LanceError as error:
                    await self._lost()
                    if not is_passing(error, again=True):
                        raise
                    delay = self._retries.after(error)
                    left = time_left(deadline)
                    await anyio.sleep(delay if left is None else min(delay, left))
                    if left is not None and left <= delay:
                        return None
                else:
                    self._retries.progressed()
                    return found
        except LanceError:
            await self.close()
            raise

    async def _lost(self) -> None:
        """Forget the connection, and who leads the partition."""
        await self._drop()
        self._stream.at = None

    async def _received(self, deadline: float | None) -> list[ReceivedRecord]:
        """Return the next records; nothing when the deadline passes first."""
        while True:
            driver = await self._opened()
            if self._unacknowledged:
                await self._run(_consuming.acknowledge(self._stream))
                self._unacknowledged = False
            try:
                response = await driver.next(self._number, time_left(deadline))
                if response is None:
                    return []
                records = _consuming.take(self._stream, response, self._settings)
            except LanceError as error:
                raise self._located(error, driver.peer) from error.__cause__
            if records is None:
                await self._drop()
                continue
            self._unacknowledged = True
            if records:
                return records

    def _located(self, error: LanceError, peer: str) -> LanceError:
        return located(error, self._stream.what, peer)

    async def _opened(self) -> AsyncDriver:
        if self._closed:
            raise ClosedError("the consumer was closed; make a new one that starts at its offset")
        if self._driver is not None:
            return self._driver
        stream = self._stream
        if stream.at is None:
            stream.at = await self._client.run(_topics.leader(stream.topic, stream.partition))
        try:
            driver = await self._client.connect("spu", stream.at)
            try:
                self._number = await driver.begin(_consuming.opening(stream))
            except BaseException:
                await driver.close()
                raise
        except LanceError as error:
            raise self._located(error, f"{stream.at[0]}:{stream.at[1]}") from error
        self._driver = driver
        return driver

    async def __aiter__(self) -> AsyncIterator[ReceivedRecord]:
        """Yield records, for ever or to the end that there was at first."""
        while self._end is None or self.offset < self._end:
            for record in await self.poll():
                self._last = record.offset
                yield record

    async def commit(self, offset: int | None = None) -> None:
        """Have the cluster keep how far this consumer is.

        Args:
            offset: of the last record that was consumed; by default the last that the iteration
                gave out.

        Raises:
            ConfigError: the consumer has no id.
            UsageError: nothing was received since it connected, or it was closed.
            FluvioRefused: the cluster does not keep it.
            TransportError: the connection was lost; commit again after the next records.
        """
        await self._run(_consuming.commit(self._stream, self._last if offset is None else offset))

    async def _run(self, steps: Steps[None]) -> None:
        """Do what steps ask for on the stream's own connection."""
        driver = await self._opened()
        what = self._stream.what
        try:
            with suppress(StopIteration):
                wanted = next(steps)
                while True:
                    assert isinstance(wanted, Ask), "a stream does not pause"
                    what = wanted.what
                    wanted = steps.send(await driver.ask(wanted))
        except FluvioRefused as refused:
            refused.server = driver.peer
            raise
        except LanceError as error:
            if not isinstance(error, UsageError | ConfigError):
                await self._lost()
            raise located(error, what, driver.peer) from error.__cause__
        except BaseException:  # what comes now may be half an answer
            await self._lost()
            raise
