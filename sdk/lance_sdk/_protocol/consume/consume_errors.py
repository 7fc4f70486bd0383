"""The errors a consumer may meet, in words, and when a log counts as cut short."""

import math
from enum import Enum
from typing import Final

from lance_sdk.errors import (
    MisalignedOffset,
    OpaqueRecords,
    RemoteProtocolError,
    ServerError,
    TopicChanged,
    Unsupported,
)
from lance_spec.bodies import TopicInfo

_CONFIRMATIONS: Final = 3
"""CATCHING_UP answers with an unmoved end after which a host knows no more (AMB-31)."""
LONGEST_WAIT: Final = 5.0
"""Seconds after which a host that ends before the position is asked again, at most."""
BELIEVED_AFTER: Final = 15.0
"""Seconds for which hosts are asked before they are believed: 5 s, three times (AMB-31)."""


class HostLagsError(RemoteProtocolError):
    """A host ends before the position and does not go on: another one may know more."""


class LogEndVerdict(Enum):
    """What an answer means that names an end before the position."""

    WAIT = "the host may still catch up"
    ELSEWHERE = "another host may know more"
    TRUNCATED = "no host knows more"


class TruncationDetector:
    """Counts answers that name the same end before the position.

    Args:
        hosts: how many hosts may be asked. The log counts as truncated when none of them goes on
            for 15 seconds.
    """

    __slots__ = ("_count", "_end", "_hosts", "_short", "_since")

    def __init__(self, hosts: int = 1) -> None:
        self._hosts = hosts
        self._end: int | None = None
        self.reset()

    def __repr__(self) -> str:
        return f"<TruncationDetector {self._count} at {self._end}, {self._short} hosts>"

    def reset(self) -> None:
        """Start over: there was progress."""
        self._count = self._short = 0
        self._since = math.inf

    def judge(self, end: int, now: float) -> LogEndVerdict:
        """Take note of an end; return what to do."""
        self._since = min(self._since, now)
        self._count = self._count + 1 if end == self._end else 1
        self._end = end
        if self._count < _CONFIRMATIONS:
            return LogEndVerdict.WAIT
        self._count, self._short = 0, self._short + 1
        if self._short >= self._hosts and now - self._since >= BELIEVED_AFTER:
            return LogEndVerdict.TRUNCATED
        return LogEndVerdict.WAIT if self._hosts == 1 else LogEndVerdict.ELSEWHERE


def misaligned(offset: int, topic: str) -> MisalignedOffset:
    """Return the error for a start that the server says is not a boundary (AMB-19)."""
    return MisalignedOffset(
        f"topic {topic!r}: offset {offset} lies inside a record; seek to an `offset` or "
        "`next_offset` that a record had",
        offset,
    )


def changed(topic: TopicInfo, offset: int) -> TopicChanged:
    """Return the error for a topic that is another one than before (AMB-30)."""
    return TopicChanged(
        f"topic {topic.name!r} was deleted and created again (it is number {topic.id} now): old "
        f"offsets mean nothing in it",
        offset,
    )


def opaque(offset: int, behind: int) -> OpaqueRecords:
    """Return the error for a batch that is not records (AMB-27)."""
    return OpaqueRecords(
        f"the bytes from offset {offset} to {behind} were stored without being records; "
        f"on_opaque='skip' goes on after them, as does seek({behind}), and on_opaque='bytes' "
        f"hands them out",
        offset,
        behind,
    )


def no_push(server: str) -> Unsupported:
    """Return the error for ``mode="push"`` where the server does not (AMB-21)."""
    return Unsupported(f"a server {server} does not push; use mode='auto' or mode='poll'")


def no_times(error: ServerError) -> Unsupported:
    """Return the error for a seek by time where the server knows none (AMB-37)."""
    return Unsupported(
        f"the server cannot find an offset by its time: {error.message}; seek to an offset, or "
        f"read from the beginning and compare the records' own times"
    )
