"""What Fluvio answers when something fails; some codes carry fields, so none can be skipped."""

from enum import IntEnum

from construct import Int8ub, Int16sb, Int32ub, Int64sb, Int64ub

from lance_spec.grammar._composed import Choice, Maybe
from lance_spec.grammar.fluvio._primitives import (
    OPTION_STRING,
    RECORD_BYTES,
    STRING,
    corrected,
    corrected_message,
)


class ErrorCode(IntEnum):
    """Why a request failed; 0 when it did not."""

    UNKNOWN_SERVER_ERROR = -1
    """A failure that no other code describes."""
    NONE = 0
    """It succeeded."""
    OFFSET_OUT_OF_RANGE = 1
    """The offset is not in the log."""
    OTHER = 2
    """A failure with a text for people."""
    NOT_LEADER_FOR_PARTITION = 6
    """This SPU does not lead the partition, or does not know it."""
    REQUEST_TIMED_OUT = 7
    """The request was not done in time."""
    MESSAGE_TOO_LARGE = 10
    """A batch is larger than the server takes."""
    PERMISSION_DENIED = 13
    """The client may not do this."""
    STORAGE_ERROR = 56
    """The server could not read or write its files."""
    INVALID_CREATE_REQUEST = 60
    """What is to be created makes no sense."""
    INVALID_DELETE_REQUEST = 61
    """What is to be deleted makes no sense."""
    OFFSET_EVICTED = 71
    """Retention has removed the offset."""
    PARTITION_FULL = 72
    """The partition takes no more."""
    PARTITION_SHORT_CIRCUITED = 73
    """The partition refuses requests for a while."""
    SPU_ERROR = 1000
    """An SPU failed."""
    SPU_REGISTRATION_FAILED = 1001
    """An SPU could not be registered."""
    SPU_OFFLINE = 1002
    """The SPU cannot be reached."""
    SPU_NOT_FOUND = 1003
    """There is no such SPU."""
    SPU_ALREADY_EXISTS = 1004
    """There is such an SPU."""
    TOPIC_ERROR = 2000
    """A failure about a topic."""
    TOPIC_NOT_FOUND = 2001
    """There is no such topic."""
    TOPIC_ALREADY_EXISTS = 2002
    """There is a topic of this name."""
    TOPIC_PENDING_INITIALIZATION = 2003
    """The topic is not ready yet."""
    TOPIC_INVALID_CONFIGURATION = 2004
    """A topic cannot be configured like that."""
    TOPIC_NOT_PROVISIONED = 2005
    """The topic has no place yet."""
    TOPIC_INVALID_NAME = 2006
    """A topic must not be called that."""
    TOPIC_DELETED = 2007
    """The topic was deleted."""
    TOPIC_INVALID_REPLICA_TYPE = 2008
    """The topic's replicas are of another kind."""
    PARTITION_PENDING_INITIALIZATION = 3000
    """The partition is not ready yet."""
    PARTITION_NOT_LEADER = 3001
    """The partition is led elsewhere."""
    FETCH_SESSION_NOT_FOUND = 3002
    """There is no such stream."""
    OFFSET_FLUSH_REQUEST_ERROR = 3003
    """A stored offset could not be written."""
    OFFSET_MANAGEMENT_DISABLED = 3004
    """The stream stores no offsets."""
    MAX_RETRY_REACHED = 3005
    """It was tried too often."""
    MANAGED_CONNECTOR_ERROR = 5000
    """A failure about a connector."""
    MANAGED_CONNECTOR_NOT_FOUND = 5001
    """There is no such connector."""
    MANAGED_CONNECTOR_ALREADY_EXISTS = 5002
    """There is such a connector."""
    SMART_MODULE_ERROR = 6000
    """A failure about a SmartModule."""
    SMART_MODULE_NOT_FOUND = 6001
    """There is no such SmartModule."""
    SMART_MODULE_INVALID = 6002
    """The SmartModule cannot be loaded."""
    SMART_MODULE_INVALID_EXPORTS = 6003
    """The SmartModule is not of the kind that was stated."""
    SMART_MODULE_RUNTIME_ERROR = 6004
    """The SmartModule failed on a record."""
    SMART_MODULE_CHAIN_INIT_ERROR = 6005
    """The SmartModules could not be put together."""
    SMART_MODULE_INIT_ERROR = 6006
    """The SmartModule failed when it started."""
    SMART_MODULE_LOOKBACK_ERROR = 6007
    """The SmartModule failed on earlier records."""
    SMART_MODULE_MEMORY_LIMIT_EXCEEDED = 6008
    """The SmartModule wants too much memory."""
    TABLE_FORMAT_ERROR = 7000
    """A failure about a table format."""
    TABLE_FORMAT_NOT_FOUND = 7001
    """There is no such table format."""
    TABLE_FORMAT_ALREADY_EXISTS = 7002
    """There is such a table format."""
    DERIVED_STREAM_OBJECT_ERROR = 8000
    """A failure about a derived stream."""
    DERIVED_STREAM_NOT_FOUND = 8001
    """There is no such derived stream."""
    DERIVED_STREAM_JOIN_FETCH_ERROR = 8002
    """What is to be joined cannot be read."""
    DERIVED_STREAM_INVALID = 8003
    """The derived stream makes no sense."""
    COMPRESSION_ERROR = 9000
    """A batch is compressed in a way that the topic does not allow, or wrongly."""
    DEDUPLICATION_SMART_MODULE_NOT_LOADED = 10000
    """The SmartModule that finds duplicates is not there."""
    DEDUPLICATION_SMART_MODULE_NAME_INVALID = 10001
    """No SmartModule that finds duplicates is called that."""
    MIRROR_NOT_FOUND = 11001
    """There is no such mirror."""
    MIRROR_ALREADY_EXISTS = 11002
    """There is such a mirror."""
    MIRROR_PRODUCE_FROM_HOME = 11003
    """A mirrored topic takes no records at home."""
    MIRROR_DELETE_FROM_REMOTE = 11004
    """A mirrored topic cannot be deleted from the remote side."""
    MIRROR_INVALID_TYPE = 11005
    """The mirror is of the wrong kind."""
    MIRROR_PRODUCE_FROM_REMOTE_NOT_ALLOWED = 11006
    """A mirrored topic takes no records from the remote side."""
    SYSTEM_SPEC_DELETION_ATTEMPT = 12001
    """An object of the cluster is deleted only by force."""
    SYSTEM_SPEC_UPDATING_ATTEMPT = 12002
    """An object of the cluster is changed only by force."""


class RuntimeKind(IntEnum):
    """The kinds of SmartModules, as errors number them."""

    FILTER = 0
    """Keeps or drops records."""
    MAP = 1
    """Turns each record into another."""
    ARRAY_MAP = 2
    """Turns each record into several."""
    AGGREGATE = 3
    """Adds records up."""
    FILTER_MAP = 4
    """Turns each record into another or drops it."""
    JOIN = 5
    """Joins two streams."""
    GENERIC = 6
    """Any of these."""


class RequestKind(IntEnum):
    """The requests that can time out."""

    PRODUCE = 0
    """Appending batches."""


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
SYSTEM_OBJECT = corrected_message(
    "SystemObject",
    corrected("kind", STRING, "Type of the object"),
    corrected("name", STRING, "Its name"),
    doc="Goes with an object of the cluster that must not be touched",
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
                ErrorCode.SMART_MODULE_INIT_ERROR: ERROR_TEXT,
                ErrorCode.SMART_MODULE_LOOKBACK_ERROR: ERROR_TEXT,
                ErrorCode.SMART_MODULE_MEMORY_LIMIT_EXCEEDED: MEMORY_LIMIT_EXCEEDED,
                ErrorCode.DERIVED_STREAM_NOT_FOUND: ERROR_TEXT,
                ErrorCode.DERIVED_STREAM_INVALID: ERROR_TEXT,
                ErrorCode.DEDUPLICATION_SMART_MODULE_NAME_INVALID: ERROR_TEXT,
                ErrorCode.SYSTEM_SPEC_DELETION_ATTEMPT: SYSTEM_OBJECT,
                ErrorCode.SYSTEM_SPEC_UPDATING_ATTEMPT: SYSTEM_OBJECT,
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
    SYSTEM_OBJECT,
    OUTCOME,
)
"""Errors and what goes with them, in reading order."""
