"""Two golden nodes: one leads, the other follows and reads what the first one has."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lance_conformance.server.golden.server import serving, sessions
from lance_conformance.server.golden.specified import Specified

_SECOND: dict[int, int] = {}


def second_of(port: int) -> int:
    """The port of the follower of the leader at a port; its own where there is none."""
    return _SECOND.get(port, port)


@asynccontextmanager
async def pair(leader: Specified) -> AsyncIterator[int]:
    """Serve a leader and a follower with the same rules, for as long as the context lasts.

    Args:
        leader: The rules, golden or mutated.

    Yields:
        The port of the leader; `second_of` knows the other one.
    """
    follower = type(leader)()
    follower.memory = leader.memory
    async with serving(sessions(leader)) as port, serving(sessions(follower)) as second:
        follower.leader = f"127.0.0.1:{port}"
        _SECOND[port] = second
        try:
            yield port
        finally:
            del _SECOND[port]
