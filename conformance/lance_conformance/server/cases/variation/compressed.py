"""Compressed batches of several blocks: each check of an LZ4 frame holds at any size (AMB-20)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lance_conformance.engine.xxh32 import xxh32
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import holds, register
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
            twin_of=f"lz4/{_name}",
        )  # fmt: skip
