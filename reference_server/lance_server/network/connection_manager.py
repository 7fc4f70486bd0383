"""Everyone who is connected: who is let in, and who is let go when memory is short."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from lance_server.lwp.connection import Connection
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.service import Service
from lance_server.runtime.memory_quota import MemoryLevel
from lance_spec.enums import ErrorCode

_MOST_REJECTED: Final = 256
_LITTLE: Final = 64 * 1024
_BRIEFLY: Final = 1.0


class ConnectionManager:
    """The connections of a server.

    Args:
        service: what they share.
        soon: calls a function on the loop, after what is already due.

    Attributes:
        all_closed: set while nobody is served.
    """

    def __init__(self, service: Service, soon: Callable[[Callable[[], None]], object]) -> None:
        self._service = service
        self._memory = service.memory
        self._soon = soon
        # Dictionaries, not sets: they are gone through in the order of arrival.
        self._served: dict[Connection, None] = {}
        self._rejected: dict[Connection, None] = {}
        self._relieving = False
        self._was_short = False
        self.all_closed = asyncio.Event()
        self.all_closed.set()
        self._memory.on_relief = self._relieve_soon

    def __repr__(self) -> str:
        return f"<ConnectionManager of {len(self._served)}, {len(self._rejected)} turned away>"

    def __len__(self) -> int:
        return len(self._served)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._served))

    # Coming and going --------------------------------------------------------------------------

    def admit(self, connection: Connection) -> Refusal | None:
        """Take a connection in; return why it is not to be served, or None."""
        refusal = self._full()
        if refusal is None:
            self._served[connection] = None
            self.all_closed.clear()
            self._service.counters.connections_open += 1
            self._service.counters.connections_accepted += 1
            return None
        self._rejected[connection] = None
        if len(self._rejected) > _MOST_REJECTED:
            oldest = next(iter(self._rejected))
            del self._rejected[oldest]
            oldest.abort()
        return refusal

    def _full(self) -> Refusal | None:
        if self._service.stopping:
            return Refusal(
                ErrorCode.CONNECTION_LIMIT, "The server is stopping; connect again later"
            )
        if len(self._served) >= self._service.config.max_connections:
            return Refusal(
                ErrorCode.CONNECTION_LIMIT,
                f"The server serves {len(self._served)} connections and takes no more now",
            )
        if self._memory.level is MemoryLevel.CRITICAL:
            return Refusal(ErrorCode.CONNECTION_LIMIT, "The server is short of memory")
        return None

    def forget(self, connection: Connection) -> None:
        """Let a connection go."""
        self._rejected.pop(connection, None)
        if connection not in self._served:
            return  # it was turned away
        del self._served[connection]
        self._service.counters.connections_open -= 1
        if not self._served:
            self.all_closed.set()

    def drain(self) -> None:
        """Read from nobody any more; whoever has all answers is let go."""
        for connection in self:
            connection.drain()

    def abort(self) -> None:
        """Let everyone go at once."""
        for connection in [*self._served, *self._rejected]:
            connection.abort()

    # Memory ------------------------------------------------------------------------------------

    def has_memory_for(self, connection: Connection) -> bool:
        """Whether a connection may hold what it holds, after others were asked to make room."""
        if self._memory.level is MemoryLevel.CRITICAL:
            self._shed(connection.now(), _BRIEFLY, sparing=connection)
        if self._memory.level is not MemoryLevel.CRITICAL:
            return True
        self._service.counters.refused_for_memory += 1
        return False

    def _shed(self, now: float, limit: float, *, sparing: "Connection | None" = None) -> None:
        """Close who holds most and moves nothing, until memory is no longer short."""
        stalled = [
            each
            for each in self._served
            if each is not sparing and each.held > _LITTLE and each.stalled_for(now) >= limit
        ]
        for connection in sorted(stalled, key=lambda each: each.held, reverse=True):
            if not self._memory.is_short:
                break
            self._service.counters.shed += 1
            connection.shed()

    def _relieve_soon(self) -> None:
        if not self._relieving:
            self._relieving = True
            self._soon(self._relieve)

    def _relieve(self) -> None:
        self._relieving = False
        self._memory.serve_waiters()

    # Time --------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what time alone brings about."""
        for connection in [*self._served, *self._rejected]:
            connection.tick(now)
        waiting = any(connection.is_waiting for connection in self._served)
        self._service.stall.note(self._service.counters.answered, now, waiting=waiting)
        short = self._memory.is_short
        if short:
            self._shed(now, self._service.config.shed_after)
            self._relieve()
        elif self._was_short:
            for connection in self:
                connection.wake()
        self._was_short = short

    @property
    def queue_depth(self) -> int:
        """Batches that wait for the disk."""
        return sum(connection.session.unacked_batches for connection in self._served)
