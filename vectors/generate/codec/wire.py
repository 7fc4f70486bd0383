"""The wire, written down a second time."""

from dataclasses import dataclass, replace
from typing import Self

POLYNOMIALS = {"crc32c": 0x82F63B78, "ieee": 0xEDB88320}
"""Both polynomials, with their bits reversed, as a bitwise computation needs them."""

OTHER = {"crc32c": "ieee", "ieee": "crc32c"}

HEADER = (
    ("magic", 4),
    ("version", 1),
    ("flags", 1),
    ("reserved", 2),
    ("header_crc", 4),
    ("batch_id", 8),
    ("timestamp_ns", 8),
    ("record_count", 4),
    ("payload_length", 4),
    ("payload_crc", 4),
    ("topic_id", 4),
)
"""The header's fields and their sizes in bytes (LWP section 3.2)."""

KNOWN_PREFIXES = {
    ("crc32c", 0x20): "0b8ba2a3",
    ("crc32c", 0x04): "05d438dc",
    ("crc32c", 0x08): "da4eb77a",
    ("crc32c", 0x10): "950d4432",
    ("crc32c", 0x40): "c6f08385",
    ("crc32c", 0x05): "7b467979",
    ("ieee", 0x20): "061e9c53",
    ("ieee", 0x04): "3af0d86c",
    ("ieee", 0x08): "5e09c265",
    ("ieee", 0x10): "96fbf777",
    ("ieee", 0x40): "26d54b1b",
    ("ieee", 0x05): "0d9a1a6d",
}
"""Header CRCs by polynomial and flags, as they stand on the wire; checked by hand."""

KNOWN_FRAMES = {
    "keepalive": "4c414e43 01200000 061e9c53" + 32 * "00",
    "ack of batch 1": "4c414e43 01080000 5e09c265 0100000000000000" + 24 * "00",
    "LWP Appendix A.2 at time 0": (
        "4c414e43 01040000 3af0d86c 0100000000000000 0000000000000000 01000000 04000000"
        " 0c7e7fd8 00000000 74657374"
    ),
    "ListTopics": "4c414e43 01400000 26d54b1b 0300000000000000" + 24 * "00",
    "Fetch of topic 1 from 0, 65536 bytes": (
        "4c414e43 01400000 26d54b1b 1000000000000000 0000000000000000 00000000 10000000"
        " 85ebc85b 00000000 01000000 0000000000000000 00000100"
    ),
}
"""Whole frames with the IEEE checksum, as programs in the field send them."""


def crc(algorithm: str, data: bytes) -> int:
    """Return a checksum, computed bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (POLYNOMIALS[algorithm] if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def le(value: int, size: int) -> bytes:
    """Return an unsigned number as little-endian bytes."""
    return value.to_bytes(size, "little")


def u16(value: int) -> bytes:
    """Return two little-endian bytes."""
    return le(value, 2)


def u32(value: int) -> bytes:
    """Return four little-endian bytes."""
    return le(value, 4)


def u64(value: int) -> bytes:
    """Return eight little-endian bytes."""
    return le(value, 8)


def record(value: bytes, record_type: int = 1) -> bytes:
    """Return a TLV record (LWP section 8.1)."""
    return bytes([record_type]) + u32(len(value)) + value


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A frame; lengths and checksums that are None are computed."""

    algorithm: str
    magic: bytes = b"LANC"
    version: int = 1
    flags: int = 0
    reserved: int = 0
    header_crc: int | None = None
    batch_id: int = 0
    timestamp_ns: int = 0
    record_count: int = 0
    payload_length: int | None = None
    payload_crc: int | None = None
    topic_id: int = 0
    payload: bytes = b""

    def but(self, **changes: int | bytes) -> Self:
        """Return the frame with some fields changed and those that depend on them computed."""
        return replace(self, **changes)  # type: ignore[arg-type]  # the names are this class's own

    def values(self) -> dict[str, int | bytes]:
        """Return every header field, computed where it was None."""
        guarded = self.magic + le(self.version, 1) + le(self.flags, 1) + u16(self.reserved)
        payload_crc = crc(self.algorithm, self.payload) if self.payload else 0
        computed = {
            "header_crc": crc(self.algorithm, guarded),
            "payload_length": len(self.payload),
            "payload_crc": payload_crc,
        }
        given = {name: getattr(self, name) for name, _ in HEADER}
        return {n: computed[n] if value is None else value for n, value in given.items()}

    def encode(self) -> bytes:
        """Return the bytes of header and payload."""
        values = self.values()
        encoded = b""
        for name, size in HEADER:
            value = values[name]
            encoded += value if isinstance(value, bytes) else le(value, size)
        return encoded + self.payload


def check_known() -> None:
    """Hold this codec against the constants that were checked by hand.

    Raises:
        AssertionError: naming the constant that it does not reproduce.
    """
    for (algorithm, flags), known in KNOWN_PREFIXES.items():
        made = Frame(algorithm=algorithm, flags=flags).encode()[8:12].hex()
        assert made == known, f"{algorithm} {flags:#x}: {made} is not {known}"
    fetch = u32(1) + u64(0) + u32(65536)
    frames = {
        "keepalive": Frame(algorithm="ieee", flags=0x20),
        "ack of batch 1": Frame(algorithm="ieee", flags=0x08, batch_id=1),
        "LWP Appendix A.2 at time 0": Frame(
            algorithm="ieee", flags=0x04, batch_id=1, record_count=1, payload=b"test"
        ),
        "ListTopics": Frame(algorithm="ieee", flags=0x40, batch_id=3),
        "Fetch of topic 1 from 0, 65536 bytes": Frame(
            algorithm="ieee", flags=0x40, batch_id=0x10, payload=fetch
        ),
    }
    for name, frame in frames.items():
        assert frame.encode() == bytes.fromhex(KNOWN_FRAMES[name]), name
