"""What Fluvio answers when something fails; some codes carry fields, so none can be skipped."""

from enum import IntEnum

from construct import Int8ub, Int16sb, Int32ub, Int64sb, Int64ub

from lance_spec.grammar._composed import Choice, Maybe
from lance_spec.grammar._fluvio_words import (
    OPTION_STRING,
    RECORD_BYTES,
    STRING,
    corrected,
    corrected_message,
)


class ErrorCode(IntEnum):
    """Why a request failed; 0 when it did not."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    OTHER = 2
    NOT_LEADER_FOR_PARTITION = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    PERMISSION_DENIED = 13
    STORAGE_ERROR = 56
    INVALID_CREATE_REQUEST = 60
    INVALID_DELETE_REQUEST = 61
    OFFSET_EVICTED = 71
    PARTITION_FULL = 72
    PARTITION_SHORT_CIRCUITED = 73
    SPU_ERROR = 1000
    SPU_REGISTRATION_FAILED = 1001
    SPU_OFFLINE = 1002
    SPU_NOT_FOUND = 1003
    SPU_ALREADY_EXISTS = 1004
    TOPIC_ERROR = 2000
    TOPIC_NOT_FOUND = 2001
    TOPIC_ALREADY_EXISTS = 2002
    TOPIC_PENDING_INITIALIZATION = 2003
    TOPIC_INVALID_CONFIGURATION = 2004
    TOPIC_NOT_PROVISIONED = 2005
    TOPIC_INVALID_NAME = 2006
    TOPIC_DELETED = 2007
    TOPIC_INVALID_REPLICA_TYPE = 2008
    PARTITION_PENDING_INITIALIZATION = 3000
    PARTITION_NOT_LEADER = 3001
    FETCH_SESSION_NOT_FOUND = 3002
    OFFSET_FLUSH_REQUEST_ERROR = 3003
    OFFSET_MANAGEMENT_DISABLED = 3004
    MAX_RETRY_REACHED = 3005
    MANAGED_CONNECTOR_ERROR = 5000
    MANAGED_CONNECTOR_NOT_FOUND = 5001
    MANAGED_CONNECTOR_ALREADY_EXISTS = 5002
    SMART_MODULE_ERROR = 6000
    SMART_MODULE_NOT_FOUND = 6001
    SMART_MODULE_INVALID = 6002
    SMART_MODULE_INVALID_EXPORTS = 6003
    SMART_MODULE_RUNTIME_ERROR = 6004
    SMART_MODULE_CHAIN_INIT_ERROR = 6005
    SMART_MODULE_MEMORY_LIMIT_EXCEEDED = 6008
    TABLE_FORMAT_ERROR = 7000
    TABLE_FORMAT_NOT_FOUND = 7001
    TABLE_FORMAT_ALREADY_EXISTS = 7002
    DERIVED_STREAM_OBJECT_ERROR = 8000
    DERIVED_STREAM_NOT_FOUND = 8001
    DERIVED_STREAM_JOIN_FETCH_ERROR = 8002
    DERIVED_STREAM_INVALID = 8003
    COMPRESSION_ERROR = 9000
    DEDUPLICATION_SMART_MODULE_NOT_LOADED = 10000
    DEDUPLICATION_SMART_MODULE_NAME_INVALID = 10001


class RuntimeKind(IntEnum):
    """The kinds of SmartModules, as errors number them."""

    FILTER = 0
    MAP = 1
    ARRAY_MAP = 2
    AGGREGATE = 3
    FILTER_MAP = 4
    JOIN = 5
    GENERIC = 6


class RequestKind(IntEnum):
    """The requests that can time out."""

    PRODUCE = 0


ERROR_TEXT = corrected_message(
    "ErrorText",
    corrected("text", STRING, "The text that reaches the user, or the name that was wrong"),
    doc="Goes with an error that carries one text",
)
REQUEST_TIMED_OUT = corrected_message(
    "RequestTimedOut",
    corrected("timeout_ms", Int64ub, "How long the server waited", unit="milliseconds"),
    corrected("kind", Int8ub, "The request that timed out", enum=RequestKind, closed=True),
    doc="Goes with a request that was not done in time",
)
OFFSET_EVICTED = corrected_message(
    "OffsetEvicted",
    corrected("offset", Int64sb, "The offset that was asked for", unit="records"),
    corrected("next_available", Int64sb, "The lowest offset there still is", unit="records"),
    doc="Goes with an offset that retention has removed",
)
PARTITION_FULL = corrected_message(
    "PartitionFull",
    corrected("topic", STRING, "Name of the topic"),
    corrected("partition", Int32ub, "Number of the partition"),
    doc="Goes with a partition that takes no more",
)
SMART_MODULE_INVALID = corrected_message(
    "SmartModuleInvalid",
    corrected("error", STRING, "What is wrong"),
    corrected("name", OPTION_STRING, "Name of the SmartModule"),
    doc="Goes with a SmartModule that cannot be loaded",
)
SMART_MODULE_INVALID_EXPORTS = corrected_message(
    "SmartModuleInvalidExports",
    corrected("error", STRING, "What is wrong"),
    corrected("kind", STRING, "The kind it should have been"),
    doc="Goes with a SmartModule of another kind than stated",
)
SMART_MODULE_RUNTIME_ERROR = corrected_message(
    "SmartModuleRuntimeError",
    corrected("hint", STRING, "What happened, for people"),
    corrected("offset", Int64sb, "The record it happened on", unit="records"),
    corrected("kind", Int8ub, "Kind of the SmartModule", enum=RuntimeKind, closed=True),
    corrected("record_key", Maybe(RECORD_BYTES), "Key of that record"),
    corrected("record_value", RECORD_BYTES, "Value of that record"),
    doc="Goes with a SmartModule that failed on a record",
)

MEMORY_LIMIT_EXCEEDED = corrected_message(
    "MemoryLimitExceeded",
    corrected("requested", Int64ub, "What the SmartModule wanted", unit="bytes"),
    corrected("limit", Int64ub, "What it may have", unit="bytes"),
    doc="Goes with a SmartModule that is too large",
)

OUTCOME = corrected_message(
    "Outcome",
    corrected("code", Int16sb, "The error, or 0 for none", enum=ErrorCode, closed=True),
    corrected(
        "detail",
        Choice(
            "code",
            {
                ErrorCode.OTHER: ERROR_TEXT,
                ErrorCode.REQUEST_TIMED_OUT: REQUEST_TIMED_OUT,
                ErrorCode.OFFSET_EVICTED: OFFSET_EVICTED,
                ErrorCode.PARTITION_FULL: PARTITION_FULL,
                ErrorCode.OFFSET_FLUSH_REQUEST_ERROR: ERROR_TEXT,
                ErrorCode.SMART_MODULE_NOT_FOUND: ERROR_TEXT,
                ErrorCode.SMART_MODULE_INVALID: SMART_MODULE_INVALID,
                ErrorCode.SMART_MODULE_INVALID_EXPORTS: SMART_MODULE_INVALID_EXPORTS,
                ErrorCode.SMART_MODULE_RUNTIME_ERROR: SMART_MODULE_RUNTIME_ERROR,
                ErrorCode.SMART_MODULE_CHAIN_INIT_ERROR: ERROR_TEXT,
                ErrorCode.SMART_MODULE_MEMORY_LIMIT_EXCEEDED: MEMORY_LIMIT_EXCEEDED,
                ErrorCode.DERIVED_STREAM_NOT_FOUND: ERROR_TEXT,
                ErrorCode.DERIVED_STREAM_INVALID: ERROR_TEXT,
                ErrorCode.DEDUPLICATION_SMART_MODULE_NAME_INVALID: ERROR_TEXT,
            },
        ),
        "What goes with the error",
    ),
    doc="Says whether something succeeded, and otherwise why not",
)

MESSAGES = (
    ERROR_TEXT,
    REQUEST_TIMED_OUT,
    OFFSET_EVICTED,
    PARTITION_FULL,
    SMART_MODULE_INVALID,
    SMART_MODULE_INVALID_EXPORTS,
    SMART_MODULE_RUNTIME_ERROR,
    MEMORY_LIMIT_EXCEEDED,
    OUTCOME,
)
"""Errors and what goes with them, in reading order."""
