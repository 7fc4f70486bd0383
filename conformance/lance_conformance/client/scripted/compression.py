"""Opens the payloads of clients that compress: one LZ4 frame, or a bare block (AMB-20)."""

from importlib import import_module
from typing import Any

from lance_conformance.server.golden.rules.compression import DICTIONARY, MAGIC, CompressionRules
from lance_conformance.server.golden.state import Refused
from lance_conformance.wire.frame import MAX_PAYLOAD


class CompressedPayloadError(Exception):
    """A payload is not exactly one LZ4 frame."""


def opened(payload: bytes) -> bytes:
    """The records in an LZ4 frame, which ends where the payload ends.

    Raises:
        CompressedPayloadError: It is no such frame.
    """
    if payload[:4] != MAGIC:
        raise CompressedPayloadError(f"it begins with {payload[:4].hex()}")
    lz4 = _lz4("frame")
    content = opened_in_python(payload) if lz4 is None else _opened_by(lz4, payload)
    if len(content) > MAX_PAYLOAD:
        raise CompressedPayloadError(f"it holds more than {MAX_PAYLOAD} bytes")
    return content


def _lz4(module: str) -> Any:
    """The package where it is installed: the kit as one file is without it."""
    try:
        return import_module(f"lz4.{module}")
    except ImportError:
        return None


def _opened_by(lz4: Any, payload: bytes) -> bytes:
    if payload[4:5] and payload[4] & DICTIONARY:
        raise CompressedPayloadError("it needs a dictionary")
    reader = lz4.LZ4FrameDecompressor()
    try:
        content: bytes = reader.decompress(payload, max_length=MAX_PAYLOAD + 1)
    except RuntimeError as problem:
        raise CompressedPayloadError(str(problem)) from problem
    if len(content) <= MAX_PAYLOAD and not reader.eof:
        raise CompressedPayloadError("it is cut short")
    if reader.unused_data:
        raise CompressedPayloadError(f"{len(reader.unused_data)} bytes follow it")
    return content


def opened_in_python(payload: bytes) -> bytes:
    """The content of an LZ4 frame or of a bare block, by the golden server's reader.

    Raises:
        CompressedPayloadError: It is neither.
    """
    try:
        return CompressionRules().unpacked(payload)
    except Refused as problem:
        raise CompressedPayloadError(str(problem)) from problem


def opened_block(payload: bytes) -> bytes | None:
    """The records in a bare block, which servers read, too; None when it is none."""
    lz4 = _lz4("block")
    if payload[:4] == MAGIC:
        return None
    try:
        return opened_in_python(payload) if lz4 is None else _block_opened_by(lz4, payload)
    except CompressedPayloadError:
        return None


def _block_opened_by(lz4: Any, payload: bytes) -> bytes:
    try:
        return bytes(lz4.decompress(payload, uncompressed_size=MAX_PAYLOAD))
    except (lz4.LZ4BlockError, ValueError) as problem:
        raise CompressedPayloadError(str(problem)) from problem
