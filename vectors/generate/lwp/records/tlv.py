"""Family ``tlv_decode``: chains of TLV records, and the values that have an inside."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import record, u16, u32, u64
from generate.document import ACCEPT, Test, document, error, group, note

TWO = bytes.fromhex("0105000000 68656c6c6f 0105000000 776f726c64")
"""The two records of LWP section 8.6."""

NOTES = {
    "Truncated": note(
        "STATE",
        "The last record is cut short.",
        "A reader that stops quietly loses a record; one that does not stop reads past the end.",
        "8.5",
    ),
    "WrongLength": note(
        "MODIFIED_PARAMETER",
        "A record's length is not the length of its value.",
        "A reader that does not notice reads every later record wrongly.",
        "8.1",
    ),
    "OverLimit": note(
        "LIMIT",
        "A record claims more than 16 MiB.",
        "A reader that believes it waits for bytes that never come, or allocates them.",
        "8.7",
    ),
    "ReservedType": note(
        "CAN_OF_WORMS",
        "A type that must not be used, and that another registry uses.",
        "Programs with different registries see different data.",
        "8.2",
    ),
    "FullTombstone": note(
        "CAN_OF_WORMS",
        "A Null record with a value.",
        "Programs that read type 0xFF as the start of a longer header lose the place.",
        "8.2",
    ),
    "ShortInside": note(
        "EDGE_CASE",
        "A typed value is shorter than its type needs.",
        "A reader that trusts the type reads past the value.",
        "8.3",
    ),
}

TYPES = (
    ("raw", 0x01, b"hello"),
    ("json", 0x02, b'{"a":1}'),
    ("message-pack", 0x03, b"\x81\xa1a\x01"),
    ("protobuf", 0x04, b"\x08\x01"),
    ("avro", 0x05, b"\x02\x06foo"),
    ("key-value", 0x10, u16(3) + b"keyvalue"),
    ("timestamped", 0x11, u64(1_706_918_400_000_000_000) + b"data"),
    ("key-timestamped", 0x12, u64(1) + u16(1) + b"kv"),
    ("first-user-type", 0x80, b"mine"),
    ("last-user-type", 0xFE, b"mine"),
    ("unassigned-type", 0x7F, b"?"),
    ("null", 0xFF, b""),
)


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A chain of records as bytes. A valid one is read as `records`, exactly to its end.",
        "An invalid one is answered with `code`; `index` and `offset` say which record is at fault",
        "and where it begins.",
    ]
    groups = [
        group("TlvDecode", [*_valid(), *_truncated(), *_lengths(), *_odd()]),
        group("ValueDecode", [*_inside(), *_short_inside()]),
        group("ExtendedRecord", [*_extended()]),
    ]
    return document("tlv_decode", header, NOTES, groups)


def _valid() -> Iterator[Test]:
    yield _chain("none", "8.4/chain", "No record at all.", [])
    yield _chain("two", "8.6/example", "The two records of LWP section 8.6.", _hello_world())
    yield _chain("empty-value", "8.1/length", "A record without a value.", [(1, b"")])
    yield _chain("three-empty", "8.4/chain", "Three records without values.", [(1, b"")] * 3)
    for name, record_type, value in TYPES:
        clause = "8.2/registry"
        yield _chain(name, clause, f"A record of type 0x{record_type:02x}.", [(record_type, value)])
    yield _chain("longer-than-a-byte", "8.1/length", "A value of 256 bytes.", [(1, bytes(256))])
    yield _chain("looks-like-a-record", "8.8/packed", "A value that is a record.", [(1, TWO)])


def _hello_world() -> list[tuple[int, bytes]]:
    return [(1, b"hello"), (1, b"world")]


def _chain(name: str, clause: str, comment: str, records: list[tuple[int, bytes]]) -> Test:
    data = b"".join(record(value, record_type) for record_type, value in records)
    return _test(name, clause, comment, data) | {
        "records": [{"type": kind, "value": value.hex()} for kind, value in records],
        "result": "valid",
        "outcome": ACCEPT,
    }


def _truncated() -> Iterator[Test]:
    for length in (1, 4, 5, 9, 11, 14, 15, 19):
        at = 0 if length < 10 else 10
        comment = f"The first {length} of 20 bytes."
        fault = {"kind": "truncate", "length": length}
        test = _test(f"cut-at-{length}", "8.5/truncated", comment, TWO[:length])
        yield test | _faulty("two", fault, "Truncated", _refused(4, at // 10, at))


def _lengths() -> Iterator[Test]:
    for name, length, flag, refused, comment in (
        ("big-endian", 5 << 24, "WrongLength", (3, 0, 0), "The length as a big-endian number."),
        ("plus-one", 6, "WrongLength", (3, 1, 11), "The length one too large."),
        ("minus-one", 4, "WrongLength", (4, 1, 9), "The length one too small."),
        ("with-header", 10, "WrongLength", (3, 1, 15), "The length counts its header."),
        ("beyond", 16, "WrongLength", (4, 0, 0), "The length reaches beyond the end."),
        ("16-mib-and-1", 2**24 + 1, "OverLimit", (3, 0, 0), "One byte over 16 MiB."),
        ("2-gib", 2**31, "OverLimit", (3, 0, 0), "Two gigabytes."),
        ("4-gib", 2**32 - 1, "OverLimit", (3, 0, 0), "The largest number there is."),
    ):
        data = TWO[:1] + u32(length) + TWO[5:]
        fault = {"kind": "splice", "offset": 1, "remove": 4, "insert": u32(length).hex()}
        clause = "8.7/limit" if flag == "OverLimit" else "8.1/length"
        test = _test(f"length-{name}", clause, comment, data)
        yield test | _faulty("two", fault, flag, _refused(*refused))


def _refused(code: int, index: int, offset: int) -> dict[str, Any]:
    return {"action": "error", "code": code, "index": index, "offset": offset}


def _faulty(pair: str, fault: dict[str, Any], flag: str, outcome: dict[str, Any]) -> Test:
    about = {"pairOf": f"tlv-{pair}", "fault": fault, "result": "invalid"}
    return about | {"outcome": outcome, "flags": [flag]}


def _odd() -> Iterator[Test]:
    """Records that the documents forbid and that do no harm to a chain."""
    zero, full = record(b"hello", 0), record(b"x", 0xFF)
    zeroed = {"kind": "splice", "offset": 0, "remove": 1, "insert": "00"}
    filled = {"kind": "splice", "offset": 1, "remove": 4, "insert": full[1:].hex()}
    for name, row, comment, data, pair, fault, flag in (
        ("reserved-type", "AMB-13", "Type 0x00.", zero, "raw", zeroed, "ReservedType"),
        ("full-null", "AMB-12", "Null with a byte.", full, "null", filled, "FullTombstone"),
    ):
        yield _test(name, f"{row}/type", comment, data) | {
            "basis": "decision",
            "pairOf": f"tlv-{pair}",
            "fault": fault,
            "records": [{"type": data[0], "value": data[5:].hex()}],
            "result": "either",
            "ambiguity": row,
            "outcomes": [ACCEPT, _refused(4, 0, 0)],
            "flags": [flag],
        }


INSIDES: tuple[tuple[str, str, bytes, dict[str, Any]], ...] = (
    ("key-value", "KeyValue", u16(3) + b"keyvalue", {"key": b"key", "value": b"value"}),
    ("key-empty", "KeyValue", u16(0) + b"value", {"key": b"", "value": b"value"}),
    ("value-empty", "KeyValue", u16(3) + b"key", {"key": b"key", "value": b""}),
    ("timestamped", "Timestamped", u64(5) + b"data", {"timestamp_ns": 5, "data": b"data"}),
    ("time-only", "Timestamped", u64(2**64 - 1), {"timestamp_ns": 2**64 - 1, "data": b""}),
    (
        "key-timestamped",
        "KeyTimestamped",
        u64(1) + u16(1) + b"kv",
        {"timestamp_ns": 1, "key": b"k", "value": b"v"},
    ),
    ("null", "Null", b"", {}),
)


def _inside() -> Iterator[Test]:
    for name, message, data, fields in INSIDES:
        shown = {k: v.hex() if isinstance(v, bytes) else str(v) for k, v in fields.items()}
        yield _test(f"inside-{name}", "8.3/inside", f"The value of a {message} record.", data) | {
            "message": message,
            "fields": shown,
            "result": "valid",
            "outcome": ACCEPT,
        }


def _short_inside() -> Iterator[Test]:
    for name, message, pair, length, field, offset in (
        ("no-key-length", "KeyValue", "key-value", 1, "key_length", 0),
        ("short-key", "KeyValue", "key-value", 4, "key", 2),
        ("no-time", "Timestamped", "timestamped", 0, "timestamp_ns", 0),
        ("short-time", "Timestamped", "timestamped", 7, "timestamp_ns", 0),
        ("time-without-key", "KeyTimestamped", "key-timestamped", 9, "key_length", 8),
        ("short-timed-key", "KeyTimestamped", "key-timestamped", 10, "key", 10),
    ):
        whole = next(row[2] for row in INSIDES if row[0] == pair)
        comment = f"The first {length} bytes of the value of a {message} record."
        test = _test(f"inside-{name}", "8.3/inside", comment, whole[:length])
        fault = {"kind": "truncate", "length": length}
        outcome = error(4, field, offset)
        faulty = _faulty(f"inside-{pair}", fault, "ShortInside", outcome)
        yield test | {"message": message} | faulty


def _extended() -> Iterator[Test]:
    whole = b"\xff" + u16(0x0102) + u32(3) + b"abc"
    yield _test("extended", "AMB-12/extended", "The other reading of type 0xFF.", whole) | {
        "basis": "decision",
        "message": "ExtendedRecord",
        "fields": {"extended_type": 0x0102, "value": b"abc".hex()},
        "result": "valid",
        "outcome": ACCEPT,
    }
    for length, field, offset in ((2, "extended_type", 1), (6, "length", 3), (9, "value", 7)):
        comment = f"The first {length} bytes of an extended record."
        test = _test(f"extended-cut-at-{length}", "AMB-12/extended", comment, whole[:length])
        fault = {"kind": "truncate", "length": length}
        faulty = _faulty("extended", fault, "Truncated", error(4, field, offset))
        yield test | {"basis": "decision", "message": "ExtendedRecord"} | faulty


def _test(name: str, clause: str, comment: str, data: bytes) -> Test:
    return {
        "id": f"tlv-{name}",
        "comment": comment,
        "clause": clause,
        "level": "MUST",
        "basis": "table",
        "bytes": data.hex(),
        "flags": [],
    }
