"""A network in memory: it carries bytes late and in parts, and its peers vanish or reset."""

import asyncio
from asyncio.transports import _FlowControlMixin
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.simulation.server.loop import SimLoop
from tests.simulation.world import World

_LATENCY: Final = (2e-5, 2e-3)
"""Seconds that bytes take."""
_PARTLY: Final = 0.1
"""How likely a socket takes only a part of what there is room for."""
_PIECE: Final = 1e-5
"""Seconds of processor that a piece costs that is written."""
_BYTE: Final = 1e-9
_READ: Final = 256 * 1024
_ENDED: Final = 0x2000
_BROKEN: Final = 0x18


class Pipe:
    """One direction of a connection: what was sent and not read yet.

    Args:
        world: decides how long bytes take.
        room: bytes that it holds.

    Attributes:
        data: what has arrived and was not read.
        ended: whether the end of the stream has arrived.
        broken: whether the news has arrived that the other end is gone.
        silent: whether whatever is sent is lost.
        on_news: called when something has arrived.
        on_room: called when there is room again.
    """

    def __init__(self, world: World, room: int) -> None:
        self._world = world
        self._room = room
        self._flying = 0
        self._last = 0.0
        self.data = bytearray()
        self.ended = self.broken = self.silent = False
        self.on_news: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None

    @property
    def free(self) -> int:
        """Bytes that there is room for."""
        return self._room - len(self.data) - self._flying

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Take bytes; return how many."""
        taken = min(len(data), self.free)
        if taken > 1 and self._world.random.random() < _PARTLY:
            taken = self._world.random.randint(1, taken)
            self._later(self.on_room)
        if taken > 0:
            chunk = bytes(data[:taken])
            self._flying += taken
            self._later(lambda: self._arrive(chunk))
        return taken

    def _later(self, what: Callable[[], None]) -> None:
        """Do something once it has arrived; what is sent first arrives first."""
        world = self._world
        at = max(self._last + 1e-7, world.now + world.random.uniform(*_LATENCY))
        self._last = at
        world.call_later(at - world.now, what)

    def _arrive(self, chunk: bytes) -> None:
        if self.silent or self.broken:
            return
        self._flying -= len(chunk)
        self.data += chunk
        self.on_news()

    def read(self, most: int) -> bytes:
        """Take bytes out."""
        chunk = bytes(self.data[:most])
        del self.data[:most]
        self.on_room()
        return chunk

    def end(self) -> None:
        """Send the end of the stream."""
        self._later(lambda: self._over(reset=False))

    def reset(self) -> None:
        """Send the news that this end is gone."""
        self._later(lambda: self._over(reset=True))

    def _over(self, *, reset: bool) -> None:
        if self.silent or self.broken:
            return
        self.broken |= reset
        self.ended = True
        self.on_news()


class Link:
    """A connection, as its two ends share it.

    Args:
        world: the world.
        room: bytes that each direction holds.

    Attributes:
        to_server: what the peer sends.
        to_peer: what it is sent.
        closed: whether the peer has closed it.
        vanished: whether the peer is gone without a word.
    """

    def __init__(self, world: World, room: tuple[int, int]) -> None:
        self.to_server = Pipe(world, room[0])
        self.to_peer = Pipe(world, room[1])
        self.closed = self.vanished = False

    def close(self) -> None:
        """Close it at the peer's end; what was not read makes that a reset."""
        self.closed = True
        if self.to_peer.data:
            self.to_server.reset()
        else:
            self.to_server.end()

    def reset(self) -> None:
        """Break it at the peer's end."""
        self.closed = True
        self.to_server.reset()

    def vanish(self) -> None:
        """Let the peer be gone without a word: nothing is acknowledged any more."""
        self.vanished = self.to_server.silent = self.to_peer.silent = True


class _Socket:
    """What a transport shows of its socket."""

    def __init__(self, transport: "SimTransport", port: int) -> None:
        self._transport = transport
        self._port = port

    def fileno(self) -> Any:
        """Return the transport: `Poll` takes it for the descriptor."""
        return self._transport

    def setsockopt(self, *_: object) -> None:
        """Do nothing."""

    def getsockname(self) -> tuple[str, int]:
        """Return where it listens."""
        return "server", self._port


class SimTransport(_FlowControlMixin):
    """The server's end of a connection, as asyncio's own transports behave.

    Args:
        loop: the event loop.
        link: the connection.
        protocol: who serves it.
        name: of the peer.
        port: that it connected to.

    Attributes:
        most_pieces: the most pieces that were written in one turn of the loop.
    """

    def __init__(
        self, loop: SimLoop, link: Link, protocol: asyncio.BaseProtocol, name: str, port: int
    ) -> None:
        extra = {"socket": _Socket(self, port), "peername": (name, 1)}
        super().__init__(extra, loop)
        self._sim = loop
        self._link = link
        self._protocol: Any = protocol
        self._buffer = bytearray()
        self._closing = self._lost = self._eof = self._eof_sent = self._eof_seen = False
        self._reading = True
        self._read_soon = self._write_soon = False
        self._turn = self._pieces = self.most_pieces = 0
        link.to_server.on_news = self._on_news
        link.to_peer.on_room = self._on_room
        protocol.connection_made(self)
        self._on_news()

    def peer_events(self) -> int:
        """Return what the system shows of the peer."""
        pipe = self._link.to_server
        return (_BROKEN if pipe.broken else 0) | (_ENDED if pipe.ended else 0)

    # Reading ---------------------------------------------------------------------------------

    def _on_news(self) -> None:
        if self._link.to_server.broken:
            self._on_room()  # who waits to write learns it, too
        if not self._read_soon and self._reading and not self._closing and not self._sim.dead:
            self._read_soon = True
            self._sim.call_soon_threadsafe(self._read_ready)

    def _read_ready(self) -> None:
        self._read_soon = False
        if not self._reading or self._closing:
            return
        pipe = self._link.to_server
        if pipe.broken:
            self._force_close(ConnectionResetError(104, "Connection reset by peer"))
        elif pipe.data:
            self._receive(pipe)
            self._on_news()
        elif pipe.ended and not self._eof_seen:
            self._eof_seen = True
            if not self._protocol.eof_received():
                self.close()

    def _receive(self, pipe: Pipe) -> None:
        protocol = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = protocol.get_buffer(-1)
            data = pipe.read(len(buffer))
            buffer[: len(data)] = data
            protocol.buffer_updated(len(data))
        else:
            protocol.data_received(pipe.read(_READ))

    def pause_reading(self) -> None:
        """Read nothing."""
        self._reading = False

    def resume_reading(self) -> None:
        """Read again."""
        self._reading = True
        self._eof_seen = False  # as asyncio, which looks at the socket again
        self._on_news()

    def is_reading(self) -> bool:
        """Whether it reads."""
        return self._reading and not self._closing

    # Writing ---------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        """Send bytes, now or as soon as there is room."""
        self._count(1, len(data))
        self._write(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Send pieces."""
        pieces = list(list_of_data)
        data = b"".join(pieces)
        self._count(len(pieces), len(data))
        self._write(data)

    def _count(self, pieces: int, size: int) -> None:
        """Note what is written in a turn of the loop, and what it costs."""
        self._sim.world.now += pieces * _PIECE + size * _BYTE
        if self._turn != self._sim.turn:
            self._turn, self._pieces = self._sim.turn, 0
        self._pieces += pieces
        self.most_pieces = max(self.most_pieces, self._pieces)

    def _write(self, data: Any) -> None:
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._lost or not data or self._sim.dead:
            return
        pipe = self._link.to_server
        if pipe.broken or self._link.closed:
            if not pipe.broken:
                pipe.reset()  # what is sent to a peer that has closed comes back as a reset
            else:
                self._force_close(ConnectionResetError(104, "Connection reset by peer"))
                return
        if not self._buffer:
            data = data[self._link.to_peer.send(data) :]
        self._buffer += data
        self._maybe_pause_protocol()

    def _on_room(self) -> None:
        if self._buffer and not self._write_soon and not self._sim.dead:
            self._write_soon = True
            self._sim.call_soon_threadsafe(self._write_ready)

    def _write_ready(self) -> None:
        self._write_soon = False
        if self._lost or not self._buffer:
            return
        if self._link.to_server.broken:
            self._force_close(BrokenPipeError(32, "Broken pipe"))
            return
        del self._buffer[: self._link.to_peer.send(self._buffer)]
        self._maybe_resume_protocol()
        if not self._buffer:
            if self._closing:
                self._lose(None)
            elif self._eof:
                self._send_eof()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the socket has not taken."""
        return len(self._buffer)

    def can_write_eof(self) -> bool:
        """Return True: a stream can end in one direction."""
        return True

    def write_eof(self) -> None:
        """End this direction."""
        if not self._closing and not self._eof:
            self._eof = True
            if not self._buffer:
                self._send_eof()

    def _send_eof(self) -> None:
        if not self._eof_sent and not self._sim.dead:
            self._eof_sent = True
            self._link.to_peer.end()

    # The end ---------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Have another one serve it."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return who serves it."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def close(self) -> None:
        """Close it when all is sent."""
        if not self._closing:
            self._closing = True
            if not self._buffer:
                self._sim.call_soon(self._lose, None)

    def abort(self) -> None:
        """Close it now."""
        self._force_close(None)

    def _force_close(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._buffer.clear()
        self._closing = True
        self._sim.call_soon(self._lose, error)

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self._protocol.connection_lost(error)
        if not self._sim.dead:
            self.hang_up()

    def hang_up(self) -> None:
        """Tell the peer that the socket is closed; what was not read makes that a reset."""
        if self._link.to_server.data:
            self._link.to_peer.reset()
        elif not self._eof_sent:
            self._eof_sent = True
            self._link.to_peer.end()
