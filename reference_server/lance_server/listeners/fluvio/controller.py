"""The SC: which topics there are, who keeps them, and making new ones."""

import re
from typing import Final

from lance_server.config.settings import Address
from lance_server.listeners.fluvio import absent_objects
from lance_server.listeners.fluvio.apis import Apis
from lance_server.listeners.fluvio.cluster import Cluster, FluvioTopic
from lance_server.listeners.fluvio.connection import Answer, Connection
from lance_server.listeners.fluvio.objects import partition_objects, spu_object, topic_object
from lance_server.listeners.fluvio.options import WILDCARDS
from lance_server.listeners.fluvio.refusals import DONE, FluvioRefusal, ProtocolError
from lance_server.listeners.fluvio.watching import PartitionWatch, SpuWatch, TopicWatch, Watch
from lance_server.log.metadata.topic_file import Retention
from lance_spec.messages.fluvio import (
    AssignedReplicas,
    ComputedReplicas,
    CreateTopicRequest,
    DeleteTopicRequest,
    ErrorCode,
    ListPartitionResponse,
    ListRequest,
    ListSpuResponse,
    ListTopicResponse,
    Request,
    SpuObject,
    Status,
    TopicCompression,
    TopicSpec,
    WatchRequest,
)

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LONGEST_NAME: Final = 63
_SHORTEST: Final = 10
"""Seconds that published clusters keep records at least."""


class Controller:
    """Serves one connection to the SC.

    Args:
        cluster: what there is.
        connection: where requests come from.
    """

    def __init__(self, cluster: Cluster, connection: Connection) -> None:
        self._cluster = cluster
        self._connection = connection
        self._apis = Apis(
            "sc",
            {1001: self._create, 1002: self._delete, 1003: self._list, 1004: self._watch},
        )

    def __repr__(self) -> str:
        return f"<Controller {self._connection!r}>"

    async def handle(self, request: Request) -> Answer:
        """Carry a request out."""
        return await self._apis.handle(request)

    def at_once(self, frame: bytes) -> None:
        """Leave each request to `handle`: none of them comes often."""

    def oversize(self, request: Request, size: int) -> bytes:
        """Refuse a request that is too large to be read; no request to the SC has a form for it."""
        raise ProtocolError(f"a request of key {request.api_key} of {size} bytes")

    def spu(self) -> SpuObject:
        """Return the SPU as this client reaches it."""
        address = self._cluster.options.spu_public or self._cluster.spu
        assert address is not None, "the SPU listens before the SC does"
        if address.host in WILDCARDS:
            address = Address(self._connection.local, address.port)
        return spu_object(address, encrypted=self._cluster.security.context is not None)

    # Looking -----------------------------------------------------------------------------------

    async def _list(self, request: Request) -> bytes:
        asked = ListRequest.decode(request.body, request.api_version)
        version = request.api_version
        if asked.object_type == "SPU":
            return ListSpuResponse(objects=[self.spu()]).encode(version)
        if asked.object_type == "Topic":
            wanted = tuple(asked.listing.names) or ("",)
            found = [topic_object(each) for each in self._topics(asked)]
            found = [each for each in found if each.name.startswith(wanted)]
            return ListTopicResponse(objects=found).encode(version)
        if asked.object_type == "Partition":
            parts = [part for each in self._topics(asked) for part in partition_objects(each)]
            return ListPartitionResponse(objects=parts).encode(version)
        if asked.object_type in absent_objects.KINDS:
            return absent_objects.listed(asked.object_type)
        raise ProtocolError(f"there is no list of '{asked.object_type[:40]}'")

    def _topics(self, asked: ListRequest) -> list[FluvioTopic]:
        """Return the users' topics or the cluster's own, as published clusters tell them apart."""
        found = self._cluster.topics(self._connection.authorizer)
        return [each for each in found if each.is_system == asked.listing.system]

    async def _watch(self, request: Request) -> None:
        asked = WatchRequest.decode(request.body, request.api_version)
        kind, number, version = asked.object_type, request.correlation_id, request.api_version
        if kind in absent_objects.KINDS:
            self._connection.stream(lambda: absent_objects.watch(self._connection, kind, number))
            return
        watch = self._watch_of(kind)
        self._connection.stream(lambda: watch.run(number, version))

    def _watch_of(self, object_type: str) -> Watch:
        if object_type == "SPU":
            return SpuWatch(self._cluster, self._connection, self.spu())
        if object_type == "Topic":
            return TopicWatch(self._cluster, self._connection)
        if object_type == "Partition":
            return PartitionWatch(self._cluster, self._connection)
        raise ProtocolError(f"'{object_type[:40]}' cannot be watched")

    # Making ------------------------------------------------------------------------------------

    async def _create(self, request: Request) -> bytes:
        if absent_objects.kind_of(request.body) in absent_objects.KINDS:
            return absent_objects.not_created(request.body)
        asked = CreateTopicRequest.decode(request.body, request.api_version).creation
        try:
            _check_name(asked.name)
            partitions = _partitions(asked.spec)
            await self._cluster.create(
                asked.name,
                partitions,
                _retention(asked.spec),
                self._connection.authorizer,
                dry_run=asked.dry_run,
            )
            await self._cluster.watchers_told()
        except FluvioRefusal as refusal:
            return _refused(asked.name, refusal)
        return Status(name=asked.name, outcome=DONE, message=None).encode()

    async def _delete(self, request: Request) -> bytes:
        if absent_objects.kind_of(request.body) in absent_objects.KINDS:
            return absent_objects.not_deleted(request.body)
        asked = DeleteTopicRequest.decode(request.body, request.api_version).deletion
        try:
            await self._cluster.delete(asked.name, self._connection.authorizer)
            await self._cluster.watchers_told()
        except FluvioRefusal as refusal:
            return _refused(asked.name, refusal)
        return Status(name=asked.name, outcome=DONE, message=None).encode()


def _refused(name: str, refusal: FluvioRefusal) -> bytes:
    return Status(name=name, outcome=refusal.outcome, message=refusal.text).encode()


def _check_name(name: str) -> None:
    """Hold a topic that a Fluvio client creates to Fluvio's rule (FLV-02).

    Raises:
        FluvioRefusal: other Fluvio programs could not use the name.
    """
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise FluvioRefusal(
            ErrorCode.TOPIC_INVALID_NAME,
            f"'{name}' is not a valid topic name: use 1 to {_LONGEST_NAME} of a to z, 0 to 9 and "
            "'-', which neither begins nor ends it",
        )


def _partitions(spec: TopicSpec) -> int:
    """Return how many partitions are wanted.

    Raises:
        FluvioRefusal: the topic is to have something that there is not.
    """
    if spec.deduplication is not None:
        raise _unfit("there is no deduplication here; leave it out")
    if spec.compression is not TopicCompression.ANY:
        raise _unfit("topics take every compression here; leave it at 'any'")
    replicas = spec.replicas
    if isinstance(replicas, ComputedReplicas):
        if replicas.replication != 1:
            raise _unfit(f"there is one SPU, so replication must be 1, not {replicas.replication}")
        return replicas.partitions
    if isinstance(replicas, AssignedReplicas):
        ids = sorted(each.id for each in replicas.partitions)
        if ids != list(range(len(ids))):
            raise _unfit(f"partitions must be numbered from 0 without gaps, not {ids[:8]}")
        return len(ids)
    raise _unfit("it says nothing of its partitions")


def _unfit(text: str) -> FluvioRefusal:
    return FluvioRefusal(ErrorCode.TOPIC_INVALID_CONFIGURATION, text)


def _retention(spec: TopicSpec) -> Retention:
    """Return what a topic keeps.

    Raises:
        FluvioRefusal: it would keep records for too short a time.
    """
    seconds = spec.cleanup_policy.seconds if spec.cleanup_policy else 0
    if spec.cleanup_policy and seconds < _SHORTEST:
        raise _unfit(f"records must be kept for {_SHORTEST} s or more, not for {seconds} s")
    size = (spec.storage.max_partition_size or 0) if spec.storage else 0
    return Retention(max_age_secs=seconds, max_bytes=size)
