"""The binary form: a type, and the fields after it."""

from lance_conformance.rustlog.wire.layout import (
    ANSWERS,
    NAMES,
    REQUESTS,
    TYPES,
    Cursor,
    put,
)
from lance_conformance.rustlog.wire.message import Message, UnreadableError


def write(request: Message) -> bytes:
    """A request as the payload of a frame."""
    fields = REQUESTS[request.name]
    body = b"".join(put(kind, request.fields[name]) for name, kind in fields)
    return bytes([TYPES[request.name]]) + body


def read(payload: bytes) -> Message:
    """An answer from the payload of a frame.

    Raises:
        UnreadableError: The payload is not an answer.
    """
    name = NAMES.get(payload[0])
    if name is None:
        raise UnreadableError("field:type", f"no answer has the type {payload[0]:#04x} at byte 0")
    cursor = Cursor(payload, 1)
    fields = {piece.name: piece.value for piece in cursor.pieces(ANSWERS[name])}
    if cursor.at < len(payload):
        more = len(payload) - cursor.at
        raise UnreadableError("trailing-bytes", f"{more} bytes follow {name} at byte {cursor.at}")
    return Message(name, fields)
