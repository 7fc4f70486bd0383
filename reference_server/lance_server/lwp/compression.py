"""Opening compressed payloads without letting them grow beyond bounds (AMB-20)."""

from typing import Final

import lz4.block
import lz4.frame

from lance_server.lwp.refusals import Refusal
from lance_spec.checksum import Buffer
from lance_spec.enums import ErrorCode

_FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_DICTIONARY_FLAG: Final = 0x01


def decompress(payload: Buffer, limit: int) -> bytes:
    """Return the records of a compressed payload.

    The LZ4 frame format is expected, exactly one frame without a dictionary; a bare block, as
    published clients send, is understood as well.

    Args:
        payload: the frame's payload.
        limit: most bytes that it may hold.

    Raises:
        Refusal: it is not LZ4, does not end where the payload does, or holds more than ``limit``.
    """
    raw = bytes(payload)
    if raw[:4] == _FRAME_MAGIC:
        return _decompress_frame(raw, limit)
    return _decompress_block(raw, limit)


def _decompress_frame(raw: bytes, limit: int) -> bytes:
    if len(raw) > 4 and raw[4] & _DICTIONARY_FLAG:
        raise _refused("it asks for a dictionary, which LWP does not have")
    opener = lz4.frame.LZ4FrameDecompressor()
    try:
        records: bytes = opener.decompress(raw, max_length=limit + 1)
    except RuntimeError as error:
        raise _refused(str(error)) from None
    if len(records) > limit:
        raise _too_large(limit)
    if not opener.eof:
        raise _refused("the LZ4 frame is cut short")
    if opener.unused_data:
        raise _refused(f"{len(opener.unused_data)} bytes follow the LZ4 frame")
    return records


def _decompress_block(raw: bytes, limit: int) -> bytes:
    try:
        # One byte more than allowed tells a block that is too large from one that just fits.
        records: bytes = lz4.block.decompress(raw, uncompressed_size=limit + 1)
    except lz4.block.LZ4BlockError:
        raise _refused(
            f"it is neither an LZ4 frame nor an LZ4 block of at most {limit} bytes"
        ) from None
    if len(records) > limit:
        raise _too_large(limit)
    return records


def _refused(reason: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_PAYLOAD, f"The compressed payload cannot be read: {reason}")


def _too_large(limit: int) -> Refusal:
    return Refusal(
        ErrorCode.PAYLOAD_TOO_LARGE, f"The payload decompresses to more than {limit} bytes"
    )
