"""Servers that read a header almost right."""

from collections.abc import Callable
from itertools import pairwise

from lance_conformance.server.golden.codec import Wire, prefix, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.predicates import also_takes, register
from lance_conformance.server.mutants.registry import golden

CONTROL, KEEPALIVE, INGEST = 0x40, 0x20, 0x04
ONES = 0xFFFFFFFF

# -- magic and version -----------------------------------------------------------------------------

for name, title, magics in (
    ("overlooks-byte-0-of-the-magic", "The first byte of the magic may be anything.", b"XANC"),
    ("overlooks-byte-1-of-the-magic", "The second byte of the magic may be anything.", b"LXNC"),
    ("overlooks-byte-2-of-the-magic", "The third byte of the magic may be anything.", b"LAXC"),
    ("takes-small-letters", "The magic may be written in small letters.", b"lanc"),
    ("takes-magic-of-big-machines", "The magic may be in the other byte order.", b"CNAL"),
):
    also_takes(Specified.magic_ok, name, title, lambda _, magic, taken=magics: magic == taken)

also_takes(
    Specified.version_ok, "reads-four-bits-of-the-version",
    "Of the version only the lower half of its byte counts.",
    lambda _, version: version & 0x0F == 1,
)  # fmt: skip
also_takes(
    Specified.version_ok, "reads-seven-bits-of-the-version",
    "The highest bit of the version is not looked at.",
    lambda _, version: version & 0x7F == 1,
)  # fmt: skip
also_takes(
    Specified.version_ok, "takes-version-255-for-any", "Version 255 stands for any version.",
    lambda _, version: version == 255,
)  # fmt: skip

# -- header checksum -------------------------------------------------------------------------------


def _right(server: Specified, header: Wire) -> int:
    head = prefix(header.flags, header.magic, header.version, header.reserved)
    return server.checksum(head)


def _swapped(number: int) -> int:
    return int.from_bytes(number.to_bytes(4, "little"), "big")


def _header_crc(name: str, title: str, taken: Callable[[Specified, Wire], bool]) -> None:
    also_takes(Specified.header_crc_ok, name, title, taken)


def _overlooks(mask: int) -> Callable[[Specified, Wire], bool]:
    return lambda server, header: (_right(server, header) ^ header.header_crc) & ~mask == 0


for byte in (1, 2, 3):
    _header_crc(
        f"overlooks-byte-{byte}-of-the-header-crc",
        f"Byte {byte} of the header checksum is not compared.",
        _overlooks(0xFF << 8 * byte),
    )
_header_crc(
    "forgets-to-invert-the-header-crc",
    "A header checksum without its last inversion is served, too.",
    lambda server, header: header.header_crc == _right(server, header) ^ ONES,
)
_header_crc(
    "takes-header-crc-ones-for-none",
    "A header checksum of FFFFFFFF means that there is none.",
    lambda _, header: header.header_crc == ONES,
)
_header_crc(
    "takes-header-crc-of-big-machines",
    "The header checksum may be in the other byte order.",
    lambda server, header: _swapped(header.header_crc) == _right(server, header),
)
_header_crc(
    "takes-a-crc-of-the-whole-header",
    "The header checksum may cover bytes 0 to 39, itself taken for zeros.",
    lambda server, header: header.header_crc == server.checksum(_forty(header)),
)
_header_crc(
    "takes-the-header-crc-of-version-2",
    "The header checksum may be that of another version.",
    lambda server, header: header.header_crc == server.checksum(prefix(header.flags, version=2)),
)
_header_crc(
    "takes-a-crc-of-the-magic",
    "The header checksum may cover the magic alone.",
    lambda server, header: header.header_crc == server.checksum(header.magic),
)


def _forty(header: Wire) -> bytes:
    head = prefix(header.flags, header.magic, header.version, header.reserved)
    wide = b"".join(n.to_bytes(8, "little") for n in (header.batch_id, header.timestamp))
    narrow = (header.records, header.length, header.payload_crc)
    return head + bytes(4) + wide + b"".join(n.to_bytes(4, "little") for n in narrow)


# -- reserved bits ---------------------------------------------------------------------------------

also_takes(
    Specified.reserved_ok, "looks-at-the-second-reserved-byte-only",
    "The first reserved byte is not looked at.",
    lambda _, reserved: reserved < 0x100, only="specified",
)  # fmt: skip
also_takes(
    Specified.reserved_ok, "compares-the-reserved-bytes",
    "Reserved bytes may be anything, as long as they are equal.",
    lambda _, reserved: reserved >> 8 == reserved & 0xFF, only="specified",
)  # fmt: skip
for name, title, flag in (
    ("ignores-bit-7-of-ingest", "Flag bit 7 of an Ingest is not looked at.", INGEST),
    ("ignores-bit-7-of-control", "Flag bit 7 of a control frame is not looked at.", CONTROL),
):
    also_takes(
        Specified.bit_7_ok, name, title, lambda _, flags, flag=flag: flags & flag, only="specified"
    )
also_takes(
    Specified.bit_7_ok, "ignores-bit-7-without-a-kind",
    "A frame that has flag bit 7 and no other is passed over.",
    lambda _, flags: flags == 0x80, only="specified",
)  # fmt: skip

# -- kinds -----------------------------------------------------------------------------------------


def _takes_flags(flags: int, kind: str, dialect: str, name: str, title: str) -> None:
    def replacement(server: Specified, header: Wire, /) -> str:
        return kind if header.flags == flags else golden(server).kind(header)

    register(Specified.kind, name, title, replacement, dialect)


for number, kind in (
    (0x44, "control"),
    (0x60, "control"),
    (0x48, "control"),
    (0x50, "control"),
    (0x7C, "control"),
    (0x24, "keepalive"),
    (0x0C, "ack"),
    (0x14, "backpressure"),
    (0x18, "ack"),
    (0x42, "control"),
    (0x22, "keepalive"),
):
    _takes_flags(
        number, kind, "specified", f"takes-flags-{number:02x}-for-{kind}",
        f"Flags {number:#04x} are served as {kind}.",
    )  # fmt: skip
    _takes_flags(
        number, "ambiguous", "deployed", f"refuses-flags-{number:02x}",
        f"Flags {number:#04x} are refused, which the published server does not do.",
    )  # fmt: skip
_takes_flags(
    0x01, "ingest", "specified", "takes-flags-01-for-ingest",
    "A payload that is Compressed and nothing else is an Ingest.",
)  # fmt: skip

# -- payload checksum and length -------------------------------------------------------------------


def _payload_crc(name: str, title: str, taken: Callable[[int, int], bool]) -> None:
    """Register a server that compares the given payload checksum with the right one wrongly."""
    also_takes(
        Specified.payload_crc_ok, name, title,
        lambda server, header, payload: taken(header.payload_crc, server.checksum(payload)),
    )  # fmt: skip


_payload_crc(
    "overlooks-the-lower-half-of-payload-crcs",
    "Of the payload checksum only the upper half is compared.",
    lambda given, right: given >> 16 == right >> 16,
)
_payload_crc(
    "overlooks-the-lowest-bit-of-payload-crcs",
    "The lowest bit of the payload checksum is not compared.",
    lambda given, right: given | 1 == right | 1,
)
_payload_crc(
    "forgets-to-invert-payload-crcs",
    "A payload checksum without its last inversion is served, too.",
    lambda given, right: given == right ^ ONES,
)
_payload_crc(
    "takes-payload-crc-ones-for-none",
    "A payload checksum of FFFFFFFF means that there is none.",
    lambda given, _: given == ONES,
)
_payload_crc(
    "takes-payload-crcs-of-big-machines",
    "The payload checksum may be in the other byte order.",
    lambda given, right: _swapped(given) == right,
)


def _values(payload: bytes) -> bytes:
    ends, _ = walk(payload)
    return b"".join(payload[a + 5 : b] for a, b in pairwise(ends))


def _first(payload: bytes) -> bytes:
    ends, _ = walk(payload)
    return payload[: ends[1]] if len(ends) > 1 else payload


also_takes(
    Specified.payload_crc_ok, "takes-a-crc-of-the-values",
    "The payload checksum may leave out the headers of the records.",
    lambda server, header, payload: header.payload_crc == server.checksum(_values(payload)),
)  # fmt: skip
also_takes(
    Specified.payload_crc_ok, "takes-a-crc-of-the-first-record",
    "The payload checksum may cover the first record alone.",
    lambda server, header, payload: (
        header.payload_crc == server.checksum(_first(payload))
    ),
)  # fmt: skip
for name, title, exempt in (
    ("takes-large-lengths-for-negative", "A length of 2 GiB and more is below the limit.",
     lambda _, header: header.length >= 2**31),
    ("has-no-limit-for-control", "Control frames may be of any length.",
     lambda _, header: header.flags == CONTROL),
    ("has-no-limit-for-keepalives", "Keepalives may be of any length.",
     lambda _, header: header.flags == KEEPALIVE),
):  # fmt: skip
    also_takes(Specified.announced_ok, name, title, exempt)
