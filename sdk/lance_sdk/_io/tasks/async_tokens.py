"""Tokens for the async driver: a token function may be async."""

import inspect
from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.to_thread

from lance_sdk._io.tokens import TokenSource, checked, late


async def obtain(source: TokenSource, seconds: float) -> str:
    """Return a fresh token.

    Raises:
        DeadlineExceeded: it took too long.
        Exception: whatever the function raised.
    """
    try:
        with anyio.fail_after(seconds):
            return checked(await _call(source))
    except TimeoutError:
        raise late(seconds) from None


async def _call(source: TokenSource) -> Any:
    if inspect.iscoroutinefunction(source):
        return await source()
    # It may ask a server, or a disk: not on the event loop.
    found: Any = await anyio.to_thread.run_sync(source, abandon_on_cancel=True)
    return await found if isinstance(found, Awaitable) else found
