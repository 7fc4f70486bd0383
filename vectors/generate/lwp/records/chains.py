"""Families ``tlv_encode`` and ``segment_scan``: writing records, and finding where they stop."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import record, u16, u32, u64
from generate.document import ACCEPT, Test, document, group, note

TYPES = {
    0x01: "RawData",
    0x02: "Json",
    0x03: "MessagePack",
    0x04: "Protobuf",
    0x05: "Avro",
    0x10: "KeyValue",
    0x11: "Timestamped",
    0x12: "KeyTimestamped",
    0x80: "the first of applications",
    0xFE: "the last of applications",
}

INSIDE = {
    0x02: b'{"a":1}',
    0x10: u16(3) + b"keyvalue",
    0x11: u64(1_706_918_400_000_000_000) + b"data",
    0x12: u64(1) + u16(1) + b"kv",
}
"""Values that fit the type, where the specification says what is inside."""

CHAINS: dict[str, tuple[tuple[int, bytes], ...]] = {
    "none": (),
    "example": ((1, b"hello"), (1, b"world")),
    "empty": ((1, b""), (1, b""), (1, b"")),
    "null": ((1, b"a"), (0xFF, b""), (1, b"b")),
    "typed": tuple((kind, INSIDE.get(kind, b"x")) for kind in TYPES),
    "sizes": tuple((1, b"v" * size) for size in (0, 1, 255, 256, 257)),
}

ENCODE_NOTES = {
    "LengthBytes": note(
        "EDGE_CASE",
        "The length takes more than its lowest byte.",
        "A writer that swaps the bytes, or writes one of them, breaks every record behind.",
        "8.1",
    ),
}

SCAN_NOTES = {
    "TornTail": note(
        "EDGE_CASE",
        "The bytes end inside a record, as after a crash in the middle of a write.",
        "A recovery that keeps the piece serves half a record; one that cuts earlier loses data.",
        "AMB-39",
    ),
    "Oversize": note(
        "LIMIT",
        "A record states a length that no record may have.",
        "A recovery that waits for so many bytes takes all later records for one value.",
        "AMB-32",
    ),
}


def build_encode() -> dict[str, Any]:
    """Return the file of ``tlv_encode``."""
    header = ["Records as types and values, and the bytes that a writer makes of them."]
    groups = [group("TlvEncode", _encodes())]
    return document("tlv_encode", header, ENCODE_NOTES, groups)


def _encodes() -> Iterator[Test]:
    for kind, name in TYPES.items():
        chain = ((kind, INSIDE.get(kind, b"value")),)
        yield _encode(f"type-{kind:02x}", f"A record of type {name}.", chain)
    for size in (0, 1, 5, 127, 128, 255, 256, 4096):
        yield _encode(f"of-{size}", f"A value of {size} bytes.", ((1, b"v" * size),))
    for name, chain in CHAINS.items():
        yield _encode(f"chain-{name}", f"The chain {name}.", chain)


def _encode(name: str, comment: str, chain: tuple[tuple[int, bytes], ...]) -> Test:
    data = b"".join(record(value, kind) for kind, value in chain)
    long = any(len(value) > 255 for _, value in chain)
    return _test(f"tlv-encode-{name}", "8.1/encoding", comment, data) | {
        "flags": ["LengthBytes"] if long else [],
        "records": [{"type": kind, "value": value.hex()} for kind, value in chain],
        "result": "valid",
        "outcome": ACCEPT,
    }


def build_scan() -> dict[str, Any]:
    """Return the file of ``segment_scan``."""
    header = [
        "The bytes of a segment, and how far they are whole records.",
        "`whole` records end at byte `end`. The next one takes `needed` bytes, as far as can be",
        "told: 5 where its header is cut. `needed` is left out where no bytes would complete it.",
    ]
    groups = [group("SegmentScan", _scans())]
    return document("segment_scan", header, SCAN_NOTES, groups)


def _scans() -> Iterator[Test]:
    for name in ("none", "example", "empty", "null", "typed"):
        data = b"".join(record(value, kind) for kind, value in CHAINS[name])
        yield _whole(name, data, len(CHAINS[name]))
        if name in {"example", "null"}:
            yield from _torn(name, data)
    data = b"".join(record(value, kind) for kind, value in CHAINS["example"])
    for name, length in (("over-limit", 2**24 + 1), ("2-gib", 2**31), ("4-gib", 2**32 - 1)):
        yield _oversize(name, data, 10, 1, length)
        yield _oversize(f"first-{name}", data, 0, 0, length)


def _whole(name: str, data: bytes, count: int) -> Test:
    test = _test(f"scan-{name}", "AMB-39/scan", f"The whole chain {name}.", data)
    return test | {"whole": count, "end": len(data), "result": "valid", "outcome": ACCEPT}


def _torn(name: str, data: bytes) -> Iterator[Test]:
    ends = _ends(data)
    for length in range(1, len(data)):
        if length in ends:
            continue
        end = max(each for each in ends if each < length)
        test = _test(f"scan-{name}-torn-at-{length}", "AMB-39/scan", "A torn tail.", data[:length])
        yield test | {
            "pairOf": f"scan-{name}",
            "fault": {"kind": "truncate", "length": length},
            "whole": ends.index(end),
            "end": end,
            "needed": 5 if length - end < 5 else _behind(data, end) - end,
            "result": "invalid",
            "outcome": {"action": "reject"},
            "flags": ["TornTail"],
        }


def _behind(data: bytes, start: int) -> int:
    """Where the record that begins at ``start`` ends."""
    return start + 5 + int.from_bytes(data[start + 1 : start + 5], "little")


def _ends(data: bytes) -> list[int]:
    ends = [0]
    while ends[-1] < len(data):
        ends.append(_behind(data, ends[-1]))
    return ends


def _oversize(name: str, data: bytes, start: int, whole: int, length: int) -> Test:
    insert = u32(length)
    damaged = data[: start + 1] + insert + data[start + 5 :]
    test = _test(f"scan-example-{name}", "AMB-32/scan", f"A length of {length}.", damaged)
    return test | {
        "pairOf": "scan-example",
        "fault": {"kind": "splice", "offset": start + 1, "remove": 4, "insert": insert.hex()},
        "whole": whole,
        "end": start,
        "result": "invalid",
        "outcome": {"action": "reject"},
        "flags": ["Oversize"],
    }


def _test(identifier: str, clause: str, comment: str, data: bytes) -> Test:
    return {
        "id": identifier,
        "comment": comment,
        "clause": clause,
        "level": "MUST",
        "basis": "table" if clause[0].isdigit() else "decision",
        "bytes": data.hex(),
        "flags": [],
    }
