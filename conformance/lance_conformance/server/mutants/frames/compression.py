"""Servers that open compressed payloads almost right."""

from contextlib import suppress

from lance_conformance.engine.xxh32 import xxh32
from lance_conformance.server.golden.codec import Wire, begun
from lance_conformance.server.golden.rules.compression import (
    BLOCK_CHECKS,
    CHECKED,
    COMPRESSED,
    INVALID,
    LINKED,
    MAGIC,
    SIZED,
    Description,
)
from lance_conformance.server.golden.rules.lz4 import copied, expand
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused
from lance_conformance.server.mutants.predicates import also_refuses, also_takes
from lance_conformance.server.mutants.registry import golden, mutant

ONLY = "specified"
LEAST = 7
"""Bytes of the shortest header."""
SKIPPABLE = b"\x50\x2a\x4d\x18"


# -- frames that it cannot open --------------------------------------------------------------------


@mutant(Specified.opened, only=ONLY)
def takes_the_compressed_flag_for_decoration(_server: Specified, frame: Wire, /) -> bytes:
    """Compressed payloads are taken for records."""
    return frame.payload


@mutant(Specified.block_joined, only=ONLY)
def knows_no_stored_blocks(
    server: Specified, content: bytes, block: tuple[bool, bytes], said: Description, /
) -> bytes:
    """Every block is taken for a compressed one."""
    return golden(server).block_joined(content, (True, block[1]), said)


@mutant(Specified.block_joined, only=ONLY)
def knows_no_compressed_blocks(
    server: Specified, content: bytes, block: tuple[bool, bytes], said: Description, /
) -> bytes:
    """Every block is taken for a stored one."""
    return golden(server).block_joined(content, (False, block[1]), said)


@mutant(Specified.block_joined, only=ONLY)
def opens_the_first_block_only(
    server: Specified, content: bytes, block: tuple[bool, bytes], said: Description, /
) -> bytes:
    """What stands in later blocks is lost."""
    return content or golden(server).block_joined(content, block, said)


@mutant(Specified.block_joined, only=ONLY)
def forgets_the_blocks_before(
    server: Specified, content: bytes, block: tuple[bool, bytes], said: Description, /
) -> bytes:
    """Linked blocks are opened as if they were alone."""
    alone = said._replace(flags=said.flags | LINKED)
    return golden(server).block_joined(content, block, alone)


@mutant(Specified.copied, only=ONLY)
def copies_what_is_there_only(
    _server: Specified, out: bytearray, offset: int, count: int, /
) -> bytes | None:
    """A copy that reaches into itself is cut short."""
    if not 0 < offset <= len(out):
        return None
    return bytes(out[-offset:][:count]).ljust(count, b"\0")


@mutant(Specified.copied, only=ONLY)
def makes_no_copies(
    _server: Specified, _out: bytearray, _offset: int, _count: int, /
) -> bytes | None:
    """A block with a copy is broken."""
    return None


@mutant(Specified.bare, only=ONLY)
def knows_no_bare_blocks(_server: Specified, _data: bytes, /) -> bytes:
    """A payload that is not an LZ4 frame is refused."""
    raise Refused(INVALID, "that is not an LZ4 frame")


@mutant(Specified.unpacked, only=ONLY)
def suspects_high_ratios(server: Specified, data: bytes, /) -> bytes:
    """Whatever grows a hundredfold is refused."""
    content = golden(server).unpacked(data)
    if len(content) > 100 * len(data):
        raise Refused(INVALID, "too good to be true")
    return content


for name, title, refused in (
    ("wants-content-checksums", "A frame must have a checksum of its content.",
     lambda flags: not flags & CHECKED),
    ("knows-no-content-sizes", "A frame that states its size is refused.",
     lambda flags: flags & SIZED),
    ("knows-no-block-checksums", "A frame with checksums of its blocks is refused.",
     lambda flags: flags & BLOCK_CHECKS),
):  # fmt: skip
    also_refuses(
        Specified.flags_ok, name, title, lambda _, flags, refused=refused: refused(flags), only=ONLY
    )
also_refuses(
    Specified.block_size_ok, "has-room-for-1-mib-blocks", "Blocks of 4 MiB are refused.",
    lambda _, block: block > 0x60, only=ONLY,
)  # fmt: skip


# -- frames that it must not open ------------------------------------------------------------------


for name, title, place in (
    ("needs-no-end-mark", "A frame may end after a block.", "end mark"),
    ("takes-half-checksums", "A frame may end in the checksum of its content.", "checksum"),
):
    also_takes(
        Specified.cut_ok, name, title, lambda _, where, place=place: where == place, only=ONLY
    )


@mutant(Specified.unpacked, only=ONLY)
def takes_what_is_missing_for_zeros(server: Specified, data: bytes, /) -> bytes:
    """A frame that is cut short is completed with zeros, as its end mark is."""
    for missing in range(LEAST):
        with suppress(Refused):
            return golden(server).unpacked(data + bytes(missing))
    return golden(server).unpacked(data + bytes(LEAST))


for name, title, taken in (
    ("ignores-a-byte-behind-lz4", "One byte after the frame is ignored.",
     lambda tail: len(tail) == 1),
    ("ignores-zeros-behind-lz4", "Zeros after the frame are ignored.",
     lambda tail: len(tail) > 1 and not any(tail)),
    ("ignores-a-second-lz4-frame", "A second frame is ignored.", lambda tail: tail[:4] == MAGIC),
    ("skips-skippable-frames-behind", "Skippable frames are skipped after the frame.",
     lambda tail: tail[:4] == SKIPPABLE),
):  # fmt: skip
    also_takes(
        Specified.behind_ok, name, title, lambda _, tail, taken=taken: taken(tail), only=ONLY
    )


@mutant(Specified.unpacked, only=ONLY)
def skips_skippable_frames_before(server: Specified, data: bytes, /) -> bytes:
    """Skippable frames are skipped before the frame."""
    start = 8 + int.from_bytes(data[4:8], "little") if data[:4] == SKIPPABLE else 0
    return golden(server).unpacked(data[start:])


@mutant(Specified.bare, only=ONLY)
def takes_what_is_no_lz4_for_records(server: Specified, data: bytes, /) -> bytes:
    """A payload that cannot be opened is taken for records."""
    content = expand(data, b"", server.most())
    return data if content is None else content


@mutant(Specified.frame_described, only=ONLY)
def trips_over_half_headers(server: Specified, data: bytes, /) -> Description:
    """A frame that is too short for its header is called an internal error."""
    if len(data) < LEAST:
        raise Refused(0x60, "index out of range")
    return golden(server).frame_described(data)


for hook, name, title in (
    (Specified.description_ok, "skips-the-checksum-of-lz4-headers",
     "The checksum of the frame's header is not looked at."),
    (Specified.block_check_ok, "skips-the-checksum-of-lz4-blocks",
     "The checksum of a block is not looked at."),
    (Specified.content_check_ok, "skips-the-checksum-of-lz4-content",
     "The checksum of the content is not looked at."),
    (Specified.lz4_version_ok, "opens-any-version-of-lz4", "The version is not looked at."),
):  # fmt: skip
    also_takes(hook, name, title, lambda *_: True, only=ONLY)
for above, name, title in (
    (Specified.block_check_ok, "skips-the-checksum-of-lz4-blocks-beyond-64-kib",
     "The checksum of a block is not looked at where 64 KiB stand before it."),
    (Specified.content_check_ok, "skips-the-checksum-of-lz4-content-above-64-kib",
     "The checksum of more than 64 KiB of content is not looked at."),
    (Specified.content_size_ok, "takes-any-size-of-lz4-content-above-64-kib",
     "More than 64 KiB of content may be more or less than announced."),
):  # fmt: skip
    also_takes(above, name, title, lambda *said: said[-1] > 1 << 16, only=ONLY)
also_takes(
    Specified.content_size_ok, "takes-more-than-announced",
    "A frame may hold more than it says.", lambda _, said, actual: said < actual, only=ONLY,
)  # fmt: skip
also_takes(
    Specified.content_size_ok, "takes-less-than-announced",
    "A frame may hold less than it says.", lambda _, said, actual: said > actual, only=ONLY,
)  # fmt: skip
also_takes(
    Specified.flags_ok, "ignores-reserved-bits-of-lz4",
    "The reserved bit of the frame's flags is not looked at.",
    lambda server, flags: bool(flags & 0x02) and golden(server).flags_ok(flags & ~0x02), only=ONLY,
)  # fmt: skip
also_takes(
    Specified.block_size_ok, "takes-any-block-size", "Blocks may be of a size nobody defined.",
    lambda *_: True, only=ONLY,
)  # fmt: skip
also_takes(
    Specified.batch_ok, "trusts-the-count-of-compressed-records",
    "Compressed records are not counted.",
    lambda server, frame: bool(frame.flags & COMPRESSED) and server.chain_ok(frame.payload)
    and begun(frame.payload) > frame.records, only=ONLY,
)  # fmt: skip
also_takes(
    Specified.batch_ok, "stores-nothing-for-empty-frames",
    "A frame that holds nothing is acknowledged.",
    lambda _, frame: bool(frame.flags & COMPRESSED) and not frame.payload, only=ONLY,
)  # fmt: skip
also_takes(
    Specified.batch_ok, "trusts-compressed-chains",
    "Compressed records are not looked at.",
    lambda server, frame: bool(frame.flags & COMPRESSED) and not server.chain_ok(frame.payload),
    only=ONLY,
)  # fmt: skip


@mutant(Specified.frame_described, only=ONLY)
def overlooks_dictionaries(server: Specified, data: bytes, /) -> Description:
    """A dictionary is skipped and not missed."""
    if not data[4] & 0x01:
        return golden(server).frame_described(data)
    said = golden(server).frame_described(data[:4] + b"\x64" + data[5:6] + _check() + data[11:])
    return said._replace(end=said.end + 4)


def _check() -> bytes:
    return bytes([xxh32(b"\x64\x40") >> 8 & 0xFF])


@mutant(Specified.copied, only=ONLY)
def copies_zeros_from_before(
    _server: Specified, out: bytearray, offset: int, count: int, /
) -> bytes | None:
    """What stands before the beginning is taken for zeros."""
    if offset <= len(out):
        return copied(out, offset, count)
    piece = bytes(max(0, offset - len(out))) + bytes(out[-offset:])
    return (piece * (count // offset + 1))[:count]


@mutant(Specified.most, only=ONLY)
def opens_bombs(_server: Specified) -> int:
    """What a frame holds may be of any size."""
    return 2**31
