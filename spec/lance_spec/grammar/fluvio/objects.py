"""What the SC of Fluvio keeps: SPUs, topics and partitions, at object versions 15 to 19."""

from enum import IntEnum

from construct import Const, Int8ub, Int16ub, Int32sb, Int32ub, Int64sb, Int64ub

from lance_spec.grammar._composed import Choice, Many, Maybe, Nested
from lance_spec.grammar.fluvio._primitives import (
    OPTION_STRING,
    STRING,
    corrected,
    corrected_message,
    flag,
    mapping,
    vec,
)
from lance_spec.grammar.fluvio.produce import DURATION, PARAMETER

FIRST_OBJECT_VERSION = 15
_NAME = corrected("name", STRING, "Name of the object")


class SpuType(IntEnum):
    """How an SPU came into the cluster."""

    MANAGED = 0
    """The cluster started it."""
    CUSTOM = 1
    """It was registered by hand."""


class SpuResolution(IntEnum):
    """Whether an SPU can be reached."""

    ONLINE = 0
    """It can be reached."""
    OFFLINE = 1
    """It cannot be reached."""
    INIT = 2
    """It has not been seen yet."""


class Encryption(IntEnum):
    """How an endpoint is to be spoken to."""

    PLAINTEXT = 0
    """Without encryption."""
    SSL = 1
    """With TLS."""


class TopicCompression(IntEnum):
    """What a topic accepts; not the numbers that batches use."""

    NONE = 0
    """Only uncompressed batches."""
    GZIP = 1
    """Only gzip."""
    SNAPPY = 2
    """Only snappy."""
    LZ4 = 3
    """Only lz4."""
    ANY = 4
    """Whatever the producer chooses."""
    ZSTD = 5
    """Only zstd."""


class ReplicaForm(IntEnum):
    """How the partitions of a topic are placed."""

    ASSIGNED = 0
    """The creator says where."""
    COMPUTED = 1
    """The cluster chooses."""


class TopicResolution(IntEnum):
    """How far a topic has come."""

    INIT = 0
    """It was just created."""
    PENDING = 1
    """It waits for its place."""
    INSUFFICIENT_RESOURCES = 2
    """There are too few SPUs."""
    INVALID_CONFIG = 3
    """It cannot be configured like that."""
    PROVISIONED = 4
    """It can be used."""
    DELETING = 5
    """It is going away."""


class PartitionResolution(IntEnum):
    """Whether a partition can be used."""

    OFFLINE = 0
    """It cannot be used."""
    ONLINE = 1
    """It can be used."""
    LEADER_OFFLINE = 2
    """Its leader cannot be reached."""
    ELECTION_LEADER_FOUND = 3
    """It has found a new leader."""


_ENCRYPTION = corrected("encryption", Int8ub, "How to speak to it", enum=Encryption, closed=True)
INGRESS = corrected_message(
    "Ingress",
    corrected("hostname", OPTION_STRING, "Name of the host"),
    corrected("ip", OPTION_STRING, "Address of the host"),
    doc="A host under which an SPU can be reached",
)
PUBLIC_ENDPOINT = corrected_message(
    "PublicEndpoint",
    corrected("port", Int16ub, "TCP port"),
    corrected("ingress", vec(INGRESS), "The hosts"),
    _ENCRYPTION,
    doc="Where clients reach an SPU",
)
ENDPOINT = corrected_message(
    "Endpoint",
    corrected("port", Int16ub, "TCP port"),
    corrected("host", STRING, "Name or address of the host"),
    _ENCRYPTION,
    doc="Where one host is reached",
)
SPU_OBJECT = corrected_message(
    "SpuObject",
    _NAME,
    corrected("id", Int32sb, "Number of the SPU"),
    corrected("spu_type", Int8ub, "How it came into the cluster", enum=SpuType, closed=True),
    corrected("public_endpoint", Nested(PUBLIC_ENDPOINT), "Where clients reach it"),
    corrected("private_endpoint", Nested(ENDPOINT), "Where other SPUs reach it"),
    corrected("rack", OPTION_STRING, "Where it stands"),
    corrected("local_endpoint", Maybe(Nested(ENDPOINT)), "Where clients on its network reach it"),
    corrected("resolution", Int8ub, "Whether it can be reached", enum=SpuResolution, closed=True),
    doc="An SPU with its state",
)

CLEANUP_POLICY = corrected_message(
    "CleanupPolicy",
    corrected("form", Const(0, Int8ub), "By segment is the only way there is"),
    corrected("seconds", Int32ub, "How long records are kept", unit="seconds"),
    doc="When old records are removed",
)
STORAGE_CONFIG = corrected_message(
    "StorageConfig",
    corrected("segment_size", Maybe(Int32ub), "Size of a segment", unit="bytes"),
    corrected("max_partition_size", Maybe(Int64ub), "Most that is kept", unit="bytes"),
    doc="How a topic is stored",
)
DEDUPLICATION = corrected_message(
    "Deduplication",
    corrected("count", Int64ub, "How many records back", unit="records"),
    corrected("age", Maybe(Nested(DURATION)), "How far back in time"),
    corrected("uses", STRING, "Name of the SmartModule that compares"),
    corrected("parameters", mapping(PARAMETER), "Its parameters"),
    doc="How a topic drops records it has already",
)
ASSIGNED_PARTITION = corrected_message(
    "AssignedPartition",
    corrected("id", Int32ub, "Number of the partition"),
    corrected("replicas", Many(Int32sb, Int32sb), "The SPUs that keep it, its leader first"),
    doc="Where one partition is kept",
)
ASSIGNED_REPLICAS = corrected_message(
    "AssignedReplicas",
    corrected("partitions", vec(ASSIGNED_PARTITION), "Where each partition is kept"),
    doc="Partitions that were placed by hand",
)
COMPUTED_REPLICAS = corrected_message(
    "ComputedReplicas",
    corrected("partitions", Int32ub, "How many partitions"),
    corrected("replication", Int32ub, "How many SPUs keep each"),
    flag("ignore_rack", "Whether replicas may stand in the same rack"),
    doc="Partitions that the cluster places",
)
_KEEPING = (
    corrected("cleanup_policy", Maybe(Nested(CLEANUP_POLICY)), "When old records are removed"),
    corrected("storage", Maybe(Nested(STORAGE_CONFIG)), "How it is stored"),
    corrected("compression", Int8ub, "What batches may use", enum=TopicCompression, closed=True),
    corrected("deduplication", Maybe(Nested(DEDUPLICATION)), "How repeated records are dropped"),
    flag("system", "Whether it belongs to the cluster itself"),
)
TOPIC_SPEC = corrected_message(
    "TopicSpec",
    corrected("form", Int8ub, "How partitions are placed", enum=ReplicaForm, closed=True),
    corrected(
        "replicas",
        Choice(
            "form",
            {ReplicaForm.ASSIGNED: ASSIGNED_REPLICAS, ReplicaForm.COMPUTED: COMPUTED_REPLICAS},
        ),
        "How many there are, or where",
    ),
    *_KEEPING,
    doc="What a topic is to be; mirrors are not spoken of here",
)
REPLICA_MAP_ENTRY = corrected_message(
    "ReplicaMapEntry",
    corrected("partition", Int32ub, "Number of the partition"),
    corrected("spus", Many(Int32sb, Int32sb), "The SPUs that keep it, its leader first"),
    doc="Where one partition of a topic is",
)
TOPIC_OBJECT = corrected_message(
    "TopicObject",
    _NAME,
    corrected("spec", Nested(TOPIC_SPEC), "What it is to be"),
    corrected("resolution", Int8ub, "How far it has come", enum=TopicResolution, closed=True),
    corrected("replica_map", mapping(REPLICA_MAP_ENTRY), "Where its partitions are"),
    corrected("mirror_count", Const(0, Int16ub), "Mirrors, of which there are none"),
    corrected("reason", STRING, "Why it has not come further"),
    doc="A topic with its state",
)

REPLICA_STATUS = corrected_message(
    "ReplicaStatus",
    corrected("spu", Int32sb, "Number of the SPU"),
    corrected("high_watermark", Int64sb, "End of what is committed", unit="records"),
    corrected("end_offset", Int64sb, "End of what is written", unit="records"),
    doc="How far one replica has come",
)
PARTITION_OBJECT = corrected_message(
    "PartitionObject",
    corrected("name", STRING, "Name of the topic, a dash, number of the partition"),
    corrected("leader", Int32sb, "Number of the SPU that writes"),
    corrected("replicas", Many(Int32sb, Int32sb), "Numbers of the SPUs that keep it"),
    *_KEEPING,
    corrected("mirror", Const(0, Int8ub), "That it has no mirror"),
    corrected(
        "resolution", Int8ub, "Whether it can be used", enum=PartitionResolution, closed=True
    ),
    corrected("leader_status", Nested(REPLICA_STATUS), "How far the leader has come"),
    corrected("in_sync", Int32ub, "How many other replicas have come as far"),
    corrected("replica_statuses", vec(REPLICA_STATUS), "How far the others have come"),
    corrected("size", Int64sb, "Size on disk", unit="bytes"),
    flag("deleting", "Whether it is being removed"),
    corrected("base_offset", Int64sb, "Lowest offset there is", unit="records", since=16, absent=0),
    doc="A partition with its state",
)

MESSAGES = (
    INGRESS,
    PUBLIC_ENDPOINT,
    ENDPOINT,
    SPU_OBJECT,
    CLEANUP_POLICY,
    STORAGE_CONFIG,
    DEDUPLICATION,
    ASSIGNED_PARTITION,
    ASSIGNED_REPLICAS,
    COMPUTED_REPLICAS,
    TOPIC_SPEC,
    REPLICA_MAP_ENTRY,
    TOPIC_OBJECT,
    REPLICA_STATUS,
    PARTITION_OBJECT,
)
"""Objects, the parts first."""
