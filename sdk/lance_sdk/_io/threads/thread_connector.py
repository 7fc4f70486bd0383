"""Connecting and asking for a token, while the core's timers go on; for the thread driver."""

import socket
import time
from collections.abc import Callable

from lance_sdk._io.dialer import Dialer, DialFailed
from lance_sdk._io.nonblocking_stream import Stream
from lance_sdk._io.threads.socket_selector import SocketSelector
from lance_sdk._io.tls import Tls
from lance_sdk._io.tokens import TokenCall, TokenSource, late
from lance_sdk._protocol.events import Connect


class Abandoned(BaseException):
    """Unwinds a dial that the core does not want any more."""


class Connector:
    """Makes connections.

    Args:
        tls: how to speak TLS.
        token: returns a token for each connection.
        attend: serves the core's timers and returns its next deadline; raises `Abandoned` when
            the connection is not wanted any more.
        wake: ends the wait of a waiter.
    """

    def __init__(
        self,
        tls: Tls,
        token: TokenSource | None,
        attend: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._tls = tls
        self._token = token
        self._attend = attend
        self._wake = wake

    def __repr__(self) -> str:
        return f"<Connector tls={self._tls!r}>"

    def connect(self, action: Connect, waiter: SocketSelector) -> tuple[Stream, str | None]:
        """Return a connected stream, and a fresh token where a function gives them.

        Raises:
            DialFailed: with every address and what was wrong with it.
            Abandoned: nobody wants it any more.
        """

        def pause(sock: socket.socket, for_write: bool, until: float) -> bool:
            return self._pause(waiter, sock, for_write, until)

        stream = Dialer(action, self._tls, pause).dial()
        if self._token is None:
            return stream, None
        try:
            return stream, self._obtain(self._token, waiter, action.timeout)
        except Abandoned:
            stream.close()
            raise
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            stream.close()
            raise DialFailed([("auth", stream.address, error)]) from None

    def _pause(
        self, waiter: SocketSelector, sock: socket.socket, for_write: bool, until: float
    ) -> bool:
        waiter.watch(sock, read=not for_write, write=for_write)
        try:
            while time.monotonic() < until:
                if waiter.wait(min(self._attend(), until)):
                    return True
            return False
        finally:
            waiter.unwatch(sock)

    def _obtain(self, source: TokenSource, waiter: SocketSelector, seconds: float) -> str:
        call = TokenCall(source, self._wake)
        until = time.monotonic() + seconds
        while not call.finished and time.monotonic() < until:
            deadline = self._attend()
            if not call.finished:
                waiter.wait(min(deadline, until))
        if not call.finished:
            raise late(seconds)
        return call.token()
