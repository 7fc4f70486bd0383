"""Family ``lz4_frame``: compressed payloads, in the one container that there is (AMB-20)."""

from collections.abc import Iterator
from typing import Any

from generate.codec.containers import Lz4, lz4_literals, lz4_repeated, xxh32
from generate.codec.wire import record, u32, u64
from generate.document import Test, document, group, note
from generate.plain import Plain

NOTES = {
    "CutFrame": note(
        "EDGE_CASE",
        "The LZ4 frame ends early.",
        "A reader that takes what it got stores a part of a batch and acknowledges all of it.",
        "AMB-20",
    ),
    "BehindTheFrame": note(
        "EDGE_CASE",
        "Bytes follow the LZ4 frame: another frame, or anything.",
        "Readers that stop at the end and readers that go on store different records.",
        "AMB-20",
    ),
    "FrameChecksum": note(
        "MISSING_STEP",
        "A checksum of the LZ4 frame does not fit.",
        "A reader that skips the check stores records that nobody sent.",
        "AMB-20",
    ),
    "FrameHeader": note(
        "MODIFIED_PARAMETER",
        "The header of the frame says what it must not.",
        "Readers that look past it open frames that others cannot.",
        "AMB-20",
    ),
    "OtherSize": note(
        "MODIFIED_PARAMETER",
        "The frame holds another number of bytes than its header says.",
        "A reader that trusts the number cuts a batch, or allocates what somebody else chose.",
        "AMB-20",
    ),
}
PLAIN = Plain("lz4", "AMB-20/lz4-frame", refused={"action": "error", "code": 4, "offset": 0})
HELLO = record(b"hello") + record(b"world")
LONG = record(b"x" * 40) * 3
REPEATED = record(b"abcdefgh") * 40


def stored(data: bytes, **facts: Any) -> Lz4:
    """Return a frame that compresses nothing."""
    return Lz4(blocks=((False, data),), content=data, **facts)


FRAMES: tuple[tuple[str, str, Lz4], ...] = (
    ("stored", "A stored block, with a checksum of the content.", stored(HELLO)),
    ("bare", "No checksum and no size.", stored(HELLO, checked=False)),
    ("sized", "The size of the content in the header.", stored(HELLO, sized=True)),
    ("block-checks", "A checksum after the block.", stored(HELLO, blocks_checked=True)),
    ("all", "Everything that a header can ask for.",
     stored(LONG, sized=True, blocks_checked=True, largest=7)),
    ("literals", "A compressed block that copies nothing.",
     Lz4(blocks=((True, lz4_literals(LONG)),), content=LONG)),
    ("copied", "A compressed block that is mostly one copy.",
     Lz4(blocks=((True, lz4_repeated(record(b"abcdefgh"), 40)),), content=REPEATED, sized=True)),
    ("two-blocks", "Two blocks; a record goes from one to the other.",
     Lz4(blocks=((False, HELLO[:7]), (True, lz4_literals(HELLO[7:]))), content=HELLO)),
    ("linked", "Blocks that may copy from the ones before.",
     Lz4(blocks=((False, HELLO[:7]), (False, HELLO[7:])), content=HELLO, linked=True)),
    ("no-records", "An empty content in no block.", Lz4(blocks=(), content=b"")),
    ("one-mebibyte", "Blocks of up to a mebibyte are allowed.", stored(HELLO, largest=6)),
)  # fmt: skip
"""Id, comment and frame of valid ones."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The compressed payload of an Ingest frame. A valid one is exactly one LZ4 frame and is",
        "opened to `fields.content`, its records; how they were compressed makes no difference.",
        "An invalid one is answered with `code`.",
    ]
    valid = {
        name: PLAIN.valid(name, comment, frame.encode(), {"content": frame.content.hex()})
        for name, comment, frame in FRAMES
    }
    faulty = [*_cut(valid), *_behind(valid), *_checks(valid), *_headers(valid), *_sizes(valid)]
    return document("lz4_frame", header, NOTES, [group("Lz4Frame", [*valid.values(), *faulty])])


def _cut(valid: dict[str, Test]) -> Iterator[Test]:
    for name in ("stored", "copied"):
        size = len(valid[name]["bytes"]) // 2
        for length in (4, 6, 7, 10, 15, size // 2, size - 5, size - 1):
            yield PLAIN.cut(valid[name], length, "CutFrame")


def _behind(valid: dict[str, Test]) -> Iterator[Test]:
    pair, skippable = valid["stored"], u32(0x184D2A50) + u32(0)
    for name, tail, comment in (
        ("and-a-byte", b"\0", "One byte follows."),
        ("and-records", HELLO, "Records follow, as they are."),
        ("twice", bytes.fromhex(pair["bytes"]), "The same frame once more."),
        ("and-skippable", skippable, "A frame follows that readers would skip."),
    ):
        yield PLAIN.more(pair, name, comment, tail, flag="BehindTheFrame")
    comment = "A frame stands before it that readers would skip."
    yield PLAIN.splice(pair, "skippable", comment, (0, 0, skippable), flag="BehindTheFrame")


def _checks(valid: dict[str, Test]) -> Iterator[Test]:
    for pair, place, what in (
        ("stored", 6, "the header's checksum"),
        ("stored", 11, "the content"),
        ("stored", -1, "the content's checksum"),
        ("block-checks", -9, "the block's checksum"),
        ("block-checks", 12, "the block"),
        ("sized", 14, "the header's checksum"),
    ):
        comment = f"One bit of {what} has changed."
        yield PLAIN.flip(valid[pair], place, comment, "FrameChecksum")


def described(flags: int, largest: int, more: bytes = b"") -> bytes:
    """Return what a header says, with its checksum."""
    said = bytes([flags, largest]) + more
    return said + bytes([xxh32(said) >> 8 & 0xFF])


def _headers(valid: dict[str, Test]) -> Iterator[Test]:
    """The header's checksum is right in each; what it says is not."""
    for name, flags, largest, comment in (
        ("version-0", 0x24, 0x40, "Version 0 of the frame format."),
        ("version-2", 0xA4, 0x40, "Version 2 of the frame format."),
        ("reserved-flag", 0x66, 0x40, "A reserved bit of the flags."),
        ("reserved-top", 0x64, 0xC0, "The reserved bit over the block size."),
        ("reserved-low", 0x64, 0x41, "A reserved bit under the block size."),
        ("block-size-3", 0x64, 0x30, "A block size that is not defined."),
    ):
        change = (4, 3, described(flags, largest))
        yield PLAIN.splice(valid["stored"], name, comment, change, flag="FrameHeader")
    change = (4, 3, described(0x65, 0x40, u32(1)))
    comment = "A dictionary is asked for."
    yield PLAIN.splice(valid["stored"], "dictionary", comment, change, flag="FrameHeader")


def _sizes(valid: dict[str, Test]) -> Iterator[Test]:
    for size in (len(HELLO) - 1, len(HELLO) + 1, 2**40):
        change = (4, 11, described(0x6C, 0x40, u64(size)))
        comment = f"The header says {size} bytes, there are {len(HELLO)}."
        yield PLAIN.splice(valid["sized"], f"says-{size}", comment, change, flag="OtherSize")
