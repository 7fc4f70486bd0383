"""Many producers at once, and many topics at once, against one of each."""

import os
import select
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle

from bench.harness import Rate, Scenario
from bench.peers import server_process
from bench.scenarios.latency import quantile
from lance_sdk import Client
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Flag
from lance_spec.frames import encode_header
from lance_spec.limits import HEADER_SIZE
from lance_spec.records import encode_records

_MANY = 1000
_FRAMES = 4000
"""Frames of one run, of all producers together."""
_WINDOW = 128
"""Frames in flight of the one producer that the many are compared with."""
_RECORDS = 624
_PAYLOAD = encode_records([b"x" * 100] * _RECORDS)
_SMALL_PAYLOAD = encode_records([b"x" * 98] * 10)
_P99_FACTOR = 20
_STALLED = 30
"""Seconds without anything to send or receive, after which a run is given up."""
_FLAGS_AT = 5
"""Where a header has its flags (LWP section 3.1)."""


class _Producer:
    """Keeps some frames in flight on one connection, and notes what each waited.

    Args:
        address: ``host:port``.
        frames: how many to send.
        window: how many may be in flight.
        payload: of each frame.
        topics: where they go, in turn.
    """

    def __init__(
        self,
        address: str,
        frames: int,
        window: int,
        payload: bytes = _PAYLOAD,
        topics: Sequence[int] = (0,),
    ) -> None:
        host, port = address.split(":")
        self.sock = socket.create_connection((host, int(port)), 30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.times: list[float] = []
        self._payload = payload
        self._topics = cycle(topics)
        self._next_id = int.from_bytes(os.urandom(3), "big") << 40
        self._left = frames
        self._window = window
        self._rest: deque[memoryview] = deque()
        self._sent_at: deque[float] = deque()
        self._received = bytearray()

    @property
    def is_done(self) -> bool:
        """Whether every frame was acknowledged."""
        return not self._left and not self._sent_at

    @property
    def events(self) -> int:
        """What the socket is to be watched for."""
        return select.EPOLLIN | (select.EPOLLOUT if self._rest else 0)

    def send(self) -> None:
        """Send what the window allows, as far as the socket takes it."""
        while self._left and len(self._sent_at) < self._window:
            self._left -= 1
            self._next_id += 1
            head = encode_header(
                SPECIFIED,
                Flag.BATCH_MODE,
                batch_id=self._next_id,
                timestamp_ns=1,
                record_count=self._payload.count(b"x" * 98),
                topic_id=next(self._topics),
                payload=self._payload,
            )
            self._rest += memoryview(head), memoryview(self._payload)
            self._sent_at.append(time.perf_counter())
        while self._rest:
            try:
                sent = self.sock.send(self._rest[0])
            except BlockingIOError:
                return
            self._rest[0] = self._rest[0][sent:]
            if not self._rest[0]:
                self._rest.popleft()

    def receive(self) -> None:
        """Take acknowledgements."""
        data = self.sock.recv(1 << 16)
        if not data:
            raise RuntimeError("the server closed a connection")
        now = time.perf_counter()
        self._received += data
        while len(self._received) >= HEADER_SIZE:
            flags = self._received[_FLAGS_AT]
            if flags == Flag.ACK:
                self.times.append(now - self._sent_at.popleft())
            elif flags != Flag.BACKPRESSURE:  # which says to be slow, and nobody is quick here
                raise RuntimeError(f"an answer that is not an Ack: {bytes(self._received)!r}")
            del self._received[:HEADER_SIZE]


def _run(producers: list[_Producer]) -> tuple[float, list[float]]:
    """Let producers send at once; return acknowledgements a second, and what each took."""
    with select.epoll() as poll:
        found = {each.sock.fileno(): each for each in producers}
        began = time.perf_counter()
        watched: dict[int, int] = {}
        for fd, each in found.items():
            each.send()
            watched[fd] = each.events
            poll.register(fd, each.events)
        while found:
            ready = poll.poll(_STALLED)
            if not ready:
                raise RuntimeError(f"{len(found)} producers heard nothing for {_STALLED} s")
            for fd, seen in ready:
                each = found[fd]
                if seen & select.EPOLLIN:
                    each.receive()
                each.send()
                if each.is_done:
                    poll.unregister(fd)
                    del found[fd]
                elif each.events != watched[fd]:
                    watched[fd] = each.events
                    poll.modify(fd, each.events)
        took = time.perf_counter() - began
    for each in producers:
        each.sock.close()
    times = [wait for each in producers for wait in each.times]
    return len(times) / took, times


def _one(address: str) -> tuple[float, list[float]]:
    return _run([_Producer(address, _FRAMES, _WINDOW)])


def _many(address: str) -> tuple[float, list[float]]:
    return _run([_Producer(address, _FRAMES // _MANY, 1) for _ in range(_MANY)])


@contextmanager
def _rates() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        yield lambda: _many(address)[0], lambda: _one(address)[0]


@contextmanager
def _slowest() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address:
        yield (
            lambda: 1 / quantile(_many(address)[1], 0.99),
            lambda: 1 / (_P99_FACTOR * quantile(_one(address)[1], 0.99)),
        )


@contextmanager
def _topics() -> Iterator[tuple[Rate, Rate]]:
    with server_process() as address, ExitStack() as stack:
        client = stack.enter_context(Client(f"lance://{address}"))
        ids = [client.create_topic(f"bench-{number}").id for number in range(_MANY)]
        run = partial(_Producer, address, 10 * _MANY, 2 * _MANY, _SMALL_PAYLOAD)
        yield lambda: _run([run(ids)])[0], lambda: _run([run(ids[:1])])[0]


SCENARIOS = (
    Scenario(
        name="server/1000-producers-rate",
        unit="acknowledgements/s of 64 KiB frames, 1,000 producers with one in flight each",
        other="one producer with 128 in flight",
        sides=_rates,
    ),
    Scenario(
        name="server/1000-producers-p99",
        unit="1/s, of the p99 of the acknowledgement",
        other="20 times the p99 of one producer with 128 frames in flight",
        sides=_slowest,
    ),
    Scenario(
        name="server/1000-topics-rate",
        unit="acknowledgements/s of 1 KiB frames, to 1,000 topics in turn, 2,000 in flight",
        other="the same to one topic",
        sides=_topics,
    ),
)
