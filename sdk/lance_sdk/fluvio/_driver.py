"""One connection of the sync client."""

import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

from lance_sdk._api.interruptible import acquire, receive, send_all
from lance_sdk._api.other_systems import Address, connect, is_quiet
from lance_sdk.errors import ConnectionLost, DeadlineExceeded, RemoteProtocolError, TransportError
from lance_sdk.fluvio._asks import Ask
from lance_sdk.fluvio._wire import Wire, not_greeted
from lance_sdk.fluvio.types import FluvioSettings
from lance_spec.fluvio.apis import Server

T = TypeVar("T")
_READ: Final = 256 * 1024


class Driver:
    """Moves the bytes of one connection."""

    def __init__(
        self,
        server: Server,
        address: Address,
        settings: FluvioSettings,
    ) -> None:
        self._lock = threading.Lock()
        self._timeout = settings.timeout
        self._address = address
        self.peer = f"{address[0]}:{address[1]}"
        self._wire = Wire(server, settings.max_frame)
        self._connected: socket.socket | None = None

    @property
    def _socket(self) -> socket.socket:
        assert self._connected is not None, "it was opened"
        return self._connected

    def open(self, tls: ssl.SSLContext | None) -> Self:
        self._connected = connect(self._address, self._timeout, tls)
        try:
            self._wire.greeted(self._wait(self._wire.greet(), self._deadline()))
        except (TransportError, RemoteProtocolError) as error:
            self.close()
            raise not_greeted(error, self._wire.server) from error
        except BaseException:
            self.close()
            raise
        return self

    def __repr__(self) -> str:
        return f"<Driver {self.peer} {self._wire!r}>"

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout

    @property
    def usable(self) -> bool:
        """Whether the server keeps the connection; only for one without streams."""
        taken: list[bool] = []
        try:
            if not acquire(self._lock, 0.0, taken):
                return True  # someone uses it right now
            return is_quiet(self._socket)
        finally:
            if True in taken:
                self._lock.release()

    def ask(self, ask: Ask) -> Any:
        """Return what answers a request.

        Raises:
            TransportError: the connection ended.
            DeadlineExceeded: no answer came in time.
        """
        with self._lock:
            number = self._wire.request(ask)
            try:
                return self._wait(number, self._deadline())
            except (ConnectionLost, DeadlineExceeded) as error:
                error.maybe_applied = ask.changes
                raise

    def begin(self, ask: Ask) -> int:
        with self._lock:
            number = self._wire.request(ask)
            self._send(self._deadline())
            return number

    def next(self, number: int, timeout: float | None) -> Any | None:
        """Return the next response of a stream; None when none came in time."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            try:
                return self._wait(number, deadline)
            except DeadlineExceeded:
                return None

    def _wait(self, number: int, deadline: float) -> Any:
        self._send(self._deadline())
        while (response := self._wire.answer(number)) is None:
            self._wire.receive_data(self._receive(deadline))
        return response

    def _send(self, deadline: float) -> None:
        data = self._wire.data_to_send()
        if data:
            self._carried(lambda: send_all(self._socket, data, deadline))

    def _receive(self, deadline: float) -> bytes:
        data = self._carried(lambda: receive(self._socket, _READ, deadline))
        if not data:
            raise ConnectionLost(f"{self.peer} closed the connection", peer=self.peer)
        return data

    def _carried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except TimeoutError:
            raise DeadlineExceeded(f"{self.peer} did not answer in time") from None
        except OSError as error:
            raise ConnectionLost(f"{self.peer}: {error}", peer=self.peer) from error

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
