"""The SC: which topics there are, who keeps them, and making new ones."""

from lance_server.config import Address
from lance_server.fluvio.apis import Apis
from lance_server.fluvio.cluster import Cluster
from lance_server.fluvio.connection import Answer, Connection
from lance_server.fluvio.objects import partition_objects, spu_object, topic_object
from lance_server.fluvio.options import WILDCARDS
from lance_server.fluvio.refusals import DONE, FluvioRefusal, ProtocolError
from lance_server.fluvio.watching import PartitionWatch, SpuWatch, TopicWatch, Watch
from lance_server.log.topic_file import Retention
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
        names = set(asked.listing.names)
        topics = self._cluster.topics(self._connection.guard)
        version = request.api_version
        if asked.object_type == "SPU":
            return ListSpuResponse(objects=[self.spu()]).encode(version)
        if asked.object_type == "Topic":
            found = [topic_object(each) for each in topics if not names or each.name in names]
            return ListTopicResponse(objects=found).encode(version)
        if asked.object_type == "Partition":
            parts = [part for each in topics for part in partition_objects(each)]
            parts = [part for part in parts if not names or part.name in names]
            return ListPartitionResponse(objects=parts).encode(version)
        raise ProtocolError(f"there is no list of '{asked.object_type[:40]}'")

    async def _watch(self, request: Request) -> None:
        asked = WatchRequest.decode(request.body, request.api_version)
        watch = self._watch_of(asked.object_type)
        number, version = request.correlation_id, request.api_version
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
        asked = CreateTopicRequest.decode(request.body, request.api_version).creation
        try:
            partitions = _partitions(asked.spec)
            await self._cluster.create(
                asked.name,
                partitions,
                _retention(asked.spec),
                self._connection.guard,
                dry_run=asked.dry_run,
            )
        except FluvioRefusal as refusal:
            return _refused(asked.name, refusal)
        return Status(name=asked.name, outcome=DONE, message=None).encode()

    async def _delete(self, request: Request) -> bytes:
        asked = DeleteTopicRequest.decode(request.body, request.api_version).deletion
        try:
            await self._cluster.delete(asked.name, self._connection.guard)
        except FluvioRefusal as refusal:
            return _refused(asked.name, refusal)
        return Status(name=asked.name, outcome=DONE, message=None).encode()


def _refused(name: str, refusal: FluvioRefusal) -> bytes:
    return Status(name=name, outcome=refusal.outcome, message=refusal.text).encode()


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
    seconds = spec.cleanup_policy.seconds if spec.cleanup_policy else 0
    size = (spec.storage.max_partition_size or 0) if spec.storage else 0
    return Retention(max_age_secs=seconds, max_bytes=size)
