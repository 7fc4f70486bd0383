"""Family ``slot_segment``: whole segments of a slot, torn and whole, and which frames they hold."""

from collections.abc import Iterator
from typing import Any

from generate.codec.cursor import Record
from generate.document import ACCEPT, Test, document, group, note
from generate.journal.slot_messages import FRAME, SEGMENT, SPEC
from generate.plain import Plain
from generate.qwp import captured

NOTES = {
    "Torn": note(
        "STATE",
        "A frame is not whole, or after the frames not all bytes are zero.",
        "A reader that believes it sends what nobody stored; one that looks only at the first "
        "bytes takes it for unused space and loses frames after it without a word.",
        "SF-18",
    ),
    "Header": note(
        "MISSING_STEP",
        "The segment's header is cut short, or says what it must not.",
        "A reader that goes on puts frames under wrong numbers, or another program's into its log.",
        "SF-02",
    ),
}
SIZE = 256
FRAMES = (b"hello", b"\x00" * 12, bytes(range(40)))
HEADER: Record = {"flags": 1, "base_seq": 126, "created_us": 1_706_918_400_000_000}


def segment(*payloads: bytes, size: int = SIZE) -> bytes:
    """Return a segment: header, frames, zeros."""
    frames = b"".join(FRAME.encode({"payload": each}) for each in payloads)
    return (SEGMENT.encode(HEADER) + frames).ljust(size, b"\0")


def found(*payloads: bytes, torn: bool = False) -> Record:
    """Return what a reader finds."""
    return {
        "base_seq": str(HEADER["base_seq"]),
        "frames": [each.hex() for each in payloads],
        "end": 24 + sum(8 + len(each) for each in payloads),
        "torn": torn,
    }


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A whole segment of a store-and-forward slot. `fields` has the frames that follow each",
        "other from its header on and are whole, `end`, the byte after them, and whether it is",
        "`torn`: whether after that any byte is not zero. What is done about that is up to the",
        "reader. An invalid segment has no readable header.",
    ]
    plain = Plain("slot-segment", "6.2/segment")
    three = plain.valid("three", "Three frames, then zeros.", segment(*FRAMES), found(*FRAMES))
    tests = [three, *_whole(plain), *_torn(plain, three), *_headers(plain, three)]
    groups = [
        group("SlotSegment", tests),
        group("SlotSegment", [_captured()]) | {"source": captured.SENT},
    ]
    return document("slot_segment", header, NOTES, groups, SPEC)


def _whole(plain: Plain) -> Iterator[Test]:
    yield plain.valid("empty", "No frame yet.", segment(), found())
    yield plain.valid("bare", "A header and nothing else.", segment(size=24), found())
    full = segment(*FRAMES, size=0)
    yield plain.valid("full", "Frames up to the last byte.", full, found(*FRAMES))
    one = segment(bytes(8))
    yield plain.valid("zeros", "A frame of zeros, which is none of the unused space.", one,
                      found(bytes(8)))  # fmt: skip
    tight = segment(b"a", size=24 + 9 + 7)
    yield plain.valid("no-room", "Less room than a frame's header takes.", tight, found(b"a"))


def _torn(plain: Plain, three: Test) -> Iterator[Test]:
    first, second = 24, 24 + 13
    third, end = second + 20, second + 20 + 48
    for place, kept, what in (
        (first, 0, "the first frame's checksum"),
        (first + 12, 0, "the first frame's last byte"),
        (second, 1, "the second frame's checksum"),
        (second + 4, 1, "the second frame's length"),
        (second + 19, 1, "the second frame's payload"),
        (third + 7, 2, "the third frame's length, which leads past the end"),
        (end - 1, 2, "the last frame's last byte"),
        (end, 3, "the unused space, just after the frames"),
        (SIZE - 1, 3, "the unused space, at its very end"),
    ):
        test = plain.flip(three, place, f"One bit of {what} has changed.", "Torn")
        yield _holding(test, kept)
    for length, kept in ((end - 1, 2), (third + 3, 2), (second + 19, 1), (first + 8, 0)):
        yield _holding(plain.cut(three, length, "Torn"), kept)
    for name, place, size, kept, comment in (
        ("no-header", third, 8, 2, "The last frame's header was never written; its bytes were."),
        ("no-checksum", third, 4, 2, "The last frame's checksum was never written."),
        ("no-payload", third + 8, 40, 2, "The last frame's bytes were never written."),
        ("lost-page", second, 20, 1, "The second frame is zeros; the third stands after it."),
    ):
        test = plain.splice(three, name, comment, (place, size, bytes(size)), flag="Torn")
        yield _holding(test, kept)


def _holding(test: Test, kept: int) -> Test:
    """Return a faulty test of which some frames still hold."""
    fields = found(*FRAMES[:kept], torn=True)
    return test | {"fields": fields, "result": "valid", "outcome": ACCEPT}


def _headers(plain: Plain, three: Test) -> Iterator[Test]:
    for length in (0, 4, 23):
        yield plain.cut(three, length, "Header")
    for place, what in ((0, "the letters"), (4, "the version"), (6, "the reserved bytes")):
        yield plain.flip(three, place, f"One bit of {what} has changed.", "Header")
    change = (5, 1, b"\x02")
    comment = "A flag that nobody knows; the file is refused, and kept as it is."
    yield plain.splice(three, "flag-2", comment, change, flag="Header")


def _captured() -> Test:
    frames = [bytes.fromhex(raw) for _, _, raw in captured.FRAMES]
    data = (bytes.fromhex(captured.SEGMENT) + b"".join(frames)).ljust(4096, b"\0")
    fields = found(*(each[8:] for each in frames)) | {"base_seq": "0"}
    plain = Plain("captured-slot", "6.2/segment", basis="capture")
    return plain.valid("segment", "Fourteen frames in 4096 bytes.", data, fields)
