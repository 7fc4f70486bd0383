"""A network between a sender and a server that breaks in every way a network can."""

import contextlib
import random
import socket
import struct
import threading
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

Fault: TypeAlias = Literal["drop", "reset", "half-close", "stall"]
FAULTS: Final[tuple[Fault, ...]] = ("drop", "reset", "half-close", "stall")
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER that turns a close into a reset."""


class Network:
    """A TCP relay whose first connections fail after some bytes; use it in a ``with`` block.

    Args:
        target: the server's port.
        fault: how connections fail.
        times: how many connections fail; later ones are whole.
        rng: decides after how many bytes, and in which direction.
        most: the largest number of bytes.

    Attributes:
        port: where it listens.
        failed: connections that failed so far.
    """

    def __init__(
        self, target: int, fault: Fault, times: int, rng: random.Random, most: int = 3000
    ) -> None:
        self._target = target
        self._fault = fault
        self._times = times
        self._rng = rng
        self._most = most
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.failed = 0

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            _end(each)
        for thread in self._threads:
            thread.join(10.0)
        for each in self._sockets:
            each.close()

    def _spawn(self, target: "object", *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]  # a method
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._sockets += [client, server]
            limits: list[int | None] = [None, None]
            if self.failed < self._times:
                self.failed += 1
                limits[self._rng.randrange(2)] = self._rng.randrange(self._most)
            self._spawn(self._relay, client, server, limits[0])
            self._spawn(self._relay, server, client, limits[1])

    def _relay(self, source: socket.socket, sink: socket.socket, limit: int | None) -> None:
        passed = 0
        try:
            while data := source.recv(4096):
                if limit is not None and passed + len(data) > limit:
                    sink.sendall(data[: limit - passed])
                    self._break(source, sink)
                    return
                sink.sendall(data)
                passed += len(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            _end(source)
            _end(sink)

    def _break(self, source: socket.socket, sink: socket.socket) -> None:
        if self._fault == "half-close":
            sink.shutdown(socket.SHUT_WR)
        elif self._fault == "reset":
            for each in (source, sink):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if self._fault in {"drop", "reset"}:
            _end(source)
            _end(sink)
        # A stall passes nothing more in this direction, and says nothing.


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
