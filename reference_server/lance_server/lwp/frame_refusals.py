"""Frames that are refused whatever the server holds (AMB-17, AMB-33)."""

from typing import Final

from lance_server.lwp.refusals import Refusal
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import Frame, FrameFault, FrameKind

_ENCRYPTED: Final = int(Flag.ENCRYPTED)
_PLAIN: Final = (FrameKind.CONTROL, FrameKind.KEEPALIVE)
"""Kinds that nobody encrypts; an Ingest is judged with its header."""


def batch_of(frame: Frame) -> int | None:
    """Return the batch id of a frame that claims to carry records."""
    return frame.batch_id if frame.flags & Flag.BATCH_MODE else None


def ambiguous(flags: int) -> Refusal:
    """Return the answer to a frame of more than one kind."""
    return Refusal(
        ErrorCode.INVALID_PAYLOAD, f"Flags {flags:#04x} name more than one kind of frame"
    )


def is_encrypted(frame: Frame, dialect: Dialect) -> bool:
    """Whether a command or a Keepalive has the reserved flag (AMB-33)."""
    return bool(frame.flags & _ENCRYPTED) and dialect.strict and frame.kind in _PLAIN


def encrypted() -> Refusal:
    """Return the answer to a frame with the Encrypted flag."""
    return Refusal(
        ErrorCode.INVALID_PAYLOAD, "The Encrypted flag is reserved; send the frame in the clear"
    )


def no_kind() -> Refusal:
    """Return the answer to a payload in a frame of no kind."""
    return Refusal(ErrorCode.INVALID_PAYLOAD, "A frame with a payload must have a kind flag")


def too_large(fault: FrameFault) -> Refusal:
    """Return the answer to a frame that is too large."""
    return Refusal(ErrorCode.PAYLOAD_TOO_LARGE, f"Payload too large: {fault}")
