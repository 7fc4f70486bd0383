"""Family ``fetch_response``: answers to Fetch, in both forms (AMB-05)."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import record, u32, u64
from generate.document import ACCEPT, Test, document, error, group, note, shown

HELLO, WORLD = record(b"hello"), record(b"world")
MAX64 = 2**64 - 1

NOTES = {
    "LengthsDisagree": note(
        "MODIFIED_PARAMETER",
        "The stated length of the data is not the length there is.",
        "A client that believes it moves to an offset where no record starts.",
        "AMB-05",
    ),
    "OtherHeader": note(
        "CAN_OF_WORMS",
        "The answer has the header of the other form.",
        "A client that does not notice takes header bytes for records.",
        "5.9",
        "5.9.1",
    ),
    "Short": note(
        "EDGE_CASE",
        "The answer ends inside its header.",
        "A client that fills in zeros fetches from the start again.",
        "5.9",
    ),
    "Backwards": note(
        "EDGE_CASE",
        "The end offset lies before the start offset.",
        "A client that subtracts unsigned numbers waits for 2^64 bytes.",
        "5.9.1",
    ),
}

USUAL: tuple[tuple[str, str, int, int, bytes], ...] = (
    ("one", "One record.", 10, 1, HELLO),
    ("two", "Two records.", 20, 2, HELLO + WORLD),
    ("empty", "Nothing yet: the next offset is the one asked for.", 7, 0, b""),
    ("end", "The answer to a Fetch at 2^64-1: the end.", 20, 0, b""),
    ("end-of-offsets", "The largest next offset.", MAX64, 0, b""),
    ("cut-tail", "One record and the start of the next (AMB-19).", 17, 1, HELLO + WORLD[:7]),
    ("first-part", "The start of a record larger than max bytes (AMB-19).", 7, 1, HELLO[:7]),
    ("middle", "Bytes from inside a record (AMB-19).", 10, 0, HELLO[6:]),
    ("deployed-count", "Two records counted as one, as is common.", 20, 1, HELLO + WORLD),
)
"""Name, comment, next offset, record count and data of answers in the 16-byte form."""

EXTENDED: tuple[tuple[str, str, int, int, bytes], ...] = (
    ("one", "One record of a longer topic.", 0, 90, HELLO),
    ("two", "Two records, to the end.", 10, 30, HELLO + WORLD),
    ("empty", "Nothing yet.", 30, 30, b""),
    ("last", "The largest offsets.", MAX64, MAX64, b""),
)
"""Name, comment, start offset, high water mark and data of answers in the 24-byte form."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The payload of a FetchResponse as bytes.",
        "A valid one is read as `fields`: its header, and data of which `whole` bytes are whole",
        "records, where it starts with one.",
    ]
    usual, extended = [*_usual(), *_usual_faults()], [*_extended(), *_extended_faults()]
    groups = [
        group("FetchResponse", usual, fetchHeader=16, message="FetchResponse"),
        group("FetchResponse", extended, fetchHeader=24, message="FetchResponseExtended"),
    ]
    return document("fetch_response", header, NOTES, groups)


def _usual() -> Iterator[Test]:
    for name, comment, next_offset, count, data in USUAL:
        fields: dict[str, int | bytes | bool] = {
            "next_offset": next_offset,
            "bytes_returned": len(data),
            "record_count": count,
            "data": data,
        }
        encoded = u64(next_offset) + u32(len(data)) + u32(count) + data
        records = {} if name == "middle" else {"whole": _whole(data)}
        yield _valid("16", name, comment, encoded, shown(fields) | records)


def _extended() -> Iterator[Test]:
    for name, comment, start, high_water_mark, data in EXTENDED:
        end = start + len(data)
        fields: dict[str, int | bytes | bool] = {
            "start_offset": start,
            "end_offset": end,
            "high_water_mark": high_water_mark,
            "data": data,
        }
        encoded = u64(start) + u64(end) + u64(high_water_mark) + data
        records = {"whole": _whole(data)}
        yield _valid("24", name, comment, encoded, shown(fields) | records)


def _whole(data: bytes) -> int:
    """Count the bytes of whole records, one after another."""
    place = 0
    while place + 5 <= len(data):
        end = place + 5 + int.from_bytes(data[place + 1 : place + 5], "little")
        if end > len(data):
            break
        place = end
    return place


def _usual_faults() -> Iterator[Test]:
    whole = u64(10) + u32(10) + u32(1) + HELLO
    yield from _cuts("16", whole, (("next_offset", 8), ("bytes_returned", 4), ("record_count", 4)))
    for name, stated, outcome in (
        ("states-9", 9, error(4, "", 25)),
        ("states-11", 11, error(4, "data", 16)),
        ("states-0", 0, error(4, "", 16)),
        ("states-4-gib", 2**32 - 1, error(4, "data", 16)),
        ("counts-header", 26, error(4, "data", 16)),
    ):
        yield _spliced("16", name, whole, outcome, offset=8, insert=u32(stated))
    other, outcome = u64(0) + u64(10) + u64(90), error(4, "", 26)
    yield _spliced("16", "other-header", whole, outcome, offset=0, remove=16, insert=other)


def _extended_faults() -> Iterator[Test]:
    whole = u64(0) + u64(10) + u64(90) + HELLO
    fields = (("start_offset", 8), ("end_offset", 8), ("high_water_mark", 8))
    yield from _cuts("24", whole, fields)
    for name, end, outcome in (
        ("ends-at-9", 9, error(4, "", 33)),
        ("ends-at-11", 11, error(4, "data", 24)),
        ("ends-at-max", MAX64, error(4, "data", 24)),
    ):
        yield _spliced("24", name, whole, outcome, offset=8, insert=u64(end))
    outcome = error(4, "data", 24)
    yield _spliced("24", "backwards", whole, outcome, offset=0, insert=u64(11))
    other = u64(10) + u32(10) + u32(1)
    yield _spliced("24", "other-header", whole, outcome, offset=0, remove=24, insert=other)


def _cuts(form: str, whole: bytes, fields: tuple[tuple[str, int], ...]) -> Iterator[Test]:
    start = 0
    for field, size in fields:
        for length in (start, start + size - 1):
            fault = {"kind": "truncate", "length": length}
            comment = f"The first {length} of {len(whole)} bytes."
            test = _test(form, f"cut-at-{length}", comment, whole[:length])
            yield test | _invalid(form, fault, error(4, field, start), "Short")
        start += size
    fault = {"kind": "truncate", "length": len(whole) - 1}
    test = _test(form, "cut-data", "The last data byte is missing.", whole[:-1])
    yield test | _invalid(form, fault, error(4, "data", start), "LengthsDisagree")


def _spliced(
    form: str, name: str, whole: bytes, outcome: dict[str, Any], **splice: int | bytes
) -> Test:
    """Put other bytes in the place of some."""
    offset, insert = int(splice["offset"]), bytes(splice["insert"])
    remove = int(splice.get("remove", len(insert)))
    data = whole[:offset] + insert + whole[offset + remove :]
    fault = {"kind": "splice", "offset": offset, "remove": remove, "insert": insert.hex()}
    flag = {"other-header": "OtherHeader", "backwards": "Backwards"}.get(name, "LengthsDisagree")
    test = _test(form, name, NOTES[flag]["description"], data)
    return test | _invalid(form, fault, outcome, flag)


def _invalid(form: str, fault: dict[str, Any], outcome: dict[str, Any], flag: str) -> Test:
    clause = {} if flag == "Short" else {"clause": "AMB-05/lengths"}
    return clause | {
        "basis": "decision",
        "pairOf": f"fetch-{form}-one",
        "fault": fault,
        "result": "invalid",
        "outcome": outcome,
        "flags": [flag],
    }


def _valid(form: str, name: str, comment: str, data: bytes, fields: dict[str, Any]) -> Test:
    return _test(form, name, comment, data) | {
        "fields": fields,
        "result": "valid",
        "outcome": ACCEPT,
    }


def _test(form: str, name: str, comment: str, data: bytes) -> Test:
    section = {"16": "5.9", "24": "5.9.1"}[form]
    return {
        "id": f"fetch-{form}-{name}",
        "comment": comment,
        "clause": f"{section}/form",
        "level": "MUST",
        "basis": "table",
        "bytes": data.hex(),
        "flags": [],
    }
