"""Family ``frame_encode``: header fields and a payload, and the one frame that says so."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import Frame, record
from generate.document import ACCEPT, Test, document, group, note, shown
from generate.lwp.frames.decode import DIALECTS, FIELDS, HELLO, MAX32, MAX64, NOON

NOTES = {
    "Rounding": note(
        "LIMIT",
        "A batch id of many bits.",
        "A sender that keeps it in a floating point number sends another, and waits for its Ack.",
        "3.2",
    ),
    "ByteOrder": note(
        "EDGE_CASE",
        "No byte of a number is like another.",
        "A sender that swaps bytes or fields passes with numbers that read the same either way.",
        "3.2",
    ),
}

MORE: dict[str, dict[str, Any]] = {
    f"ack-{bits}-bits": {"flags": 0x08, "batch_id": 2**bits - 1} for bits in range(8, 64, 8)
}
MORE |= {
    f"ingest-of-{size}": {
        "flags": 0x04,
        "batch_id": size + 1,
        "timestamp_ns": NOON,
        "record_count": 1,
        "topic_id": 7,
        "payload": record(bytes(place % 251 for place in range(size))),
    }
    for size in (0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 255, 256)
}
MORE |= {
    "every-field-largest": {
        "flags": 0x04,
        "batch_id": MAX64,
        "timestamp_ns": MAX64,
        "record_count": MAX32,
        "topic_id": MAX32,
        "payload": HELLO,
    },
    "every-byte-distinct": {
        "flags": 0x04,
        "batch_id": 0x0807060504030201,
        "timestamp_ns": 0x100F0E0D0C0B0A09,
        "record_count": 0x14131211,
        "topic_id": 0x18171615,
        "payload": HELLO,
    },
}
"""Frames beside those of ``frame_decode``: what an encoder must not round, swap or cut."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "Header fields and a payload; a sender of the dialect writes exactly `bytes`.",
        "Lengths and checksums are not given to the encoder: they are what it is tested for.",
    ]
    groups = [
        group("FrameEncode", _tests(name, facts["checksum"]), dialect={"name": name, **facts})
        for name, facts in DIALECTS.items()
    ]
    return document("frame_encode", header, NOTES, groups)


def _tests(dialect: str, algorithm: str) -> Iterator[Test]:
    for name, fields in (FIELDS | MORE).items():
        frame = Frame(algorithm=algorithm, **fields)
        given = ("flags", "batch_id", "timestamp_ns", "record_count", "topic_id", "payload")
        yield {
            "id": f"encode-{dialect}-{name}",
            "comment": f"The frame {name}, as a sender writes it.",
            "clause": "3.2/encoding",
            "level": "MUST",
            "basis": "table",
            "bytes": frame.encode().hex(),
            "fields": shown({each: getattr(frame, each) for each in given}),
            "result": "valid",
            "outcome": ACCEPT,
            "flags": _flags(name),
        }


def _flags(name: str) -> list[str]:
    if name == "every-byte-distinct":
        return ["ByteOrder"]
    return ["Rounding"] if name.startswith(("ack-", "every-field")) else []
