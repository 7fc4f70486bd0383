"""A transport, hosts and a clock that a test turns by hand."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.events import Close, Connect, Event
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk.journal import Journal, JournalConfig, SlotKind
from lance_sdk.journal._sending.outbox import Outbox, OutboxLimits
from lance_sdk.journal._sending.reconnecting import ReconnectLimiter
from lance_sdk.journal.qwp import QwpSettings, QwpTransport
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.rejections import QWP_POLICIES, Rejection
from lance_spec.messages.qwp import OkResponse

HOST = Endpoint("host", 9000)


class Fixed:
    """Dice that always show the lowest number."""

    def uniform(self, a: float, b: float, /) -> float:
        """Return ``a``."""
        del b
        return a

    def getrandbits(self, k: int, /) -> int:
        """Return 0."""
        del k
        return 0


class Inbox(list[Rejection]):
    """Keeps the rejections it is offered."""

    def offer(self, rejection: Rejection) -> None:
        """Take one."""
        self.append(rejection)


@dataclass
class Wire:
    """The far end of one connection, as a host's behaviour sees it.

    Attributes:
        number: which connection it is.
        host: the host that was dialled.
        headers: headers of the upgrade.
        messages: messages that came.
        pings: pings that came.
    """

    number: int
    host: Endpoint
    headers: dict[str, str] = field(default_factory=dict)
    messages: list[bytes] = field(default_factory=list)
    pings: int = 0
    gone: bool = False
    protocol: ServerProtocol = field(default_factory=lambda: ServerProtocol(max_size=None))

    def ok(self, number: int | None = None) -> None:
        """Acknowledge a message, by default the last one."""
        last = len(self.messages) - 1 if number is None else number
        self.answer(OkResponse(wire_sequence=last, tables=[]).encode())

    def answer(self, data: bytes) -> None:
        """Send an answer."""
        self.protocol.send_binary(data)

    def close(self, code: int, reason: str = "") -> None:
        """Close in the WebSocket's way."""
        self.protocol.send_close(code, reason)

    def drop(self) -> None:
        """Let the connection go without a word."""
        self.gone = True


Behaviour: TypeAlias = Callable[[Wire], Any]


@dataclass
class Host:
    """How a host behaves.

    Attributes:
        reachable: whether it can be dialled.
        status: the status of its answer to the upgrade.
        headers: headers of that answer; a function is called with the wire.
        on_open: called when the upgrade succeeded.
        on_message: called for each message.
        pongs: whether it answers pings.
    """

    reachable: bool = True
    status: int = 101
    headers: dict[str, str] = field(default_factory=dict)
    on_open: Behaviour = lambda _wire: None
    on_message: Behaviour = Wire.ok
    pongs: bool = True


class World:
    """Drives a transport as a driver does, without sockets and without waiting.

    Args:
        hosts: the hosts; the first is called ``host:9000``, the next ``host:9001``.
        limits: windows and policies.
        journal: what is sent; None means one in memory.
        settings: settings of the transport.

    Attributes:
        now: the time in seconds.
        attempts: when the hosts were dialled.
        wires: the connections, in order.
        inbox: rejections that were told.
        events: what the driver would announce.
    """

    def __init__(
        self,
        *hosts: Host,
        limits: OutboxLimits | None = None,
        dictionary: SymbolDictionary | None = None,
        dead_letters: Any = None,
        journal: Journal | None = None,
        **settings: Any,
    ) -> None:
        self._hosts = {Endpoint("host", 9000 + each): host for each, host in enumerate(hosts)}
        self.now = 1000.0
        self.attempts: list[float] = []
        self.dialled: list[Endpoint] = []
        self.wires: list[Wire] = []
        self.inbox = Inbox()
        self.events: list[Event] = []
        self.journal = journal or Journal.open(
            None, JournalConfig(kind=SlotKind.QWP, background=False), clock=lambda: self.now
        )
        self.outbox = Outbox(
            self.journal,
            limits or OutboxLimits(dwell=0.0, defaults=QWP_POLICIES),
            self.inbox,
            dead_letters,
            backoff=Backoff(0.1, 5.0, Fixed()),
            wall_clock=lambda: self.now,
        )
        self.transport = QwpTransport(
            self.outbox,
            QwpSettings(endpoints=list(self._hosts), **settings),
            SymbolDictionary() if dictionary is None else dictionary,
        )
        self.core = ReconnectLimiter(self.transport, self.outbox)
        self._wire: Wire | None = None
        self._incoming: deque[bytes] = deque()
        self.core.open(self.now)

    @property
    def wire(self) -> Wire:
        """The connection in use."""
        assert self._wire is not None
        return self._wire

    def append(self, *frames: bytes) -> None:
        """Put frames into the journal."""
        for each in frames:
            self.journal.append(each)

    def run(self, seconds: float = 0.0) -> None:
        """Let everything happen that happens within so many seconds."""
        end = self.now + seconds
        for _ in range(100_000):
            if self._step():
                continue
            due = self.core.next_deadline()
            if due > end or self.core.finished:
                self.now = end
                return
            self.now = max(self.now, due)
        raise AssertionError("the transport does not come to rest")

    def _step(self) -> bool:
        """Do one thing; return whether there was one to do."""
        self.core.handle_timeout(self.now)
        action = self.core.next_action(self.now)
        self.events += self.core.take_events()
        if isinstance(action, Connect):
            self._dial(action)
            return True
        if isinstance(action, Close):
            self._wire = None
            self.core.disconnected(None, self.now)
            return True
        return self._exchange()

    def _dial(self, action: Connect) -> None:
        endpoint = Endpoint(action.host, action.port)
        self.attempts.append(self.now)
        self.dialled.append(endpoint)
        if not self._hosts[endpoint].reachable:
            refused = ConnectionRefusedError(111, "refused")
            self.core.dial_failed([("tcp", str(endpoint), refused)], self.now)
            return
        self._wire = Wire(len(self.wires), endpoint)
        self.wires.append(self._wire)
        self.core.connected(str(endpoint), self.now)

    def _exchange(self) -> bool:
        wire = self._wire
        if wire is None:
            return False
        sent = self.core.data_to_send(self.now)
        for each in sent:
            wire.protocol.receive_data(bytes(each))
        self._react(wire)
        answers = [each for each in wire.protocol.data_to_send() if each]
        for each in answers:
            if self._wire is wire:
                self.core.receive_data(each, self.now)
        if self._wire is wire and (wire.gone or wire.protocol.eof_sent):
            self._wire = None
            self.core.disconnected(None, self.now)
            return True
        return bool(sent or answers)

    def _react(self, wire: Wire) -> None:
        host = self._hosts[wire.host]
        for event in wire.protocol.events_received():
            if isinstance(event, Request):
                self._upgrade(wire, host, event)
            elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                wire.messages.append(bytes(event.data))
                host.on_message(wire)
            elif isinstance(event, Frame) and event.opcode is Opcode.PING:
                wire.pings += 1
                if not host.pongs:
                    wire.protocol.writes.clear()

    def _upgrade(self, wire: Wire, host: Host, request: Request) -> None:
        wire.headers = dict(request.headers.raw_items())
        if host.status == 101:
            response = wire.protocol.accept(request)
        else:
            response = wire.protocol.reject(host.status, "no\n")
        for name, value in host.headers.items():
            response.headers[name] = value
        wire.protocol.send_response(response)
        if host.status == 101:
            host.on_open(wire)
