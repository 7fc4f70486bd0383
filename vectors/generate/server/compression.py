"""Cases about compressed payloads: one LZ4 frame, the whole frame, and nothing else (AMB-20)."""

from typing import Any

from generate.codec.containers import Lz4, lz4_literals, lz4_repeated
from generate.codec.wire import record, u16, u32, u64
from generate.lwp.records.lz4_frames import HELLO, LONG, REPEATED, described, stored
from generate.server.form import Json, ack, case, duel, error, exchange, ingest, parts, sets, step

INVALID, TOO_LARGE = 0x04, 0x03
LIMIT = 16 * 1024 * 1024 + 5
COMPRESSED = 0x05
SPECIFIED = ["specified"]
BLOCK = 4 * 1024 * 1024


def copy(literals: bytes, offset: int, count: int, tail: bytes) -> bytes:
    """Return a block: up to 14 literals, one copy, and literals at the end."""
    more, last = divmod(count - 4 - 15, 255)
    token = bytes([len(literals) << 4 | 15])
    long = b"\xff" * more + bytes([last])
    return token + literals + u16(offset) + long + lz4_literals(tail)


def opened(name: str, data: bytes, content: bytes, count: int, title: str, **facts: Any) -> Json:
    """Return a compressed batch that is acknowledged, and its records stored."""
    clause = facts.pop("clause", "8.9/frame")
    head = case(f"lz4/{name}", clause, title, dialects=SPECIFIED, **facts)
    frame = ingest(parts(data), count, flags=COMPRESSED)
    return exchange(head, step([frame], [ack()]), stored=parts(content))


def only(data: bytes, content: bytes, **facts: int) -> Lz4:
    """Return a frame with one compressed block and no checksums."""
    return Lz4(blocks=((True, data),), content=content, checked=False, **facts)


ROW = record(b"z" * 300)
EMPTY = record(bytes(1_000_000))
EMPTY_BLOCK = copy(EMPTY[:6], 1, len(EMPTY) - 6 - 5, bytes(5))
PLAIN = stored(HELLO)
VALID = [
    opened("stored-block", PLAIN.encode(), HELLO, 2, "A frame whose block is stored is opened.",
           quick=True),
    opened("no-checks", stored(HELLO, checked=False).encode(), HELLO, 2,
           "A frame without any checksum of its content is opened."),
    opened("content-size", stored(HELLO, sized=True).encode(), HELLO, 2,
           "A frame that states the size of its content is opened."),
    opened("block-checksum", stored(HELLO, blocks_checked=True).encode(), HELLO, 2,
           "A frame with a checksum after its block is opened."),
    opened("literals", Lz4(blocks=((True, lz4_literals(LONG)),), content=LONG).encode(), LONG, 3,
           "A block that copies nothing is opened.",
           clause="8.9/opened"),
    opened("copies",
           Lz4(blocks=((True, lz4_repeated(record(b"abcdefgh"), 40)),), content=REPEATED).encode(),
           REPEATED, 40, "A block that is mostly one copy is opened.",
           clause="8.9/opened"),
    opened("overlapping-copy", only(copy(ROW[:6], 1, len(ROW) - 11, ROW[-5:]), ROW).encode(),
           ROW, 1, "A copy that reaches into itself repeats its bytes.",
           clause="8.9/opened"),
    opened("two-blocks",
           Lz4(blocks=((False, HELLO[:7]), (True, lz4_literals(HELLO[7:]))),
               content=HELLO).encode(),
           HELLO, 2, "A record may go from one block to the next.",
           clause="8.9/opened"),
    opened("linked-blocks",
           Lz4(blocks=((False, LONG), (True, copy(b"", len(LONG), len(LONG) - 12, LONG[-12:]))),
               content=LONG + LONG, linked=True, checked=False).encode(),
           LONG + LONG, 6, "A linked block may copy from the block before it."),
    opened("blocks-of-4-mib", stored(HELLO, largest=7).encode(), HELLO, 2,
           "A frame that allows blocks of 4 MiB is opened."),
    opened("high-ratio", only(EMPTY_BLOCK, EMPTY, largest=6).encode(), EMPTY, 1,
           "A megabyte of zeros in four kilobytes is opened."),
    opened("bare-block", lz4_literals(LONG), LONG, 3,
           "A bare block without a frame, as published clients send it, is understood.",
           clause="8.9/block"),
]  # fmt: skip


def refused(
    name: str,
    clause: str,
    wrong: bytes,
    title: str,
    *,
    right: bytes = PLAIN.encode(),
    content: bytes = HELLO,
    count: int = 2,
    codes: tuple[int, ...] = (INVALID,),
) -> Json:
    """Return a compressed batch that is refused, beside one that is not."""
    head = case(f"lz4/{name}", f"8.9/{clause}", title, dialects=SPECIFIED)
    frame = ingest(parts(right), count, flags=COMPRESSED)
    allowed = [error(*codes, cite="AMB-20")]
    return duel(head, frame, sets("payload", parts(wrong)), ack(), allowed, stored=parts(content))


def _flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


def _described(flags: int, block: int, more: bytes = b"") -> bytes:
    data = PLAIN.encode()
    return data[:4] + described(flags, block, more) + data[7:]


FRAME, BARE = PLAIN.encode(), stored(HELLO, checked=False).encode()
CHECKED = stored(HELLO, blocks_checked=True).encode()
SIZED = stored(HELLO, sized=True).encode()
SKIPPABLE = u32(0x184D2A50) + u32(0)
WHOLE = [
    refused("cut-in-header", "whole", FRAME[:6], "A frame cut in its header is refused."),
    refused("cut-in-block", "whole", BARE[: -4 - 3], "A frame cut in its block is refused.",
            right=BARE),
    refused("no-end-mark", "whole", BARE[:-4], "A frame without its end mark is refused.",
            right=BARE),
    refused("cut-in-checksum", "whole", FRAME[:-2],
            "A frame cut in the checksum of its content is refused."),
    refused("byte-behind", "whole", FRAME + b"\x2a", "A byte after the frame is refused."),
    refused("zeros-behind", "whole", FRAME + bytes(4), "Zeros after the frame are refused."),
    refused("second-frame-behind", "whole", FRAME + FRAME,
            "A second frame after the first is refused."),
    refused("skippable-frame-behind", "whole", FRAME + SKIPPABLE,
            "A frame that readers would skip is refused after the frame."),
    refused("skippable-frame-before", "whole", SKIPPABLE + FRAME,
            "A frame that readers would skip is refused before the frame."),
    refused("no-lz4", "whole", HELLO,
            "Records that are not compressed are refused in a Compressed frame."),
]  # fmt: skip
CHECKS = [
    refused("header-checksum", "checks", _flipped(FRAME, 6),
            "A wrong checksum of the frame's header is refused."),
    refused("block-checksum-wrong", "checks", _flipped(CHECKED, -9),
            "A wrong checksum of a block is refused.", right=CHECKED),
    refused("content-checksum", "checks", _flipped(FRAME, -1),
            "A wrong checksum of the content is refused."),
    refused("content-size-low", "checks", SIZED[:4] + described(0x6C, 0x40, u64(19)) + SIZED[15:],
            "A frame that holds more than it says is refused.", right=SIZED),
    refused("content-size-high", "checks", SIZED[:4] + described(0x6C, 0x40, u64(21)) + SIZED[15:],
            "A frame that holds less than it says is refused.", right=SIZED),
]  # fmt: skip
DESCRIPTION = [
    refused("version-2", "description", _described(0xA4, 0x40),
            "A frame of a version that nobody defined is refused."),
    refused("reserved-bit", "description", _described(0x66, 0x40),
            "A frame with a reserved bit in its flags is refused."),
    refused("block-size-3", "description", _described(0x64, 0x30),
            "A frame with blocks of no known size is refused."),
    refused("dictionary", "description", _described(0x65, 0x40, u32(1)),
            "A frame that asks for a dictionary is refused: there is none."),
]  # fmt: skip

ROW_FRAME = only(copy(ROW[:6], 1, len(ROW) - 11, ROW[-5:]), ROW).encode()


FROM_BEFORE = only(copy(ROW[:6], 7, len(ROW) - 11, ROW[-5:]), ROW).encode()
BOMB = record(b"") + record(bytes(LIMIT - 9))
"""Two records, as in the frame beside it, and one byte more than a payload may have."""


def _bomb() -> bytes:
    """Return a frame that holds one byte more than the limit, in blocks of up to 4 MiB."""
    blocks, at = [], 0
    while at < len(BOMB):
        piece = BOMB[at : at + BLOCK]
        whole = len(piece) == BLOCK
        packed = copy(piece[:11], 1, BLOCK - 16, piece[-5:]) if whole else piece
        blocks.append((whole, packed))
        at += len(piece)
    return Lz4(blocks=tuple(blocks), content=BOMB, checked=False, largest=7).encode()


CONTENT = [
    refused("copy-from-before", "content", FROM_BEFORE,
            "A copy from before the beginning is refused.",
            right=ROW_FRAME, content=ROW, count=1),
    refused("broken-chain", "content", stored(HELLO[:-1]).encode(),
            "A frame that holds broken records is refused."),
    refused("more-records", "content", stored(HELLO + record(b"more")).encode(),
            "A frame that holds more records than announced is refused."),
    refused("no-records", "content", Lz4(blocks=(), content=b"").encode(),
            "A frame that holds nothing is refused."),
    refused("bomb", "bounded", _bomb(),
            "A small frame that holds more than the limit is refused before it is opened whole.",
            codes=(TOO_LARGE, INVALID)) | {"weight": 2},
]  # fmt: skip

CASES = [*VALID, *WHOLE, *CHECKS, *DESCRIPTION, *CONTENT]
