"""Connecting without blocking anything but name resolution."""

import errno
import os
import socket
import time
from collections.abc import Callable
from typing import TypeAlias

from lance_sdk._io.nonblocking_stream import Stream
from lance_sdk._io.resolve import SocketAddress, resolve, show
from lance_sdk._io.tls import Tls, tls_settings
from lance_sdk._protocol.events import Connect
from lance_sdk.errors import ConfigError, DeadlineExceeded

Pause: TypeAlias = Callable[[socket.socket, bool, float], bool]
"""Wait until a socket is writable (or readable, when the flag is False) or a deadline passes;
return whether it is ready."""

_IN_PROGRESS = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY}


class DialFailed(Exception):  # noqa: N818 - an internal signal, caught by the driver
    """No address of a host could be reached.

    Attributes:
        tries: (phase, address, cause) of each.
    """

    def __init__(self, tries: list[tuple[str, str | None, Exception]]) -> None:
        self.tries = tries
        super().__init__(tries)


class Dialer:
    """Dials one endpoint: each of its addresses in turn, until one answers.

    Args:
        action: what to dial.
        tls: how to speak TLS, when the action asks for it.
        pause: how to wait for a socket.
    """

    def __init__(self, action: Connect, tls: Tls, pause: Pause) -> None:
        self._action = action
        self._tls = tls_settings(tls)
        self._pause = pause
        self._tries: list[tuple[str, str | None, Exception]] = []

    def dial(self) -> Stream:
        """Return a connected stream.

        Raises:
            DialFailed: with every address and what was wrong with it.
        """
        try:
            addresses = resolve(self._action.host, self._action.port)
        except OSError as error:
            raise DialFailed([("dns", None, error)]) from None
        except UnicodeError as error:
            raise DialFailed([("dns", None, OSError(f"not a host name: {error}"))]) from None
        for address in addresses:
            if (stream := self._try(address)) is not None:
                return stream
        raise DialFailed(self._tries)

    def _try(self, address: SocketAddress) -> Stream | None:
        try:
            sock = socket.socket(address[0], socket.SOCK_STREAM)
        except OSError as error:  # too many open files; or no IPv6 here, where a host has both
            self._tries.append(("tcp", show(address), error))
            return None
        phase = "tcp"
        try:
            self._connect(sock, address)
            if not self._action.tls:
                return Stream(sock, show(address))
            phase = "tls"
            return self._secure(sock, show(address))
        except (OSError, DeadlineExceeded, ConfigError) as error:
            self._tries.append((phase, show(address), error))
            sock.close()
            return None
        except BaseException:
            sock.close()
            raise

    def _connect(self, sock: socket.socket, address: SocketAddress) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = sock.connect_ex(address[1])
        if code in _IN_PROGRESS:
            deadline = time.monotonic() + self._action.timeout
            if not self._pause(sock, True, deadline):
                raise self._late()
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def _secure(self, sock: socket.socket, address: str) -> Stream:
        from lance_sdk._io.tls_stream import TlsStream  # noqa: PLC0415 - it loads `ssl`

        host = self._tls.server_name or self._action.host
        stream = TlsStream(sock, self._tls.load(), host, address)
        deadline = time.monotonic() + self._action.timeout

        def wait(sock: socket.socket, writable: bool) -> None:
            if not self._pause(sock, writable, deadline):
                raise self._late()

        try:
            stream.shake_hands(wait)
        except BaseException:
            stream.close()
            raise
        return stream

    def _late(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"no answer in {self._action.timeout:.1f} s (connect_timeout)")
