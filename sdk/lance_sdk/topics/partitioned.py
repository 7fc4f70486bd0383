# Written by sdk/sync_from_async.py from lance_sdk/aio/partitions.py: change that one.
"""Topics in partitions: see `lance_sdk.partitions`."""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, Self, Unpack

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.arguments.unit_parsing import positive, seconds
from lance_sdk._api.deadlines import deadline_after
from lance_sdk._io.at_exit import leaving_time, warn_of_lost_block
from lance_sdk._protocol.handshake import find_partitioned
from lance_sdk.config import ProducerConfig
from lance_sdk.delivery import Deliveries, Delivery
from lance_sdk.errors import LanceError, NotOpenError, RecordsLost, UsageError
from lance_sdk.options import ProducerOptions
from lance_sdk.producer import Producer
from lance_sdk.stats import ProducerStats
from lance_sdk.topics.partition_watch import PartitionWatch
from lance_sdk.topics.routing import (
    Partitioner,
    Router,
    merged,
    options_of,
    partition_of,
    route,
    shared_options,
)
from lance_sdk.types import Buffer, CloseReport
from lance_sdk.url import URL, parse_url
from lance_sdk.values.keyed import Time

__all__ = ["PartitionedProducer"]

_log = logging.getLogger("lance_sdk.delivery")


@shows_options(ProducerConfig)
class PartitionedProducer:
    """Sends records to partitions: those of one key to one, in their order.

    It has a producer, and a connection, for each partition, and one connection to look for
    partitions that the topic gets later. Any number of threads may send.

    Args:
        url: the partitioned topic; where ``partitions`` are given, a topic in it is left aside.
        partitions: by default those that the server describes (AMB-59). On a server that keeps
            no descriptions their names, see `lance_sdk.partitions.partition_names`: every
            program that writes gives the same ones in the same order.
        partitioner: gives a key its partition; by default the one that the server describes, and
            without a description that of Kafka's clients.
        refresh_interval: seconds after which it asks whether the topic has got more partitions,
            while records are sent. Those that it finds take records from then on, and **keys
            move**; records that were sent before stay where they are.
        **options: the fields of `lance_sdk.config.ProducerConfig`, for each partition;
            ``create_topic=True`` creates partitions that are missing. With ``journal`` each
            partition has a folder of its own in that folder.

    Raises:
        ConfigError: for a URL, names or an option that cannot be used.
    """

    def __init__(
        self,
        url: str | URL,
        partitions: Sequence[str] | None = None,
        *,
        partitioner: Partitioner | None = None,
        refresh_interval: float = 30.0,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._server = parse_url(url)
        self._options: Any = options
        self._partitioner = partitioner
        self._interval = positive("refresh_interval", refresh_interval)
        self._watch: PartitionWatch | None = None
        self._look_at = math.inf
        self._closed = False
        self._producers: list[Producer[Any]] = []
        self._router: Router | None = None
        config = self._server.configure(ProducerConfig, options)
        self._close_timeout = seconds("close_timeout", config.close_timeout)
        if partitions is None:
            self._server.require_name()
        else:
            self._take(Router(partitions, partitioner or partition_of))

    def __repr__(self) -> str:
        return f"<PartitionedProducer {len(self._producers)} of {self._server.topic!r}>"

    def _take(self, router: Router) -> None:
        self._router = router
        self._producers = [self._producer_of(name) for name in router.names]

    def _producer_of(self, name: str) -> Producer[Any]:
        url = replace(self._server, topic=name, topic_id=None)
        return Producer(url, **options_of(name, self._options))

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of the partitions; none before they are known."""
        return () if self._router is None else self._router.names

    def open(self) -> Self:
        """Connect to all partitions; a ``with`` block does it by itself.

        Raises:
            ConfigError: the topic's description names another partitioner.
            LanceError: one cannot be opened; none stays open then.
            UsageError: it is open already, or was closed.
        """
        if self._watch is not None:
            raise UsageError(f"{self!r} is open already; use it, or make another one")
        if self._router is None:
            self._find_partitions()
        try:
            self._open_all(self._producers)
        except BaseException:
            self._end_watch()
            raise
        return self

    def _find_partitions(self) -> None:
        server = replace(self._server, topic=None)
        options = shared_options(self._options)
        watch = PartitionWatch(server, options, self._interval)
        watch.open()
        try:
            topics = watch.list_topics()
            self._take(route(topics, self._server.topic or "", self._partitioner))
        except BaseException:
            watch.close(0.0)
            raise
        if find_partitioned(topics, self._server.topic or "") is None:
            watch.close(0.0)
        else:
            watch.rest()
            self._watch, self._look_at = watch, watch.at

    def _open_all(self, producers: Sequence[Producer[Any]]) -> None:
        """Open all of these, or none."""
        for number, producer in enumerate(producers):
            try:
                producer.open()
            except BaseException:
                for each in producers[:number]:
                    each.close(0.0)
                raise

    def _take_up_partitions(self, watch: PartitionWatch) -> None:
        """Write to partitions that the topic has got, from now on."""
        topics = watch.look()
        if topics is not None:
            try:
                self._grow(route(topics, self._server.topic or "", self._partitioner))
            except LanceError as error:
                _log.warning("%r: later partitions cannot be written to yet: %s", self, error)
            finally:
                watch.rest()
        self._look_at = watch.at

    def _grow(self, router: Router) -> None:
        known = self.partitions
        if len(router.names) == len(known) or router.names[: len(known)] != known:
            return
        later = [self._producer_of(name) for name in router.names[len(known) :]]
        self._open_all(later)
        self._producers += later
        self._router = router
        if self._closed:  # while they were opened
            for each in later:
                each.close(0.0)

    def _end_watch(self) -> None:
        watch, self._watch, self._look_at = self._watch, None, math.inf
        if watch is not None:
            watch.close(0.0)

    def send(
        self,
        value: Any,
        *,
        key: bytes | str | None = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> Delivery:
        """Hand one record over.

        Args:
            value: as for `lance_sdk.Producer.send`.
            key: decides the partition; without one, partitions take turns.
            partition: sends to this one, whatever the key.
            timestamp: as for `lance_sdk.Producer.send`.
            record_type: likewise.

        Returns:
            A handle to wait on, or to ignore.

        Raises:
            ConfigError: there is no partition of this number.
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.Producer.send`.
        """
        if (watch := self._watch) is not None and monotonic() >= self._look_at:
            self._take_up_partitions(watch)
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        producer = self._producers[self._router.place(key, partition)]
        return producer.send(value, key=key, timestamp=timestamp, record_type=record_type)

    def send_many_raw(self, raws: Iterable[Buffer], record_type: int) -> list[Deliveries]:
        """Hand many records of one type over as they are stored; this is how records are copied.

        Args:
            raws: the stored bytes of each, as for `lance_sdk.Producer.send_many_raw`; the key
                that the type calls for decides the partition.
            record_type: the TLV type of all of them.

        Returns:
            A handle for each partition that got some.

        Raises:
            UsageError: the producer is not open.
            LanceError: as for `lance_sdk.Producer.send_many_raw`.
        """
        if (watch := self._watch) is not None and monotonic() >= self._look_at:
            self._take_up_partitions(watch)
        if self._router is None:
            raise NotOpenError(f"{self!r} is not open")
        shares = self._router.shares(raws, record_type)
        return [
            self._producers[index].send_many_raw(share, record_type)
            for index, share in shares.items()
        ]

    def flush(self, timeout: float | None = None) -> None:
        """Send what waits, and wait until everything handed over so far is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Raises:
            DeliveryError: the first failure among the records waited for.
            DeadlineExceeded: not all are settled yet; their delivery goes on.
        """
        until = None if timeout is None else deadline_after(timeout)
        for producer in self._producers:
            producer.flush(None if until is None else max(0.0, until - monotonic()))

    def stats(self) -> tuple[ProducerStats, ...]:
        """Return the counters of each partition as they stand now."""
        return tuple(producer.stats() for producer in self._producers)

    def close(self, timeout: float | None = None) -> CloseReport:
        """Finish and disconnect; always returns.

        Args:
            timeout: seconds for what is not acknowledged yet; by default ``close_timeout``.

        Returns:
            What was delivered and what was not, of all partitions.
        """
        until = deadline_after(self._close_timeout if timeout is None else timeout)
        self._closed = True
        self._end_watch()
        return merged([each.close(max(0.0, until - monotonic())) for each in self._producers])

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = self.close(leaving_time(kind))
        if kind is None and report.lost:
            raise RecordsLost(report)
        warn_of_lost_block(report.lost, repr(self), error)
