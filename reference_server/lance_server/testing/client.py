"""A client that sends exactly what it is told and shows every frame that comes back."""

import socket
import ssl
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from lance_server.testing.requests import Requests
from lance_spec.bodies import ErrorBody, decode_error, decode_json
from lance_spec.checksum import Buffer
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.messages.lwp import (
    AuthenticateResponse,
    CatchingUp,
    CreateTopic,
    Fetch,
    FetchResponse,
)
from lance_spec.records import encode_records

_DEADLINE: Final = 40.0
_LARGEST_ANSWER: Final = 64 * 1024 * 1024


class RawClient(Requests):
    """One blocking connection.

    Args:
        address: host and port.
        dialect: what to speak.
        tls: speaks TLS first, to a server called ``localhost``; None means a plain connection.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(
        self,
        address: tuple[str, int],
        dialect: Dialect = SPECIFIED,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.dialect = dialect
        self.socket = socket.create_connection(address, timeout=_DEADLINE)
        if tls is not None:
            plain = self.socket
            try:
                self.socket = tls.wrap_socket(plain, server_hostname="localhost")
            except OSError:
                plain.close()
                raise
        self._splitter = FrameSplitter((dialect,), max_payload=_LARGEST_ANSWER)
        self._frames: deque[Frame] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, *parts: Buffer) -> None:
        """Send bytes as they are, in one piece."""
        self.socket.sendall(b"".join(parts))

    def receive(self) -> Frame:
        """Return the next frame.

        Raises:
            ConnectionError: the server closed the connection, or sent what is not a frame.
            TimeoutError: nothing came.
        """
        while not self._frames:
            data = self.socket.recv(1024 * 1024)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._frames.extend(self._splitter.receive_data(data))
            if self._splitter.fault is not None and not self._frames:
                raise ConnectionError(f"the server sent no frame: {self._splitter.fault}")
        return self._frames.popleft()

    def wait_for_close(self) -> list[Frame]:
        """Return the frames that still come before the server closes the connection."""
        frames: list[Frame] = []
        try:
            while True:
                frames.append(self.receive())
        except ConnectionError:
            return frames

    # Requests ----------------------------------------------------------------------------------

    def batch(
        self,
        values: Sequence[bytes],
        *,
        batch_id: int,
        topic_id: int = 0,
        timestamp_ns: int = 1,
        record_count: int | None = None,
        flags: int = Flag.BATCH_MODE,
    ) -> bytes:
        """Return an Ingest frame with raw-data records."""
        count = len(values) if record_count is None else record_count
        return self.ingest(
            encode_records(values),
            batch_id=batch_id,
            topic_id=topic_id,
            timestamp_ns=timestamp_ns,
            record_count=count,
            flags=flags,
        )

    def ingest(
        self,
        payload: bytes,
        *,
        batch_id: int,
        topic_id: int = 0,
        timestamp_ns: int = 1,
        record_count: int = 1,
        flags: int = Flag.BATCH_MODE,
    ) -> bytes:
        """Return an Ingest frame with any payload."""
        return self.raw_ingest(
            payload,
            batch_id,
            count=record_count,
            topic_id=topic_id,
            timestamp_ns=timestamp_ns,
            flags=flags,
        )

    # Dialogues ---------------------------------------------------------------------------------

    def ask(self, command: int, payload: Buffer = b"") -> Frame:
        """Send a command and return its answer; advice to slow down is passed over."""
        self.send(self.control(command, payload))
        return self._answer()

    def _answer(self) -> Frame:
        frame = self.receive()
        while frame.kind is FrameKind.BACKPRESSURE:
            frame = self.receive()
        return frame

    def ask_json(self, command: int, payload: Buffer = b"") -> dict[str, object]:
        """Send a command and return the JSON object it is answered with."""
        return decode_json(self.ask(command, payload).payload, "answer")

    def error(self, frame: Frame | None = None) -> ErrorBody:
        """Return what an ErrorResponse says, by default the next frame."""
        answer = self.receive() if frame is None else frame
        if answer.kind is not FrameKind.CONTROL or answer.command != Command.ERROR_RESPONSE:
            raise AssertionError(f"expected an ErrorResponse, got {answer}")
        return decode_error(answer.payload)

    def acked(self) -> int:
        """Return the batch id of the next answer, which must be an Ack."""
        frame = self._answer()
        if frame.kind is not FrameKind.ACK:
            raise AssertionError(f"expected an Ack, got {frame}: {bytes(frame.payload)!r}")
        return frame.batch_id

    def authenticate(self, token: bytes) -> tuple[bool, str]:
        """Send a token and return whether it is valid, and what the server says."""
        answer = AuthenticateResponse.decode(self.ask(Command.AUTHENTICATE, token).payload)
        return bool(answer.ok), bytes(answer.message).decode()

    def create_topic(self, name: str) -> int:
        """Create a topic and return its id."""
        body = self.ask_json(Command.CREATE_TOPIC, CreateTopic(name.encode()).encode())
        return int(str(body["id"]))

    def store(self, values: Sequence[bytes], *, batch_id: int, topic_id: int = 0) -> None:
        """Store one batch and wait for its Ack."""
        self.send(self.batch(values, batch_id=batch_id, topic_id=topic_id))
        got = self.acked()
        if got != batch_id:
            raise AssertionError(f"expected the Ack of {batch_id}, got that of {got}")

    def fetch(
        self, offset: int, max_bytes: int = 1024 * 1024, *, topic_id: int = 0
    ) -> FetchResponse:
        """Fetch and return the data."""
        frame = self.ask(Command.FETCH, Fetch(topic_id, offset, max_bytes).encode())
        if frame.command != Command.FETCH_RESPONSE:
            raise AssertionError(f"expected a FetchResponse, got {frame}: {bytes(frame.payload)!r}")
        return FetchResponse.decode(frame.payload)

    def catching_up(self, offset: int, *, topic_id: int = 0) -> int:
        """Fetch after the end and return the end that the answer tells."""
        frame = self.ask(Command.FETCH, Fetch(topic_id, offset, 1024).encode())
        return CatchingUp.decode(frame.payload).current_max_offset

    def read_all(self, *, topic_id: int = 0, start: int = 0) -> bytes:
        """Fetch from an offset to the end and return all data."""
        parts: list[bytes] = []
        while True:
            answer = self.fetch(start, topic_id=topic_id)
            if answer.next_offset == start:
                return b"".join(parts)
            parts.append(bytes(answer.data))
            start = answer.next_offset
