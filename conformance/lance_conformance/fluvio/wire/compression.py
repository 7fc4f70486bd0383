"""How the records of a batch are compressed: the lowest three bits of its attributes (FLV-01)."""

import gzip
import zlib
from collections.abc import Callable
from enum import IntEnum
from importlib import import_module
from typing import Any

from lance_conformance.fluvio.wire.primitives import UnreadableError

MOST = 64 * 1024 * 1024
"""Bytes that a batch may have when it is opened; no case sends nearly as many."""


class Compression(IntEnum):
    """The kinds there are."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def close(kind: Compression, data: bytes) -> bytes:
    """Compress."""
    if kind is Compression.GZIP:
        return gzip.compress(data, 6, mtime=0)
    if kind is Compression.LZ4:
        return bytes(_lz4().compress(data))
    if kind in _CRAMJAM:
        return bytes(_cramjam(kind).compress(data))
    return data


def open_(kind: int, data: bytes) -> bytes:
    """Decompress.

    Raises:
        UnreadableError: These are not bytes of that kind, or they grow too large.
        ModuleNotFoundError: The package for this kind is missing.
    """
    try:
        return _OPENERS[Compression(kind)](data)
    except (UnreadableError, ModuleNotFoundError):  # a missing package is not the target's fault
        raise
    except Exception as error:
        raise UnreadableError("field:records", f"not compressed with {kind}: {error}") from error


_CRAMJAM = {Compression.SNAPPY: "snappy", Compression.ZSTD: "zstd"}


def _lz4() -> Any:
    return import_module("lz4.frame")  # likewise


def _cramjam(kind: Compression) -> Any:
    import cramjam  # noqa: PLC0415 - LWP cases must run without it

    return getattr(cramjam, _CRAMJAM[kind])


def _open_gzip(data: bytes) -> bytes:
    opener = zlib.decompressobj(wbits=31)
    return _whole(opener.decompress(data, MOST), ended=opener.eof)


def _open_lz4(data: bytes) -> bytes:
    opener = _lz4().LZ4FrameDecompressor()
    return _whole(opener.decompress(data, max_length=MOST), ended=opener.eof)


def _open_cramjam(kind: Compression, data: bytes) -> bytes:
    found = bytearray(min(MOST, 64 * 1024 + 64 * len(data)))
    size: int = _cramjam(kind).decompress_into(data, found)
    return bytes(memoryview(found)[:size])


def _whole(data: bytes, *, ended: bool) -> bytes:
    if not ended:
        raise UnreadableError("field:records", "compressed records are cut short or too large")
    return data


_OPENERS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.NONE: lambda data: data,
    Compression.GZIP: _open_gzip,
    Compression.SNAPPY: lambda data: _open_cramjam(Compression.SNAPPY, data),
    Compression.LZ4: _open_lz4,
    Compression.ZSTD: lambda data: _open_cramjam(Compression.ZSTD, data),
}
