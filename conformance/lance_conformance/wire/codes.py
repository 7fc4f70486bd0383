"""The codes of ErrorResponse that cases ask for (LWP section 12.2)."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Why a server refuses."""

    PAYLOAD_TOO_LARGE = 0x03
    INVALID_PAYLOAD = 0x04
    TOPIC_NOT_FOUND = 0x10
    TOPIC_ALREADY_EXISTS = 0x11
    INVALID_TOPIC_NAME = 0x12
    TOPIC_DELETED = 0x13
    AUTHENTICATION_REQUIRED = 0x40
    ACCESS_DENIED = 0x42
    NOT_LEADER = 0x20
    LEADER_UNKNOWN = 0x22
    CLUSTER_NOT_READY = 0x23
    INVALID_OFFSET = 0x50
    OFFSET_OUT_OF_RANGE = 0x51
    CONSUMER_NOT_FOUND = 0x52


ANY_ERROR = tuple(range(1, 0x100))
"""Where the document leaves the code open."""
