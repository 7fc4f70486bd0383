"""The numbers and hot-path structs of a slot; the formats are declared in the grammar.

Generated codecs read headers and side files. What runs once for each frame or acknowledgement
is packed here by hand, and tests hold it against the generated codec.
"""

import re
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from lance_spec.checksum import CRC32C
from lance_spec.messages.store_forward import SegmentFrame, SegmentHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_spec.checksum import Buffer

FIRST_FRAME: Final = SegmentHeader.SIZE
"""Offset of a segment's first frame."""
FRAME_HEADER_SIZE: Final = SegmentFrame.MIN_SIZE
MAX_SEGMENT_BYTES: Final = 2**31 - 1
"""Payload lengths are signed 32-bit integers, so no segment needs to be larger."""

FRAME_HEADER: Final = struct.Struct("<II")
"""crc, payload_length."""
FRAME_CRC: Final = struct.Struct("<I")
crc32c: Final = CRC32C.compute
crc32c_from: Final = cast("Callable[[Buffer, int], int]", CRC32C.compute)
"""The same, of bytes that follow others, whose checksum is the second argument."""


@lru_cache(1024)
def crc_of_length(length: int) -> int:
    """Return the checksum of a frame's length, with which that of the frame begins."""
    return crc32c(FRAME_CRC.pack(length))


DUAL_SIZE: Final = 8192
RECORD_SIZE: Final = 64
RECORD_PLACES: Final = {DUAL_SIZE: (0, 4096), 128: (0, RECORD_SIZE)}
"""Where the two records of a side file stand, by the file's size."""

LOCK: Final = ".lock"
LOCK_HOLDER: Final = ".lock.pid"
FAILED: Final = ".failed"
WATERMARK: Final = ".ack-watermark"
WATERMARK_SIZE: Final = 16
MANIFEST: Final = "sf-manifest.bin"
FSN_FLOOR: Final = ".next-fsn"
STATE: Final = ".slot-state"
CORRUPT: Final = ".corrupt"
SET_ASIDE: Final = ".unreplayable-"
"""In a folder's name: a slot that a client set aside (SF-30)."""

_GENERATION: Final = re.compile(r"sf-([0-9a-f]{16})\.sf[al](?:\.corrupt.*)?")


def segment_name(generation: int, suffix: str) -> str:
    """Return the file name of a segment."""
    return f"sf-{generation:016x}{suffix}"


def generation_of(name: str) -> int | None:
    """Return the generation in a segment's name, or None when it has none, as ``sf-initial``."""
    found = _GENERATION.fullmatch(name)
    return int(found[1], 16) if found else None
