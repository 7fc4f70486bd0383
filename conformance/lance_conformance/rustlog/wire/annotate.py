"""Frames for a reader, field by field."""

from collections.abc import Iterator, Mapping

from lance_conformance.dump import ELIDE_AFTER, Row, hexdump
from lance_conformance.engine.transcript import Direction
from lance_conformance.rustlog.wire.frame import LENGTH, split
from lance_conformance.rustlog.wire.layout import (
    ANSWERS,
    NAMES,
    REQUESTS,
    Cursor,
    Fields,
    LocatedField,
)
from lance_conformance.rustlog.wire.message import UnreadableError

_WHITE = b"{ \t\r\n"
_SHOWN = 8
"""Bytes of one field that are shown beside its name."""


class FrameFormatter:
    """How frames of both forms are shown."""

    def frames(self, stream: bytes) -> list[bytes]:
        """Cut a stream where its lengths say that frames end."""
        return split(stream)

    def rows(self, frame: bytes, direction: Direction, fault: str | None) -> Iterator[Row]:
        """Annotate one frame, as far as its bytes go."""
        length = int.from_bytes(frame[:LENGTH], "big")
        yield Row(0, frame[:LENGTH], "length", str(length), fault == "length")
        payload = frame[LENGTH:]
        if not payload:
            return
        if _is_json(payload):
            yield from hexdump(payload, LENGTH, fault=fault not in (None, "length"))
            return
        name = NAMES.get(payload[0])
        yield Row(LENGTH, payload[:1], "type", name or "unknown", fault == "type")
        layouts: Mapping[str, Fields] = REQUESTS if direction == "sent" else ANSWERS
        yield from _fields(frame, layouts.get(name or "", ()), fault)

    def text(self, frame: bytes, direction: Direction) -> str | None:
        """What a JSON frame says."""
        del direction
        payload = frame[LENGTH:]
        if not _is_json(payload):
            return None
        text = payload.decode("utf-8", "backslashreplace")
        printable = "".join(c if c.isprintable() else " " for c in text)
        return printable if len(printable) <= 200 else f"{printable[:200]}..."


def _is_json(payload: bytes) -> bool:
    return payload[:1] in (bytes([each]) for each in _WHITE) and payload != b"\t"


def _fields(frame: bytes, fields: Fields, fault: str | None) -> Iterator[Row]:
    cursor = Cursor(frame, LENGTH + 1)
    whole = cursor.at
    try:
        for piece in cursor.pieces(fields):
            yield _row(frame, piece, fault)
            whole = piece.end
    except UnreadableError as problem:
        name = problem.reason.partition(":")[2]
        yield from hexdump(frame[whole:], whole, name, fault=fault in (name, "payload"))
        return
    if rest := frame[cursor.at :]:
        yield from hexdump(rest, cursor.at, "behind", fault=fault == "behind")


def _row(frame: bytes, piece: LocatedField, fault: str | None) -> Row:
    data = frame[piece.start : piece.end]
    value = repr(piece.value)
    if isinstance(piece.value, tuple):
        value = f"{len(piece.value)}: {value}"
    if len(value) > ELIDE_AFTER:
        value = f"{value[:ELIDE_AFTER]}..."
    more = f" ({len(data)} bytes)" if len(data) > _SHOWN else ""
    return Row(piece.start, data[:_SHOWN], piece.name, value + more, fault == piece.name)
