"""Ends connections of anyio."""

from typing import Any

import anyio


async def close_at_once(stream: Any) -> None:
    """Close a connection, whether or not its peer takes what was sent.

    ``anyio.aclose_forcefully`` of older releases leaves a connection open whose peer does not read.

    Args:
        stream: of anyio, over TCP or TLS.
    """
    with anyio.CancelScope(shield=True):
        await getattr(stream, "transport_stream", stream).aclose()
