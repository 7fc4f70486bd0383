"""The RustLog protocol as its broker speaks it: tagged binary messages (RL-01).

The JSON that the written specification describes is not a message of this grammar; its forms are
the schemas ``rustlog_request`` and ``rustlog_response`` of `lance_spec.schemas`.
"""

from enum import IntEnum
from typing import Any, Final

from construct import (
    Bytes,
    Const,
    Construct,
    Int8ub,
    Int16ub,
    Int32ub,
    Int64ub,
    Rebuild,
    len_,
    this,
)

from lance_spec.grammar._composed import Blob, Many, Maybe, Nested
from lance_spec.grammar._vocab import Declaration, Grammar, field, message

MAX_FRAME: Final = 10_485_760
"""Most bytes of a frame's payload; 0 is too few (RustLog specification, Frame Structure)."""


class ErrorCode(IntEnum):
    """Why a request failed."""

    FRAME_ERROR = 1
    """The frame is empty or too large; the connection closes."""
    DECODE_ERROR = 2
    """The message cannot be read."""
    PARTITION_NOT_FOUND = 3
    """There is no such partition to append to."""
    FETCH_FAILED = 4
    """Records could not be read."""
    COMMIT_FAILED = 5
    """The offset could not be stored."""
    TOPIC_OR_PARTITION_NOT_FOUND = 10
    """There is no such topic or partition."""
    TOPIC_ALREADY_EXISTS = 11
    """There is a topic of this name."""
    INVALID_PARTITION_COUNT = 12
    """A topic needs a partition."""
    DESCRIBE_TOPIC_FAILED = 13
    """The topic could not be described."""
    DESCRIBE_PARTITION_FAILED = 14
    """The partition could not be described."""
    INTERNAL = 500
    """The broker failed inside."""


_IDS: Final = ("RL-01",)
_STRING: Final = Blob(Int16ub, text=True)
_RECORD: Final = Blob(Int32ub)


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section="RL-01", ambiguities=_IDS, **facts)


def _message(name: str, *fields: Construct, doc: str) -> Declaration:
    return message(name, *fields, doc=doc, section="RL-01", ambiguities=_IDS)


def _tagged(name: str, code: int, *fields: Construct, doc: str) -> Declaration:
    """Return a message that opens with a byte for its type."""
    return _message(
        name, _field("type", Const(code, Int8ub), "Type of the message"), *fields, doc=doc
    )


_TOPIC = _field("topic", _STRING, "Name of the topic")
_GROUP = _field("group", _STRING, "Name of the consumer group")
_PARTITION = _field("partition", Int32ub, "Number of the partition")
_SUCCESS = _field("success", Int8ub, "Whether it was done", boolean=True)
_RECORDS = _field("records", Many(Int32ub, _RECORD), "The records, without offsets of their own")
_WATERMARK = _field("high_watermark", Int64ub, "The published broker always writes 0")

FRAME = message(
    "Frame",
    field(
        "length",
        Rebuild(Int32ub, len_(this.payload)),
        doc="Length of the payload",
        unit="bytes",
        section="RustLog specification, Frame Structure",
        minimum=1,
        maximum=MAX_FRAME,
        ambiguities=_IDS,
    ),
    field(
        "payload",
        Bytes(this.length),
        doc="One message; JSON where its first byte is a brace or white space",
        section="RustLog specification, Frame Structure",
        ambiguities=_IDS,
    ),
    doc="Carries one message after its length",
    section="RustLog specification, Frame Structure",
    ambiguities=_IDS,
)

PRODUCE_REQUEST = _tagged(
    "ProduceRequest", 0x01, _TOPIC, _PARTITION, _RECORDS, doc="Appends records"
)
PRODUCE_RESPONSE = _tagged(
    "ProduceResponse",
    0x01,
    _field("base_offset", Int64ub, "Offset of the first record; 0 when there is none"),
    _field("record_count", Int32ub, "How many were appended", unit="records"),
    doc="Answers a ProduceRequest",
)
FETCH_REQUEST = _tagged(
    "FetchRequest",
    0x02,
    _field("group", _STRING, "Group whose committed offset is read instead; empty for none"),
    _TOPIC,
    _PARTITION,
    _field("offset", Int64ub, "Offset to read from; the broker ignores it for groups"),
    _field("max_bytes", Int32ub, "Most bytes, 12 for each record included", unit="bytes"),
    doc="Reads records",
)
FETCH_RESPONSE = _tagged(
    "FetchResponse",
    0x02,
    _RECORDS,
    _field("next_offset", Int64ub, "Offset to read next"),
    doc="Answers a FetchRequest",
)
OFFSET_COMMIT_REQUEST = _tagged(
    "OffsetCommitRequest",
    0x03,
    _GROUP,
    _TOPIC,
    _PARTITION,
    _field("offset", Int64ub, "Offset to read next"),
    doc="Stores how far a group has come",
)
OFFSET_COMMIT_RESPONSE = _tagged(
    "OffsetCommitResponse", 0x03, _SUCCESS, doc="Answers an OffsetCommitRequest"
)
OFFSET_FETCH_REQUEST = _tagged(
    "OffsetFetchRequest", 0x04, _GROUP, _TOPIC, _PARTITION, doc="Asks how far a group has come"
)
OFFSET_FETCH_RESPONSE = _tagged(
    "OffsetFetchResponse",
    0x04,
    _field("offset", Maybe(Int64ub), "Offset to read next, where one was committed"),
    doc="Answers an OffsetFetchRequest",
)
CREATE_TOPIC_REQUEST = _tagged(
    "CreateTopicRequest",
    0x05,
    _TOPIC,
    _field("partitions", Int32ub, "How many partitions it is to have"),
    doc="Creates a topic",
)
CREATE_TOPIC_RESPONSE = _tagged(
    "CreateTopicResponse", 0x05, _SUCCESS, doc="Answers a CreateTopicRequest"
)
LIST_TOPICS_REQUEST = _tagged("ListTopicsRequest", 0x06, doc="Asks for the names of topics")
LISTED_TOPIC = _message(
    "ListedTopic", _TOPIC, _field("partitions", Int32ub, "How many it has"), doc="One topic"
)
LIST_TOPICS_RESPONSE = _tagged(
    "ListTopicsResponse",
    0x06,
    _field("topics", Many(Int32ub, Nested(LISTED_TOPIC)), "The topics, by name"),
    doc="Answers a ListTopicsRequest",
)
DESCRIBE_TOPIC_REQUEST = _tagged(
    "DescribeTopicRequest", 0x07, _TOPIC, doc="Asks for the partitions of a topic"
)
DESCRIBED_PARTITION = _message(
    "DescribedPartition", _PARTITION, _WATERMARK, doc="One partition of a topic"
)
DESCRIBE_TOPIC_RESPONSE = _tagged(
    "DescribeTopicResponse",
    0x07,
    _TOPIC,
    _field("partition_count", Int32ub, "How many partitions it has"),
    _field("partitions", Many(Int32ub, Nested(DESCRIBED_PARTITION)), "The partitions"),
    doc="Answers a DescribeTopicRequest",
)
DESCRIBE_PARTITION_REQUEST = _tagged(
    "DescribePartitionRequest", 0x08, _TOPIC, _PARTITION, doc="Asks for one partition"
)
DESCRIBE_PARTITION_RESPONSE = _tagged(
    "DescribePartitionResponse",
    0x08,
    _TOPIC,
    _PARTITION,
    _WATERMARK,
    doc="Answers a DescribePartitionRequest",
)
METRICS_REQUEST = _tagged("MetricsRequest", 0x09, doc="Asks for the broker's metrics")
METRICS_RESPONSE = _tagged(
    "MetricsResponse",
    0x09,
    _field("text", Blob(Int32ub, text=True), "The metrics in Prometheus form"),
    doc="Answers a MetricsRequest",
)
PING = _tagged("Ping", 0xFF, doc="Asks whether the broker is there, and is the answer too")
ERROR_RESPONSE = _tagged(
    "ErrorResponse",
    0xFE,
    _field("code", Int16ub, "Why the request failed", enum=ErrorCode),
    _field("message", _STRING, "Why, for people"),
    doc="Answers any request that failed",
)

GRAMMAR: Final = Grammar(
    name="rustlog",
    doc="RustLog messages: the binary dialect.",
    sources=("lance_spec/grammar/rustlog.py",),
    messages=(
        FRAME,
        PRODUCE_REQUEST,
        PRODUCE_RESPONSE,
        FETCH_REQUEST,
        FETCH_RESPONSE,
        OFFSET_COMMIT_REQUEST,
        OFFSET_COMMIT_RESPONSE,
        OFFSET_FETCH_REQUEST,
        OFFSET_FETCH_RESPONSE,
        CREATE_TOPIC_REQUEST,
        CREATE_TOPIC_RESPONSE,
        LIST_TOPICS_REQUEST,
        LISTED_TOPIC,
        LIST_TOPICS_RESPONSE,
        DESCRIBE_TOPIC_REQUEST,
        DESCRIBED_PARTITION,
        DESCRIBE_TOPIC_RESPONSE,
        DESCRIBE_PARTITION_REQUEST,
        DESCRIBE_PARTITION_RESPONSE,
        METRICS_REQUEST,
        METRICS_RESPONSE,
        PING,
        ERROR_RESPONSE,
    ),
    composed=True,
)
