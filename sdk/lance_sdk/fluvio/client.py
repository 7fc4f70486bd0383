# Written by sdk/sync_from_async.py from lance_sdk/fluvio/aio/client.py: change that one.
"""The sync client."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.interruptible import pause
from lance_sdk._api.other_systems import Address, Tls, parse_address, tls_context
from lance_sdk.errors import ClosedError, LanceError
from lance_sdk.fluvio import _consuming, _topics
from lance_sdk.fluvio._asks import Ask, Pause, Steps, with_retries
from lance_sdk.fluvio._consuming import PartitionStream
from lance_sdk.fluvio._driver import Driver
from lance_sdk.fluvio._partitioner import Partitioner, partitioner_of
from lance_sdk.fluvio._retries import Retries
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leaders
from lance_sdk.fluvio.consumer import FluvioConsumer
from lance_sdk.fluvio.errors import FluvioRefused, located
from lance_sdk.fluvio.producer import FluvioProducer
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
        self.lock = threading.Lock()
        self.driver: Driver | None = None

    def __repr__(self) -> str:
        return f"<_Shared {self.driver!r}>"


@shows_options(FluvioSettings)
class FluvioClient:
    """Talks to a Fluvio cluster: topics, producers and consumers. Threads may share it.

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
        return f"<FluvioClient {self._sc[0]}:{self._sc[1]}, {count} connections>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; producers of this client end, consumers have their own."""
        self._closed = True
        for shared in list(self._shared.values()):
            if shared.driver is not None:
                self._drop(shared, shared.driver)

    def topics(self) -> list[FluvioTopic]:
        """Return the topics there are, by name."""
        return self._with_retries(_topics.topics)

    def create_topic(
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
        self._with_retries(
            lambda: _topics.create_topic(name, partitions, retention_secs, replication),
            again=False,
        )

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        Raises:
            FluvioRefused: it cannot be deleted.
        """
        self._with_retries(lambda: _topics.delete_topic(name), again=False)

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        """Return what a partition holds.

        Raises:
            FluvioRefused: there is no such partition.
        """
        return self._with_retries(lambda: _topics.offsets(topic, partition))

    def committed(self, topic: str, partition: int, consumer_id: str) -> int | None:
        """Return the offset of the last record that a consumer committed, or None."""
        return self._with_retries(lambda: _consuming.committed(topic, partition, consumer_id))

    def forget(self, topic: str, partition: int, consumer_id: str) -> None:
        """Have the cluster forget what a consumer committed."""
        self._with_retries(lambda: _consuming.forget(topic, partition, consumer_id))

    def producer(
        self, topic: str, *, partitioner: str | Partitioner | None = None
    ) -> FluvioProducer:
        """Return a producer; use it in a ``with`` block.

        Args:
            topic: name of the topic.
            partitioner: where records with a key go, instead of `FluvioSettings.partitioner`.

        Raises:
            FluvioRefused: there is no such topic.
        """
        chosen = partitioner_of(partitioner or self.settings.partitioner)
        known = Leaders(topic, self._with_retries(lambda: _topics.leaders(topic)))
        return FluvioProducer(self, known, SendBuffer(known, chosen, self.settings.buffer_bytes))

    def consumer(
        self,
        topic: str,
        partition: int = 0,
        *,
        start: int | str = "beginning",
        consumer_id: str | None = None,
        stop_at_end: bool = False,
    ) -> FluvioConsumer:
        """Return a consumer of one partition; use it in a ``with`` block.

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
        first = self._with_retries(
            lambda: _consuming.first_offset(start, topic, partition, consumer_id)
        )
        end = (self.offsets(topic, partition)).end if stop_at_end else None
        stream = PartitionStream(topic, partition, first, self.settings.max_bytes, consumer_id)
        consumer = FluvioConsumer(self, stream, end)
        consumer.open()
        return consumer

    # What moves the bytes ----------------------------------------------------------------------

    def _with_retries(self, steps: Callable[[], Steps[T]], *, again: bool = True) -> T:
        retries = Retries(self.settings.retry_for)
        return self.run(with_retries(steps, retries, again=again))

    def run(self, steps: Steps[T]) -> T:
        """Do what steps ask for, and return what they come to."""
        peer = ""
        try:
            wanted = next(steps)
            while True:
                if isinstance(wanted, Ask):
                    peer = _peer(wanted.at or self._sc)
                try:
                    found = self._done(wanted)
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

    def _done(self, wanted: Ask | Pause) -> Any:
        if isinstance(wanted, Pause):
            return pause(wanted.seconds)
        if self._closed:
            raise ClosedError("the client was closed; make a new one")
        address = wanted.at or self._sc
        shared = self._shared.setdefault((wanted.server, address), _Shared())
        try:
            driver = self._opened(shared, wanted.server, address)
            try:
                return driver.ask(wanted)
            except BaseException:  # what comes now may be half an answer
                self._drop(shared, driver)
                raise
        except LanceError as error:
            placed = located(error, wanted.what, _peer(address), met=self._met)
            if placed is error:
                raise
            raise placed from error

    def _opened(self, shared: _Shared, server: Server, address: Address) -> Driver:
        with shared.lock:
            driver = shared.driver
            if driver is not None and not driver.usable:
                self._drop(shared, driver)
            if shared.driver is None:
                shared.driver = self.connect(server, address)
            if self._closed:  # while it connected
                self._drop(shared, shared.driver)
                raise ClosedError("the client was closed while it connected; make a new one")
            return shared.driver

    def _drop(self, shared: _Shared, driver: Driver) -> None:
        if shared.driver is driver:
            shared.driver = None
        driver.close()

    def connect(self, server: Server, address: Address) -> Driver:
        """Return a connection of one's own."""
        driver = Driver(server, address, self.settings).open(self._tls)
        self._met = True
        return driver


def _peer(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
