"""TCP forwarders that can be cut: how one node is kept from brokers that others reach."""

import contextlib
import socket
import threading


class Forwarder:
    """Listens on a port and forwards to another one; a cut one is silent both ways.

    Args:
        target: port of 127.0.0.1 to forward to.

    Attributes:
        port: where it listens.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._open = threading.Event()
        self._open.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Forward nothing from now on; connections stay, and say nothing."""
        self._open.clear()

    def heal(self) -> None:
        """Forward again, what waited first."""
        self._open.set()

    def close(self) -> None:
        """Accept nothing more."""
        self.heal()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 10)
            server.settimeout(None)
        except OSError:
            client.close()
            return
        with client, server:
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            self._pump(client, server)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open.wait()
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
