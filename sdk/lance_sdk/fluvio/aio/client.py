"""The async client, on asyncio and trio."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.other_systems import Address, Tls, parse_address, tls_context
from lance_sdk.errors import ClosedError, LanceError
from lance_sdk.fluvio import _consuming, _topics
from lance_sdk.fluvio._asks import Ask, Pause, Steps, with_retries
from lance_sdk.fluvio._async_driver import AsyncDriver
from lance_sdk.fluvio._consuming import PartitionStream
from lance_sdk.fluvio._partitioner import Partitioner, partitioner_of
from lance_sdk.fluvio._retries import Retries
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leaders
from lance_sdk.fluvio.aio.consumer import AsyncFluvioConsumer
from lance_sdk.fluvio.aio.producer import AsyncFluvioProducer
from lance_sdk.fluvio.errors import FluvioRefused, located
from lance_sdk.fluvio.types import (
    FluvioSettings,
    FluvioTopic,
    Offsets,
)
from lance_spec.fluvio.apis import PORTS, Server

T = TypeVar("T")


class _Shared:
    """The connection that requests to one server share.

    Attributes:
        lock: held while it is opened.
        driver: the connection, once there is one.
    """

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.driver: AsyncDriver | None = None

    def __repr__(self) -> str:
        return f"<_Shared {self.driver!r}>"


@shows_options(FluvioSettings)
class AsyncFluvioClient:
    """Talks to a Fluvio cluster: topics, producers and consumers. Tasks may share it.

    Once it has reached the cluster, requests that may be made again wait
    `FluvioSettings.retry_for` seconds for a server that is away.

    Args:
        address: host and port of the SC, such as ``localhost:9003``.
        tls: a context, True for the system's authorities, or nothing for plain connections.
        options: fields of `FluvioSettings`.

    Raises:
        ConfigError: an option cannot be used.
    """

    def __init__(self, address: str, *, tls: Tls = None, **options: Any) -> None:
        self.settings = FluvioSettings(**options)
        self._sc = parse_address(address, PORTS["sc"])
        self._tls = tls_context(tls)
        self._shared: dict[tuple[Server, Address], _Shared] = {}
        self._closed = False
        self._met = False

    def __repr__(self) -> str:
        count = sum(each.driver is not None for each in self._shared.values())
        return f"<AsyncFluvioClient {self._sc[0]}:{self._sc[1]}, {count} connections>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; producers of this client end, consumers have their own."""
        self._closed = True
        for shared in list(self._shared.values()):
            if shared.driver is not None:
                await self._drop(shared, shared.driver)

    async def topics(self) -> list[FluvioTopic]:
        """Return the topics there are, by name."""
        return await self._with_retries(_topics.topics)

    async def create_topic(
        self, name: str, *, partitions: int = 1, retention_secs: int = 0, replication: int = 1
    ) -> None:
        """Create a topic.

        Args:
            name: its name.
            partitions: how many partitions it has.
            retention_secs: seconds that records are kept; 0 leaves it to the cluster.
            replication: how many SPUs keep each partition.

        Raises:
            FluvioRefused: it cannot be created.
        """
        await self._with_retries(
            lambda: _topics.create_topic(name, partitions, retention_secs, replication),
            again=False,
        )

    async def delete_topic(self, name: str) -> None:
        """Delete a topic.

        Raises:
            FluvioRefused: it cannot be deleted.
        """
        await self._with_retries(lambda: _topics.delete_topic(name), again=False)

    async def offsets(self, topic: str, partition: int = 0) -> Offsets:
        """Return what a partition holds.

        Raises:
            FluvioRefused: there is no such partition.
        """
        return await self._with_retries(lambda: _topics.offsets(topic, partition))

    async def committed(self, topic: str, partition: int, consumer_id: str) -> int | None:
        """Return the offset of the last record that a consumer committed, or None."""
        return await self._with_retries(lambda: _consuming.committed(topic, partition, consumer_id))

    async def forget(self, topic: str, partition: int, consumer_id: str) -> None:
        """Have the cluster forget what a consumer committed."""
        await self._with_retries(lambda: _consuming.forget(topic, partition, consumer_id))

    async def producer(
        self, topic: str, *, partitioner: str | Partitioner | None = None
    ) -> AsyncFluvioProducer:
        """Return a producer; use it in an ``async with`` block.

        Args:
            topic: name of the topic.
            partitioner: where records with a key go, instead of `FluvioSettings.partitioner`.

        Raises:
            FluvioRefused: there is no such topic.
        """
        chosen = partitioner_of(partitioner or self.settings.partitioner)
        known = Leaders(topic, await self._with_retries(lambda: _topics.leaders(topic)))
        return AsyncFluvioProducer(
            self, known, SendBuffer(known, chosen, self.settings.buffer_bytes)
        )

    async def consumer(
        self,
        topic: str,
        partition: int = 0,
        *,
        start: int | str = "beginning",
        consumer_id: str | None = None,
        stop_at_end: bool = False,
    ) -> AsyncFluvioConsumer:
        """Return a consumer of one partition; use it in an ``async with`` block.

        Args:
            topic: name of the topic.
            partition: number of the partition.
            start: ``beginning``, ``end`` or an offset. With a word, a consumer with an id goes
                on after what it committed.
            consumer_id: under which name the cluster keeps offsets.
            stop_at_end: end where the partition ends now instead of waiting for more.

        Raises:
            FluvioRefused: there is no such partition.
        """
        first = await self._with_retries(
            lambda: _consuming.first_offset(start, topic, partition, consumer_id)
        )
        end = (await self.offsets(topic, partition)).end if stop_at_end else None
        stream = PartitionStream(topic, partition, first, self.settings.max_bytes, consumer_id)
        consumer = AsyncFluvioConsumer(self, stream, end)
        await consumer.open()
        return consumer

    # What moves the bytes ----------------------------------------------------------------------

    async def _with_retries(self, steps: Callable[[], Steps[T]], *, again: bool = True) -> T:
        retries = Retries(self.settings.retry_for)
        return await self.run(with_retries(steps, retries, again=again))

    async def run(self, steps: Steps[T]) -> T:
        """Do what steps ask for, and return what they come to."""
        peer = ""
        try:
            wanted = next(steps)
            while True:
                if isinstance(wanted, Ask):
                    peer = _peer(wanted.at or self._sc)
                try:
                    found = await self._done(wanted)
                except LanceError as error:
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(found)
        except StopIteration as end:
            value: T = end.value
            return value
        except FluvioRefused as refused:
            refused.server = refused.server or peer
            raise
        finally:
            steps.close()

    async def _done(self, wanted: Ask | Pause) -> Any:
        if isinstance(wanted, Pause):
            return await anyio.sleep(wanted.seconds)
        if self._closed:
            raise ClosedError("the client was closed; make a new one")
        address = wanted.at or self._sc
        shared = self._shared.setdefault((wanted.server, address), _Shared())
        try:
            driver = await self._opened(shared, wanted.server, address)
            try:
                return await driver.ask(wanted)
            except BaseException:  # what comes now may be half an answer
                await self._drop(shared, driver)
                raise
        except LanceError as error:
            placed = located(error, wanted.what, _peer(address), met=self._met)
            if placed is error:
                raise
            raise placed from error

    async def _opened(self, shared: _Shared, server: Server, address: Address) -> AsyncDriver:
        async with shared.lock:
            driver = shared.driver
            if driver is not None and not driver.usable:
                await self._drop(shared, driver)
            if shared.driver is None:
                shared.driver = await self.connect(server, address)
            if self._closed:  # while it connected
                await self._drop(shared, shared.driver)
                raise ClosedError("the client was closed while it connected; make a new one")
            return shared.driver

    async def _drop(self, shared: _Shared, driver: AsyncDriver) -> None:
        if shared.driver is driver:
            shared.driver = None
        await driver.close()

    async def connect(self, server: Server, address: Address) -> AsyncDriver:
        """Return a connection of one's own."""
        driver = await AsyncDriver(server, address, self.settings).open(self._tls)
        self._met = True
        return driver


def _peer(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
