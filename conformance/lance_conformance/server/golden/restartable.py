"""A golden server that can be restarted: a word in place of a frame does it."""

import asyncio

from lance_conformance.engine.conditions import Target
from lance_conformance.server.golden.server import Session

WORD = b"restart, please"


class Restartable(Session):
    """One connection; one that says the word ends all of them and starts the server again."""

    def data_received(self, data: bytes) -> None:
        """Serve, unless it is the word."""
        if data != WORD:
            super().data_received(data)
            return
        for member in list(self._rules.memory.crowd):
            member.hang_up()
        self._rules.restarted()


async def restart(target: Target) -> None:
    """Restart a golden server, and wait until it has hung up."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    try:
        writer.write(WORD)
        await reader.read()
    finally:
        writer.close()
