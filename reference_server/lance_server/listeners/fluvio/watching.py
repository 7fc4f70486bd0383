"""Watches: all objects of a kind at first, then whatever changes."""

import asyncio
from abc import ABC, abstractmethod

from lance_server.listeners.fluvio.cluster import Cluster, FluvioTopic
from lance_server.listeners.fluvio.connection import Connection
from lance_server.listeners.fluvio.objects import partition_objects, topic_object
from lance_spec.messages.fluvio import (
    ChangeKind,
    PartitionChange,
    PartitionUpdate,
    SpuObject,
    SpuUpdate,
    TopicChange,
    TopicUpdate,
    WatchPartitionResponse,
    WatchSpuResponse,
    WatchTopicResponse,
)


class Watch(ABC):
    """Tells a client what there is.

    Args:
        cluster: where to look.
        connection: where the client is.
    """

    def __init__(self, cluster: Cluster, connection: Connection) -> None:
        self._cluster = cluster
        self._connection = connection
        self._changed = asyncio.Event()
        self._known: dict[str, FluvioTopic] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self._known)} topics told>"

    async def run(self, number: int, version: int) -> None:
        """Send everything, then every change, until it is cancelled.

        Args:
            number: correlation id of the request.
            version: version of the responses.
        """
        self._cluster.watch(self._changed.set)
        try:
            self._known = self._topics()
            await self._connection.send(number, self._all(list(self._known.values()), version))
            while True:
                await self._changed.wait()
                self._changed.clear()
                if body := self._since(version):
                    await self._connection.send(number, body)
                if not self._changed.is_set():
                    self._cluster.told(self._changed.set)
        finally:
            self._cluster.unwatch(self._changed.set)

    def _topics(self) -> dict[str, FluvioTopic]:
        return {each.name: each for each in self._cluster.topics(self._connection.authorizer)}

    def _since(self, version: int) -> bytes:
        """Return what changed since the last response; nothing when nothing did."""
        before, self._known = self._known, self._topics()
        gone = [each for name, each in before.items() if name not in self._known]
        new = [
            each
            for name, each in self._known.items()
            if name not in before or before[name].identity != each.identity
        ]
        return self._changes(gone, new, version) if gone or new else b""

    @abstractmethod
    def _all(self, topics: list[FluvioTopic], version: int) -> bytes:
        """Return the first response."""

    @abstractmethod
    def _changes(self, gone: list[FluvioTopic], new: list[FluvioTopic], version: int) -> bytes:
        """Return a later response; empty when there is nothing to tell."""


class SpuWatch(Watch):
    """Tells of the SPU, which never changes."""

    def __init__(self, cluster: Cluster, connection: Connection, spu: SpuObject) -> None:
        super().__init__(cluster, connection)
        self._spu = spu

    def _all(self, _topics: list[FluvioTopic], version: int) -> bytes:
        update = SpuUpdate(epoch=self._cluster.epoch, changes=[], all=[self._spu])
        return WatchSpuResponse(update=update).encode(version)

    def _changes(self, _gone: list[FluvioTopic], _new: list[FluvioTopic], _version: int) -> bytes:
        return b""


class TopicWatch(Watch):
    """Tells of topics."""

    def _all(self, topics: list[FluvioTopic], version: int) -> bytes:
        update = TopicUpdate(
            epoch=self._cluster.epoch, changes=[], all=[topic_object(each) for each in topics]
        )
        return WatchTopicResponse(update=update).encode(version)

    def _changes(self, gone: list[FluvioTopic], new: list[FluvioTopic], version: int) -> bytes:
        changes = [
            TopicChange(change=kind, object=topic_object(each))
            for kind, topics in ((ChangeKind.DELETE, gone), (ChangeKind.UPDATE, new))
            for each in topics
        ]
        update = TopicUpdate(epoch=self._cluster.epoch, changes=changes, all=[])
        return WatchTopicResponse(update=update).encode(version)


class PartitionWatch(Watch):
    """Tells of partitions."""

    def _all(self, topics: list[FluvioTopic], version: int) -> bytes:
        found = [part for each in topics for part in partition_objects(each)]
        update = PartitionUpdate(epoch=self._cluster.epoch, changes=[], all=found)
        return WatchPartitionResponse(update=update).encode(version)

    def _changes(self, gone: list[FluvioTopic], new: list[FluvioTopic], version: int) -> bytes:
        changes = [
            PartitionChange(change=kind, object=part)
            for kind, topics in ((ChangeKind.DELETE, gone), (ChangeKind.UPDATE, new))
            for each in topics
            for part in partition_objects(each)
        ]
        update = PartitionUpdate(epoch=self._cluster.epoch, changes=changes, all=[])
        return WatchPartitionResponse(update=update).encode(version)
