"""Control payloads that read a topic: Fetch, Subscribe, commits (LWP sections 5.8 to 5.14)."""

from construct import Bytes, Construct, Int32ul, Int64ul, this

from lance_spec.enums import Command
from lance_spec.grammar._vocab import field, lwp, message, topic_id


def _consumer_id(section: str) -> Construct:
    return field(
        "consumer_id",
        Int64ul,
        doc="Number the consumer chose for itself",
        section=lwp(section),
    )


FETCH = message(
    "Fetch",
    topic_id("5.8"),
    field(
        "start_offset",
        Int64ul,
        doc="Byte offset in the topic to read from; 2^64-1 asks for the end offset",
        unit="bytes",
        section=lwp("5.8"),
        ambiguities=("AMB-06", "AMB-18", "AMB-19"),
    ),
    field(
        "max_bytes",
        Int32ul,
        doc="Most data bytes the answer may carry",
        unit="bytes",
        section=lwp("5.8"),
        ambiguities=("AMB-19", "AMB-32"),
    ),
    doc="Reads records from a byte offset",
    section=lwp("5.8"),
    command=Command.FETCH,
    sender="client",
)

_OTHER_FETCH_HEADER = "the peer may use the other FetchResponse header: set fetch_header={}"

FETCH_RESPONSE = message(
    "FetchResponse",
    field(
        "next_offset",
        Int64ul,
        doc="Byte offset to fetch from next",
        unit="bytes",
        section=lwp("5.9"),
        ambiguities=("AMB-06",),
    ),
    field(
        "bytes_returned",
        Int32ul,
        doc="Length of the data",
        unit="bytes",
        section=lwp("5.9"),
        ambiguities=("AMB-05",),
    ),
    field(
        "record_count",
        Int32ul,
        doc="Number of whole records in the data; 0 when it does not start at a record",
        unit="records",
        section=lwp("5.9"),
        ambiguities=("AMB-19",),
    ),
    field(
        "data",
        Bytes(this.bytes_returned),
        doc="TLV records as they stand in the log",
        section=lwp("5.9"),
        borrowed=True,
        hint=_OTHER_FETCH_HEADER.format(24),
        ambiguities=("AMB-05", "AMB-19"),
    ),
    doc="Answers a Fetch with data",
    section=lwp("5.9"),
    command=Command.FETCH_RESPONSE,
    sender="server",
    ambiguities=("AMB-05",),
)

FETCH_RESPONSE_EXTENDED = message(
    "FetchResponseExtended",
    field(
        "start_offset",
        Int64ul,
        doc="Byte offset of the first data byte",
        unit="bytes",
        section=lwp("5.9.1"),
    ),
    field(
        "end_offset",
        Int64ul,
        doc="Byte offset after the last data byte, to fetch from next",
        unit="bytes",
        section=lwp("5.9.1"),
        ambiguities=("AMB-05",),
    ),
    field(
        "high_water_mark",
        Int64ul,
        doc="Byte offset up to which the topic can be read",
        unit="bytes",
        section=lwp("5.9.1"),
        ambiguities=("AMB-06",),
    ),
    field(
        "data",
        Bytes(this.end_offset - this.start_offset),
        doc="TLV records as they stand in the log",
        section=lwp("5.9.1"),
        borrowed=True,
        hint=_OTHER_FETCH_HEADER.format(16),
        ambiguities=("AMB-05", "AMB-19"),
    ),
    doc="Answers a Fetch with data and the high water mark, in dialects of a 24-byte header",
    section=lwp("5.9.1"),
    command=Command.FETCH_RESPONSE,
    sender="server",
    ambiguities=("AMB-05",),
)

CATCHING_UP = message(
    "CatchingUp",
    field(
        "current_max_offset",
        Int64ul,
        doc="End of what can be read now",
        unit="bytes",
        section="AMB-18",
    ),
    doc="Answers a Fetch that starts beyond the end",
    section="AMB-18",
    command=Command.CATCHING_UP,
    sender="server",
    ambiguities=("AMB-11", "AMB-18"),
)

SUBSCRIBE = message(
    "Subscribe",
    topic_id("5.12"),
    field(
        "start_offset",
        Int64ul,
        doc="Byte offset to stream from; 0 resumes at the consumer's commit",
        unit="bytes",
        section=lwp("5.12"),
        ambiguities=("AMB-36",),
    ),
    field(
        "max_batch_bytes",
        Int32ul,
        doc="Most data bytes one pushed answer may carry",
        unit="bytes",
        section=lwp("5.12"),
        ambiguities=("AMB-21",),
    ),
    _consumer_id("5.12"),
    doc="Starts streaming a topic",
    section=lwp("5.12"),
    command=Command.SUBSCRIBE,
    sender="client",
    ambiguities=("AMB-21", "AMB-36"),
)

UNSUBSCRIBE = message(
    "Unsubscribe",
    topic_id("5.13"),
    _consumer_id("5.13"),
    doc="Stops streaming a topic",
    section=lwp("5.13"),
    command=Command.UNSUBSCRIBE,
    sender="client",
    ambiguities=("AMB-22",),
)

COMMIT_OFFSET = message(
    "CommitOffset",
    topic_id("5.14"),
    _consumer_id("5.14"),
    field(
        "offset",
        Int64ul,
        doc="Byte offset up to which the consumer is done",
        unit="bytes",
        section=lwp("5.14"),
    ),
    doc="Records how far a consumer has come",
    section=lwp("5.14"),
    command=Command.COMMIT_OFFSET,
    sender="client",
    ambiguities=("AMB-36",),
)

SUBSCRIBE_ACK = message(
    "SubscribeAck",
    _consumer_id("5.12"),
    field(
        "offset",
        Int64ul,
        doc="Byte offset that streaming starts from",
        unit="bytes",
        section=lwp("5.12"),
        ambiguities=("AMB-36",),
    ),
    doc="Answers a Subscribe",
    section=lwp("5.2"),
    command=Command.SUBSCRIBE_ACK,
    sender="server",
)

COMMIT_ACK = message(
    "CommitAck",
    _consumer_id("5.14"),
    field(
        "offset",
        Int64ul,
        doc="Byte offset that was committed",
        unit="bytes",
        section=lwp("5.14"),
    ),
    doc="Answers a CommitOffset",
    section=lwp("5.2"),
    command=Command.COMMIT_ACK,
    sender="server",
)

OFFSET_FOR_TIME = message(
    "OffsetForTime",
    field("topic_id", Int32ul, doc="Topic the command is about", section="AMB-37"),
    field(
        "time_ns",
        Int64ul,
        doc="Time by the server's clock, since the Unix epoch",
        unit="nanoseconds",
        section="AMB-37",
    ),
    doc="Asks for the first offset at or after a time",
    section="AMB-37",
    command=Command.OFFSET_FOR_TIME,
    sender="client",
    ambiguities=("AMB-37",),
)

OFFSET_FOR_TIME_RESPONSE = message(
    "OffsetForTimeResponse",
    field(
        "offset",
        Int64ul,
        doc="Byte offset of the first record at or after that time",
        unit="bytes",
        section="AMB-37",
    ),
    doc="Answers an OffsetForTime",
    section="AMB-37",
    command=Command.OFFSET_FOR_TIME_RESPONSE,
    sender="server",
    ambiguities=("AMB-37",),
)

BATCH_TIMES = message(
    "BatchTimes",
    field("topic_id", Int32ul, doc="Topic the command is about", section="AMB-61"),
    field(
        "start_offset",
        Int64ul,
        doc="Byte offset at which the range begins",
        unit="bytes",
        section="AMB-61",
    ),
    field(
        "end_offset",
        Int64ul,
        doc="Byte offset at which the range ends",
        unit="bytes",
        section="AMB-61",
    ),
    doc="Asks when the batches of a range were stored",
    section="AMB-61",
    command=Command.BATCH_TIMES,
    sender="client",
    ambiguities=("AMB-61",),
)

BATCH_TIMES_RESPONSE = message(
    "BatchTimesResponse",
    field(
        "next_offset",
        Int64ul,
        doc="Byte offset up to which the range was told; ask again from there for the rest",
        unit="bytes",
        section="AMB-61",
    ),
    field(
        "bytes_returned",
        Int32ul,
        doc="Length of the times",
        unit="bytes",
        section="AMB-61",
    ),
    field(
        "times",
        Bytes(this.bytes_returned),
        doc="Offset and time of each batch, in bytes and nanoseconds: two u64, little-endian",
        section="AMB-61",
        borrowed=True,
    ),
    doc="Answers a BatchTimes",
    section="AMB-61",
    command=Command.BATCH_TIMES_RESPONSE,
    sender="server",
    ambiguities=("AMB-61",),
)

MESSAGES = (
    FETCH,
    FETCH_RESPONSE,
    FETCH_RESPONSE_EXTENDED,
    CATCHING_UP,
    SUBSCRIBE,
    UNSUBSCRIBE,
    COMMIT_OFFSET,
    SUBSCRIBE_ACK,
    COMMIT_ACK,
    OFFSET_FOR_TIME,
    OFFSET_FOR_TIME_RESPONSE,
    BATCH_TIMES,
    BATCH_TIMES_RESPONSE,
)
"""Commands of consumers and their answers, in reading order."""
