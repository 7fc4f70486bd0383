"""Topics and the server itself, for tasks."""

from datetime import datetime
from time import monotonic
from typing import Any, TypeVar, Unpack, overload

from lance_sdk._api import admin_steps
from lance_sdk._api.admin_steps import Procedure
from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.factory import build_client, called
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.handshake import Pause
from lance_sdk._protocol.request_tracker import PendingRequest, ping_call
from lance_sdk.aio._lifecycle import AsyncLifecycle
from lance_sdk.config import ClientConfig
from lance_sdk.errors import LanceError
from lance_sdk.options import ClientOptions
from lance_sdk.stats import ClientStats
from lance_sdk.types import BatchTimes, PartitionedTopic, PartitionerName
from lance_sdk.url import URL
from lance_spec.bodies import ClusterStatus, TopicInfo

__all__ = ["AsyncClient"]

T = TypeVar("T")


@shows_options(ClientConfig)
class AsyncClient(AsyncLifecycle):
    """Asks a server about its topics and itself.

    ::

        async with AsyncClient("lance://localhost:1992") as client:
            await client.create_topic("orders")
            print(await client.list_topics(), await client.ping())

    The constructor does no I/O and binds to no event loop. Any number of tasks may ask. A
    question that does no harm when it is asked twice survives a lost connection.

    Args:
        url: where the server is, see `lance_sdk.url`; a topic in it is left aside.
        **options: the fields of `lance_sdk.config.ClientConfig`; they override the URL's.

    Raises:
        ConfigError: for a URL or an option that cannot be used.
    """

    def __init__(self, url: str | URL, **options: Unpack[ClientOptions]) -> None:
        self._core = build_client(url, options)
        super().__init__(self._core)
        self._caller = self._core.caller

    def __repr__(self) -> str:
        return self._core.show("AsyncClient", self._state)

    @overload
    async def create_topic(
        self,
        name: str,
        *,
        partitions: None = None,
        partitioner: PartitionerName = "murmur2",
        exist_ok: bool = False,
        max_age_secs: int = 0,
        max_bytes: int = 0,
    ) -> TopicInfo: ...
    @overload
    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        partitioner: PartitionerName = "murmur2",
        exist_ok: bool = False,
        max_age_secs: int = 0,
        max_bytes: int = 0,
    ) -> PartitionedTopic: ...
    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        partitioner: PartitionerName = "murmur2",
        exist_ok: bool = False,
        max_age_secs: int = 0,
        max_bytes: int = 0,
    ) -> TopicInfo | PartitionedTopic:
        """Create a topic (LWP sections 5.3 and 5.11), or one of several partitions (AMB-59).

        Args:
            name: 1 to 255 bytes of UTF-8 (AMB-24).
            partitions: create the topics ``NAME-0``, ``NAME-1`` and so on as one, all or none;
                by default one topic of this name.
            partitioner: how producers find the partition of a key: ``murmur2``, as Kafka's
                clients do, or ``siphash``, as Fluvio's do.
            exist_ok: return the existing topic instead of raising; with ``partitions``, if it
                has as many and the same partitioner.
            max_age_secs: keep records this many seconds; 0 means no limit.
            max_bytes: keep about this many bytes, of each partition; 0 means no limit.

        Raises:
            TopicAlreadyExists: without ``exist_ok``; with ``partitions`` also where a topic is
                called like one of its partitions.
            Unsupported: the server keeps no descriptions of partitioned topics.
            ServerError: the server refused.
            TransportError: the outcome is unknown, see ``maybe_applied``.
            LocalProtocolError: no topic may have this name.
            ConfigError: ``partitions`` or ``partitioner`` cannot be.
        """
        limits: Any = {
            "exist_ok": exist_ok,
            "max_age_secs": max_age_secs,
            "max_bytes": max_bytes,
        }
        dialect = self._session.dialect
        if partitions is None:
            return await self._run(admin_steps.create_topic(name, dialect, **limits))
        procedure = admin_steps.create_partitioned(
            name, dialect, partitions=partitions, partitioner=partitioner, **limits
        )
        return await self._run(procedure)

    async def add_partitions(self, name: str, partitions: int) -> PartitionedTopic:
        """Give a partitioned topic more partitions (AMB-59).

        Records stay where they are, but keys move: with another number of partitions a key goes
        to another one, so that its later records are no longer after its earlier ones. Producers
        and consumers that are open go on with the partitions that they know.

        Args:
            name: of the partitioned topic.
            partitions: how many it has afterwards.

        Raises:
            TopicNotFound: there is no such partitioned topic.
            InvalidPayload: it has more already.
            Unsupported: the server keeps no descriptions of partitioned topics.
            ConfigError: that is not a number of partitions.
        """
        return await self._run(admin_steps.add_partitions(name, partitions))

    async def get_partitioned_topic(self, name: str) -> PartitionedTopic:
        """Look a partitioned topic up (AMB-59).

        Args:
            name: its name.

        Raises:
            TopicNotFound: there is none of this name.
        """
        return await self._run(admin_steps.get_partitioned(name, self._url.server_url()))

    async def list_partitioned_topics(self) -> list[PartitionedTopic]:
        """Return the partitioned topics, sorted by name (AMB-59); `list_topics` has their parts."""
        return await self._run(admin_steps.list_partitioned())

    async def list_topics(self) -> list[TopicInfo]:
        """Return the topics, sorted by name (LWP section 5.4)."""
        return await self._run(admin_steps.list_topics())

    async def get_topic(self, topic: str | int) -> TopicInfo:
        """Look a topic up (LWP section 5.5).

        Args:
            topic: its name or its number.

        Raises:
            TopicNotFound: there is none.
        """
        return await self._run(admin_steps.get_topic(topic, self._url.server_url()))

    async def delete_topic(self, topic: str | int) -> None:
        """Delete a topic with all its records (LWP section 5.6), or all of a partitioned one.

        Args:
            topic: its name or its number; a partitioned topic has only a name.

        Raises:
            TopicNotFound: there is none.
            TransportError: the outcome is unknown, see ``maybe_applied``.
        """
        await self._run(admin_steps.delete_topic(topic, self._url.server_url()))

    async def set_retention(
        self, topic: str | int, *, max_age_secs: int = 0, max_bytes: int = 0
    ) -> None:
        """Set how long a topic keeps its records (LWP section 5.10).

        Args:
            topic: its name or its number.
            max_age_secs: keep records this many seconds; 0 means no limit.
            max_bytes: keep about this many bytes; 0 means no limit.

        Raises:
            TopicNotFound: there is none.
        """
        procedure = admin_steps.set_retention(
            topic,
            self._session.dialect,
            self._url.server_url(),
            max_age_secs=max_age_secs,
            max_bytes=max_bytes,
        )
        await self._run(procedure)

    async def offset_for_time(self, topic: str | int, moment: datetime | int) -> int:
        """Return where the records of a time begin: at a batch, or at the topic's end (AMB-37).

        Args:
            topic: its name or its number.
            moment: a time by the server's clock, with a zone, or nanoseconds since the Unix epoch.

        Raises:
            TopicNotFound: there is none.
            Unsupported: the server knows no times.
        """
        return await self._run(admin_steps.offset_for_time(topic, moment, self._url.server_url()))

    async def batch_times(self, topic: str | int, start: int, end: int) -> BatchTimes:
        """Return when the batches that have bytes in a range were stored (AMB-61).

        One answer tells of some thousands of batches; ask again from its ``next_offset`` for more.

        Args:
            topic: its name or its number.
            start: byte offset at which the range begins.
            end: byte offset at which it ends; it may lie after the topic's end.

        Raises:
            TopicNotFound: there is none.
            Unsupported: the server cannot tell.
        """
        return await self._run(admin_steps.batch_times(topic, start, end, self._url.server_url()))

    async def cluster_status(self) -> ClusterStatus:
        """Return the cluster's state as the server tells it (AMB-11)."""
        return await self._run(admin_steps.cluster_status())

    async def ping(self) -> float:
        """Send a Keepalive and return the seconds until its answer (LWP section 4.3)."""
        rtt = await self._ask(ping_call())
        assert isinstance(rtt, float)
        return rtt

    def stats(self) -> ClientStats:
        """Return the counters as they stand now."""
        return self._core.stats()

    async def _run(self, procedure: Procedure[T]) -> T:
        try:
            call = next(procedure)
            while True:
                try:
                    result = await self._ask(call)
                except LanceError as error:
                    call = procedure.throw(error)
                else:
                    call = procedure.send(result)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _ask(self, call: PendingRequest | Pause) -> object:
        if isinstance(call, Pause):
            return await self._driver.wait(Completion(), call.seconds)
        began = self._submit(call)
        try:
            await self._driver.wait(call, None)  # the core settles it within request_timeout
        except BaseException:
            call.abandoned = True
            raise
        if hooks := self._driver.dispatcher.hooks:
            hooks.call("on_call", called(self._name, call, began))
        if call.error is not None:
            raise call.error.with_traceback(None)
        return call.value

    def _submit(self, call: PendingRequest) -> float:
        """Ask without waiting; return when that was."""
        now = monotonic()
        self._driver.check()
        self._caller.submit(call, now)
        self._driver.wake()
        return now
