"""Family ``replication_message``: records of the ordered log of a cluster (CLU-01)."""

from typing import Any

from generate.codec.cursor import Shape
from generate.codec.nested import Choice, Field, Many, Nested, Struct
from generate.codec.shapes import U8, U16LE, U32LE, U64LE, Blob, Const, Fixed
from generate.codec.wire import crc
from generate.composed import NOTES, Example, Family, used
from generate.document import document

NAME, BYTES = Blob(U16LE, text=True), Blob(U32LE)
MAX16, MAX32, MAX64 = 2**16 - 1, 2**32 - 1, 2**64 - 1


def f(name: str, shape: Shape) -> Field:
    """Return a field."""
    return Field(name, shape)


TOPIC_ID, TOPIC_NAME, ACCEPTED = f("topic_id", U32LE), f("name", NAME), f("accepted_ns", U64LE)
MAX_AGE, MAX_BYTES = f("max_age_secs", U64LE), f("max_bytes", U64LE)
CONSUMER, VERSION, OFFSET = f("consumer_id", U64LE), f("version", U64LE), f("offset", U64LE)
NODE, SHARD = f("node_id", U32LE), f("shard", U32LE)

GENESIS = Struct(
    "Genesis",
    (
        f("cluster_id", NAME),
        f("apply_version", U16LE),
        f("created_ns", U64LE),
        f("segment_size", U64LE.but(limits=(1, 2**48))),
        f("window_entries", U64LE),
        f("window_age_secs", U64LE),
        f("max_topics", U32LE),
        f("max_consumers", U32LE),
    ),
)
APPEND = Struct(
    "Append",
    (
        TOPIC_ID,
        f("batch_id", U64LE),
        f("client_timestamp_ns", U64LE),
        ACCEPTED,
        f("record_count", U32LE),
        f("flags", U32LE),
        f("stored_crc", U32LE),
        f("data", BYTES),
    ),
)
CREATE = Struct("CreateTopic", (TOPIC_NAME, MAX_AGE, MAX_BYTES, SHARD, ACCEPTED))
DELETE = Struct("DeleteTopic", (TOPIC_ID,))
BEGINS = Struct(
    "TopicBegins",
    (TOPIC_ID, TOPIC_NAME, f("created_at", U64LE), f("topic_epoch", U64LE), MAX_AGE, MAX_BYTES),
)
ENDS = Struct("TopicEnds", (TOPIC_ID,))
RETENTION = Struct("SetRetention", (TOPIC_ID, VERSION, MAX_AGE, MAX_BYTES))
COMMIT = Struct("CommitOffset", (TOPIC_ID, CONSUMER, VERSION, OFFSET, ACCEPTED))
FORGET = Struct("DeleteCommit", (TOPIC_ID, CONSUMER, VERSION))
EXPIRE = Struct("ExpireCommits", (TOPIC_ID, f("before_ns", U64LE), f("kept", Many(U32LE, U64LE))))
DROP = Struct("DropBefore", (TOPIC_ID, OFFSET, f("retention_version", U64LE)))
ROLL = Struct("Roll", (TOPIC_ID, f("end", U64LE)))
POSITION = Struct(
    "ShardPosition", (SHARD, f("applied", U64LE), f("digest", U32LE), f("durable", U64LE))
)
STATUS = Struct(
    "NodeStatus",
    (
        NODE,
        f("replaces", U64LE),
        f("address", NAME),
        f("release", NAME),
        f("apply_version", U16LE),
        f("clock_ns", U64LE),
        f("positions", Many(U32LE, Nested(POSITION))),
    ),
)
JOINS, LEAVES = Struct("HostJoins", (NODE, SHARD)), Struct("HostLeaves", (NODE, SHARD))
APPLY = Struct("ApplyVersion", (f("version", U16LE),))
KINDS = {
    1: GENESIS,
    2: APPEND,
    3: CREATE,
    4: DELETE,
    5: BEGINS,
    6: ENDS,
    7: RETENTION,
    8: COMMIT,
    9: FORGET,
    10: EXPIRE,
    11: DROP,
    12: ROLL,
    14: STATUS,
    15: JOINS,
    16: LEAVES,
    17: APPLY,
}
BARRIER = 13
RECORD = Struct(
    "LogRecord",
    (
        f("magic", Const(Fixed(4), b"LNRL")),
        f("format", U16LE.but(limits=(1, 1))),
        f("kind", U8.but(names=range(1, 18))),
        f("process", U64LE),
        f("counter", U64LE),
        f("body", Choice("kind", KINDS)),
    ),
)

NOW = 1_706_918_400_000_000_000
DATA = b"\1\5\0\0\0hello\2\0\0\0\0"


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


BATCH: dict[str, Any] = {
    "topic_id": 7,
    "batch_id": (3 << 40) + 1,
    "client_timestamp_ns": NOW - 5,
    "accepted_ns": NOW,
    "record_count": 2,
    "flags": 0,
    "stored_crc": crc("crc32c", DATA),
    "data": DATA,
}
SETTINGS: dict[str, Any] = {
    "cluster_id": "c-5f1e",
    "apply_version": 1,
    "created_ns": NOW,
    "segment_size": 2**30,
    "window_entries": 1_000_000,
    "window_age_secs": 604_800,
    "max_topics": 10_000,
    "max_consumers": 10_000,
}
CREATION: dict[str, Any] = {
    "name": "größe",
    "max_age_secs": 3600,
    "max_bytes": 0,
    "shard": 1,
    "accepted_ns": NOW,
}
BEGUN: dict[str, Any] = {
    "topic_id": 7,
    "name": "größe",
    "created_at": NOW // 10**9,
    "topic_epoch": 2,
    "max_age_secs": 3600,
    "max_bytes": 0,
}
COMMITTED: dict[str, Any] = {
    "topic_id": 7,
    "consumer_id": MAX64,
    "version": 3,
    "offset": 1034,
    "accepted_ns": NOW,
}
FAR: dict[str, Any] = {"shard": 1, "applied": 1034, "digest": 0xDEADBEEF, "durable": 1000}
NODE_ONE: dict[str, Any] = {
    "node_id": 1,
    "replaces": MAX64 - 1,
    "address": "host1:1992",
    "release": "0.1.0",
    "apply_version": 1,
    "clock_ns": NOW,
    "positions": [FAR],
}
EXAMPLES: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (GENESIS, (named("plain", "Settings of a cluster.", **SETTINGS),
               named("no-window", "Without a duplicate window.", **SETTINGS | {
                   "window_entries": 0, "window_age_secs": 0}),
               named("largest", "The largest numbers.", cluster_id="c" * 300, apply_version=MAX16,
                     created_ns=MAX64, segment_size=2**48, window_entries=MAX64,
                     window_age_secs=MAX64, max_topics=MAX32, max_consumers=MAX32))),
    (APPEND, (named("two", "A batch of two records.", **BATCH),
              named("opaque", "A batch that does not parse.", **BATCH | {
                  "flags": 1, "record_count": 0, "data": b"\xff",
                  "stored_crc": crc("crc32c", b"\xff")}),
              named("default-topic", "For the default topic.", **BATCH | {"topic_id": 0}))),
    (CREATE, (named("plain", "A topic with retention.", **CREATION),)),
    (DELETE, (named("plain", "A topic goes.", topic_id=7),)),
    (BEGINS, (named("plain", "A topic begins.", **BEGUN),)),
    (ENDS, (named("plain", "A topic ends.", topic_id=7),)),
    (RETENTION, (named("plain", "The first change.", topic_id=7, version=1, max_age_secs=60,
                       max_bytes=2**40),)),
    (COMMIT, (named("again", "A consumer goes on.", **COMMITTED),
              named("first", "Its first commit.", **COMMITTED | {"version": 0, "offset": 0}))),
    (FORGET, (named("plain", "A commit goes.", topic_id=7, consumer_id=9, version=3),)),
    (EXPIRE, (named("two", "Two are kept.", topic_id=7, before_ns=NOW, kept=[1, MAX64]),
              named("none", "None is.", topic_id=7, before_ns=NOW, kept=[]))),
    (DROP, (named("plain", "Old segments go.", topic_id=7, offset=2**40, retention_version=1),)),
    (ROLL, (named("plain", "A segment ends.", topic_id=7, end=1034),)),
    (POSITION, (named("plain", "One shard.", **FAR),)),
    (STATUS, (named("one", "A node with one shard.", **NODE_ONE),
              named("none", "A node that hosts none.", **NODE_ONE | {"positions": []}))),
    (JOINS, (named("plain", "A node becomes a host.", node_id=1, shard=0),)),
    (LEAVES, (named("plain", "A node is a host no more.", node_id=1, shard=15),)),
    (APPLY, (named("plain", "The next version.", version=2),)),
)  # fmt: skip
"""Each body with its examples; the first is the one that is spoilt."""


def _records() -> tuple[Example, ...]:
    """Return a record of every kind; the one that is spoilt stores a batch."""
    bodies = {struct.name: examples[0].value for struct, examples in EXAMPLES}
    kinds: dict[int, Any] = {kind: bodies[struct.name] for kind, struct in KINDS.items()}
    kinds[BARRIER] = None
    order = sorted(kinds, key=lambda kind: (kind != 2, kind))
    return tuple(
        named(
            f"kind-{kind}",
            f"A record of kind {kind}.",
            magic=b"LNRL",
            format=1,
            kind=kind,
            process=MAX64 - kind,
            counter=kind,
            body=kinds[kind],
        )
        for kind in order
    )


EXAMPLES = (*EXAMPLES, (RECORD, _records()))


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A record of the log that the nodes of a cluster share, or a part of one. A valid one is",
        "read as `fields`, exactly to its end. An invalid one is refused; `reason`, `field` and",
        "`offset` say why: it is `short`, has `trailing` bytes, or a `value` that must not be.",
    ]
    family = Family("replication", "ReplicationMessage", "CLU-01")
    groups = [family.group(struct, examples) for struct, examples in EXAMPLES]
    return document("replication_message", header, used(NOTES, groups), groups)
