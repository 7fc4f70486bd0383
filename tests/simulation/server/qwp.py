"""Senders of QWP: they write rows over a WebSocket, and what is acknowledged to them is kept."""

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation.model import ViolationError
from tests.simulation.server.network import Link
from tests.simulation.server.peers import Peer
from tests.simulation.server.written import Row, Written
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from lance_server.listeners.qwp.testing import longs
from lance_spec.messages.qwp import DurableAck, OkResponse

if TYPE_CHECKING:
    from tests.simulation.server.clients import GoodPeers

_URI: Final = parse_uri("ws://server:9000/api/v4/write")
_UPGRADED: Final = 101


class _Sent(NamedTuple):
    """A message: since when it is there, and its row."""

    since: float
    row: Row


class QwpPeer(Peer):
    """A sender that pipelines messages of one row into a table of its own.

    Args:
        run: what it lives in.
        number: which it is.

    Attributes:
        table: where it writes.
    """

    def __init__(self, run: "GoodPeers", number: int) -> None:
        super().__init__(run, number)
        self.table = run.written.setdefault(f"qwp-{number}", Written(f"qwp-{number}"))
        self._protocol = ClientProtocol(_URI)
        self._owed: deque[_Sent] = deque()
        self._answered = self._open = False
        self._sequence = -1

    def began(self) -> None:
        """Ask for the upgrade."""
        request = self._protocol.connect()
        request.headers["X-QWP-Max-Version"] = "1"
        self._protocol.send_request(request)
        self._flush()

    def connect(self, link: Link) -> None:
        """Begin to use a connection."""
        self._protocol = ClientProtocol(_URI, max_size=None)
        self._open, self._sequence = False, -1
        super().connect(link)

    def lose(self) -> None:
        """Note that the connection is gone."""
        super().lose()
        self._owed.clear()

    def waits_since(self) -> tuple[float, str] | None:
        """Return since when the oldest message waits, and which it is."""
        if not self._owed:
            return None
        since, row = self._owed[0]
        return since, f"{self.name}: row {row.number} of {self.table.name}"

    def ask(self, count: int) -> None:
        """Pipeline messages, once the upgrade is granted."""
        for _ in range(count):
            row = self.table.following(0)
            self._owed.append(_Sent(self.run.world.now, row))
            if self._open:
                self._write(row)

    def _write(self, row: Row) -> None:
        self._protocol.send_binary(longs(self.table.name, row.number))
        self._flush()

    def _flush(self) -> None:
        self.send(*(each for each in self._protocol.data_to_send() if each))

    def receive(self, data: bytes) -> None:
        """Take bytes, and judge the answers in them."""
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self._upgrade(event)
            elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                self._judge(bytes(event.data))
        self._flush()

    def _upgrade(self, response: Response) -> None:
        granted = response.status_code == _UPGRADED
        self._open = granted and self._protocol.state is State.OPEN
        if not self._open:
            self._owed.clear()  # too many are connected, or it took too long
        for each in self._owed:
            self._write(each.row)

    def _judge(self, answer: bytes) -> None:
        if answer[0] == DurableAck.STATUS:
            raise ViolationError(f"{self.name} did not ask for a durable acknowledgement")
        if answer[0] != OkResponse.STATUS:
            self._open = False
            self._owed.clear()  # nothing behind a refused message is stored
            self.run.result.answers += 1
            return
        ok = OkResponse.decode(answer)
        newly = ok.wire_sequence - self._sequence
        if not 0 < newly <= len(self._owed):
            raise ViolationError(
                f"{self.name}: message {ok.wire_sequence} is acknowledged behind "
                f"{self._sequence}, and {len(self._owed)} are owed an answer"
            )
        self._sequence = ok.wire_sequence
        for _ in range(newly):
            self.table.acked[self._owed.popleft().row] = None
            self.run.result.acknowledged += 1
        self.run.result.answers += 1
