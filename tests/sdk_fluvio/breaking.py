"""Connections that break when a test wants it."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards connections to a server.

    Attributes:
        target: the server.
        sc: where the cluster's SC listens.
        swallow: set, to have the next answer lost, and its connection with it.
        deaf: set, to have all answers lost.
    """

    def __init__(self) -> None:
        self.target = ("127.0.0.1", 0)
        self.sc = ""
        self.swallow = threading.Event()
        self.deaf = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __repr__(self) -> str:
        return f"<Proxy {self.address}: {len(self._open)} sockets>"

    @property
    def address(self) -> tuple[str, int]:
        """Where clients connect."""
        host, port = self._listening.getsockname()
        return host, port

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self.cut()
        for each in self._threads:
            each.join(10)
        for each in (*self._open, self._listening):
            each.close()

    def cut(self) -> None:
        """Break every connection."""
        self._end(*self._open)

    def _start(self, work: "object", *arguments: socket.socket) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                with contextlib.suppress(ConnectionRefusedError):
                    server = socket.create_connection(self.target)
                    self._open.append(server)
                    self._start(self._forward, client, server)
                    self._start(self._answer, server, client)
                    continue
                client.shutdown(socket.SHUT_RDWR)

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        self._end(source, sink)

    def _answer(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.swallow.is_set():
                    self.swallow.clear()
                    break
                if not self.deaf.is_set():
                    sink.sendall(data)
        self._end(source, sink)

    def _end(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
