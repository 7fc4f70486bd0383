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
    DELETE_TOPIC = 0x02
    LIST_TOPICS = 0x03
    GET_TOPIC = 0x04
    SET_RETENTION = 0x05
    CREATE_TOPIC_WITH_RETENTION = 0x06
    GET_CLUSTER_STATUS = 0x07
    AUTHENTICATE = 0x08
    AUTHENTICATE_RESPONSE = 0x09
    FETCH = 0x10
    FETCH_RESPONSE = 0x11
    CATCHING_UP = 0x12
    SUBSCRIBE = 0x20
    UNSUBSCRIBE = 0x21
    COMMIT_OFFSET = 0x22
    SUBSCRIBE_ACK = 0x23
    COMMIT_ACK = 0x24
    GET_CLUSTER_STATUS_ALIAS = 0x30
    """The code LWP section 16.5 gives GetClusterStatus; accepted as an alias of 0x07."""
    GROUP_JOIN = 0x60
    """Extension: the coordinator of a consumer group and its members (0x60 to 0x6F, AMB-38)."""
    GROUP_ASSIGNMENT = 0x61
    GROUP_GET_ASSIGNMENT = 0x62
    GROUP_HEARTBEAT = 0x63
    GROUP_HEARTBEAT_ACK = 0x64
    GROUP_COMMIT = 0x65
    GROUP_COMMIT_ACK = 0x66
    GROUP_LEAVE = 0x67
    GROUP_LEAVE_ACK = 0x68
    OFFSET_FOR_TIME = 0x70
    """Extension: the first offset at or after a server time (AMB-37)."""
    OFFSET_FOR_TIME_RESPONSE = 0x71
    TOPIC_RESPONSE = 0x80
    CLUSTER_STATUS_RESPONSE = 0x81
    ERROR_RESPONSE = 0xFF


class RecordType(IntEnum):
    """TLV record types (LWP section 8.2, AMB-13); 0x80 to 0xFE belong to applications."""

    RAW_DATA = 0x01
    JSON = 0x02
    MESSAGE_PACK = 0x03
    PROTOBUF = 0x04
    AVRO = 0x05
    KEY_VALUE = 0x10
    TIMESTAMPED = 0x11
    KEY_TIMESTAMPED = 0x12
    NULL = 0xFF
    """A tombstone; its value is empty (AMB-12)."""


class ErrorCode(IntEnum):
    """Codes of an ErrorResponse (LWP section 12.2)."""

    SUCCESS = 0x00
    UNKNOWN_ERROR = 0x01
    INVALID_MAGIC = 0x02
    PAYLOAD_TOO_LARGE = 0x03
    INVALID_PAYLOAD = 0x04
    CRC_MISMATCH = 0x05
    VERSION_MISMATCH = 0x06
    TOPIC_NOT_FOUND = 0x10
    TOPIC_ALREADY_EXISTS = 0x11
    INVALID_TOPIC_NAME = 0x12
    TOPIC_DELETED = 0x13
    NOT_LEADER = 0x20
    QUORUM_NOT_REACHED = 0x21
    LEADER_UNKNOWN = 0x22
    CLUSTER_NOT_READY = 0x23
    RATE_LIMITED = 0x30
    BACKPRESSURE = 0x31
    CONNECTION_LIMIT = 0x32
    AUTHENTICATION_REQUIRED = 0x40
    AUTHENTICATION_FAILED = 0x41
    ACCESS_DENIED = 0x42
    INVALID_OFFSET = 0x50
    OFFSET_OUT_OF_RANGE = 0x51
    CONSUMER_NOT_FOUND = 0x52
    INTERNAL_ERROR = 0x60
    STORAGE_ERROR = 0x61
    TIMEOUT_ERROR = 0x62
    RESERVED = 0xFF
