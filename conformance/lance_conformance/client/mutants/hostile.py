"""Drivers that attack the kit: they must neither stop it, nor fill its memory, nor be praised."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.client.mutants.null import Caller, NullDriver, Request, always_well, polite


class Sleeper(NullDriver):
    """A driver that never answers."""

    async def call(self, _request: Request) -> Mapping[str, Any]:
        """Wait for ever."""
        await asyncio.Event().wait()
        raise AssertionError("for ever is over")


class ManyConnections(NullDriver):
    """A driver that opens a hundred connections, and sends half a header over each."""

    def __init__(self) -> None:
        super().__init__(polite)
        self._writers: list[asyncio.StreamWriter] = []

    async def call(self, request: Request) -> Mapping[str, Any]:
        """Connect and connect."""
        if request["op"] == "connect":
            for _ in range(100):
                _, writer = await asyncio.open_connection(request["host"], request["port"])
                writer.write(b"LANC\x01\x20\0\0")
                self._writers.append(writer)
        return await super().call(request)

    async def end(self) -> None:
        """Hang up."""
        for writer in self._writers:
            writer.close()


HUGE = b"LANC\x01\x04\0\0\x05\xd4\x38\xdc" + bytes(20) + b"\xff\xff\xff\xff" + bytes(8)
"""An Ingest header with a right CRC32C that announces 4 GiB."""

HOSTILE: Mapping[str, Callable[[], NullDriver]] = {
    "never-answers": lambda: Sleeper(polite),
    "opens-a-crowd": ManyConnections,
    "announces-4-gib": lambda: Caller(always_well, HUGE + bytes(65_536)),
    "sends-noise": lambda: Caller(polite, b"\xa5" * 1_000_000),
    "says-a-book": lambda: NullDriver(
        lambda _: {"error": {"kind": "fatal", "text": "x" * 10_000_000}}
    ),
}
"""Makers by name."""
