"""The golden rules of compressed payloads: one LZ4 frame, or one bare block (AMB-20)."""

from collections.abc import Iterator
from typing import NamedTuple

from lance_conformance.engine.xxh32 import xxh32
from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.rules.framing import LIMIT, Framing
from lance_conformance.server.golden.rules.lz4 import copied, expand
from lance_conformance.server.golden.state import Refused

COMPRESSED = 0x01
MAGIC = b"\x04\x22\x4d\x18"
INVALID, TOO_LARGE = 0x04, 0x03
LINKED, BLOCK_CHECKS, SIZED, CHECKED, RESERVED, DICTIONARY = 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
"""Bits of the first byte of a frame's description; blocks are linked where the first is 0."""


class Description(NamedTuple):
    """What the header of an LZ4 frame says.

    Attributes:
        flags: Its first byte.
        block: Its second byte, the size of blocks.
        size: The size of the content, where it is given.
        said: The bytes that its checksum covers.
        check: Its checksum.
        end: Where the first block begins.
    """

    flags: int
    block: int
    size: int | None
    said: bytes
    check: int
    end: int


class CompressionRules(Framing):
    """Rules about compressed payloads. Every public method is a hook."""

    def opened(self, frame: Wire, /) -> bytes:
        """The records of a batch."""
        return self.unpacked(frame.payload) if frame.flags & COMPRESSED else frame.payload

    def unpacked(self, data: bytes, /) -> bytes:
        """What a compressed payload holds."""
        if data[:4] != MAGIC:
            return self.bare(data)
        said = self.frame_described(data)
        content, at = b"", said.end
        for piece, behind in self._blocks(data, said):
            content, at = self.block_joined(content, piece, said), behind
            self._demand(len(content) <= self.most(), "the content is too large", TOO_LARGE)
        self._judge_end(data[at:], said, content)
        return content

    def bare(self, data: bytes, /) -> bytes:
        """A bare block is understood as well."""
        content = expand(data, b"", self.most() + 1, self.copied)
        self._demand(content is not None, "it is neither an LZ4 frame nor an LZ4 block")
        assert content is not None
        self._demand(len(content) <= self.most(), "the content is too large", TOO_LARGE)
        return content

    def most(self) -> int:
        """The content has the limit of payloads."""
        return LIMIT

    def frame_described(self, data: bytes, /) -> Description:
        """The description of a frame, when it is one that can be read."""
        self._demand(len(data) > 6, "the LZ4 frame is cut short")
        flags, block = data[4], data[5]
        self._demand(self.flags_ok(flags), "the LZ4 frame is of a version or kind nobody knows")
        self._demand(self.block_size_ok(block), "the LZ4 frame has blocks of no known size")
        end = 14 if flags & SIZED else 6
        self._demand(len(data) > end, "the LZ4 frame is cut short")
        size = int.from_bytes(data[6:14], "little") if flags & SIZED else None
        said = Description(flags, block, size, data[4:end], data[end], end + 1)
        self._demand(self.description_ok(said), "the checksum of the LZ4 header is wrong")
        return said

    def copied(self, out: bytearray, offset: int, count: int, /) -> bytes | None:
        """Copies reach back to what is there."""
        return copied(out, offset, count)

    def cut_ok(self, _place: str, /) -> bool:
        """Neither the end mark nor the checksum of a frame may be missing."""
        return False

    def flags_ok(self, flags: int, /) -> bool:
        """Version 1, no reserved bit, no dictionary."""
        return self.lz4_version_ok(flags) and not flags & (RESERVED | DICTIONARY)

    def lz4_version_ok(self, flags: int, /) -> bool:
        """Only version 1 of the frame format is read."""
        return flags >> 6 == 1

    def block_size_ok(self, block: int, /) -> bool:
        """Blocks are of 64 KiB to 4 MiB, and nothing else is said."""
        return block in (0x40, 0x50, 0x60, 0x70)

    def description_ok(self, said: Description, /) -> bool:
        """The checksum of the description fits."""
        return said.check == xxh32(said.said) >> 8 & 0xFF

    def _blocks(self, data: bytes, said: Description) -> Iterator[tuple[tuple[bool, bytes], int]]:
        """Each block, whether it is compressed, and where the next thing begins."""
        at = said.end
        while True:
            self._demand(len(data) >= at + 4 or self.cut_ok("end mark"), "it has no end mark")
            word = int.from_bytes(data[at : at + 4], "little")
            at += 4
            if word == 0:
                return
            size = word & 0x7FFFFFFF
            checks = 4 if said.flags & BLOCK_CHECKS else 0
            self._demand(len(data) >= at + size + checks, "a block of it is cut short")
            piece = data[at : at + size]
            given = int.from_bytes(data[at + size : at + size + checks], "little")
            fits = not checks or self.block_check_ok(given, xxh32(piece), at)
            self._demand(fits, "the checksum of a block is wrong")
            at += size + checks
            yield (word < 0x80000000, piece), at

    def block_check_ok(self, given: int, right: int, _at: int, /) -> bool:
        """The checksum of a block fits."""
        return given == right

    def block_joined(
        self, content: bytes, block: tuple[bool, bytes], said: Description, /
    ) -> bytes:
        """The content so far and one block more; linked blocks copy from what came before."""
        compressed, data = block
        if not compressed:
            return content + data
        before = b"" if said.flags & LINKED else content
        found = expand(data, before, self.most() + 1, self.copied)
        self._demand(found is not None, "a block of it is broken")
        assert found is not None
        return content + found

    def _judge_end(self, rest: bytes, said: Description, content: bytes) -> None:
        """What stands behind the last block: the end mark, a checksum, and nothing else."""
        checks = 4 if said.flags & CHECKED else 0
        tail = rest[4:]
        whole = len(tail) >= checks
        self._demand(whole or self.cut_ok("checksum"), "it is cut short")
        given = int.from_bytes(tail[:checks], "little")
        fits = not (checks and whole) or self.content_check_ok(given, xxh32(content), len(content))
        self._demand(fits, "the checksum of its content is wrong")
        fits = said.size is None or self.content_size_ok(said.size, len(content))
        self._demand(fits, "it holds another number of bytes than it says")
        self._demand(self.behind_ok(tail[checks:]), "bytes follow it")

    def content_check_ok(self, given: int, right: int, _size: int, /) -> bool:
        """The checksum of the content fits."""
        return given == right

    def content_size_ok(self, said: int, actual: int, /) -> bool:
        """The content is as large as announced."""
        return said == actual

    def behind_ok(self, tail: bytes, /) -> bool:
        """Nothing follows the frame."""
        return not tail

    def _demand(self, holds: bool, words: str, code: int = INVALID) -> None:
        if not holds:
            raise Refused(code, f"the compressed payload cannot be read: {words}")
