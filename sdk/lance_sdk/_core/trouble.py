"""The errors a consumer may meet, in words, and when a log counts as cut short."""

from typing import Final

from lance_sdk.errors import MisalignedOffset, OpaqueRecords, ServerError, TopicChanged, Unsupported
from lance_spec.bodies import TopicInfo

_PATIENCE: Final = 3
"""CATCHING_UP answers with an unmoved end after which the log counts as truncated (AMB-31)."""


class Patience:
    """Counts answers that name the same end before the position."""

    __slots__ = ("_count", "_end")

    def __init__(self) -> None:
        self._count = 0
        self._end: int | None = None

    def __repr__(self) -> str:
        return f"<Patience {self._count} at {self._end}>"

    def reset(self) -> None:
        """Start over: there was progress."""
        self._count = 0

    def lost_at(self, end: int) -> bool:
        """Take note of an end; return whether it is time to give up."""
        self._count = self._count + 1 if end == self._end else 1
        self._end = end
        return self._count >= _PATIENCE


def misaligned(offset: int) -> MisalignedOffset:
    """Return the error for a start that the server says is no boundary (AMB-19)."""
    return MisalignedOffset(
        f"offset {offset} lies inside a record; seek to an `offset` or `next_offset` that a "
        f"record had",
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
    """Return the error for a batch that is no records (AMB-27)."""
    return OpaqueRecords(
        f"the bytes from offset {offset} to {behind} were stored without being records; "
        f"on_opaque='skip' goes on behind them, as does seek({behind}), and on_opaque='bytes' "
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
