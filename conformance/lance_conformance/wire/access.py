"""Authenticate and its answer, and which requests change something (design section 28)."""

from typing import NamedTuple

from lance_conformance.wire.control import control
from lance_conformance.wire.frame import Command, Flag, Frame

_HARMLESS = frozenset(
    {
        Command.LIST_TOPICS,
        Command.GET_TOPIC,
        Command.GET_CLUSTER_STATUS,
        Command.AUTHENTICATE,
        Command.FETCH,
        Command.SUBSCRIBE,
        Command.UNSUBSCRIBE,
        Command.GET_CLUSTER_STATUS_ALIAS,
        Command.OFFSET_FOR_TIME,
        Command.BATCH_TIMES,
    }
)


def authenticate(token: bytes) -> Frame:
    """Authenticate: the token is the payload."""
    return control(Command.AUTHENTICATE, token)


class Authenticated(NamedTuple):
    """What an AuthenticateResponse says."""

    ok: int
    message: str


def read_authenticated(payload: bytes) -> Authenticated | None:
    """What an AuthenticateResponse says, `None` when it is empty or its words are not UTF-8."""
    try:
        return Authenticated(payload[0], payload[1:].decode()) if payload else None
    except UnicodeDecodeError:
        return None


def may_change(frame: Frame) -> bool:
    """Whether some server could take a frame, right or wrong, for one that changes something."""
    if frame.flags & Flag.CONTROL:
        return frame.batch_id & 0xFF not in _HARMLESS
    nothing_to_store = frame.flags & (Flag.KEEPALIVE | Flag.ACK | Flag.BACKPRESSURE)
    return bool(frame.flags & Flag.BATCH_MODE or (frame.payload and not nothing_to_store))
