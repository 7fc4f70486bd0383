"""A LANCE server on a real socket that misbehaves to order.

Left alone it is a small, correct, forgetful server: topics and records live in memory. Each
hook may take a frame over: it returns True when the frame needs no more care.
"""

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from struct import pack
from types import TracebackType
from typing import Self

import lz4.frame

from lance_sdk.testing._log import FakeTopics
from lance_sdk.testing._subscriptions import FakeSubscriptions, Subscriber
from lance_spec.bodies import ErrorBody, encode_json
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.frames import (
    Frame,
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_backpressure,
    encode_control,
    encode_header,
    encode_keepalive,
)
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import (
    BatchTimes,
    BatchTimesResponse,
    CatchingUp,
    CommitAck,
    CommitOffset,
    Fetch,
    FetchResponse,
    OffsetForTime,
    OffsetForTimeResponse,
    Subscribe,
    SubscribeAck,
    Unsubscribe,
)

_WAIT = 10.0
"""Seconds after which a test that waits for the server has failed."""
_CONSUMERS = {
    Command.SUBSCRIBE,
    Command.UNSUBSCRIBE,
    Command.COMMIT_OFFSET,
    Command.OFFSET_FOR_TIME,
    Command.BATCH_TIMES,
}
"""Commands about one consumer."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """An Ingest frame as it arrived.

    Attributes:
        connection: number of the connection, from 1.
        batch_id: as in the header.
        timestamp_ns: as in the header.
        topic_id: as in the header.
        record_count: as in the header.
        payload: the payload as it was sent.
        records: the record bytes, decompressed where they were compressed.
    """

    connection: int
    batch_id: int
    timestamp_ns: int
    topic_id: int
    record_count: int
    payload: bytes
    records: bytes


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


Hook = Callable[[FakePeer, Frame], bool]


class FakeServer:
    """A server to script; use it in a ``with`` block.

    Args:
        dialect: what it speaks, and understands.
        topics: names of topics that exist, numbered from 1.
        port: TCP port on 127.0.0.1; 0 picks a free one.
        tls: context with a certificate, to speak TLS.

    Attributes:
        topics: topics and their records.
        subscriptions: who is subscribed, and what consumers have committed.
        ingested: every Ingest frame, in order of arrival.
        frames: kinds and commands of all frames, in order of arrival.
        accepted: number of connections taken so far.
        on_accept: called with each new connection; returning True ends it.
        on_ingest: may take an Ingest frame over.
        on_control: may take a Control frame over.
        on_keepalive: may take a Keepalive over.
    """

    def __init__(
        self,
        dialect: Dialect = SPECIFIED,
        *,
        topics: tuple[str, ...] = ("orders",),
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.dialect = dialect
        self.tls = tls
        self.topics = FakeTopics(topics)
        self.subscriptions = FakeSubscriptions(self.topics)
        self.ingested: list[Ingested] = []
        self.frames: list[str] = []
        self.accepted = 0
        self.on_accept: Callable[[FakePeer], bool] | None = None
        self.on_ingest: Hook | None = None
        self.on_control: Hook | None = None
        self.on_keepalive: Hook | None = None
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._port: int = self._listener.getsockname()[1]
        self._peers: list[FakePeer] = []
        self._threads: list[threading.Thread] = []
        self._stopping = False

    def __repr__(self) -> str:
        return f"<FakeServer 127.0.0.1:{self.port} {self.dialect} accepted={self.accepted}>"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The TCP port it listens on."""
        return self._port

    def url(self, topic: str = "orders", **query: object) -> str:
        """Return a URL of one of its topics."""
        suffix = "&".join(f"{name}={value}" for name, value in query.items())
        return f"lance://127.0.0.1:{self.port}/{topic}{'?' if suffix else ''}{suffix}"

    def stop(self) -> None:
        """Close everything and wait for the threads."""
        self._stopping = True
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        except OSError:
            self.drop_all()  # a second stop
        self._listener.close()
        self.drop_all()
        for thread in self._threads:
            thread.join(_WAIT)

    def drop_all(self) -> None:
        """End every connection."""
        for peer in list(self._peers):  # one that comes meanwhile stays
            peer.close()

    def wait_for(self, condition: Callable[[], bool], what: str = "the condition") -> None:
        """Wait until something is true of the server.

        Raises:
            AssertionError: when it does not come true in time.
        """
        with self._changed:
            if not self._changed.wait_for(condition, _WAIT):
                raise AssertionError(f"{what} did not come true; frames: {self.frames[-20:]}")

    def records(self, topic_id: int = 1) -> list[bytes]:
        """Return the values of the records stored in a topic."""
        return self.topics.records(topic_id)

    def _spawn(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True, name=f"fake-server-{self.port}")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self.accepted += 1
                peer = FakePeer(self, sock, self.accepted)
                self._peers.append(peer)
                self._changed.notify_all()
            if self.on_accept is not None and self.on_accept(peer):
                peer.close()
            self._spawn(peer.serve)

    def handle(self, peer: FakePeer, frame: Frame) -> None:
        """Take one frame from a client."""
        self._note(peer, frame)
        if frame.kind is FrameKind.INGEST:
            self._handle(peer, frame, self.on_ingest, self._ingest)
        elif frame.kind is FrameKind.KEEPALIVE:
            self._handle(peer, frame, self.on_keepalive, self._keepalive)
        elif frame.kind is FrameKind.CONTROL:
            self._handle(peer, frame, self.on_control, self._control)

    def _note(self, peer: FakePeer, frame: Frame) -> None:
        with self._changed:
            command = frame.command
            name = command.name if isinstance(command, Command) else hex(command)
            control = frame.kind is FrameKind.CONTROL
            self.frames.append(name if control else frame.kind.name)
            if frame.kind is FrameKind.INGEST:
                self.ingested.append(
                    Ingested(
                        peer.number,
                        frame.batch_id,
                        frame.timestamp_ns,
                        frame.topic_id,
                        frame.record_count,
                        bytes(frame.payload),
                        _records(frame),
                    )
                )
            self._changed.notify_all()

    @staticmethod
    def _handle(peer: FakePeer, frame: Frame, hook: Hook | None, usual: Hook) -> None:
        if hook is None or not hook(peer, frame):
            usual(peer, frame)

    def _ingest(self, peer: FakePeer, frame: Frame) -> bool:
        if self.topics.append(frame.topic_id, _records(frame)):
            peer.ack(frame.batch_id)
        else:
            message = f"Topic {frame.topic_id} not found"
            peer.error(ErrorCode.TOPIC_NOT_FOUND, message, batch_id=frame.batch_id)
        return True

    @staticmethod
    def _keepalive(peer: FakePeer, frame: Frame) -> bool:
        del frame
        peer.keepalive()
        return True

    def _control(self, peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id == Command.FETCH:
            self._fetch(peer, Fetch.decode(frame.payload))
        elif frame.batch_id in _CONSUMERS:
            self._consumer(peer, frame)
        elif (body := self.topics.ask(frame.batch_id, bytes(frame.payload))) is None:
            peer.error(ErrorCode.TOPIC_NOT_FOUND, "Topic not found")
        elif isinstance(body, ErrorBody):
            peer.error(body.code, body.message, **body.details)
        else:
            status = frame.batch_id == Command.GET_CLUSTER_STATUS
            answer = Command.CLUSTER_STATUS_RESPONSE if status else Command.TOPIC_RESPONSE
            peer.control(answer, encode_json(body))
        return True

    def _consumer(self, peer: FakePeer, frame: Frame) -> None:
        """Answer what is about one consumer (LWP sections 5.12 to 5.14, AMB-37, AMB-61)."""
        if frame.batch_id == Command.SUBSCRIBE:
            self._subscribe(peer, Subscribe.decode(frame.payload))
        elif frame.batch_id == Command.UNSUBSCRIBE:
            left = Unsubscribe.decode(frame.payload)
            self.subscriptions.remove(peer, left.topic_id, lambda: peer.ack(left.consumer_id))
        elif frame.batch_id == Command.COMMIT_OFFSET:
            done = CommitOffset.decode(frame.payload)
            self.subscriptions.commits[done.topic_id, done.consumer_id] = done.offset
            peer.control(Command.COMMIT_ACK, CommitAck(done.consumer_id, done.offset).encode())
        elif frame.batch_id == Command.BATCH_TIMES:
            self._batch_times(peer, BatchTimes.decode(frame.payload))
        else:
            self._offset_for_time(peer, OffsetForTime.decode(frame.payload))

    def _subscribe(self, peer: FakePeer, request: Subscribe) -> None:
        if self.topics.log(request.topic_id) is None:
            peer.error(ErrorCode.TOPIC_NOT_FOUND, "Topic not found")
            return
        offset = self.subscriptions.start(request)
        answer = SubscribeAck(request.consumer_id, offset).encode()
        peer.control(Command.SUBSCRIBE_ACK, answer)
        if self.dialect.push:
            subscriber = Subscriber(request.topic_id, offset, request.max_batch_bytes, peer.push)
            self.subscriptions.add(peer, subscriber)

    def _offset_for_time(self, peer: FakePeer, request: OffsetForTime) -> None:
        offset = self.topics.offset_for_time(request.topic_id, request.time_ns)
        if offset is None or not self.dialect.push:
            peer.error(ErrorCode.INVALID_PAYLOAD, "Invalid client command")
        else:
            answer = OffsetForTimeResponse(offset).encode()
            peer.control(Command.OFFSET_FOR_TIME_RESPONSE, answer)

    def _batch_times(self, peer: FakePeer, request: BatchTimes) -> None:
        log = self.topics.log(request.topic_id)
        if log is None or not self.dialect.push:
            peer.error(ErrorCode.INVALID_PAYLOAD, "Invalid client command")
            return
        end = min(request.end_offset, len(log))
        told = self.topics.batch_times(request.topic_id, request.start_offset, end)
        times = b"".join(pack("<QQ", *each) for each in told)
        answer = BatchTimesResponse(end, len(times), times).encode()
        peer.control(Command.BATCH_TIMES_RESPONSE, answer)

    def _fetch(self, peer: FakePeer, fetch: Fetch) -> None:
        log = self.topics.log(fetch.topic_id)
        if log is None:
            peer.error(ErrorCode.TOPIC_NOT_FOUND, f"Topic {fetch.topic_id} not found")
        elif fetch.start_offset == END_OFFSET:
            peer.control(Command.FETCH_RESPONSE, FetchResponse(len(log), 0, 0, b"").encode())
        elif fetch.start_offset > len(log):
            peer.control(Command.CATCHING_UP, CatchingUp(len(log)).encode())
        else:
            data, count = self.topics.read(log, fetch.start_offset, fetch.max_bytes)
            response = FetchResponse(fetch.start_offset + len(data), len(data), count, data)
            peer.control(Command.FETCH_RESPONSE, response.encode())


def _records(frame: Frame) -> bytes:
    """Return a payload as it is stored: decompressed (AMB-20)."""
    if not frame.flags & Flag.COMPRESSED:
        return bytes(frame.payload)
    opened: bytes = lz4.frame.decompress(bytes(frame.payload))
    return opened
