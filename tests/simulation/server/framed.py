"""Peers of the other listeners: requests and responses behind their lengths, in order."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation.model import ViolationError
from tests.simulation.server.network import Link
from tests.simulation.server.peers import Peer
from tests.simulation.server.qwp import QwpPeer

from lance_spec.messages import fluvio, rustlog

if TYPE_CHECKING:
    from tests.simulation.server.run import ServerRun

_LENGTH: Final = 4
_API_VERSIONS: Final = 18


class _Owed(NamedTuple):
    """A response that a peer waits for: since when, and how it begins."""

    what: str
    since: float
    begin: bytes


class FramedPeer(Peer):
    """A client that pipelines small requests and judges each response by how it begins.

    Args:
        run: what it lives in.
        number: which it is.

    Attributes:
        owed: what it waits for, in order.
    """

    def __init__(self, run: "ServerRun", number: int) -> None:
        super().__init__(run, number)
        self.owed: deque[_Owed] = deque()
        self._received = bytearray()
        self._number = 0

    def connect(self, link: Link) -> None:
        """Begin to use a connection."""
        self._received.clear()
        super().connect(link)

    def lose(self) -> None:
        """Note that the connection is gone."""
        super().lose()
        self.owed.clear()

    def waits_since(self) -> tuple[float, str] | None:
        """Return since when the oldest request waits, and which it is."""
        return (self.owed[0].since, self.owed[0].what) if self.owed else None

    def request(self, index: int) -> tuple[bytes, bytes]:
        """Return a request, and how its response begins."""
        raise NotImplementedError

    def ask(self, count: int) -> None:
        """Pipeline requests."""
        for _ in range(count):
            self._number += 1
            payload, begin = self.request(self._number)
            what = f"{self.name}: request {self._number}"
            self.owed.append(_Owed(what, self.run.world.now, begin))
            self.send(len(payload).to_bytes(_LENGTH, "big"), payload)

    def receive(self, data: bytes) -> None:
        """Take bytes, and judge the responses in them."""
        received = self._received
        received += data
        while len(received) >= _LENGTH:
            end = _LENGTH + int.from_bytes(received[:_LENGTH], "big")
            if len(received) < end:
                return
            self._judge(bytes(received[_LENGTH:end]))
            del received[:end]

    def _judge(self, payload: bytes) -> None:
        if not self.owed:
            raise ViolationError(f"{self.name}: {payload[:24]!r} answers nothing")
        owed = self.owed.popleft()
        if not payload.startswith(owed.begin):
            raise ViolationError(f"{owed.what} is answered with {payload[:24]!r}")
        self.run.result.answers += 1


class RustlogPeer(FramedPeer):
    """A client of RustLog."""

    def request(self, index: int) -> tuple[bytes, bytes]:
        """Return a ping, or a question for all topics, and the type of its response."""
        message: rustlog.Ping | rustlog.ListTopicsRequest = rustlog.Ping()
        if index % 5 == 0:
            message = rustlog.ListTopicsRequest()
        return message.encode(), bytes([message.TYPE])


class FluvioPeer(FramedPeer):
    """A client of Fluvio."""

    def request(self, index: int) -> tuple[bytes, bytes]:
        """Return a question for the versions, and the number that its response repeats."""
        asked = fluvio.ApiVersionsRequest(
            client_version="0.21.0", client_os="linux", client_arch="x86_64"
        )
        request = fluvio.Request(
            api_key=_API_VERSIONS,
            api_version=0,
            correlation_id=index,
            client_id="simulated",
            body=asked.encode(),
        )
        return request.encode(), index.to_bytes(_LENGTH, "big")


KINDS: Final[dict[str, Callable[["ServerRun", int], FramedPeer | QwpPeer]]] = {
    "qwp": QwpPeer,
    "rustlog": RustlogPeer,
    "fluvio-sc": FluvioPeer,
    "fluvio-spu": FluvioPeer,
}
"""Peers by the name of the listener that they connect to."""
