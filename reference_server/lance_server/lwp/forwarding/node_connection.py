"""One client's connection to another server that answers its requests (design section 21)."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, cast

from lance_server.config.settings import Address
from lance_server.lwp.refusals import Refusal
from lance_server.lwp.responses import Answer
from lance_server.runtime.completion import Completion
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import Frame, FrameKind, FrameSplitter, encode_header, encode_keepalive

CONNECT_SECONDS: Final = 5.0
FORWARD_SECONDS: Final = 30.0
KEEPALIVE_SECONDS: Final = 15.0
_LARGEST_ANSWER: Final = 64 * 1024 * 1024


class NodeConnection(Protocol):
    """A connection to another server.

    Attributes:
        is_closed: whether it has come to its end.
    """

    is_closed: bool

    def forward(self, frame: Frame) -> Completion[Answer]:
        """Send a request on; the outcome is the other server's answer."""
        ...

    def close(self) -> None:
        """Give up; all who still wait are told."""
        ...


ConnectNode: TypeAlias = Callable[[Address, Dialect, str], NodeConnection]
"""Opens a connection to a server, in a dialect, with the name by which errors call it."""


class Forwarder(asyncio.Protocol):
    """One client's connection to another server: requests go out, answers come back in order.

    Args:
        address: where the other server is.
        dialect: what the client speaks; the other server is spoken to alike.
        name: what errors call the other server.
    """

    def __init__(self, address: Address, dialect: Dialect, name: str) -> None:
        self._address = address
        self._name = name
        self._dialect = dialect
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter((dialect,), max_payload=_LARGEST_ANSWER)
        self._waiting: deque[tuple[float, Completion[Answer]]] = deque()
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._keeping: asyncio.TimerHandle | None = None
        self._connecting = self._loop.create_task(self._connect())
        self.is_closed = False

    def __repr__(self) -> str:
        return f"<Forwarder to {self._address} {len(self._waiting)} waiting>"

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._loop.create_connection(
                    lambda: self, self._address.host, self._address.port
                )
        except OSError as error:
            reason = error.strerror or "it does not answer"
            self._fail(ErrorCode.CLUSTER_NOT_READY, f"{self._name} cannot be reached: {reason}")

    def forward(self, frame: Frame) -> Completion[Answer]:
        """Send a request on; the outcome is the other server's answer, as it came."""
        outcome: Completion[Answer] = Completion()
        self._waiting.append((self._loop.time() + FORWARD_SECONDS, outcome))
        data = _encoded(frame, self._dialect)
        if self._transport is None:
            self._unsent.append(data)
        else:
            self._transport.write(data)
        if self._timer is None:
            self._timer = self._loop.call_later(FORWARD_SECONDS, self._on_time)
        return outcome

    def close(self) -> None:
        """Give up; all who still wait are told."""
        self._connecting.cancel()
        self._fail(ErrorCode.TIMEOUT_ERROR, f"the connection to {self._name} was closed")

    # What asyncio calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what has been waiting."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()
        self._keeping = self._loop.call_later(KEEPALIVE_SECONDS, self._keep)

    def _keep(self) -> None:
        """Keep the connection while the client sends nothing that is handed on."""
        assert self._transport is not None, "it was made"
        self._transport.write(encode_keepalive(self._dialect))
        self._keeping = self._loop.call_later(KEEPALIVE_SECONDS, self._keep)

    def data_received(self, data: bytes) -> None:
        """Hand answers to those who wait for them; advice and keepalives are for this node."""
        for frame in self._splitter.receive_data(data):
            if frame.kind in (FrameKind.BACKPRESSURE, FrameKind.KEEPALIVE):
                continue
            if self._waiting:
                self._waiting.popleft()[1].settle(_encoded(frame, self._dialect))
        if self._splitter.fault is not None:
            self._fail(
                ErrorCode.TIMEOUT_ERROR, f"{self._name} sent no frame: {self._splitter.fault}"
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who wait that nobody knows what became of it."""
        self._fail(ErrorCode.TIMEOUT_ERROR, f"{self._name} went away: {exc or 'end of stream'}")

    # The end -----------------------------------------------------------------------------------

    def _on_time(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        due = self._waiting[0][0] - self._loop.time()
        if due > 0:
            self._timer = self._loop.call_later(due, self._on_time)
        else:
            self._fail(ErrorCode.TIMEOUT_ERROR, f"no answer within {FORWARD_SECONDS:g} s")

    def _fail(self, code: ErrorCode, reason: str) -> None:
        self.is_closed = True
        for timer in (self._timer, self._keeping):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        for _, outcome in waiting:
            outcome.fail(Refusal(code, f"Forwarding failed: {reason}"))


def _encoded(frame: Frame, dialect: Dialect) -> bytes:
    payload = frame.payload
    header = encode_header(
        dialect,
        int(frame.flags) & ~int(Flag.RESERVED),
        batch_id=frame.batch_id,
        timestamp_ns=frame.timestamp_ns,
        record_count=frame.record_count,
        topic_id=frame.topic_id,
        payload=payload,
    )
    return header + bytes(payload)
