"""The client for programs with threads."""

import threading
from types import TracebackType
from typing import Any, Self, TypeVar

from lance_sdk._foreign import Address, Tls, parse_address, tls_context
from lance_sdk._waits import pause
from lance_sdk.errors import ClosedError, LanceError
from lance_sdk.fluvio import _consuming, _topics
from lance_sdk.fluvio._asks import Ask, Pause, Steps
from lance_sdk.fluvio._consuming import Stream
from lance_sdk.fluvio._pump import Pump
from lance_sdk.fluvio.consumer import FluvioConsumer
from lance_sdk.fluvio.producer import FluvioProducer
from lance_sdk.fluvio.types import (
    FluvioSettings,
    FluvioTopic,
    Offsets,
)
from lance_spec.fluvio_apis import PORTS, Server

T = TypeVar("T")


class FluvioClient:
    """Talks to a Fluvio cluster: topics, producers and consumers. Threads may share it.

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
        self._pumps: dict[tuple[Server, Address], Pump] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"<FluvioClient {self._sc[0]}:{self._sc[1]}, {len(self._pumps)} connections>"

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
        with self._lock:
            self._closed = True
            pumps, self._pumps = self._pumps, {}
        for pump in pumps.values():
            pump.close()

    def topics(self) -> list[FluvioTopic]:
        """Return the topics there are, by name."""
        return self.run(_topics.topics())

    def create_topic(self, name: str, *, partitions: int = 1, retention_secs: int = 0) -> None:
        """Create a topic.

        Args:
            name: its name.
            partitions: how many partitions it has.
            retention_secs: seconds that records are kept; 0 leaves it to the cluster.

        Raises:
            FluvioRefused: it cannot be created.
        """
        self.run(_topics.create_topic(name, partitions, retention_secs))

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        Raises:
            FluvioRefused: it cannot be deleted.
        """
        self.run(_topics.delete_topic(name))

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        """Return what a partition holds.

        Raises:
            FluvioRefused: there is no such partition.
        """
        return self.run(_topics.offsets(topic, partition))

    def committed(self, topic: str, partition: int, consumer_id: str) -> int | None:
        """Return the offset of the last record that a consumer committed, or None."""
        return self.run(_consuming.committed(topic, partition, consumer_id))

    def forget(self, topic: str, partition: int, consumer_id: str) -> None:
        """Have the cluster forget what a consumer committed."""
        self.run(_consuming.forget(topic, partition, consumer_id))

    def producer(self, topic: str) -> FluvioProducer:
        """Return a producer; use it in a ``with`` block.

        Raises:
            FluvioRefused: there is no such topic.
        """
        return FluvioProducer(self, topic, self.run(_topics.leaders(topic)))

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
                on behind what it committed.
            consumer_id: under which name the cluster keeps offsets.
            stop_at_end: end where the partition ends now instead of waiting for more.

        Raises:
            FluvioRefused: there is no such partition.
        """
        at = self.run(_topics.leader(topic, partition))
        first = self.run(_consuming.first_offset(start, topic, partition, consumer_id))
        end = self.offsets(topic, partition).end if stop_at_end else None
        consumer = FluvioConsumer(self, Stream(topic, partition, first, at, consumer_id), end)
        consumer.open()
        return consumer

    # What moves the bytes ----------------------------------------------------------------------

    def run(self, steps: Steps[T]) -> T:
        """Do what steps ask for, and return what they come to."""
        try:
            wanted = next(steps)
            while True:
                try:
                    found = self._done(wanted)
                except LanceError as error:
                    wanted = steps.throw(error)
                else:
                    wanted = steps.send(found)
        except StopIteration as end:
            value: T = end.value
            return value

    def _done(self, wanted: Ask | Pause) -> Any:
        if isinstance(wanted, Pause):
            return pause(wanted.seconds)
        address = wanted.at or self._sc
        pump = self._pump(wanted.server, address)
        try:
            return pump.ask(wanted)
        except BaseException:  # what comes now may be half an answer
            self._drop(wanted.server, address, pump)
            raise

    def _pump(self, server: Server, address: Address) -> Pump:
        with self._lock:
            if self._closed:
                raise ClosedError("the client was closed; make a new one")
            pump = self._pumps.get((server, address))
            if pump is None or not pump.usable:
                if pump is not None:
                    pump.close()
                pump = self._pumps[server, address] = self.connect(server, address)
            return pump

    def _drop(self, server: Server, address: Address, pump: Pump) -> None:
        pump.close()
        with self._lock:
            if self._pumps.get((server, address)) is pump:
                del self._pumps[server, address]

    def connect(self, server: Server, address: Address) -> Pump:
        """Return a connection of one's own."""
        return Pump(server, address, self.settings, self._tls)
