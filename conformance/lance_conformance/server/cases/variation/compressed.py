"""Compressed batches of several blocks: each check of an LZ4 frame holds at any size (AMB-20)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lance_conformance.engine.expectations import closed
from lance_conformance.engine.xxh32 import xxh32
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import holds, read_all, register
from lance_conformance.server.expect import ack
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import ingest
from lance_conformance.wire.frame import Flag

SIZES = (70_000, 300_000)
"""Bytes of content: two blocks, and five."""
BLOCK = 64 * 1024
RECORDS = 7
DESCRIPTION = b"\x7c\x40"
"""Version 1, blocks of 64 KiB that stand alone, a checksum after each of them, the size of the
content before them, and a checksum of it after them."""
HEADER, CHECK, END = 15, 4, 4
"""Bytes of the header, of a checksum, and of the end mark."""
Fault = Callable[[bytes], bytes]


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def lz4_frame(content: bytes) -> bytes:
    """An LZ4 frame whose blocks are stored as they are, with every checksum that there is."""
    said = DESCRIPTION + len(content).to_bytes(8, "little")
    parts = [_number(0x184D2204), said, bytes([xxh32(said) >> 8 & 0xFF])]
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        parts += [_number(1 << 31 | len(block)), block, _number(xxh32(block))]
    return b"".join([*parts, _number(0), _number(xxh32(content))])


def _flipped(frame: bytes, place: int) -> bytes:
    changed = bytearray(frame)
    changed[place] ^= 1
    return bytes(changed)


def _announced(frame: bytes, more: int) -> bytes:
    """The frame with another size of its content, under a right checksum of its header."""
    size = int.from_bytes(frame[6:14], "little") + more
    said = DESCRIPTION + size.to_bytes(8, "little")
    return frame[:4] + said + bytes([xxh32(said) >> 8 & 0xFF]) + frame[HEADER:]


FAULTS: tuple[tuple[str, str, str, Fault], ...] = (
    ("header-checksum", "checks", "A wrong checksum of the header",
     lambda frame: _flipped(frame, HEADER - 1)),
    ("block-checksum-wrong", "checks", "A wrong checksum of the last block",
     lambda frame: _flipped(frame, -CHECK - END - 1)),
    ("content-checksum", "checks", "A wrong checksum of the content",
     lambda frame: _flipped(frame, -1)),
    ("content-size-low", "checks", "A size of the content that is too low",
     lambda frame: _announced(frame, -1)),
    ("content-size-high", "checks", "A size of the content that is too high",
     lambda frame: _announced(frame, 1)),
    ("content-size-bit-16", "checks", "A size of the content that is too high by 65,536",
     lambda frame: _announced(frame, 1 << 16)),
    ("content-size-bit-32", "checks", "A size of the content that is too high by 2^32",
     lambda frame: _announced(frame, 1 << 32)),
    ("cut-in-checksum", "whole", "A cut in the checksum of the content", lambda frame: frame[:-2]),
    ("byte-behind", "whole", "A byte after the frame", lambda frame: frame + b"\x2a"),
)  # fmt: skip
"""Name, clause, words and the fault; each is that of a small frame in ``lz4/NAME``."""


async def _refused(ctx: CaseContext, size: int, fault: Fault) -> None:
    """The frame without its fault is opened first; of the other one nothing is stored."""
    topic = await ctx.topic()
    values = [bytes([number]) * (size // RECORDS) for number in range(RECORDS)]
    records = ingest(topic.id, ctx.batch(), values)
    compressed = replace(
        records, flags=Flag.BATCH_MODE | Flag.COMPRESSED, payload=lz4_frame(records.payload)
    )
    async with ctx.precondition("the same frame without its fault"):
        await ctx.side.ask(compressed, ack(compressed.batch_id))
    wrong = replace(compressed, batch_id=ctx.batch(), payload=fault(compressed.payload))
    ctx.side.send_faulty(wrong, "payload")
    await ctx.side.expect(ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-20"))
    await holds(ctx, topic, records.payload)


for _name, _clause, _words, _fault in FAULTS:
    for _size in SIZES:
        register(
            f"lz4/{_name}-of-{_size}", f"8.9/{_clause}",
            f"{_words} is refused where a frame holds {_size} bytes.",
            partial(_refused, size=_size, fault=_fault), dialects=SPECIFIED, weight=4,
            twin_of=f"lz4/{_name.partition('-bit-')[0].replace('-size', '-size-high', 1)}"
            if "-bit-" in _name else f"lz4/{_name}",
        )  # fmt: skip


async def _unchecked(ctx: CaseContext, size: int) -> None:
    """The checksum of the payload covers the compressed bytes, however many there are."""
    topic, peer = await ctx.topic(), await ctx.open()
    plain = ingest(topic.id, ctx.batch(), [bytes(size)])
    frame = replace(plain, flags=plain.flags | Flag.COMPRESSED, payload=lz4_frame(plain.payload))
    async with ctx.precondition("the same frame without its fault"):
        await ctx.side.ask(frame, ack(frame.batch_id))
    wrong = replace(frame, payload_crc=ctx.dialect.compute(frame.payload) ^ 1)
    peer.send_faulty(wrong, "payload_crc")
    await peer.expect(closed("11.3/payload-crc"))


for _size in (20, 5000, *SIZES):
    register(
        f"lz4/payload-crc-of-{_size}", "11.3/payload-crc",
        f"A wrong payload checksum closes the connection where a frame holds {_size} bytes.",
        partial(_unchecked, size=_size), weight=2, twin_of="pos/payload-crc-at-2",
    )  # fmt: skip

# -- copies ----------------------------------------------------------------------------------------

LONG, LAST = 15, 12
"""A length that goes on in further bytes; literals at the end of a block."""
MUCH = 4 << 20
"""Bytes to fetch at a time."""
LINKED, APART = 0x40, 0x60
"""First byte of the description: blocks that copy from those before, and that do not."""
Copies = Sequence[tuple[int, int, int]]
"""Literals, how far back a copy reaches, and how long it is."""


def _length(value: int) -> tuple[int, bytes]:
    """The four bits of a length, and the bytes in which it goes on."""
    if value < LONG:
        return value, b""
    more, rest = divmod(value - LONG, 255)
    return LONG, b"\xff" * more + bytes([rest])


def _block(copies: Copies, content: bytes, at: int) -> tuple[bytes, int]:
    """A compressed block of the content from a place on, and where it ends."""
    parts = []
    for literals, offset, count in copies:
        first, more = _length(literals)
        second, rest = _length(count - 4)
        parts += [bytes([first << 4 | second]), more, content[at : at + literals]]
        parts += [offset.to_bytes(2, "little"), rest]
        at += literals + count
    parts += [bytes([LAST << 4]), content[at : at + LAST]]
    return b"".join(parts), at + LAST


def _content(blocks: Sequence[Copies], source: bytes) -> bytes:
    """What the blocks hold: literals of the source, and what is copied."""
    out, at = bytearray(), 0
    for copies in blocks:
        for literals, offset, count in (*copies, (LAST, 0, 0)):
            out += source[at : at + literals]
            at += literals
            piece = bytes(out[-offset:]) if offset else b""
            out += (piece * (count // max(1, offset) + 1))[:count]
    return bytes(out)


async def _copied(ctx: CaseContext, flags: int, blocks: Sequence[Copies]) -> None:
    """What is copied is in the log as what it is a copy of."""
    topic = await ctx.topic()
    literals = sum(row[0] for copies in blocks for row in copies) + LAST * len(blocks)
    copied = sum(row[2] for copies in blocks for row in copies)
    head = b"\x01" + (literals + copied - 5).to_bytes(4, "little")
    content = _content(blocks, head + ctx.rng.randbytes(literals - 5))
    said, at, parts = bytes([flags, 0x70]), 0, []
    for copies in blocks:
        block, at = _block(copies, content, at)
        parts += [_number(len(block)), block]
    check = bytes([xxh32(said) >> 8 & 0xFF])
    payload = b"".join([_number(0x184D2204), said, check, *parts, _number(0)])
    plain = ingest(topic.id, ctx.batch(), [b""])
    frame = replace(plain, flags=plain.flags | Flag.COMPRESSED, payload=payload)
    await ctx.side.ask(frame, ack(frame.batch_id, "8.9/opened"))
    found = await read_all(ctx, topic, len(content), MUCH)
    ctx.check(found == content, "data", f"{len(content)} bytes come back as {len(found)} others")


for _slug, _words, _flags, _blocks in (
    ("near", "one byte back", APART, [[(20, 1, 300)]]),
    ("far", "65,535 bytes back", APART, [[(65_535, 65_535, 40)]]),
    ("half-far", "33,000 bytes back", APART, [[(40_000, 33_000, 5000), (9, 40_000, 7)]]),
    ("long", "over 100,000 bytes", APART, [[(30, 17, 100_000)]]),
    ("short", "of every small length", APART, [[(n, n - 4, 4 + n) for n in range(5, 40)]]),
    ("of-2-mb", "over 2 MB", APART, [[(30, 1, 2_000_000)]]),
    ("of-15-mb", "over 15 MB in five blocks", APART, [[(30, 1, 3_000_000)]] * 5),
    ("linked", "into the blocks before", LINKED,
     [[(60_000, 50_000, 9000)], [(9, 60_000, 3000)], [(40, 65_535, 70_000)], [(1, 1, 9)]]),
):  # fmt: skip
    register(
        f"lz4/copies-{_slug}",
        "8.9/opened",
        f"A compressed batch may have copies {_words}.",
        partial(_copied, flags=_flags, blocks=_blocks),
        dialects=SPECIFIED,
        weight=4,
    )
