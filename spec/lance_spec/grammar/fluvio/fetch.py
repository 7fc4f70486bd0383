"""Reading from the SPU: offsets, streams and the offsets that consumers store."""

from enum import IntEnum

from construct import Int8ub, Int32sb, Int32ub, Int64sb, Int64ub

from lance_spec.grammar._composed import Many, Maybe, Nested, Sized
from lance_spec.grammar.fluvio._primitives import (
    BYTES,
    OPTION_STRING,
    STRING,
    corrected,
    corrected_message,
    vec,
)
from lance_spec.grammar.fluvio.errors import OUTCOME
from lance_spec.grammar.fluvio.produce import SMART_MODULE_INVOCATION
from lance_spec.grammar.fluvio.records import RECORD_SET

_TOPIC = corrected("topic", STRING, "Name of the topic")
_PARTITION = corrected("partition", Int32ub, "Number of the partition")
_STREAM = corrected("stream_id", Int32ub, "Number that the server gave the stream")
_OUTCOME = corrected("outcome", Nested(OUTCOME), "Whether it succeeded")


class Isolation(IntEnum):
    """Which records a stream carries."""

    READ_UNCOMMITTED = 0
    """All that the leader has."""
    READ_COMMITTED = 1
    """What the replicas have too."""


OFFSETS_TOPIC = corrected_message(
    "OffsetsTopic",
    _TOPIC,
    corrected("partitions", Many(Int32sb, Int32ub), "Numbers of the partitions"),
    doc="Partitions of one topic",
)
FETCH_OFFSETS_REQUEST = corrected_message(
    "FetchOffsetsRequest",
    corrected("topics", vec(OFFSETS_TOPIC), "What is asked about"),
    corrected("consumer_id", OPTION_STRING, "Whose offsets are meant", since=23, until=23),
    doc="Asks where partitions start and end; key 1002 of the SPU",
)
PARTITION_OFFSETS = corrected_message(
    "PartitionOffsets",
    _OUTCOME,
    _PARTITION,
    corrected("start_offset", Int64sb, "Lowest offset there is", unit="records"),
    corrected("last_stable_offset", Int64sb, "Offset after the last record", unit="records"),
    doc="Where a partition starts and ends",
)
TOPIC_OFFSETS = corrected_message(
    "TopicOffsets",
    _TOPIC,
    corrected("partitions", vec(PARTITION_OFFSETS), "Where each starts and ends"),
    doc="Where partitions of one topic start and end",
)
FETCH_OFFSETS_RESPONSE = corrected_message(
    "FetchOffsetsResponse",
    corrected("topics", vec(TOPIC_OFFSETS), "The answers"),
    doc="Answers a FetchOffsetsRequest",
)

STREAM_FETCH_REQUEST = corrected_message(
    "StreamFetchRequest",
    _TOPIC,
    _PARTITION,
    corrected("offset", Int64sb, "Offset to start from", unit="records"),
    corrected("max_bytes", Int32sb, "Most bytes of records in one response", unit="bytes"),
    corrected("isolation", Int8ub, "Which records are wanted", enum=Isolation, closed=True),
    corrected("smartmodules", vec(SMART_MODULE_INVOCATION), "SmartModules to run over them"),
    corrected("consumer_id", OPTION_STRING, "Who reads", since=23),
    doc="Opens a stream of records; key 1003 of the SPU",
    since=19,
)
ABORTED = corrected_message(
    "AbortedTransaction",
    corrected("producer_id", Int64sb, "Whose it was"),
    corrected("first_offset", Int64sb, "Its first record", unit="records"),
    doc="A transaction that came to nothing; programs send none",
)
_PIECE = (
    _TOPIC,
    _STREAM,
    _PARTITION,
    _OUTCOME,
    corrected("high_watermark", Int64sb, "End of what can be read", unit="records"),
    corrected(
        "next_filter_offset",
        Int64sb,
        "Where a SmartModule goes on, or -1",
        unit="records",
        since=11,
        absent=-1,
    ),
    corrected("log_start_offset", Int64sb, "Lowest offset there is", unit="records"),
    corrected("aborted", Maybe(vec(ABORTED)), "Transactions that came to nothing"),
)
STREAM_FETCH_RESPONSE = corrected_message(
    "StreamFetchResponse",
    *_PIECE,
    corrected("records", Sized(Int32sb, Nested(RECORD_SET)), "Whole batches"),
    doc="One piece of a stream; all pieces carry the correlation id of the request",
)
STREAM_FETCH_PIECE = corrected_message(
    "StreamFetchPiece",
    *_PIECE,
    corrected("records", BYTES, "Batches; a server may cut the last one at max_bytes"),
    doc="A StreamFetchResponse as clients must read it: published servers cut their last batch",
)

OFFSET_UPDATE = corrected_message(
    "OffsetUpdate",
    corrected("offset", Int64sb, "Offset up to which records were taken", unit="records"),
    _STREAM,
    doc="Acknowledges what came on one stream",
)
UPDATE_OFFSETS_REQUEST = corrected_message(
    "UpdateOffsetsRequest",
    corrected("offsets", vec(OFFSET_UPDATE), "One for each stream"),
    doc="Lets streams go on; key 1005 of the SPU",
)
STREAM_OUTCOME = corrected_message("StreamOutcome", _STREAM, _OUTCOME, doc="Answers for one stream")
UPDATE_OFFSETS_RESPONSE = corrected_message(
    "UpdateOffsetsResponse",
    corrected("status", vec(STREAM_OUTCOME), "One for each stream"),
    doc="Answers an UpdateOffsetsRequest",
)

REPLICA_KEY = corrected_message("ReplicaKey", _TOPIC, _PARTITION, doc="One partition of one topic")
OFFSETS_FILTER = corrected_message(
    "OffsetsFilter",
    corrected("replica", Maybe(Nested(REPLICA_KEY)), "Only this partition"),
    corrected("consumer_id", OPTION_STRING, "Only this consumer"),
    doc="Which stored offsets are wanted",
)
FETCH_CONSUMER_OFFSETS_REQUEST = corrected_message(
    "FetchConsumerOffsetsRequest",
    corrected("filter", Maybe(Nested(OFFSETS_FILTER)), "Which are wanted; none: all", since=24),
    doc="Asks for stored offsets; key 1008 of the SPU",
)
CONSUMER_OFFSET = corrected_message(
    "ConsumerOffset",
    corrected("consumer_id", STRING, "Who stored it"),
    _TOPIC,
    _PARTITION,
    corrected("offset", Int64sb, "Last record that was consumed", unit="records"),
    corrected("modified_time", Int64ub, "When it was stored", unit="seconds"),
    doc="The offset that a consumer has stored",
)
FETCH_CONSUMER_OFFSETS_RESPONSE = corrected_message(
    "FetchConsumerOffsetsResponse",
    _OUTCOME,
    corrected("consumers", vec(CONSUMER_OFFSET), "The stored offsets"),
    doc="Answers a FetchConsumerOffsetsRequest",
)
UPDATE_CONSUMER_OFFSET_REQUEST = corrected_message(
    "UpdateConsumerOffsetRequest",
    corrected("offset", Int64sb, "Last record that was consumed", unit="records"),
    _STREAM,
    doc="Stores an offset; key 1006 of the SPU",
)
UPDATE_CONSUMER_OFFSET_RESPONSE = corrected_message(
    "UpdateConsumerOffsetResponse",
    corrected("offset", Int64sb, "The offset that was stored", unit="records"),
    _OUTCOME,
    doc="Answers an UpdateConsumerOffsetRequest",
)
DELETE_CONSUMER_OFFSET_REQUEST = corrected_message(
    "DeleteConsumerOffsetRequest",
    _TOPIC,
    _PARTITION,
    corrected("consumer_id", STRING, "Who stored it"),
    doc="Forgets a stored offset; key 1007 of the SPU",
)
DELETE_CONSUMER_OFFSET_RESPONSE = corrected_message(
    "DeleteConsumerOffsetResponse", _OUTCOME, doc="Answers a DeleteConsumerOffsetRequest"
)

MESSAGES = (
    OFFSETS_TOPIC,
    FETCH_OFFSETS_REQUEST,
    PARTITION_OFFSETS,
    TOPIC_OFFSETS,
    FETCH_OFFSETS_RESPONSE,
    STREAM_FETCH_REQUEST,
    ABORTED,
    STREAM_FETCH_RESPONSE,
    STREAM_FETCH_PIECE,
    OFFSET_UPDATE,
    UPDATE_OFFSETS_REQUEST,
    STREAM_OUTCOME,
    UPDATE_OFFSETS_RESPONSE,
    REPLICA_KEY,
    OFFSETS_FILTER,
    FETCH_CONSUMER_OFFSETS_REQUEST,
    CONSUMER_OFFSET,
    FETCH_CONSUMER_OFFSETS_RESPONSE,
    UPDATE_CONSUMER_OFFSET_REQUEST,
    UPDATE_CONSUMER_OFFSET_RESPONSE,
    DELETE_CONSUMER_OFFSET_REQUEST,
    DELETE_CONSUMER_OFFSET_RESPONSE,
)
"""Consuming, in reading order."""
