"""Waiting for what the log does."""

import asyncio
from typing import TypeVar

from lance_server.runtime.completion import Completion

T = TypeVar("T")


async def settled(outcome: Completion[T]) -> T:
    """Wait for an outcome and return its value, or raise its error."""
    if not outcome.done:
        done = asyncio.Event()
        outcome.wake(done.set)
        await done.wait()
    return outcome.result()
