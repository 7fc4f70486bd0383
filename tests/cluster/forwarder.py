"""TCP forwarders that can be cut, one way or both: how one machine is kept from another."""

import contextlib
import socket
import threading
from collections.abc import Collection
from typing import Final

TO: Final = "to"
"""What goes to the target."""
FROM: Final = "from"
"""What comes from the target."""
BOTH: Final = (TO, FROM)


class Forwarder:
    """Listens on a port and forwards to another one; what is cut is silent.

    Args:
        target: port of 127.0.0.1 to forward to.

    Attributes:
        port: where it listens.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._open = {way: threading.Event() for way in BOTH}
        self.heal()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, ways: Collection[str] = BOTH) -> None:
        """Forward nothing that way from now on; connections stay, and say nothing."""
        for way in ways:
            self._open[way].clear()

    def heal(self) -> None:
        """Forward again, what waited first."""
        for event in self._open.values():
            event.set()

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
        self._open[TO].wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 10)
            server.settimeout(None)
        except OSError:
            client.close()
            return
        with client, server:
            back = threading.Thread(target=self._copy, args=(server, client, FROM), daemon=True)
            back.start()
            self._copy(client, server, TO)
            back.join()

    def _copy(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._open[way].wait()
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
