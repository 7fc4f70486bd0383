"""A session on its socket."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from lance_server.answers import error_frame
from lance_server.refusals import Refusal
from lance_spec.enums import ErrorCode

if TYPE_CHECKING:
    from lance_server.server import Server

_log = logging.getLogger(__name__)
_WRITE_HIGH: Final = 1024 * 1024
_WRITE_LOW: Final = 256 * 1024

LINGER_SECONDS: Final = 2.0
"""How long a connection that was closed from this side is still read, so that the peer gets
the last frame rather than a reset."""

LINGER_BYTES: Final = 64 * 1024 * 1024
"""How much is read and thrown away in that time."""


class Connection(asyncio.BufferedProtocol):
    """One client.

    All connections receive into the server's one buffer: asyncio fills it and hands it over
    before it asks for it again, and a session copies what it keeps.
    """

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._peer = "?"
        self._reading = True
        self._peer_is_done = False
        self._partial = 0
        self._blocked_at: float | None = None
        self._blocked_size = 0
        self._linger_until: float | None = None
        self._linger_left = LINGER_BYTES
        self.session = server.new_session(self.wake)

    def __repr__(self) -> str:
        return f"<Connection {self._peer} {self.session!r}>"

    # What asyncio calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, or refuse when there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH, low=_WRITE_LOW)
        self._peer = _shown(self._transport.get_extra_info("peername"))
        if not self._server.admit(self):
            self._refuse()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the server's receive buffer."""
        del sizehint
        return self._server.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what arrived."""
        if self._linger_until is not None:
            self._throw_away(nbytes)
            return
        session = self.session
        session.receive_data(self._server.receive_buffer[:nbytes], self._server.now())
        grown = session.partial_bytes - self._partial
        if grown:
            self._partial += grown
            if not self._server.hold_partial(grown):
                session.close("the server holds too many unfinished frames")
        self._flush()

    def eof_received(self) -> bool:
        """The peer sends nothing more: it gets its answers, then the connection ends."""
        if self._linger_until is not None:
            return False
        self._peer_is_done = True
        self.session.end_of_stream(self._server.now())
        self._flush()
        return True

    def pause_writing(self) -> None:
        """The peer reads more slowly than it is answered."""
        self.session.writable = False
        self._blocked_at = self._server.now()
        self._blocked_size = self._buffered()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self.session.writable = True
        self._blocked_at = None
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; batches that were received are stored all the same."""
        self.session.close("the connection was lost")
        self._server.hold_partial(-self._partial)
        self._server.forget(self)
        _log.debug("%s ended: %s", self._peer, exc or self.session.closing)

    # What the server and the log call ----------------------------------------------------------

    def wake(self) -> None:
        """Go on with what waited."""
        if self._linger_until is None and not self._is_gone():
            self._do(self.session.advance)

    def tick(self, now: float) -> None:
        """Do what time alone brings about."""
        if self._is_gone():
            return
        if self._is_stuck(now):
            _log.warning("%s takes no answers; the connection is closed", self._peer)
            self.abort()
        elif self._linger_until is None:
            self._do(self.session.tick)
        elif now >= self._linger_until and not self._buffered():
            self.abort()

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
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    # Writing -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write what is ready, all answers of one turn in one piece."""
        session, transport = self.session, self._transport
        if transport is None:
            return
        while chunks := session.data_to_send():
            transport.write(chunks[0] if len(chunks) == 1 else b"".join(chunks))
            if session.closing is None:
                session.advance(self._server.now())
        if session.closing is not None:
            self._end(session.closing)
        else:
            self._set_reading(session.wants_data and self._server.has_memory())

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
        self._linger_until = self._server.now() + LINGER_SECONDS
        self._set_reading(wanted=True)
        transport.write_eof()

    def _throw_away(self, size: int) -> None:
        self._linger_left -= size
        if self._linger_left < 0:
            self.abort()

    def _refuse(self) -> None:
        dialect = self._server.only_dialect
        if dialect is not None and self._transport is not None:
            message = f"The server serves {self._server.config.max_connections} connections already"
            refusal = Refusal(ErrorCode.CONNECTION_LIMIT, message)
            self._transport.write(error_frame(dialect, refusal))
        self._peer_is_done = True  # no lingering: there are too many already
        self.session.close("too many connections")
        self._end("too many connections")

    # State -------------------------------------------------------------------------------------

    def _buffered(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _is_gone(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def _is_stuck(self, now: float) -> bool:
        """Whether the peer has taken nothing for as long as it may be idle."""
        if self._blocked_at is None:
            return False
        size = self._buffered()
        if size < self._blocked_size:
            self._blocked_at, self._blocked_size = now, size
        return now - self._blocked_at >= self._server.config.idle_timeout


def _shown(peer: object) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) > 1 else str(peer)
