"""The container of compressed payloads: one LZ4 frame (LWP section 3.3, AMB-20).

A frame is a head, the size of its content where the head says so, one byte that guards these, then
blocks, each after its length; a length of 0 ends them, and a checksum of the content follows
where the head says so. LWP allows exactly one frame, without a dictionary, that ends where the
payload does.
"""

from enum import IntFlag
from typing import Any, Final

from construct import Const, Construct, Int8ul, Int32ul, Int64ul

from lance_spec.grammar._vocab import Declaration, field, message

MAGIC: Final = b"\x04\x22\x4d\x18"
"""What an LZ4 frame begins with."""
NOT_COMPRESSED: Final = 0x8000_0000
"""The bit in the length of a block that is stored as it is."""


class Lz4Flag(IntFlag):
    """What the head of an LZ4 frame says of what follows."""

    DICTIONARY = 0x01
    """A dictionary is needed; LWP has none, so such a frame is refused (AMB-20)."""
    RESERVED = 0x02
    """Must be 0."""
    CONTENT_CHECKSUM = 0x04
    """A checksum of the content follows the blocks."""
    CONTENT_SIZE = 0x08
    """The size of the content follows the head."""
    BLOCK_CHECKSUM = 0x10
    """A checksum follows each block."""
    INDEPENDENT = 0x20
    """No block refers to the one before."""
    VERSION_1 = 0x40
    """Must be 1: with the bit above it, the version."""
    VERSION_2 = 0x80
    """Must be 0."""


_IDS: Final = ("AMB-20",)


def _field(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    return field(name, parser, doc=doc, section="LZ4 frame format", ambiguities=_IDS, **facts)


def _message(name: str, *fields: Construct, doc: str) -> Declaration:
    return message(name, *fields, doc=doc, section="LZ4 frame format", ambiguities=_IDS)


LZ4_HEAD = _message(
    "Lz4Head",
    _field("magic", Const(MAGIC), "What every LZ4 frame begins with"),
    _field("flg", Int8ul, "What follows", flags=Lz4Flag),
    _field(
        "bd",
        Int8ul,
        "Most bytes of a block: 0x40 is 64 KiB, 0x50 256 KiB, 0x60 1 MiB, 0x70 4 MiB",
        minimum=0x40,
        maximum=0x70,
    ),
    doc="Opens an LZ4 frame",
)
LZ4_CONTENT_SIZE = _message(
    "Lz4ContentSize",
    _field("content_size", Int64ul, "Size of what is compressed", unit="bytes"),
    doc="Follows the head where flag CONTENT_SIZE is set",
)
LZ4_HEAD_CHECKSUM = _message(
    "Lz4HeadChecksum",
    _field(
        "head_checksum",
        Int8ul,
        "Second byte of the xxHash-32 of what stands between the magic and here",
    ),
    doc="Guards the head",
)
LZ4_BLOCK_LENGTH = _message(
    "Lz4BlockLength",
    _field(
        "block_length",
        Int32ul,
        "Length of the block that follows, its highest bit: not compressed; 0 ends the blocks",
        unit="bytes",
    ),
    doc="Opens a block",
)
LZ4_CHECKSUM = _message(
    "Lz4Checksum",
    _field("checksum", Int32ul, "The xxHash-32 of a block as it stands, or of the whole content"),
    doc="Follows a block, or the end of all, where the flags say so",
)

MESSAGES: Final = (
    LZ4_HEAD,
    LZ4_CONTENT_SIZE,
    LZ4_HEAD_CHECKSUM,
    LZ4_BLOCK_LENGTH,
    LZ4_CHECKSUM,
)
"""The parts of a frame, in its order."""
