"""Whether and how a batch's payload is compressed (AMB-20)."""

from importlib import import_module
from typing import Literal, TypeAlias

from lance_spec.dialect import Dialect

Compression: TypeAlias = Literal["none", "lz4", "auto"]
"""As in `lance_sdk.config.ProducerConfig`."""


def compress(payload: bytes, compression: Compression, dialect: Dialect) -> bytes | None:
    """Return the payload as exactly one LZ4 frame without a dictionary, or None to send it as is.

    ``auto`` compresses where the server understands it and where that makes the payload smaller;
    ``lz4`` compresses whatever fits the frame afterwards. Whether ``lz4`` may be used at all was
    settled when the connection was made.
    """
    if compression == "none" or not dialect.lz4:
        return None
    # Loaded at the first use: it costs a millisecond, and most producers need none of it.
    packed: bytes = import_module("lz4.frame").compress(payload)
    smaller = len(packed) < len(payload)
    fits = smaller if compression == "auto" else len(packed) <= dialect.max_payload
    return packed if fits else None
