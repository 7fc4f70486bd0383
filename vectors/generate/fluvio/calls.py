"""Fluvio's requests, answers and objects, written down a second time (FLV-01)."""

from generate.codec.nested import Choice, Field, Many, Maybe, Nested, Sized, Struct
from generate.codec.shapes import FLAG, I16, I32, I64, U8, U16, U32, U64, Blob, Const
from generate.fluvio.common_types import (
    BATCHES,
    BYTES,
    DURATION,
    MODULES,
    NAME,
    OFFSET,
    OPTION,
    PARAMETER,
    PARTITION,
    RESULT,
    STREAM,
    STRING,
    TOPIC,
    f,
    mapping,
    message,
    vec,
)

PRODUCE_PARTITION = message("ProducePartition", PARTITION, BATCHES)
PRODUCE_TOPIC = message("ProduceTopic", NAME, f("partitions", vec(PRODUCE_PARTITION)))
PRODUCE = message(
    "ProduceRequest",
    f("transactional_id", OPTION),
    f("isolation", I16),
    f("timeout_ms", I32.but(limits=(0, 2**31 - 1))),
    f("topics", vec(PRODUCE_TOPIC)),
    f("smartmodules", MODULES, 8),
)
APPENDED = message(
    "PartitionAppended",
    PARTITION,
    RESULT,
    f("base_offset", I64),
    f("log_append_time_ms", I64, 2),
    f("log_start_offset", I64, 5),
)
TOPIC_APPENDED = message("TopicAppended", NAME, f("partitions", vec(APPENDED)))
PRODUCED = message(
    "ProduceResponse", f("topics", vec(TOPIC_APPENDED)), f("throttle_time_ms", I32, 1)
)

OFFSETS_TOPIC = message("OffsetsTopic", TOPIC, f("partitions", Many(I32, U32)))
ASK_OFFSETS = message(
    "FetchOffsetsRequest", f("topics", vec(OFFSETS_TOPIC)), f("consumer_id", OPTION, 23, 23)
)
PARTITION_OFFSETS = message(
    "PartitionOffsets", RESULT, PARTITION, f("start_offset", I64), f("last_stable_offset", I64)
)
TOPIC_OFFSETS = message("TopicOffsets", TOPIC, f("partitions", vec(PARTITION_OFFSETS)))
OFFSETS = message("FetchOffsetsResponse", f("topics", vec(TOPIC_OFFSETS)))
STREAM_FETCH = message(
    "StreamFetchRequest",
    TOPIC,
    PARTITION,
    OFFSET,
    f("max_bytes", I32),
    f("isolation", U8.but(names=(0, 1))),
    f("smartmodules", MODULES),
    f("consumer_id", OPTION, 23),
)
ABORTED = message("AbortedTransaction", f("producer_id", I64), f("first_offset", I64))
_PIECE = (
    TOPIC,
    STREAM,
    PARTITION,
    RESULT,
    f("high_watermark", I64),
    f("next_filter_offset", I64, 11),
    f("log_start_offset", I64),
    f("aborted", Maybe(vec(ABORTED))),
)
STREAM_FETCHED = message("StreamFetchResponse", *_PIECE, BATCHES)
STREAM_PIECE = message("StreamFetchPiece", *_PIECE, f("records", BYTES))
OFFSET_UPDATE = message("OffsetUpdate", OFFSET, STREAM)
UPDATE = message("UpdateOffsetsRequest", f("offsets", vec(OFFSET_UPDATE)))
STREAM_OUTCOME = message("StreamOutcome", STREAM, RESULT)
UPDATED = message("UpdateOffsetsResponse", f("status", vec(STREAM_OUTCOME)))
REPLICA = message("ReplicaKey", TOPIC, PARTITION)
FILTER = message("OffsetsFilter", f("replica", Maybe(Nested(REPLICA))), f("consumer_id", OPTION))
ASK_CONSUMERS = message("FetchConsumerOffsetsRequest", f("filter", Maybe(Nested(FILTER)), 24))
CONSUMER = message(
    "ConsumerOffset", f("consumer_id", STRING), TOPIC, PARTITION, OFFSET, f("modified_time", U64)
)
CONSUMERS = message("FetchConsumerOffsetsResponse", RESULT, f("consumers", vec(CONSUMER)))
STORE = message("UpdateConsumerOffsetRequest", OFFSET, STREAM)
STORED = message("UpdateConsumerOffsetResponse", OFFSET, RESULT)
FORGET = message("DeleteConsumerOffsetRequest", TOPIC, PARTITION, f("consumer_id", STRING))
FORGOTTEN = message("DeleteConsumerOffsetResponse", RESULT)

ENCRYPTION, RESOLUTION = f("encryption", U8.but(names=(0, 1))), "resolution"
INGRESS = message("Ingress", f("hostname", OPTION), f("ip", OPTION))
PUBLIC = message("PublicEndpoint", f("port", U16), f("ingress", vec(INGRESS)), ENCRYPTION)
ENDPOINT = message("Endpoint", f("port", U16), f("host", STRING), ENCRYPTION)
SPU = message(
    "SpuObject",
    NAME,
    f("id", I32),
    f("spu_type", U8.but(names=(0, 1))),
    f("public_endpoint", Nested(PUBLIC)),
    f("private_endpoint", Nested(ENDPOINT)),
    f("rack", OPTION),
    f("local_endpoint", Maybe(Nested(ENDPOINT))),
    f(RESOLUTION, U8.but(names=range(3))),
)
CLEANUP = message("CleanupPolicy", f("form", Const(U8, 0)), f("seconds", U32))
STORAGE = message(
    "StorageConfig", f("segment_size", Maybe(U32)), f("max_partition_size", Maybe(U64))
)
DEDUPLICATION = message(
    "Deduplication",
    f("count", U64),
    f("age", Maybe(Nested(DURATION))),
    f("uses", STRING),
    f("parameters", mapping(PARAMETER)),
)
ASSIGNED = message("AssignedPartition", f("id", U32), f("replicas", Many(I32, I32)))
BY_HAND = message("AssignedReplicas", f("partitions", vec(ASSIGNED)))
COMPUTED = message(
    "ComputedReplicas", f("partitions", U32), f("replication", U32), f("ignore_rack", FLAG)
)
KEEPING: tuple[Field, ...] = (
    f("cleanup_policy", Maybe(Nested(CLEANUP))),
    f("storage", Maybe(Nested(STORAGE))),
    f("compression", U8.but(names=range(6))),
    f("deduplication", Maybe(Nested(DEDUPLICATION))),
    f("system", FLAG),
)
TOPIC_SPEC = message(
    "TopicSpec",
    f("form", U8.but(names=(0, 1))),
    f("replicas", Choice("form", {0: BY_HAND, 1: COMPUTED})),
    *KEEPING,
)
MAP_ENTRY = message("ReplicaMapEntry", PARTITION, f("spus", Many(I32, I32)))
TOPIC_OBJECT = message(
    "TopicObject",
    NAME,
    f("spec", Nested(TOPIC_SPEC)),
    f(RESOLUTION, U8.but(names=range(6))),
    f("replica_map", mapping(MAP_ENTRY)),
    f("mirror_count", Const(U16, 0)),
    f("reason", STRING),
)
REPLICA_STATUS = message(
    "ReplicaStatus", f("spu", I32), f("high_watermark", I64), f("end_offset", I64)
)
PARTITION_OBJECT = message(
    "PartitionObject",
    NAME,
    f("leader", I32),
    f("replicas", Many(I32, I32)),
    *KEEPING,
    f("mirror", Const(U8, 0)),
    f(RESOLUTION, U8.but(names=range(4))),
    f("leader_status", Nested(REPLICA_STATUS)),
    f("in_sync", U32),
    f("replica_statuses", vec(REPLICA_STATUS)),
    f("size", I64),
    f("deleting", FLAG),
    f("base_offset", I64, 16),
)

WATCH = message("Watch", f("epoch", I64), f("summary", FLAG))
WATCHING = message("WatchRequest", f("object_type", STRING), f("watch", Sized(U32, Nested(WATCH))))


def kind(name: bytes) -> Field:
    """Return the text that says which objects a message is about."""
    return f("object_type", Const(Blob(I16), name))


def watched(name: str, item: Struct) -> tuple[Struct, Struct, Struct, Struct]:
    """Return what brings objects of one type: a change, an update, and the two answers."""
    change = message(f"{name}Change", f("change", U8.but(names=(0, 1))), f("object", Nested(item)))
    update = message(
        f"{name}Update", f("epoch", I64), f("changes", vec(change)), f("all", vec(item))
    )
    letters = kind(b"SPU" if name == "Spu" else name.encode())
    answer = message(f"Watch{name}Response", letters, f("update", Sized(U32, Nested(update))))
    listed = message(f"List{name}Response", letters, f("objects", Sized(U32, vec(item))))
    return change, update, answer, listed


SPUS, TOPICS, PARTITIONS = (
    watched(name, item)
    for name, item in (("Spu", SPU), ("Topic", TOPIC_OBJECT), ("Partition", PARTITION_OBJECT))
)
LISTING = message("Listing", f("names", Many(I32, STRING)), f("summary", FLAG), f("system", FLAG))
LIST = message("ListRequest", f("object_type", STRING), f("listing", Sized(U32, Nested(LISTING))))
CREATION = message(
    "TopicCreation",
    NAME,
    f("dry_run", FLAG),
    f("timeout", Maybe(U32)),
    f("spec", Nested(TOPIC_SPEC)),
)
CREATE = message("CreateTopicRequest", kind(b"Topic"), f("creation", Sized(U32, Nested(CREATION))))
DELETION = message("TopicDeletion", NAME, f("force", FLAG))
DELETE = message("DeleteTopicRequest", kind(b"Topic"), f("deletion", Sized(U32, Nested(DELETION))))
STATUS = message("Status", NAME, RESULT, f("message", OPTION))
