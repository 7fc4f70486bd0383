"""One TCP connection, from its first byte to its last.

Control answers carry no correlation id: they match requests by order alone (LWP section 5.1).
So the queue of requests is the truth about the stream: a caller who gives up leaves his
request in it as a tombstone, which swallows the answer when it comes.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lance_sdk._api.arguments.redaction import Redaction
from lance_sdk._protocol.keepalive import Keepalive, OnPong
from lance_sdk.errors import (
    ChecksumMismatch,
    ConnectionLost,
    FrameError,
    LanceError,
    RemoteProtocolError,
    ServerError,
    server_error,
)
from lance_spec.bodies import ErrorBody, decode_error
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, Flag
from lance_spec.errors import DecodeError
from lance_spec.frames import (
    FaultKind,
    Frame,
    FrameFault,
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_control,
    encode_header,
    encode_keepalive,
)

_CRC_FAULTS = {FaultKind.BAD_HEADER_CRC, FaultKind.BAD_PAYLOAD_CRC}


class FrameHandler(Protocol):
    """Who cares for frames that answer no control request."""

    def acked(self, batch_id: int, now: float) -> None:
        """Take an Ack (LWP section 4.2)."""
        ...

    def slow_down(self, now: float) -> None:
        """Take a Backpressure frame (LWP section 4.4)."""
        ...

    def refused(self, error: ServerError, now: float) -> None:
        """Take an ErrorResponse that answers no control request (AMB-10)."""
        ...


@dataclass(slots=True, eq=False)
class Request:
    """A control request and what to do with its answer.

    Attributes:
        command: its code.
        payload: its bytes.
        expects: codes of the answers that fit.
        on_answer: called with the answer's code, its payload (copy what you keep) and now.
        on_error: called with an ErrorResponse as an exception, and now.
        ack: the batch id of the Ack frame that is the answer, where one is (AMB-22).
        deadline: when the connection gives up waiting; set by the connection.
        abandoned: a tombstone: nobody wants the answer any more.
    """

    command: Command
    payload: bytes
    expects: frozenset[Command]
    on_answer: Callable[[int, memoryview, float], None]
    on_error: Callable[[ServerError, float], None]
    ack: int | None = None
    deadline: float = math.inf
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Deadlines of a connection, in seconds, as in `lance_sdk.config.ClientConfig`."""

    request_timeout: float
    keepalive_interval: float
    idle_timeout: float


class Connection:
    """Frames in and out of one TCP connection.

    Args:
        dialects: what the peer may speak.
        speaking: what this side speaks until the peer has proved something else.
        handler: gets the frames that answer no control request.
        limits: its deadlines.
        now: when the connection was made.

    Attributes:
        redaction: hides the connection's token in what the server says.
        on_push: takes header topic, payload and time of a FetchResponse that nobody asked for,
            while there is a subscription (AMB-21); None while there is none.
        fault: why the connection is of no use any more; set once.
        keepalive: its keepalives.
        sent_bytes: bytes handed to the driver.
        received_bytes: bytes taken from it.
        ignored: frames that mean nothing to a client and were dropped.
    """

    def __init__(
        self,
        dialects: tuple[Dialect, ...],
        speaking: Dialect,
        handler: FrameHandler,
        limits: ConnectionLimits,
        now: float,
    ) -> None:
        self._splitter = FrameSplitter(dialects, max_payload=_largest_answer(dialects))
        self._speaking = speaking
        self._handler = handler
        self._request_timeout = limits.request_timeout
        self.redaction = Redaction()
        self._requests: deque[Request] = deque()
        self._output: list[Buffer] = []
        self.keepalive = Keepalive(limits.keepalive_interval, limits.idle_timeout, now)
        self.on_push: Callable[[int, memoryview, float], None] | None = None
        self.fault: LanceError | None = None
        self.sent_bytes = 0
        self.received_bytes = 0
        self.ignored = 0

    def __repr__(self) -> str:
        return (
            f"<Connection {self.dialect} requests={len(self._requests)} "
            f"sent={self.sent_bytes} received={self.received_bytes} fault={self.fault!r}>"
        )

    @property
    def dialect(self) -> Dialect:
        """What this side speaks: what the peer proved, or else the assumption."""
        return self._splitter.dialect or self._speaking

    @property
    def proven(self) -> bool:
        """Whether a frame with a valid header CRC has arrived."""
        return self._splitter.proven

    def is_ack(self, data: bytes, batch_id: int) -> bool:
        """Whether bytes that come now are the Ack of a batch, and nothing else."""
        between = self.proven and not self._splitter.pending and not self._requests
        return between and data == encode_ack(self.dialect, batch_id)

    def ask(self, request: Request, now: float) -> None:
        """Send a control request; its answer goes to the request's callbacks.

        Args:
            request: what to ask.
            now: the time from which on its answer is waited for, in seconds.
        """
        request.deadline = now + self._request_timeout
        self._requests.append(request)
        self._output.append(encode_control(self.dialect, request.command, request.payload))

    def ping(self, now: float, on_pong: OnPong | None = None) -> None:
        """Send a Keepalive; its answer is a barrier: all earlier frames were read (AMB-10)."""
        self.keepalive.start(now, on_pong)
        self._output.append(encode_keepalive(self.dialect))

    def ingest(
        self,
        batch_id: int,
        timestamp_ns: int,
        record_count: int,
        topic_id: int,
        payload: bytes,
        *,
        flags: Flag = Flag.BATCH_MODE,
    ) -> None:
        """Send an Ingest frame (LWP section 4.1)."""
        header = encode_header(
            self.dialect,
            flags,
            batch_id=batch_id,
            timestamp_ns=timestamp_ns,
            record_count=record_count,
            topic_id=topic_id,
            payload=payload,
        )
        self._output += (header, payload)

    def data_to_send(self, now: float) -> list[Buffer]:
        """Take the bytes that are ready to leave."""
        output = self._output
        if output:
            self._output = []
            self.sent_bytes += sum(map(len, output))
            self.keepalive.last_sent = now
        return output

    def room(self) -> memoryview:
        """Return memory to receive what comes next into, where a frame has begun; else nothing."""
        return self._splitter.room()

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the peer; whatever is wrong with them ends up in `fault`."""
        self.received_bytes += len(data)
        self.keepalive.last_received = now
        try:
            for frame in self._splitter.receive_data(data):
                if self.fault is None:
                    self._dispatch(frame, now)
        except (RemoteProtocolError, DecodeError) as error:
            self._fail(self.as_protocol_error(error))
        if self._splitter.fault is not None:
            self._fail(self._as_frame_error(self._splitter.fault))
        if self.keepalive.owed:
            self._answer_keepalive(now)

    def _fail(self, error: LanceError) -> None:
        if self.fault is None:
            self.fault = error

    def _dispatch(self, frame: Frame, now: float) -> None:
        if frame.kind is FrameKind.ACK:
            self._ack(frame, now)
        elif frame.kind is FrameKind.CONTROL:
            self._control(frame, now)
        elif frame.kind is FrameKind.KEEPALIVE:
            self.keepalive.arrived(now)
        elif frame.kind is FrameKind.BACKPRESSURE:
            self._handler.slow_down(now)
        else:
            raise RemoteProtocolError(
                f"the server sent a frame with flags {frame.flags:#04x}, which no client takes"
            )

    def _ack(self, frame: Frame, now: float) -> None:
        if self._requests and self._requests[0].ack == frame.batch_id:
            request = self._requests.popleft()
            if not request.abandoned:
                request.on_answer(frame.batch_id, frame.payload, now)
        else:
            self._handler.acked(frame.batch_id, now)

    def _control(self, frame: Frame, now: float) -> None:
        if frame.batch_id == Command.ERROR_RESPONSE:
            self._error(decode_error(frame.payload), now)
            return
        if frame.batch_id == Command.FETCH_RESPONSE and self.on_push and not self._fetching:
            self.on_push(frame.topic_id, frame.payload, now)
            return
        if not self._requests:
            raise RemoteProtocolError(
                f"the server sent command {frame.command!r}, which answers no request"
            )
        request = self._requests.popleft()
        if frame.batch_id not in request.expects:
            raise RemoteProtocolError(
                f"the server answered {request.command.name} with command {frame.command!r}"
            )
        if not request.abandoned:
            request.on_answer(frame.batch_id, frame.payload, now)

    @property
    def _fetching(self) -> bool:
        """Whether a FetchResponse would be an answer."""
        return bool(self._requests) and Command.FETCH_RESPONSE in self._requests[0].expects

    def _error(self, body: ErrorBody, now: float) -> None:
        hidden = self.redaction
        error = server_error(body.code, hidden.text(body.message), hidden.details(body.details))
        pushed = self.on_push is not None and "topic_id" in body.details
        if pushed or "batch_id" in body.details or not self._requests:
            self._handler.refused(error, now)
            return
        request = self._requests.popleft()
        if not request.abandoned:
            request.on_error(error, now)

    def as_protocol_error(self, error: RemoteProtocolError | DecodeError) -> RemoteProtocolError:
        """Return what is wrong with the server's answer as an error, without the token."""
        words = self.redaction.text(str(error))
        if not isinstance(error, RemoteProtocolError):
            return RemoteProtocolError(f"the server's answer cannot be read: {words}")
        return error if words == str(error) else RemoteProtocolError(words)

    def _as_frame_error(self, fault: FrameFault) -> FrameError:
        kind = ChecksumMismatch if fault.kind in _CRC_FAULTS else FrameError
        return kind(fault.field, fault.offset, fault.expected, self.redaction.text(fault.got))

    def _answer_keepalive(self, now: float) -> None:
        if self.keepalive.answer_due(now):
            self._output.append(encode_keepalive(self.dialect))

    def next_deadline(self) -> float:
        """Return when `handle_timeout` may have something to do."""
        due = self.keepalive.next_deadline()
        return min(due, self._requests[0].deadline) if self._requests else due

    def handle_timeout(self, now: float) -> None:
        """Send a Keepalive that is due; give up on a peer that does not answer."""
        if now < self.next_deadline():
            return
        self._answer_keepalive(now)
        if self.keepalive.dead(now):
            silence = now - self.keepalive.last_received
            self._fail(ConnectionLost(f"the server has been silent for {silence:.1f} s"))
        elif self._requests and now >= self._requests[0].deadline:
            # Whatever comes later could no longer be told apart from this answer.
            name = self._requests[0].command.name
            self._fail(ConnectionLost(f"no answer to {name} in {self._request_timeout:.1f} s"))
        elif self.keepalive.start_due(now):
            self.ping(now)


def _largest_answer(dialects: tuple[Dialect, ...]) -> int:
    """Return the bytes of a FetchResponse with the most data it may have (AMB-32)."""
    return max(dialect.fetch_header + dialect.max_fetch_data for dialect in dialects)
