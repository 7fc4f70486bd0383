"""Requests as the tests send them."""

from typing import Any

from lance_server.listeners.fluvio.testing import FluvioPeer
from lance_spec.fluvio.batches import Compression, FluvioRecord, pack_batches
from lance_spec.messages.fluvio import (
    Batch,
    ComputedReplicas,
    CreateTopicRequest,
    FetchOffsetsRequest,
    FetchOffsetsResponse,
    Isolation,
    OffsetsTopic,
    OffsetUpdate,
    Outcome,
    PartitionAppended,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    RecordSet,
    ReplicaForm,
    Status,
    StreamFetchRequest,
    StreamFetchResponse,
    TopicCompression,
    TopicCreation,
    TopicSpec,
    UpdateOffsetsRequest,
    UpdateOffsetsResponse,
)

VERSION = 24
OBJECTS = 19


def spec(partitions: int = 1, **changes: Any) -> TopicSpec:
    """Return what a topic is to be like."""
    fields: dict[str, Any] = {
        "form": ReplicaForm.COMPUTED,
        "replicas": ComputedReplicas(partitions=partitions, replication=1, ignore_rack=False),
        "cleanup_policy": None,
        "storage": None,
        "compression": TopicCompression.ANY,
        "deduplication": None,
        "system": False,
    }
    return TopicSpec(**fields | changes)


def create(
    sc: FluvioPeer, name: str, wanted: TopicSpec | None = None, *, dry_run: bool = False
) -> Status:
    """Create a topic."""
    creation = TopicCreation(name=name, dry_run=dry_run, timeout=None, spec=wanted or spec())
    body = CreateTopicRequest(creation=creation).encode(OBJECTS)
    return Status.decode(sc.ask(1001, OBJECTS, body))


def batch(*values: bytes, compression: int = Compression.NONE, time: int = 1_000) -> Batch:
    """Return a batch of records without keys."""
    records = [FluvioRecord(value, None, time) for value in values]
    return next(pack_batches(records, 0, compression))


def request(
    topic: str, *batches: Batch, partition: int = 0, isolation: int = 1, timeout_ms: int = 10_000
) -> ProduceRequest:
    """Return a Produce request with one entry for all batches."""
    entry = ProducePartition(partition=partition, records=RecordSet(batches=list(batches)))
    return ProduceRequest(
        transactional_id=None,
        isolation=isolation,
        timeout_ms=timeout_ms,
        topics=[ProduceTopic(name=topic, partitions=[entry])],
    )


def produce(
    spu: FluvioPeer, topic: str, *batches: Batch, version: int = VERSION, **fields: int
) -> PartitionAppended:
    """Store batches as one entry of a request."""
    body = request(topic, *batches, **fields).encode(version)
    response = ProduceResponse.decode(spu.ask(0, version, body), version)
    return response.topics[0].partitions[0]


def ends(spu: FluvioPeer, topic: str, partition: int = 0) -> tuple[Outcome, int, int]:
    """Return what FetchOffsets says of a partition."""
    asked = FetchOffsetsRequest(topics=[OffsetsTopic(topic=topic, partitions=[partition])])
    answer = FetchOffsetsResponse.decode(spu.ask(1002, VERSION, asked.encode(VERSION)))
    found = answer.topics[0].partitions[0]
    return found.outcome, found.start_offset, found.last_stable_offset


def fetch(topic: str, offset: int, **changes: Any) -> bytes:
    """Return the body of a StreamFetch request."""
    fields: dict[str, Any] = {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "max_bytes": 1_048_576,
        "isolation": Isolation.READ_UNCOMMITTED,
        "smartmodules": [],
        "consumer_id": None,
    }
    return StreamFetchRequest(**fields | changes).encode(VERSION)


def streamed(spu: FluvioPeer) -> StreamFetchResponse:
    """Return the next response to a stream."""
    return StreamFetchResponse.decode(spu.receive().body, VERSION)


def acknowledge(spu: FluvioPeer, stream: int, offset: int) -> UpdateOffsetsResponse:
    """Let a stream go on from an offset; the answer comes before its records."""
    update = UpdateOffsetsRequest(offsets=[OffsetUpdate(offset=offset, stream_id=stream)])
    return UpdateOffsetsResponse.decode(spu.ask(1005, 0, update.encode()))
