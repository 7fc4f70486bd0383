# Written by sdk/sync_from_async.py from lance_sdk/fluvio/aio/consumer.py: change that one.
"""Consuming, for the sync client."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from lance_sdk._api.interruptible import pause
from lance_sdk.errors import ClosedError, ConfigError, LanceError, UsageError
from lance_sdk.fluvio import _consuming, _topics
from lance_sdk.fluvio._asks import Ask, Steps
from lance_sdk.fluvio._consuming import PartitionStream
from lance_sdk.fluvio._driver import Driver
from lance_sdk.fluvio._retries import Retries, is_passing, time_left
from lance_sdk.fluvio.connections import Connections
from lance_sdk.fluvio.errors import FluvioRefused, located
from lance_sdk.fluvio.types import ReceivedRecord

T = TypeVar("T")


class FluvioConsumer:
    """Reads one partition, on a connection of its own: closing that is how a stream ends.

    A lost connection is taken up again at `offset`, for `FluvioSettings.retry_for` seconds.
    """

    def __init__(self, client: Connections, stream: PartitionStream, end: int | None) -> None:
        self._client = client
        self._settings = client.settings
        self._stream = stream
        self._end = end
        self._driver: Driver | None = None
        self._number = 0
        self._retries = Retries(client.settings.retry_for)
        self._closed = False
        self._unacknowledged = False
        self._last = -1

    def __repr__(self) -> str:
        place = f"{self._stream.topic!r}-{self._stream.partition}"
        state = "closed" if self._closed else f"at {self.offset}"
        return f"<FluvioConsumer {place} {state}>"

    @property
    def offset(self) -> int:
        """Offset of the next record to be received."""
        return self._stream.offset

    @property
    def lag(self) -> int:
        """How many records there were after the last one when it came."""
        return max(self._stream.high_watermark - self._stream.offset, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Begin the stream at `offset`, on a new connection.

        Raises:
            FluvioRefused: nobody leads the partition.
            TransportError: the leader could not be reached in time.
        """
        self._drop()
        self._again(self._opened, None)

    def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        driver, self._driver = self._driver, None
        self._stream.id = None
        self._unacknowledged = False
        if driver is not None:
            driver.close()

    def poll(
        self,
        timeout: float | None = None,
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
        records = self._again(lambda: self._received(deadline), deadline) or []
        if self._end is not None:
            records = [each for each in records if each.offset < self._end]
        return records

    def _again(self, work: Callable[[], T], deadline: float | None) -> T | None:
        """Do what needs a connection until it succeeds; nothing when the deadline passes first."""
        try:
            while True:
                try:
                    found = work()
                except LanceError as error:
                    self._lost()
                    if not is_passing(error, again=True):
                        raise
                    delay = self._retries.after(error)
                    left = time_left(deadline)
                    pause(delay if left is None else min(delay, left))
                    if left is not None and left <= delay:
                        return None
                else:
                    self._retries.progressed()
                    return found
        except LanceError:
            self.close()
            raise

    def _lost(self) -> None:
        """Forget the connection, and who leads the partition."""
        self._drop()
        self._stream.at = None

    def _received(self, deadline: float | None) -> list[ReceivedRecord]:
        """Return the next records; nothing when the deadline passes first."""
        while True:
            driver = self._opened()
            if self._unacknowledged:
                self._run(_consuming.acknowledge(self._stream))
                self._unacknowledged = False
            try:
                response = driver.next(self._number, time_left(deadline))
                if response is None:
                    return []
                records = _consuming.take(self._stream, response, self._settings)
            except LanceError as error:
                raise self._located(error, driver.peer) from error.__cause__
            if records is None:
                self._drop()
                continue
            self._unacknowledged = True
            if records:
                return records

    def _located(self, error: LanceError, peer: str) -> LanceError:
        return located(error, self._stream.what, peer)

    def _opened(self) -> Driver:
        if self._closed:
            raise ClosedError("the consumer was closed; make a new one that starts at its offset")
        if self._driver is not None:
            return self._driver
        stream = self._stream
        if stream.at is None:
            stream.at = self._client.run(_topics.leader(stream.topic, stream.partition))
        try:
            driver = self._client.connect("spu", stream.at)
            try:
                self._number = driver.begin(_consuming.opening(stream))
            except BaseException:
                driver.close()
                raise
        except LanceError as error:
            raise self._located(error, f"{stream.at[0]}:{stream.at[1]}") from error
        self._driver = driver
        return driver

    def __iter__(self) -> Iterator[ReceivedRecord]:
        """Yield records, for ever or to the end that there was at first."""
        while self._end is None or self.offset < self._end:
            for record in self.poll():
                self._last = record.offset
                yield record

    def commit(self, offset: int | None = None) -> None:
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
        self._run(_consuming.commit(self._stream, self._last if offset is None else offset))

    def _run(self, steps: Steps[None]) -> None:
        """Do what steps ask for on the stream's own connection."""
        driver = self._opened()
        what = self._stream.what
        try:
            with suppress(StopIteration):
                wanted = next(steps)
                while True:
                    assert isinstance(wanted, Ask), "a stream does not pause"
                    what = wanted.what
                    wanted = steps.send(driver.ask(wanted))
        except FluvioRefused as refused:
            refused.server = driver.peer
            raise
        except LanceError as error:
            if not isinstance(error, UsageError | ConfigError):
                self._lost()
            raise located(error, what, driver.peer) from error.__cause__
        except BaseException:  # what comes now may be half an answer
            self._lost()
            raise
