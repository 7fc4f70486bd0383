"""Kinds of objects that Fluvio's clients manage, and of which there are none here.

Requests for them are answered as a published cluster does that has none.
"""

import struct
from typing import Final

from lance_server.listeners.fluvio.connection import Connection
from lance_server.listeners.fluvio.refusals import ProtocolError, told
from lance_spec.messages.fluvio import ErrorCode, ErrorText, Outcome, Status

KINDS: Final = frozenset({"SmartModule", "TableFormat", "SpuGroup", "CustomSpu", "Mirror"})
"""What they are called in requests."""
_NO_LIST: Final = bytes(4)
_NO_UPDATE: Final = bytes(16)
"""Epoch 0, no changes and no objects."""


def kind_of(body: bytes) -> str:
    """Return which kind of object a request to the SC is about.

    Raises:
        ProtocolError: it ends before it says so.
    """
    return _text(body, 0)[0]


def listed(kind: str) -> bytes:
    """Return the response to a request for a list."""
    return _titled(kind, _NO_LIST)


async def watch(connection: Connection, kind: str, number: int) -> None:
    """Tell once that there are none; nothing ever changes."""
    await connection.send(number, _titled(kind, _NO_UPDATE))


def not_created(body: bytes) -> bytes:
    """Return the response to a request to create one."""
    kind, name = _named(body)
    refusal = told(f"there are no {kind} objects here")
    return Status(name=name, outcome=refusal.outcome, message=refusal.text).encode()


def not_deleted(body: bytes) -> bytes:
    """Return the response to a request to delete one."""
    kind, name = _named(body)
    text = f"{kind} {name} was not found"
    outcome = told(text).outcome
    if kind == "SmartModule":
        outcome = Outcome(code=ErrorCode.SMART_MODULE_NOT_FOUND, detail=ErrorText(text=name))
    return Status(name=name, outcome=outcome, message=text).encode()


def _titled(kind: str, content: bytes) -> bytes:
    name = kind.encode()
    return struct.pack(f">H{len(name)}sI", len(name), name, len(content)) + content


def _named(body: bytes) -> tuple[str, str]:
    """Return kind and name of the object that a request is to create or to delete."""
    kind, place = _text(body, 0)
    name, _ = _text(body, place + 4)
    return kind, name


def _text(body: bytes, place: int) -> tuple[str, int]:
    begin = place + 2
    end = begin + int.from_bytes(body[place:begin], "big")
    if end > len(body) or begin > len(body):
        raise ProtocolError("a request ends before it names what it is about")
    try:
        return body[begin:end].decode(), end
    except UnicodeDecodeError:
        raise ProtocolError(
            "a request names what it is about with bytes that are not text"
        ) from None
