"""Requests to a coordinator of consumer groups, an extension, and its answers (AMB-38)."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from lance_conformance.wire.control import control
from lance_conformance.wire.frame import Frame

SESSION_MS: Final = 10_000


class GroupCommand(IntEnum):
    """Control codes between members and their coordinator."""

    JOIN = 0x60
    JOIN_ACK = 0x61
    SYNC = 0x62
    ASSIGNMENT = 0x63
    HEARTBEAT = 0x64
    HEARTBEAT_ACK = 0x65
    COMMIT = 0x66
    COMMIT_ACK = 0x67
    LEAVE = 0x6A
    LEAVE_ACK = 0x6B
    DESCRIBE = 0x6C
    DESCRIPTION = 0x6D
    ERROR = 0x6F


class GroupCode(IntEnum):
    """Why a coordinator refuses."""

    INVALID_REQUEST = 1
    UNKNOWN_GROUP = 2
    UNKNOWN_MEMBER = 3
    UNKNOWN_TOPIC = 6
    NAME_TAKEN = 7
    STRATEGY_REFUSED = 8


def _name(text: str) -> bytes:
    raw = text.encode()
    return bytes((len(raw),)) + raw


def _topic(topic_id: int, name: str) -> bytes:
    return struct.pack("<IQQ", topic_id, 0, 0) + _name(name)


def join(group: str, member: str, strategy: str = "", topic_id: int = 1) -> Frame:
    """GroupJoin of a member that reads one topic.

    Args:
        group: The group, made when it is not there.
        member: The name that the member wants; empty leaves it to the coordinator.
        strategy: How topics are divided; empty leaves it open.
        topic_id: The topic.
    """
    head = _name(group) + _name(member) + struct.pack("<QII", 0, SESSION_MS, SESSION_MS)
    words = _name(strategy) + _name("lance-conformance") + struct.pack("<H", 0)
    topics = struct.pack("<I", 1) + _topic(topic_id, f"topic-{topic_id}")
    return control(GroupCommand.JOIN, head + words + topics + struct.pack("<I", 0))


def sync(group: str, member: str) -> Frame:
    """GroupSync of a member that holds nothing."""
    tail = struct.pack("<QI", 0, 0)
    return control(GroupCommand.SYNC, _name(group) + _name(member) + tail)


def heartbeat(group: str, member: str) -> Frame:
    """GroupHeartbeat."""
    tail = struct.pack("<Q", 0)
    return control(GroupCommand.HEARTBEAT, _name(group) + _name(member) + tail)


def leave(group: str, member: str) -> Frame:
    """GroupLeave."""
    return control(GroupCommand.LEAVE, _name(group) + _name(member) + struct.pack("<Q", 0))


def commit(group: str, member: str, topic_id: int, offset: int) -> Frame:
    """GroupCommit of one topic."""
    head = _name(group) + _name(member) + struct.pack("<QI", 0, 1)
    what = _topic(topic_id, f"topic-{topic_id}") + struct.pack("<QH", offset, 0)
    return control(GroupCommand.COMMIT, head + what)


def describe(group: str) -> Frame:
    """GroupDescribe."""
    return control(GroupCommand.DESCRIBE, _name(group))


@dataclass(frozen=True, slots=True)
class Joined:
    """What a GroupJoinAck says: name, generation, and how long silence and pauses may be."""

    member: str
    generation: int
    session_ms: int
    heartbeat_ms: int


def read_joined(payload: bytes) -> Joined:
    """Read a GroupJoinAck.

    Raises:
        ValueError: It is shorter than its fields, or its name is not UTF-8.
    """
    size = payload[0] if payload else 0
    if len(payload) < 1 + size + 17:
        raise ValueError(f"a GroupJoinAck of {len(payload)} bytes lacks fields")
    name = payload[1 : 1 + size].decode()
    generation, _, session, pause = struct.unpack_from("<QBII", payload, 1 + size)
    return Joined(name, generation, session, pause)


def read_code(payload: bytes) -> int | None:
    """The code of a GroupError, `None` when it is too short for one."""
    return int.from_bytes(payload[:2], "little") if len(payload) >= 12 else None


def read_result(payload: bytes) -> int | None:
    """The code of the one topic of a GroupCommitAck, `None` when it is not of that form."""
    return int.from_bytes(payload[16:18], "little") if len(payload) == 18 else None
