"""The first twelve bytes of a header: one table lookup for each (LWP section 3).

Magic, version, flags, reserved and header CRC take so few values that all of them fit into a
table for each dialect.
"""

from enum import Enum
from functools import cache
from itertools import product
from struct import Struct
from typing import Final, NamedTuple

from lance_spec.checksum import Checksum
from lance_spec.dialect import Dialect
from lance_spec.enums import Flag
from lance_spec.limits import MAGIC, VERSION

GUARDED: Final = Struct("<4sBBH")
"""Magic, version, flags and reserved: what the header CRC covers (AMB-03)."""


class FrameKind(Enum):
    """What a frame is, decided by its flags (LWP section 4)."""

    INGEST = Flag.BATCH_MODE
    ACK = Flag.ACK
    BACKPRESSURE = Flag.BACKPRESSURE
    KEEPALIVE = Flag.KEEPALIVE
    CONTROL = Flag.CONTROL
    NONE = 0
    """No kind flag is set."""
    AMBIGUOUS = -1
    """More than one kind flag is set; only a strict dialect says so (AMB-33)."""


KINDS: Final = (
    FrameKind.CONTROL,
    FrameKind.KEEPALIVE,
    FrameKind.ACK,
    FrameKind.BACKPRESSURE,
    FrameKind.INGEST,
)
"""In the order in which the published server decides when several flags are set."""


class KnownPrefix(NamedTuple):
    """What a valid prefix says."""

    flags: int
    kind: FrameKind
    dialect: Dialect


def classify(flags: int, *, strict: bool) -> FrameKind:
    """Return what a frame with these flags is."""
    kinds = [kind for kind in KINDS if flags & kind.value]
    if not kinds:
        return FrameKind.NONE
    return kinds[0] if len(kinds) == 1 or not strict else FrameKind.AMBIGUOUS


@cache
def prefixes(checksum: Checksum) -> tuple[bytes, ...]:
    """Return the first twelve bytes of a header for each value of the flags byte."""
    guarded = [GUARDED.pack(MAGIC, VERSION, flags, 0) for flags in range(256)]
    return tuple(part + checksum(part).to_bytes(4, "little") for part in guarded)


@cache
def known_prefixes(dialects: tuple[Dialect, ...]) -> dict[bytes, KnownPrefix]:
    """Return every valid prefix of these dialects; the first of them that has it decides."""
    return {
        prefixes(dialect.checksum)[flags]: KnownPrefix(
            flags, classify(flags, strict=dialect.strict), dialect
        )
        for dialect, flags in product(reversed(dialects), range(256))
        if not (dialect.strict and flags & Flag.RESERVED)
    }


@cache
def plain_prefixes(dialect: Dialect) -> dict[bytes, KnownPrefix]:
    """Return the prefixes of frames whose kind their flags alone decide."""
    known = known_prefixes((dialect,))
    return {prefix: entry for prefix, entry in known.items() if entry.kind is not FrameKind.NONE}
