"""One WebSocket connection of a sender, without I/O: the framing is websockets' business."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from lance_sdk._api.arguments.redaction import Redaction
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk.errors import RemoteProtocolError
from lance_spec.checksum import Buffer
from lance_spec.qwp.upgrade import PATHS, ROLE_HEADER

try:
    from websockets.client import ClientProtocol
    from websockets.exceptions import InvalidStatus
    from websockets.frames import Frame, Opcode
    from websockets.http11 import Response
    from websockets.protocol import State
    from websockets.uri import WebSocketURI
except ImportError as missing:
    raise ImportError("QWP needs websockets: pip install 'lance-sdk[qwp]'") from missing

_LARGEST_ANSWER: Final = 1 << 20
_MOST_PINGS: Final = 1000
"""Pings that may wait for their pongs; a host that sends more and reads none is of no use."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to the upgrade.

    Attributes:
        status: its HTTP status; 101 means that the connection is open.
        reason: the words beside it.
        headers: its headers, with lower-case names; one that came twice is left out.
    """

    status: int
    reason: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BinaryMessage:
    """A whole binary message."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """The peer closed the connection in the WebSocket's way.

    Attributes:
        code: the code; 1005 when it gave none.
        reason: its words.
    """

    code: int
    reason: str


LinkEvent: TypeAlias = Answered | BinaryMessage | Closed


class WebSocketLink:
    """The WebSocket of one connection, from the upgrade to the close.

    Args:
        endpoint: the host, for the ``Host`` header.
        tls: whether the connection is encrypted.
        headers: headers of the upgrade beside those of RFC 6455.
        redaction: hides the sender's credentials in what the peer says.

    Attributes:
        queued: bytes that `data_to_send` has not handed out yet.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        tls: bool,
        headers: Mapping[str, str],
        redaction: Redaction | None = None,
    ) -> None:
        uri = WebSocketURI(tls, endpoint.host, endpoint.port, PATHS[0], "")
        self._protocol = ClientProtocol(uri, max_size=_LARGEST_ANSWER)
        request = self._protocol.connect()
        for name, value in headers.items():
            request.headers[name] = value
        self._protocol.send_request(request)
        self._redaction = redaction or Redaction()
        self._parts: list[bytes] | None = None
        self._pings = 0
        self.queued = 0

    def __repr__(self) -> str:
        return f"<WebSocketLink {self._protocol.uri.host} {self._protocol.state.name}>"

    @property
    def is_open(self) -> bool:
        """Whether messages may be sent."""
        return self._protocol.state is State.OPEN

    def receive(self, data: Buffer) -> Iterator[LinkEvent]:
        """Take bytes from the peer; yield what they mean.

        Raises:
            RemoteProtocolError: the peer breaks HTTP, RFC 6455 or QWP's use of it.
        """
        self._protocol.receive_data(bytes(data))
        yield from self._events()

    def receive_eof(self) -> Iterator[LinkEvent]:
        """Take note that the peer will send nothing more; it may complete an HTTP answer."""
        self._protocol.receive_eof()
        yield from self._events()

    def _events(self) -> Iterator[LinkEvent]:
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                yield self._answered(event)
            elif isinstance(event, Frame):
                yield from self._frame(event)
        broken = self._protocol.parser_exc or self._protocol.handshake_exc
        if broken is not None and not isinstance(broken, InvalidStatus | EOFError):
            words = self._redaction.text(str(broken))
            raise RemoteProtocolError(f"the server broke the WebSocket protocol: {words}")

    def _answered(self, response: Response) -> Answered:
        headers: dict[str, str] = {}
        for name in {each.lower() for each in response.headers}:
            values = response.headers.get_all(name)
            if len(values) == 1:
                headers[name] = values[0]
        role = ROLE_HEADER.lower()  # the one header that messages show
        if role in headers:
            headers[role] = self._redaction.text(headers[role])
        words = self._redaction.text(response.reason_phrase)
        return Answered(response.status_code, words, headers)

    def _frame(self, frame: Frame) -> Iterator[LinkEvent]:
        if frame.opcode is Opcode.TEXT:
            raise RemoteProtocolError("the server sent text; QWP answers are binary messages")
        if frame.opcode is Opcode.CLOSE:
            received = self._protocol.close_rcvd
            assert received is not None
            yield Closed(received.code, self._redaction.text(received.reason))
        elif frame.opcode is Opcode.PING:
            self._pings += 1
            if self._pings > _MOST_PINGS:
                raise RemoteProtocolError(f"over {_MOST_PINGS} pings, and no pong was taken")
        elif frame.opcode in {Opcode.BINARY, Opcode.CONT}:
            yield from self._part(frame)

    def _part(self, frame: Frame) -> Iterator[BinaryMessage]:
        """Join fragments; websockets has checked their order and their size together."""
        self._parts = self._parts or []
        if frame.data:
            self._parts.append(bytes(frame.data))
        if frame.fin:
            parts, self._parts = self._parts, None
            yield BinaryMessage(b"".join(parts))

    def send(self, message: bytes) -> None:
        """Queue one binary message."""
        self._protocol.send_binary(message)
        self.queued += len(message)

    def ping(self) -> None:
        """Queue a ping."""
        self._protocol.send_ping(b"")

    def close(self) -> None:
        """Queue an orderly close, unless one was sent or received."""
        if self.is_open:
            self._protocol.send_close(1000)

    def data_to_send(self) -> list[bytes]:
        """Return what to send; the end of the stream is left to who closes the connection."""
        self.queued = self._pings = 0
        return [each for each in self._protocol.data_to_send() if each]
