"""Records of a cluster's ordered log (CLU-01).

The nodes of a cluster append records to a log that another system orders and keeps, and every
node applies every record in its order. A LogRecord is the value of one entry. Its body says what
happens; what comes of it depends on the records before it and on nothing else:

- Genesis comes first in every shard. A later one changes nothing.
- Append stores a batch at the end of its topic, or is a duplicate, or finds no such topic.
- CreateTopic and DeleteTopic are applied in shard 0. TopicBegins and TopicEnds carry them to the
  topic's shard. TopicEnds is final, also where it comes before a TopicBegins.
- SetRetention, CommitOffset, DeleteCommit and DropBefore name the version that they replace or
  rely on. Where another one is current they change nothing.
- DropBefore removes whole segments. Roll ends the segment that is being written.
- Barrier changes nothing: its sender waits until it is applied.
- NodeStatus tells of a node. The first of a process takes the node's number over from the process
  that it names; where another one has it by then, it changes nothing.
- HostJoins and HostLeaves say which nodes keep a shard.
- ApplyVersion raises the version of the rules by which records are applied.

A record of a format that a node does not know, or that is not a LogRecord, stops the node: it
never skips one.
"""

from enum import IntEnum
from typing import Any, Final

from construct import Const, Construct, Int8ul, Int16ul, Int32ul, Int64ul

from lance_spec.grammar._composed import Blob, Choice, Many, Nested
from lance_spec.grammar._vocab import Declaration, Grammar, field, message
from lance_spec.grammar.engine.files import EntryFlag

LOG_MAGIC: Final = b"LNRL"
LOG_FORMAT: Final = 1
"""The format of records that this package writes and reads."""


class RecordKind(IntEnum):
    """What a record does."""

    GENESIS = 1
    """Begins a shard."""
    APPEND = 2
    """Stores a batch."""
    CREATE_TOPIC = 3
    """Creates a topic, in shard 0."""
    DELETE_TOPIC = 4
    """Deletes a topic, in shard 0."""
    TOPIC_BEGINS = 5
    """Begins a topic in its shard."""
    TOPIC_ENDS = 6
    """Ends a topic in its shard."""
    SET_RETENTION = 7
    """Changes how much of a topic is kept."""
    COMMIT_OFFSET = 8
    """Records how far a consumer is."""
    DELETE_COMMIT = 9
    """Forgets how far a consumer is."""
    EXPIRE_COMMITS = 10
    """Forgets commits that are old."""
    DROP_BEFORE = 11
    """Removes the oldest segments of a topic."""
    ROLL = 12
    """Ends the segment that is being written."""
    BARRIER = 13
    """Does nothing."""
    NODE_STATUS = 14
    """Tells of a node."""
    HOST_JOINS = 15
    """Makes a node a host of a shard."""
    HOST_LEAVES = 16
    """Makes a node a host of a shard no more."""
    APPLY_VERSION = 17
    """Raises the version of the rules."""


_SECTION: Final = "CLU-01"
_NAME: Final = Blob(Int16ul, text=True)


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section=_SECTION, **facts)


def _message(name: str, *fields: Construct, doc: str, rows: tuple[str, ...] = ()) -> Declaration:
    return message(name, *fields, doc=doc, section=_SECTION, ambiguities=("CLU-01", *rows))


_TOPIC_ID: Final = _field("topic_id", Int32ul, "Number of the topic")
_TOPIC_NAME: Final = _field("name", _NAME, "Name of the topic", ambiguities=("AMB-24",))
_MAX_AGE: Final = _field(
    "max_age_secs", Int64ul, "Age beyond which records may be deleted; 0 for none", unit="seconds"
)
_MAX_BYTES: Final = _field(
    "max_bytes", Int64ul, "Size beyond which the oldest records may be deleted", unit="bytes"
)
_ACCEPTED: Final = _field(
    "accepted_ns", Int64ul, "When its sender accepted it, by its clock", unit="nanoseconds"
)
_CONSUMER: Final = _field("consumer_id", Int64ul, "The consumer")
_COMMIT_VERSION: Final = _field(
    "version", Int64ul, "Version of the commit that it replaces, 0 where there is none"
)
_NODE: Final = _field("node_id", Int32ul, "Number of the node")
_SHARD: Final = _field("shard", Int32ul, "Number of the shard")

GENESIS = _message(
    "Genesis",
    _field(
        "cluster_id",
        _NAME,
        "Name of the cluster; the digest of the files that it began with after an '@'",
    ),
    _field("apply_version", Int16ul, "Version of the rules by which records are applied"),
    _field("created_ns", Int64ul, "When the cluster was made", unit="nanoseconds"),
    _field(
        "segment_size",
        Int64ul,
        "Bytes after which a segment is closed",
        unit="bytes",
        minimum=1,
        maximum=2**48,
    ),
    _field("window_entries", Int64ul, "Batches in the duplicate window of a topic, 0 for none"),
    _field("window_age_secs", Int64ul, "Age beyond which they are forgotten", unit="seconds"),
    _field("max_topics", Int32ul, "Most topics"),
    _field("max_consumers", Int32ul, "Most consumers that may commit to a topic"),
    doc="Begins a shard, with every setting that influences what comes of records",
    rows=("AMB-25",),
)
APPEND = _message(
    "Append",
    _TOPIC_ID,
    _field("batch_id", Int64ul, "Identifier the producer gave the batch", ambiguities=("AMB-25",)),
    _field("client_timestamp_ns", Int64ul, "Time the producer gave the batch", unit="nanoseconds"),
    _ACCEPTED,
    _field("record_count", Int32ul, "Number of records in the batch", unit="records"),
    _field("flags", Int32ul, "What is special about the batch", flags=EntryFlag),
    _field("stored_crc", Int32ul, "CRC32C of the data"),
    _field("data", Blob(Int32ul), "The batch as it is stored: validated, and not compressed"),
    doc="Stores a batch at the end of its topic",
    rows=("AMB-25", "AMB-43"),
)
CREATE_TOPIC = _message(
    "CreateTopic",
    _TOPIC_NAME,
    _MAX_AGE,
    _MAX_BYTES,
    _field("shard", Int32ul, "Shard that the topic belongs to"),
    _ACCEPTED,
    doc="Creates a topic; its number is that of its order among all creations",
    rows=("AMB-30",),
)
DELETE_TOPIC = _message("DeleteTopic", _TOPIC_ID, doc="Deletes a topic")
TOPIC_BEGINS = _message(
    "TopicBegins",
    _TOPIC_ID,
    _TOPIC_NAME,
    _field("created_at", Int64ul, "When it was created", unit="seconds"),
    _field("topic_epoch", Int64ul, "Which topic of this name it is", ambiguities=("AMB-30",)),
    _MAX_AGE,
    _MAX_BYTES,
    doc="Begins a topic in its shard, with all that the shard needs to know of it",
)
TOPIC_ENDS = _message("TopicEnds", _TOPIC_ID, doc="Ends a topic in its shard, for good")
SET_RETENTION = _message(
    "SetRetention",
    _TOPIC_ID,
    _field("version", Int64ul, "Version of the retention that it replaces"),
    _MAX_AGE,
    _MAX_BYTES,
    doc="Changes how much of a topic is kept",
    rows=("AMB-08",),
)
COMMIT_OFFSET = _message(
    "CommitOffset",
    _TOPIC_ID,
    _CONSUMER,
    _COMMIT_VERSION,
    _field("offset", Int64ul, "Byte offset up to which the consumer is done", unit="bytes"),
    _ACCEPTED,
    doc="Records how far a consumer is",
    rows=("AMB-55",),
)
DELETE_COMMIT = _message(
    "DeleteCommit", _TOPIC_ID, _CONSUMER, _COMMIT_VERSION, doc="Forgets how far a consumer is"
)
EXPIRE_COMMITS = _message(
    "ExpireCommits",
    _TOPIC_ID,
    _field("before_ns", Int64ul, "Commits from before this time go", unit="nanoseconds"),
    _field("kept", Many(Int32ul, Int64ul), "Consumers whose commits stay, however old"),
    doc="Forgets commits that are old",
    rows=("AMB-55",),
)
DROP_BEFORE = _message(
    "DropBefore",
    _TOPIC_ID,
    _field("offset", Int64ul, "Segments that end here or before may go", unit="bytes"),
    _field("retention_version", Int64ul, "Version of the retention that it relies on"),
    doc="Removes the oldest segments of a topic, as far as its retention allows",
    rows=("AMB-08",),
)
ROLL = _message(
    "Roll",
    _TOPIC_ID,
    _field("end", Int64ul, "End of the topic that the sender saw", unit="bytes"),
    doc="Ends the segment that is being written, unless the topic has grown since",
)
SHARD_POSITION = _message(
    "ShardPosition",
    _SHARD,
    _field("applied", Int64ul, "Position after the last record that is applied"),
    _field("digest", Int32ul, "Digest of all records of the shard up to there"),
    _field("durable", Int64ul, "Position after the last record that survives a crash of the node"),
    doc="How far a node is with a shard",
)
NODE_STATUS = _message(
    "NodeStatus",
    _NODE,
    _field(
        "replaces",
        Int64ul,
        "Process that had the node's number before the sender, as far as it knows, 0 for none",
    ),
    _field("address", _NAME, "Where clients reach the node"),
    _field("release", _NAME, "Release of its software"),
    _field("apply_version", Int16ul, "Newest version of the rules that it knows"),
    _field("clock_ns", Int64ul, "What its clock shows", unit="nanoseconds"),
    _field("positions", Many(Int32ul, Nested(SHARD_POSITION)), "How far it is, by shard"),
    doc="Tells of a node",
)
HOST_JOINS = _message("HostJoins", _NODE, _SHARD, doc="Makes a node a host of a shard")
HOST_LEAVES = _message("HostLeaves", _NODE, _SHARD, doc="Makes a node a host of a shard no more")
APPLY_VERSION = _message(
    "ApplyVersion",
    _field("version", Int16ul, "Version of the rules from here on"),
    doc="Raises the version of the rules by which records are applied",
)
LOG_RECORD = _message(
    "LogRecord",
    _field("magic", Const(LOG_MAGIC), "The letters LNRL"),
    _field(
        "format",
        Int16ul,
        "Format of what follows",
        minimum=LOG_FORMAT,
        maximum=LOG_FORMAT,
        hint="a newer node wrote it; upgrade this one",
    ),
    _field("kind", Int8ul, "What it does", enum=RecordKind, closed=True),
    _field("process", Int64ul, "Random number of the process that sent it"),
    _field("counter", Int64ul, "Number of the record among those of its process"),
    _field(
        "body",
        Choice(
            "kind",
            {
                RecordKind.GENESIS: GENESIS,
                RecordKind.APPEND: APPEND,
                RecordKind.CREATE_TOPIC: CREATE_TOPIC,
                RecordKind.DELETE_TOPIC: DELETE_TOPIC,
                RecordKind.TOPIC_BEGINS: TOPIC_BEGINS,
                RecordKind.TOPIC_ENDS: TOPIC_ENDS,
                RecordKind.SET_RETENTION: SET_RETENTION,
                RecordKind.COMMIT_OFFSET: COMMIT_OFFSET,
                RecordKind.DELETE_COMMIT: DELETE_COMMIT,
                RecordKind.EXPIRE_COMMITS: EXPIRE_COMMITS,
                RecordKind.DROP_BEFORE: DROP_BEFORE,
                RecordKind.ROLL: ROLL,
                RecordKind.NODE_STATUS: NODE_STATUS,
                RecordKind.HOST_JOINS: HOST_JOINS,
                RecordKind.HOST_LEAVES: HOST_LEAVES,
                RecordKind.APPLY_VERSION: APPLY_VERSION,
            },
        ),
        "What the kind needs; nothing for a Barrier",
    ),
    doc="One record of a shard",
)

GRAMMAR: Final = Grammar(
    name="replication",
    doc="Records of the ordered log that the nodes of a cluster share.",
    sources=("lance_spec/grammar/replication.py",),
    messages=(
        GENESIS,
        APPEND,
        CREATE_TOPIC,
        DELETE_TOPIC,
        TOPIC_BEGINS,
        TOPIC_ENDS,
        SET_RETENTION,
        COMMIT_OFFSET,
        DELETE_COMMIT,
        EXPIRE_COMMITS,
        DROP_BEFORE,
        ROLL,
        SHARD_POSITION,
        NODE_STATUS,
        HOST_JOINS,
        HOST_LEAVES,
        APPLY_VERSION,
        LOG_RECORD,
    ),
    composed=True,
)
