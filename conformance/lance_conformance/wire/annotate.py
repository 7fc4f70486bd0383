"""Frames for a reader, field by field."""

import struct
from collections.abc import Callable

from lance_conformance.dump import Row, hexdump
from lance_conformance.wire.crc import Checksum
from lance_conformance.wire.frame import HEADER_SIZE, Command, Flag, command_name
from lance_conformance.wire.payloads import payload_rows

_FIELDS = (
    ("magic", 4),
    ("version", 1),
    ("flags", 1),
    ("reserved", 2),
    ("header_crc", 4),
    ("batch_id", 8),
    ("timestamp_ns", 8),
    ("record_count", 4),
    ("payload_length", 4),
    ("payload_crc", 4),
    ("topic_id", 4),
)


def annotate(data: bytes, checksum: Checksum, fault: str | None = None) -> list[Row]:
    """Annotate one frame, as far as its bytes go.

    Args:
        data: The bytes of a frame, perhaps cut short, perhaps no frame at all.
        checksum: The checksum of the dialect in force, to say whether the frame's are right.
        fault: The field that is wrong on purpose.
    """
    if data[:2] != b"LA" and fault != "magic":
        return list(hexdump(data, 0, fault=False))
    rows: list[Row] = []
    offset = 0
    for name, size in _FIELDS:
        piece = data[offset : offset + size]
        if not piece:
            return rows
        meaning = _meaning(name, piece, data, checksum) if len(piece) == size else "cut short"
        rows.append(Row(offset, piece, name, meaning, fault == name))
        offset += size
    rows += payload_rows(data, fault=fault == "payload")
    return rows


def split_frames(data: bytes) -> list[bytes]:
    """Cut a stream where its headers say that frames end; the rest stays in one piece."""
    frames = []
    while len(data) >= HEADER_SIZE and data[:4] == b"LANC":
        end = HEADER_SIZE + int.from_bytes(data[32:36], "little")
        frames.append(data[:end])
        data = data[end:]
    return [*frames, data] if data else frames


def _meaning(name: str, piece: bytes, frame: bytes, checksum: Checksum) -> str:
    value = int.from_bytes(piece, "little")
    special = _MEANINGS.get(name)
    return special(value, frame, checksum) if special else str(value)


def _magic(_value: int, frame: bytes, _checksum: Checksum) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in frame[:4])


def _flags(value: int, _frame: bytes, _checksum: Checksum) -> str:
    names = [flag.name or "" for flag in Flag if value & flag]
    return " | ".join(names) if names else "none"


def _header_crc(value: int, frame: bytes, checksum: Checksum) -> str:
    return _crc_verdict(value, checksum(frame[:8]), "bytes 0-7")


def _payload_crc(value: int, frame: bytes, checksum: Checksum) -> str:
    (length,) = struct.unpack_from("<I", frame, 32)
    payload = frame[HEADER_SIZE:]
    if len(payload) != length:
        return f"{value:#010x}, the payload is not complete"
    return _crc_verdict(value, checksum(payload) if payload else 0, "the payload")


def _crc_verdict(value: int, right: int, over: str) -> str:
    if value == right:
        return f"right for {over}"
    return f"{value:#010x}; {over} give {right:#010x}"


def _batch_id(value: int, frame: bytes, _checksum: Checksum) -> str:
    if frame[5] & Flag.CONTROL:
        return command_name(value)
    return f"{value} ({value:#x})"


_MEANINGS: dict[str, Callable[[int, bytes, Checksum], str]] = {
    "magic": _magic,
    "flags": _flags,
    "header_crc": _header_crc,
    "payload_crc": _payload_crc,
    "batch_id": _batch_id,
}

ANSWERS = (Command.TOPIC_RESPONSE, Command.CLUSTER_STATUS_RESPONSE, Command.ERROR_RESPONSE)
"""Commands whose payload is text that can be shown as it is."""


def readable_payload(command: int, payload: bytes) -> str | None:
    """The text of an answer in JSON or words, shortened, or ``None`` for binary payloads."""
    if command not in ANSWERS:
        return None
    text = payload.decode("utf-8", "backslashreplace")
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable if len(printable) <= 200 else f"{printable[:200]}..."
