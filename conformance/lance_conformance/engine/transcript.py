"""Everything that went over the connections of one case."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

KEEP_PER_CONNECTION = 2 * 1024 * 1024
"""Received bytes kept of one connection; a flood beyond it is counted only."""

KEEP_PER_WRITE = 256 * 1024
"""Sent bytes kept of one write; the kit can work out the rest again."""

Direction = Literal["sent", "received", "closed"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One write, one read, or the end of a connection.

    Attributes:
        at: Seconds since the case began.
        connection: The number of the connection within the case, from 1.
        direction: Seen from the kit.
        data: The bytes.
        note: How it was closed, or how many bytes are not kept.
        fault: The field that was wrong on purpose.
    """

    at: float
    connection: int
    direction: Direction
    data: bytes = b""
    note: str = ""
    fault: str | None = None


@dataclass(slots=True)
class Transcript:
    """The chunks of one case in order.

    Attributes:
        clock: The time in seconds since the case began.
        chunks: What happened.
        recording: Off while the kit tidies up after a case.
        elsewhere: Host and port of connections that do not go to the target's own.
    """

    clock: Callable[[], float]
    chunks: list[Chunk] = field(default_factory=list)
    recording: bool = True
    elsewhere: dict[int, tuple[str, int]] = field(default_factory=dict)
    _kept: dict[int, int] = field(default_factory=dict)

    def sent(self, connection: int, data: bytes, fault: str | None = None) -> None:
        """Record a write."""
        beyond = len(data) - KEEP_PER_WRITE
        note = f"{beyond} bytes not kept" if beyond > 0 else ""
        self._add(Chunk(self.clock(), connection, "sent", data[:KEEP_PER_WRITE], note, fault))

    def received(self, connection: int, data: bytes) -> None:
        """Record a read; of a flood only the beginning is kept."""
        room = KEEP_PER_CONNECTION - self._kept.get(connection, 0)
        self._kept[connection] = self._kept.get(connection, 0) + len(data)
        if room > 0:
            note = f"{len(data) - room} bytes not kept" if len(data) > room else ""
            self._add(Chunk(self.clock(), connection, "received", data[:room], note))

    def closed(self, connection: int, how: str) -> None:
        """Record the end of a connection."""
        self._add(Chunk(self.clock(), connection, "closed", note=how))

    def _add(self, chunk: Chunk) -> None:
        if self.recording:
            self.chunks.append(chunk)

    def of(self, connection: int) -> Iterator[Chunk]:
        """The chunks of one connection."""
        return (chunk for chunk in self.chunks if chunk.connection == connection)

    def last_connection(self) -> int | None:
        """The connection that was in use last."""
        return self.chunks[-1].connection if self.chunks else None
