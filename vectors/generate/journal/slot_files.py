"""Family ``slot_file``: whole side files of a slot, torn and whole, and what they still say."""

from collections.abc import Iterator
from typing import Any

from generate.codec.cursor import Record
from generate.codec.nested import Struct
from generate.codec.shapes import LEB128
from generate.codec.wire import crc, u32
from generate.document import ACCEPT, Test, document, group, note
from generate.journal.slot_messages import FLOOR, MANIFEST, SIMPLE, SPEC, WATERMARK
from generate.plain import Plain
from generate.qwp import captured

NOTES = {
    "TornRecord": note(
        "STATE",
        "One of the two records is damaged; the other holds.",
        "A reader that gives up loses what was safe; one that skips the check believes the damage.",
        "SF-03",
    ),
    "NoRecord": note(
        "EDGE_CASE",
        "No record of the file is whole.",
        "A reader that makes one up sends again or skips what was never sent.",
        "SF-03",
    ),
    "OtherSize": note(
        "EDGE_CASE",
        "The file has a size that no form of it has.",
        "A reader that looks for records anyway finds them in the wrong place.",
        "SF-03",
    ),
    "TornChunk": note(
        "STATE",
        "The dictionary ends in a chunk that is cut short or does not match its checksum.",
        "Ids hold as far as chunks are whole; an id made up puts rows under a wrong symbol.",
        "SF-04",
    ),
    "Constant": note(
        "MISSING_STEP",
        "The letters or the version at the start of the file are others.",
        "A reader that skips the check takes other files for its own.",
        "SF-04",
    ),
}
JAVA = {
    "name": "QuestDB client for Java",
    "version": "2026",
    "how": "captured: checksums of records that the Java client's own tests keep",
}
KINDS: dict[str, Struct] = {"watermark": WATERMARK, "manifest": MANIFEST, "floor": FLOOR}
VALUES: dict[str, tuple[Record, Record]] = {
    "watermark": ({"generation": 1, "fsn": 42}, {"generation": 2, "fsn": 43}),
    "manifest": (
        {"generation": 1, "head_base": 10, "active_base": 20},
        {"generation": 2, "head_base": 10, "active_base": 30},
    ),
    "floor": ({"generation": 1, "floor": 43}, {"generation": 2, "floor": 44}),
}


def laid_out(struct: Struct, size: int, *values: Record) -> bytes:
    """Return a file with each record in the half that its generation says."""
    content = bytearray(size)
    for value in values:
        place = (value["generation"] & 1) * size // 2
        content[place : place + 64] = struct.encode(value)
    return bytes(content)


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A whole side file of a slot. Of a file that is written in turns, `fields` has the record",
        "that holds: of the whole ones that with the highest generation, or null where none was",
        "ever written. Of a symbol dictionary it has the symbols, by id, and `end`, the byte",
        "after the last whole chunk. An invalid file says nothing: it is as if it were not there.",
    ]
    groups = [group("SlotFile", _in_turns(name), file=name) for name in KINDS]
    groups += [
        group("SlotFile", _simple(), file="watermark"),
        group("SlotFile", _dictionary(), file="symbols"),
        group("SlotFile", [_captured()], file="symbols") | {"source": captured.SENT},
        *(
            group("SlotFile", [_java(name)], file=name) | {"source": JAVA}
            for name in ("manifest", "watermark")
        ),
    ]
    return document("slot_file", header, NOTES, groups, SPEC)


def held(struct: Struct, value: Record) -> Record:
    """Return what a reader finds in a file whose record has these values."""
    shown = struct.show(struct.decode(struct.encode(value)), 0)
    return {"record": {name: each for name, each in shown.items() if name != "record_crc"}}


def torn(test: Test, fields: Record, flag: str) -> Test:
    """Return a faulty test of which a part still holds."""
    return test | {"fields": fields, "result": "valid", "outcome": ACCEPT, "flags": [flag]}


def _in_turns(name: str) -> Iterator[Test]:
    """Both sizes that programs have written; the larger is the one of today."""
    struct, (old, new) = KINDS[name], VALUES[name]
    sizes = {"watermark": (8192, 128), "manifest": (128, 8192), "floor": (8192,)}[name]
    size, plain = sizes[0], Plain(f"slot-file-{name}", "SF-03/side-file")
    whole = laid_out(struct, size, old, new)
    both = plain.valid("both", "Two records; the second is newer.", whole, held(struct, new))
    first = [
        plain.valid(f"first-{n}", f"A first record, in {n} bytes.", laid_out(struct, n, old),
                    held(struct, old))
        for n in sizes
    ]  # fmt: skip
    later = new | {"generation": 2**63 - 2}
    comment = "The highest generation stands in the first half."
    last = plain.valid("last", comment, laid_out(struct, size, old, later), held(struct, later))
    yield from (both, *first, last)
    yield plain.valid("empty", "Nothing was written yet.", bytes(size), {"record": None})
    for place, kept, which in ((20, old, "newer"), (size // 2 + 20, new, "older")):
        test = plain.flip(
            both, place, f"The {which} record is damaged; the other holds.", "TornRecord"
        )
        yield torn(test, held(struct, kept), "TornRecord")
    yield plain.flip(first[0], size // 2 + 20, "Its only record is damaged.", "NoRecord")
    yield plain.cut(first[0], size - 1, "OtherSize")
    yield plain.more(first[0], "and-a-byte", "One byte more.", b"\0", flag="OtherSize")


def _simple() -> Iterator[Test]:
    """The first form of the watermark has 16 bytes and no checksum."""
    plain, fields = Plain("slot-file-watermark", "SF-03/side-file"), {"record": {"fsn": "3"}}
    comment = "The first form: 16 bytes, no checksum."
    whole = plain.valid("first-16", comment, SIMPLE.encode({"fsn": 3}), fields)
    yield whole
    for place in (0, 4):
        yield plain.flip(whole, place, f"One bit of byte {place} has changed.", "NoRecord")
    yield plain.cut(whole, 15, "OtherSize")


HEADER = b"SYD1\x01\0\0\0"


def chunk(*symbols: str) -> bytes:
    """Return a chunk of a symbol dictionary."""
    entries = b"".join(LEB128.raw(len(each.encode())) + each.encode() for each in symbols)
    data = LEB128.raw(len(symbols)) + LEB128.raw(len(entries)) + entries
    return data + u32(crc("crc32c", data))


def _dictionary() -> Iterator[Test]:
    plain = Plain("slot-file-symbols", "SF-04/symbol-dictionary")
    few, long = ["A0", "größe"], "s" * 200
    kept = len(HEADER + chunk(*few))
    whole = HEADER + chunk(*few) + chunk(long)
    fields = {"symbols": few, "end": kept}
    both = plain.valid(
        "two-chunks", "Two chunks.", whole, {"symbols": [*few, long], "end": len(whole)}
    )
    yield both
    for name, comment, symbols in (
        ("header", "No chunk yet.", ()),
        ("many", "A count that needs two bytes.", tuple(f"s{n}" for n in range(130))),
        ("empty", "A symbol without letters.", ("",)),
    ):
        data = HEADER + chunk(*symbols) if symbols else HEADER
        yield plain.valid(name, comment, data, {"symbols": list(symbols), "end": len(data)})
    for length in (kept, kept + 1, kept + 50, len(whole) - 1):
        yield torn(plain.cut(both, length, "TornChunk"), fields, "TornChunk")
    for place, what in ((kept, "count"), (kept + 20, "entry"), (-1, "checksum")):
        comment = f"One bit of the second chunk's {what} has changed."
        yield torn(plain.flip(both, place, comment, "TornChunk"), fields, "TornChunk")
    comment = "The first chunk is damaged; the second cannot keep its ids."
    none = {"symbols": [], "end": 8}
    yield torn(plain.flip(both, 12, comment, "TornChunk"), none, "TornChunk")
    for place in (0, 4):
        comment = f"One bit of byte {place}, in the header, has changed."
        yield plain.flip(both, place, comment, "Constant")


def _captured() -> Test:
    plain = Plain("captured-slot", "SF-04/symbol-dictionary", basis="capture")
    data = bytes.fromhex(captured.SYMBOLS)
    fields = {"symbols": ["A0", "s0", "s2"], "end": len(data)}
    return plain.valid("symbols", "Three symbols in two chunks.", data, fields)


def _java(name: str) -> Test:
    """The file around a record whose checksum is known from elsewhere."""
    struct, (value, _) = KINDS[name], VALUES[name]
    known = {"manifest": 0xFA7A1B86, "watermark": 0x7E5081BA}[name]
    data = laid_out(struct, 128, value)
    assert data[124:] == u32(known), f"{name}: {data[124:].hex()} is not {known:x}"
    plain = Plain("captured-slot", "SF-03/side-file", basis="capture")
    return plain.valid(name, f"A record whose checksum is {known:#x}.", data, held(struct, value))
