"""Containers of compressed bytes, written by hand: LZ4 and snappy frames, gzip and zstd.

Blocks are stored, or made of literals and one copy; nothing here searches for repetitions.
"""

import zlib
from dataclasses import dataclass

from generate.codec.wire import crc, le, u16, u32, u64

MASK = 0xFFFFFFFF
PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


def xxh32(data: bytes) -> int:
    """Return the 32-bit xxHash of bytes, seed 0, as LZ4 frames use it."""
    first, second, _, _, fifth = PRIMES
    if len(data) >= 16:
        lanes = [(first + second) & MASK, second, 0, -first & MASK]
        whole = len(data) // 16 * 16
        for start in range(0, whole, 16):
            lanes = [_round(lane, data[start + 4 * n :][:4]) for n, lane in enumerate(lanes)]
        turned = zip(lanes, (1, 7, 12, 18), strict=True)
        value = sum(_turned(lane, bits) for lane, bits in turned) & MASK
    else:
        whole, value = 0, fifth
    return _finished((value + len(data)) & MASK, data[whole:])


def _finished(value: int, rest: bytes) -> int:
    first, second, third, fourth, fifth = PRIMES
    while len(rest) >= 4:
        value = _turned(value + int.from_bytes(rest[:4], "little") * third, 17) * fourth & MASK
        rest = rest[4:]
    for byte in rest:
        value = _turned(value + byte * fifth, 11) * first & MASK
    value = (value ^ value >> 15) * second & MASK
    value = (value ^ value >> 13) * third & MASK
    return value ^ value >> 16


def _round(lane: int, four: bytes) -> int:
    return _turned(lane + int.from_bytes(four, "little") * PRIMES[1], 13) * PRIMES[0] & MASK


def _turned(value: int, bits: int) -> int:
    value &= MASK
    return (value << bits | value >> 32 - bits) & MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Lz4:
    """An LZ4 frame.

    Attributes:
        blocks: its blocks: whether each is compressed, and its bytes.
        content: what it holds.
        sized: whether the header states how much that is.
        checked: whether a checksum of the content follows.
        blocks_checked: whether a checksum follows each block.
        linked: whether blocks may copy from the ones before.
        largest: code of the largest block: 4 for 64 KiB to 7 for 4 MiB.
    """

    blocks: tuple[tuple[bool, bytes], ...]
    content: bytes
    sized: bool = False
    checked: bool = True
    blocks_checked: bool = False
    linked: bool = False
    largest: int = 4

    def header(self) -> bytes:
        """Return magic, flags, sizes and the header's checksum."""
        flags = 0x40 | (not self.linked) << 5 | self.blocks_checked << 4
        flags |= self.sized << 3 | self.checked << 2
        described = bytes([flags, self.largest << 4])
        described += u64(len(self.content)) if self.sized else b""
        return u32(0x184D2204) + described + bytes([xxh32(described) >> 8 & 0xFF])

    def encode(self) -> bytes:
        """Return the frame."""
        frame = self.header()
        for compressed, data in self.blocks:
            frame += u32(len(data) | (not compressed) << 31) + data
            frame += u32(xxh32(data)) if self.blocks_checked else b""
        return frame + u32(0) + (u32(xxh32(self.content)) if self.checked else b"")


def lz4_literals(data: bytes) -> bytes:
    """Return an LZ4 block that copies nothing."""
    if len(data) < 15:
        return bytes([len(data) << 4]) + data
    more, last = divmod(len(data) - 15, 255)
    return b"\xf0" + b"\xff" * more + bytes([last]) + data


def lz4_repeated(start: bytes, times: int) -> bytes:
    """Return an LZ4 block: some bytes, and the same again and again; it ends in five literals."""
    copied = len(start) * times - len(start) - 5
    more, last = divmod(copied - 4 - 15, 255)
    token = bytes([len(start) << 4 | 15])
    tail = (start * times)[-5:]
    return token + start + u16(len(start)) + b"\xff" * more + bytes([last]) + b"\x50" + tail


def snappy(*chunks: tuple[int, bytes, bytes]) -> bytes:
    """Return a snappy stream in the framing format: kind, bytes and content of each chunk."""
    stream = b"\xff\x06\x00\x00sNaPpY"
    for kind, data, content in chunks:
        value = crc("crc32c", content)
        masked = ((value >> 15 | value << 17) + 0xA282EAD8) & MASK
        stream += bytes([kind]) + le(len(data) + 4, 3) + u32(masked) + data
    return stream


def gzip(data: bytes) -> bytes:
    """Return a gzip stream with one stored block."""
    block = b"\x01" + u16(len(data)) + u16(len(data) ^ 0xFFFF) + data
    opening = bytes.fromhex("1f8b08000000000000ff")
    return opening + block + u32(zlib.crc32(data)) + u32(len(data))


def zstd(data: bytes) -> bytes:
    """Return a zstd frame with one stored block, which states its size."""
    return bytes.fromhex("28b52ffd20") + bytes([len(data)]) + le(len(data) << 3 | 1, 3) + data
