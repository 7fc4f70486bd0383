"""A session on its socket."""

import asyncio
import math
import select
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, cast

from lance_server.config.settings import ServerConfig
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.responses import Answer
from lance_server.lwp.service import Service
from lance_server.lwp.session import Session
from lance_server.network.peer_log import peer_logger
from lance_server.network.slow_peer import SlowPeerDetector
from lance_server.network.write_buffer import WriteBuffer
from lance_server.runtime.memory_quota import MemoryLevel
from lance_server.runtime.platform import HALF_CLOSED
from lance_server.security.tls import identity_of
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import ErrorCode

_log = peer_logger(__name__)
_WRITE_HIGH: Final = 1
"""Bytes that asyncio may keep before it is to hand on no more: with 0 a TLS connection would
wait for ever, and with more uvloop would not write at once."""
_LITTLE: Final = 64 * 1024
_MANY_FRAMES: Final = 256
"""Frames in one read after which the next reads are small: what waits is to be bounded."""
_BROKEN: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL
_NORMAL: Final = MemoryLevel.NORMAL

LINGER_SECONDS: Final = 2.0
"""How long a connection that was closed from this side is still read, so that the peer gets
the last frame rather than a reset."""

TLS_LINGER_SECONDS: Final = 0.5
"""The same over TLS, where the peer cannot be told that nothing more comes."""

LINGER_BYTES: Final = 64 * 1024 * 1024
"""How much is read and thrown away in that time."""

DRAIN_TIMEOUT: Final = 2.0
"""How long a peer may take nothing of its answers when the server stops."""

TURN_AWAY_SECONDS: Final = 2.0
"""How long a connection over the limit may take to show its dialect."""


class Admission(Protocol):
    """Lets connections in, and closes some when memory is short."""

    def admit(self, connection: "Connection", /) -> Refusal | None:
        """Take a connection in; return why it is not to be served, or None."""

    def forget(self, connection: "Connection", /) -> None:
        """Let a connection go."""

    def has_memory_for(self, connection: "Connection", /) -> bool:
        """Whether a connection may hold what it holds."""


class ConnectionOwner(Protocol):
    """What a connection needs of its server."""

    @property
    def config(self) -> ServerConfig:
        """The settings."""

    @property
    def service(self) -> Service:
        """What all connections share."""

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """What a peer may speak."""

    @property
    def receive_buffer(self) -> memoryview:
        """The buffer that every connection receives into."""

    @property
    def connection_manager(self) -> Admission:
        """All that are connected."""

    @property
    def stopping(self) -> bool:
        """Whether the server is about to end."""

    def now(self) -> float:
        """Return the loop's time in seconds."""

    def call_soon(self, job: Callable[[], None], /) -> None:
        """Do something after what is already due."""

    def call_at(self, when: float, job: Callable[[], None], /) -> None:
        """Do something at a time of the loop."""


class Connection(asyncio.BufferedProtocol):
    """One client.

    Args:
        server: what it belongs to.

    All connections receive into the server's one buffer: asyncio fills it and hands it over
    before it asks for it again, and a session copies what it keeps.
    """

    def __init__(self, server: ConnectionOwner) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._peer = "?"
        self._reading = True
        self._lent = _LITTLE
        self._goes_on_soon = False
        self._is_receiving = False
        self._is_deserted = False
        self._peer_is_done = False
        self._now = server.now
        self._counters = server.service.counters
        self._memory = server.service.memory
        self._held_memory = self._memory.new_holder()
        self._write_buffer = WriteBuffer()
        self._received = 0
        self._requested = 0
        self._begun_at = server.now()
        self._is_blocked = False
        self._slow_peer = SlowPeerDetector(server.now())
        self._turn_away_until: float | None = None
        self._linger_until: float | None = None
        self._linger_left = LINGER_BYTES
        self.session = self._new_session()

    def _new_session(self) -> Session:
        server = self._server
        return Session(server.service, server.dialects, wake=self.wake, now=server.now())

    def __repr__(self) -> str:
        return f"<Connection {self._peer} {self.session!r}>"

    # What asyncio calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, or refuse when there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH, low=0)
        self._peer = _shown(self._transport.get_extra_info("peername"))
        self.session.identify(identity_of(self._transport.get_extra_info("ssl_object")))
        refusal = self._server.connection_manager.admit(self)
        if refusal is not None:
            self._turn_away(refusal)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the server's receive buffer, a small part of it to who sends many small frames."""
        del sizehint
        return self._server.receive_buffer[: self._lent]

    def buffer_updated(self, nbytes: int) -> None:
        """Take what arrived."""
        if self._linger_until is not None:
            self._throw_away(nbytes)
            return
        session = self.session
        self._received += nbytes
        before = self._requested  # answers within this read keep the account as well
        counters, buffer = self._counters, self._server.receive_buffer
        seen = counters.frames_in
        self._is_receiving = True
        session.receive_data(buffer[:nbytes], self._now())
        self._is_receiving = False
        if session.woken:
            session.advance(self._now())
        is_many = counters.frames_in - seen > _MANY_FRAMES
        self._lent = _LITTLE if is_many else len(buffer)
        if session.request_bytes > before:
            self._keep_account()
            if (
                self._held_memory.size > _LITTLE
                and not self._server.connection_manager.has_memory_for(self)
            ):
                session.close_with_error(_no_memory())
        self._flush()

    def eof_received(self) -> bool:
        """The peer sends nothing more: it gets its answers, then the connection ends."""
        if self._linger_until is not None:
            return False
        self._peer_is_done = True
        self.session.end_of_stream(self._server.now())
        self._flush()
        # TLS ends both directions at once; otherwise the peer may still read its answers.
        return self._transport is not None and self._transport.can_write_eof()

    def pause_writing(self) -> None:
        """The peer reads more slowly than it is answered."""
        self._is_blocked = True
        self.session.writable = False

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._is_blocked = False
        if not self._is_gone():
            self._hand_over()  # first: what waits may fill the socket again
        self.session.writable = not self._is_blocked
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; batches that were received are stored all the same."""
        self.session.close("the connection was lost")
        self._write_buffer.clear()
        self._held_memory.update(0)
        self._server.connection_manager.forget(self)
        _log.debug("%s ended: %s", self._peer, exc or self.session.closing)

    # What the server and the log call ----------------------------------------------------------

    def wake(self) -> None:
        """Go on with what waited; what a read brings about goes on at its end."""
        if self._is_receiving:
            self.session.woken = True
        elif self._linger_until is None and not self._goes_on_soon and not self._is_gone():
            self._do(self.session.advance)

    def _go_on(self) -> None:
        """Go on after the others had their turn."""
        self._goes_on_soon = False
        self.wake()

    def tick(self, now: float) -> None:
        """Do what time alone brings about."""
        if self._transport is None:
            return
        self._watch_progress(now)
        if not self._is_gone():
            self._look_for_end()
        if self._is_stuck(now):  # also one that is closed and waits for its peer to read
            _log.warning("%s takes no answers; the connection is closed", self._peer)
            self.abort()
        elif self._is_gone():
            return
        elif self._linger_until is not None:
            if now >= self._linger_until and not self._buffered():
                self._end_for_good()
        elif self._turn_away_until is not None and now >= self._turn_away_until:
            self._do(lambda _: self.session.close_with_rejection(SPECIFIED))
        else:
            self._do(self.session.tick)

    def _do(self, step: Callable[[float], None]) -> None:
        """Take a step of the session; a mistake ends this connection and no other."""
        try:
            step(self._server.now())
            self._flush()
        except Exception:  # noqa: BLE001 - raised on, it would end the log's flush
            _log.exception("%s: a mistake of this server; the connection is closed", self._peer)
            self.abort()

    def drain(self) -> None:
        """Stop reading; end when everything that was received is answered."""
        if self._linger_until is None and not self._is_gone():
            # Who is owed nothing has all its answers already: no need to linger.
            self._peer_is_done = self._peer_is_done or not (self.session.owed or self._buffered())
            self.session.end_of_stream(self._server.now())
            self._flush()

    def abort(self) -> None:
        """End at once, and give back what is held."""
        self._write_buffer.clear()
        self._held_memory.update(0)
        if self._transport is not None:
            self._transport.abort()

    # Writing -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write what is ready, all answers of one turn in one piece."""
        session, write_buffer = self.session, self._write_buffer
        if self._is_gone():
            return
        if write_buffer.size:
            self._send([])
        while answers := session.data_to_send():
            self._send(answers)
            if session.closing is None:
                session.go_on(self._now())
        self._keep_account()
        if session.yields and not self._goes_on_soon:
            self._goes_on_soon = True
            self._server.call_soon(self._go_on)
        if session.closing is None:
            wanted = session.wants_data and self._may_go_on()
            if wanted is not self._reading:
                self._set_reading(wanted)
        elif write_buffer:
            self._set_reading(wanted=False)
        else:
            self._end(session.closing)

    def _send(self, answers: list[Answer]) -> None:
        """Give the socket answers, and before them what it did not take yet."""
        write_buffer = self._write_buffer
        if not self._is_blocked and write_buffer.pass_on(answers):
            self._write(answers)
            return
        write_buffer.add(answers)
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the socket as much as it takes."""
        transport, write_buffer = self._transport, self._write_buffer
        while write_buffer.size and not self._is_blocked and transport is not None:
            self._write(write_buffer.next_pieces())

    def _write(self, pieces: Sequence[Answer | memoryview]) -> None:
        """Give pieces to asyncio, which writes at once what the socket takes."""
        transport = self._transport
        if transport is None:
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.writelines(pieces)
            if transport.get_write_buffer_size():
                # This looks at it, as asyncio of Python 3.12.0 and 3.13.0 forgets to do.
                transport.set_write_buffer_limits(high=_WRITE_HIGH, low=0)

    def _may_go_on(self) -> bool:
        """Whether memory allows to read on: what was begun may be finished."""
        return self._memory.level is _NORMAL or self.session.partial_bytes > 0

    def _keep_account(self) -> None:
        session = self.session
        self._requested = requested = session.request_bytes
        idle = requested + session.remembered_bytes
        answers = session.other_bytes + self._write_buffer.size + self._written()
        self._held_memory.update(idle + answers, idle)

    def _set_reading(self, wanted: bool) -> None:
        transport = self._transport
        if wanted == self._reading or transport is None or transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def _end(self, reason: str) -> None:
        """Send the end of stream, and keep reading for a moment so that it arrives."""
        transport = self._transport
        if transport is None or self._linger_until is not None or transport.is_closing():
            return
        _log.debug("%s is closed: %s", self._peer, reason)
        if self._peer_is_done:
            transport.close()
            return
        # TLS cannot end one direction: the peer gets a moment to read the last frame.
        can_end = transport.can_write_eof()
        self._linger_until = self._server.now() + (
            LINGER_SECONDS if can_end else TLS_LINGER_SECONDS
        )
        self._set_reading(wanted=True)
        if can_end:
            transport.write_eof()

    def _end_for_good(self) -> None:
        """End after the linger; over TLS with the word that this is the end."""
        transport = self._transport
        if transport is not None and not transport.can_write_eof():
            transport.close()
        else:
            self.abort()

    def _throw_away(self, size: int) -> None:
        self._linger_left -= size
        if self._linger_left < 0:
            self.abort()

    def _turn_away(self, refusal: Refusal) -> None:
        self._turn_away_until = self._server.now() + TURN_AWAY_SECONDS
        self._linger_left = _LITTLE
        self.session.reject(refusal)
        self._flush()

    # State -------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Bytes of memory that this connection costs."""
        return self._held_memory.size

    def now(self) -> float:
        """Return the loop's time in seconds."""
        return self._server.now()

    def stalled_for(self, now: float) -> float:
        """Return for how many seconds a peer whose turn it is has moved less than is fair."""
        if self._is_deserted:
            return math.inf
        return self._slow_peer.slow_for(now) if self._is_awaited() else 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether the peer waits for this server, and not the server for its peer."""
        return self.session.owed and not self._must_read()

    def _is_awaited(self) -> bool:
        """Whether it is the peer's turn: to take its answers, or to send the rest of a frame."""
        return self._must_read() or (self._reading and self.session.partial_bytes > 0)

    def _must_read(self) -> bool:
        """Whether nothing goes on until the peer takes some of its answers."""
        return self._is_blocked or (self._linger_until is not None and self._buffered() > 0)

    def describe(self) -> dict[str, Any]:
        """Return who this is and what it does, for people."""
        return {
            "peer": self._peer,
            "client": self.session.client.common_name,
            "dialect": None if self.session.dialect is None else self.session.dialect.name,
            "age_seconds": round(self._server.now() - self._begun_at, 1),
            "bytes_in": self._received,
            "bytes_out": self._write_buffer.handed_over,
            "held": self._held_memory.size,
            "unacked": self.session.unacked_batches,
            "subscriptions": self.session.subscribed_topics,
        }

    def shed(self) -> None:
        """End at once, because others need the memory."""
        _log.warning("%s moves nothing and memory is short; it is closed: %r", self._peer, self)
        self.session.close("memory is short")
        self.abort()

    def _written(self) -> int:
        """Bytes that asyncio keeps because the socket did not take them."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _buffered(self) -> int:
        return self._write_buffer.size + self._written()

    def _is_gone(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def _watch_progress(self, now: float) -> None:
        if self._is_awaited():
            moved = self._received + self._write_buffer.handed_over - self._written()
            self._slow_peer.note(moved, now)
        else:
            self._slow_peer.restart(now)

    def _look_for_end(self) -> None:
        """See the end of a peer that is not read from: asyncio looks only while it reads."""
        transport = self._transport
        if self._reading or transport is None:
            return
        ends = select.poll()
        ends.register(transport.get_extra_info("socket").fileno(), HALF_CLOSED)
        for _, seen in ends.poll(0):
            if seen & _BROKEN:
                self.abort()
            self._is_deserted = True

    def _is_stuck(self, now: float) -> bool:
        """Whether the peer has taken nothing of what it is owed for too long."""
        limit = self._server.config.slow_peer_timeout
        if self._server.stopping:
            limit = min(limit, DRAIN_TIMEOUT)
        return self._must_read() and self._slow_peer.idle_for(now) >= limit


def _no_memory() -> Refusal:
    return Refusal(
        ErrorCode.BACKPRESSURE,
        "The server is short of memory and cannot take the rest of this; connect again later",
        text="Rate limit exceeded: the server is short of memory",
    )


def _shown(peer: object) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) > 1 else str(peer)
