"""One connection of a fake server."""

import socket
import threading
from typing import TYPE_CHECKING

from lance_spec.bodies import ErrorBody
from lance_spec.enums import Command, Flag
from lance_spec.frames import (
    FrameSplitter,
    encode_ack,
    encode_backpressure,
    encode_control,
    encode_header,
    encode_keepalive,
)

if TYPE_CHECKING:
    from lance_sdk.testing.server import FakeServer


class FakePeer:
    """One accepted connection, as hooks see it.

    Attributes:
        number: counts the connections, from 1.
    """

    def __init__(self, server: "FakeServer", sock: socket.socket, number: int) -> None:
        self._server = server
        self._sock = sock
        self._lock = threading.Lock()
        self.number = number

    def __repr__(self) -> str:
        return f"<FakePeer {self.number}>"

    def send(self, data: bytes) -> None:
        """Send bytes; whether the client is still there does not matter."""
        with self._lock:
            try:
                self._sock.sendall(data)
            except OSError:
                self.close()

    def ack(self, batch_id: int) -> None:
        """Acknowledge a batch."""
        self.send(encode_ack(self._server.dialect, batch_id))

    def keepalive(self) -> None:
        """Send a Keepalive."""
        self.send(encode_keepalive(self._server.dialect))

    def backpressure(self) -> None:
        """Ask for less."""
        self.send(encode_backpressure(self._server.dialect))

    def control(self, command: Command, payload: bytes) -> None:
        """Send a Control frame."""
        self.send(encode_control(self._server.dialect, command, payload))

    def push(self, topic_id: int, payload: bytes) -> None:
        """Send a FetchResponse that nobody asked for (AMB-21)."""
        code = Command.FETCH_RESPONSE
        header = encode_header(
            self._server.dialect, Flag.CONTROL, batch_id=code, topic_id=topic_id, payload=payload
        )
        self.send(header + payload)

    def error(self, code: int, message: str, **details: object) -> None:
        """Send an ErrorResponse in the dialect's form."""
        body = ErrorBody(code, message, details).encode(self._server.dialect)
        self.control(Command.ERROR_RESPONSE, body)

    def _secure(self) -> None:
        if self._server.tls is not None:
            self._sock = self._server.tls.wrap_socket(self._sock, server_side=True)

    def close(self) -> None:
        """End the connection; the client sees it at once."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it was gone already

    def serve(self) -> None:
        """Read frames until the stream ends or breaks a rule."""
        splitter = FrameSplitter((self._server.dialect,))
        try:
            self._secure()
            while splitter.fault is None and (data := self._sock.recv(65536)):
                for frame in splitter.receive_data(data):
                    self._server.handle(self, frame)
        except OSError:
            return
        finally:
            self._server.subscriptions.forget(self)
            self.close()
            self._sock.close()
