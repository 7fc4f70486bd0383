"""The named values of the protocol, under the names the specification gives them."""

from enum import IntEnum, IntFlag


class Flag(IntFlag):
    """The header's flag bits (LWP section 3.3, which outranks 17.3 and 17.7: AMB-04)."""

    COMPRESSED = 0x01
    """The payload is LZ4 compressed."""
    ENCRYPTED = 0x02
    """The payload is encrypted (reserved)."""
    BATCH_MODE = 0x04
    """The frame carries records: Ingest."""
    ACK = 0x08
    """The frame acknowledges a batch."""
    BACKPRESSURE = 0x10
    """The server asks for a lower rate."""
    KEEPALIVE = 0x20
    """A connection health check."""
    CONTROL = 0x40
    """The frame carries a command; its code stands in the batch id."""
    RESERVED = 0x80
    """Must be 0."""


class Command(IntEnum):
    """Control command codes, carried in a Control frame's batch id (LWP section 5.2, AMB-11)."""

    CREATE_TOPIC = 0x01
    """Creates a topic."""
    DELETE_TOPIC = 0x02
    """Deletes a topic and what is in it."""
    LIST_TOPICS = 0x03
    """Asks for all topics."""
    GET_TOPIC = 0x04
    """Asks for one topic."""
    SET_RETENTION = 0x05
    """Changes how long a topic keeps its records."""
    CREATE_TOPIC_WITH_RETENTION = 0x06
    """Creates a topic that keeps its records for a time or up to a size."""
    GET_CLUSTER_STATUS = 0x07
    """Asks how the cluster is (AMB-11)."""
    AUTHENTICATE = 0x08
    """Presents a token (AMB-11)."""
    AUTHENTICATE_RESPONSE = 0x09
    """Says whether the token was accepted (AMB-11)."""
    FETCH = 0x10
    """Asks for records from an offset on."""
    FETCH_RESPONSE = 0x11
    """Brings records, as an answer or pushed."""
    CATCHING_UP = 0x12
    """Says that an offset is not there yet (AMB-18)."""
    SUBSCRIBE = 0x20
    """Asks for records to be pushed."""
    UNSUBSCRIBE = 0x21
    """Ends that; answered by an Ack frame (AMB-22)."""
    COMMIT_OFFSET = 0x22
    """Records how far a consumer has come."""
    SUBSCRIBE_ACK = 0x23
    """Answers Subscribe."""
    COMMIT_ACK = 0x24
    """Answers CommitOffset."""
    GET_CLUSTER_STATUS_ALIAS = 0x30
    """The code LWP section 16.5 gives GetClusterStatus; accepted as an alias of 0x07."""
    GROUP_JOIN = 0x60
    """Extension: members of a consumer group and their coordinator (0x60 to 0x6F, AMB-38)."""
    GROUP_JOIN_ACK = 0x61
    """Answers GroupJoin."""
    GROUP_SYNC = 0x62
    """Asks for a member's topics and releases others."""
    GROUP_ASSIGNMENT = 0x63
    """Answers GroupSync."""
    GROUP_HEARTBEAT = 0x64
    """Shows that a member lives."""
    GROUP_HEARTBEAT_ACK = 0x65
    """Answers GroupHeartbeat."""
    GROUP_COMMIT = 0x66
    """Records how far a member has come."""
    GROUP_COMMIT_ACK = 0x67
    """Answers GroupCommit."""
    GROUP_FETCH_COMMITTED = 0x68
    """Asks how far a group has come."""
    GROUP_COMMITTED = 0x69
    """Answers GroupFetchCommitted."""
    GROUP_LEAVE = 0x6A
    """Leaves a group."""
    GROUP_LEAVE_ACK = 0x6B
    """Answers GroupLeave."""
    GROUP_DESCRIBE = 0x6C
    """Asks about a group."""
    GROUP_DESCRIPTION = 0x6D
    """Answers GroupDescribe."""
    GROUP_ERROR = 0x6F
    """Answers any request of a group that was refused."""
    OFFSET_FOR_TIME = 0x70
    """Extension: the first offset at or after a server time (AMB-37)."""
    OFFSET_FOR_TIME_RESPONSE = 0x71
    """Answers OffsetForTime (AMB-37)."""
    CREATE_PARTITIONED_TOPIC = 0x72
    """Extension: creates a topic of several partitions (AMB-59)."""
    ADD_PARTITIONS = 0x73
    """Extension: gives a partitioned topic more partitions (AMB-59)."""
    DELETE_PARTITIONED_TOPIC = 0x74
    """Extension: deletes a topic with all its partitions (AMB-59)."""
    BATCH_TIMES = 0x75
    """Extension: when the batches of a range were stored (AMB-61)."""
    BATCH_TIMES_RESPONSE = 0x76
    """Answers BatchTimes (AMB-61)."""
    TOPIC_RESPONSE = 0x80
    """Answers the commands about topics, as JSON."""
    CLUSTER_STATUS_RESPONSE = 0x81
    """Answers GetClusterStatus, as JSON (AMB-11)."""
    ERROR_RESPONSE = 0xFF
    """Answers any command that failed."""


class PartitionerId(IntEnum):
    """How keys find their partition, as CreatePartitionedTopic says it (AMB-59)."""

    MURMUR2 = 0x01
    """As Kafka's default partitioner."""
    SIPHASH = 0x02
    """As Fluvio's default partitioner."""


class RecordType(IntEnum):
    """TLV record types (LWP section 8.2, AMB-13); 0x80 to 0xFE belong to applications."""

    RAW_DATA = 0x01
    """Any bytes."""
    JSON = 0x02
    """A JSON text."""
    MESSAGE_PACK = 0x03
    """A MessagePack value."""
    PROTOBUF = 0x04
    """A Protocol Buffers message."""
    AVRO = 0x05
    """An Avro record."""
    KEY_VALUE = 0x10
    """A key and a value."""
    TIMESTAMPED = 0x11
    """A time and a value."""
    KEY_TIMESTAMPED = 0x12
    """A time, a key and a value."""
    NULL = 0xFF
    """A tombstone; its value is empty (AMB-12)."""


class ErrorCode(IntEnum):
    """Codes of an ErrorResponse (LWP section 12.2)."""

    SUCCESS = 0x00
    """All went well; no ErrorResponse says so."""
    UNKNOWN_ERROR = 0x01
    """A failure that no other code describes."""
    INVALID_MAGIC = 0x02
    """A frame does not begin with LANC."""
    PAYLOAD_TOO_LARGE = 0x03
    """A payload is larger than the server takes (AMB-17, AMB-32)."""
    INVALID_PAYLOAD = 0x04
    """A payload does not have the form that its command asks for."""
    CRC_MISMATCH = 0x05
    """The checksum of a header or payload is wrong."""
    VERSION_MISMATCH = 0x06
    """The server does not speak this version."""
    TOPIC_NOT_FOUND = 0x10
    """There is no such topic."""
    TOPIC_ALREADY_EXISTS = 0x11
    """There is a topic of this name."""
    INVALID_TOPIC_NAME = 0x12
    """A topic must not be called that (AMB-24)."""
    TOPIC_DELETED = 0x13
    """There was such a topic; it is deleted (AMB-34)."""
    NOT_LEADER = 0x20
    """Another node takes writes; ``details.leader_addr`` names it."""
    QUORUM_NOT_REACHED = 0x21
    """Too few nodes have the write."""
    LEADER_UNKNOWN = 0x22
    """Nobody knows yet which node takes writes."""
    CLUSTER_NOT_READY = 0x23
    """The cluster is still starting."""
    RATE_LIMITED = 0x30
    """The client asks too much; ``details.retry_after_ms`` says when to go on."""
    BACKPRESSURE = 0x31
    """The server's buffers are full, and this frame was refused (AMB-35)."""
    CONNECTION_LIMIT = 0x32
    """There are too many connections."""
    AUTHENTICATION_REQUIRED = 0x40
    """The client has to authenticate first."""
    AUTHENTICATION_FAILED = 0x41
    """The token is wrong."""
    ACCESS_DENIED = 0x42
    """The client may not do this."""
    INVALID_OFFSET = 0x50
    """The offset is below the earliest; ``details.earliest`` names that (AMB-29)."""
    OFFSET_OUT_OF_RANGE = 0x51
    """The offset lies after the end (AMB-18)."""
    CONSUMER_NOT_FOUND = 0x52
    """There is no such consumer."""
    INTERNAL_ERROR = 0x60
    """The server failed inside."""
    STORAGE_ERROR = 0x61
    """The server could not read or write its files."""
    TIMEOUT_ERROR = 0x62
    """The server ran out of time."""
    RESERVED = 0xFF
    """Reserved."""
