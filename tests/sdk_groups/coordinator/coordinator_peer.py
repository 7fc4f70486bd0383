"""A peer of a coordinator that sends what it likes."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lance_sdk.groups import Coordinator
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import Frame, FrameSplitter, encode_control
from lance_spec.messages import groups as m

TOPIC = m.GroupTopic(topic_id=7, created_at=1, topic_epoch=1, name="orders")
JOIN = m.GroupJoin(
    group="g",
    member="a",
    generation=0,
    session_timeout_ms=10_000,
    rebalance_timeout_ms=10_000,
    strategy="",
    client="test",
    metadata=b"",
    topics=[TOPIC],
    owned=[],
    standing=[],
)
FAR = 60.0


class Peer:
    """A raw connection to a coordinator."""

    def __init__(self, coordinator: Coordinator, dialect: Dialect = SPECIFIED) -> None:
        host, _, port = coordinator.url.partition("://")[2].rpartition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=FAR)
        self._dialect = dialect
        self._splitter = FrameSplitter((dialect,))
        self._frames: list[Frame] = []

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.sock.sendall(data)

    def frame(self) -> Frame:
        """Return the next frame."""
        while not self._frames:
            data = self.sock.recv(65536)
            assert data, "the coordinator closed the connection"
            self._frames += self._splitter.receive_data(data)
        return self._frames.pop(0)

    def ask(self, message: Any) -> Any:
        """Send a request and return its answer."""
        return self.ask_raw(message.COMMAND, message.encode())

    def ask_raw(self, command: Command, payload: bytes) -> Any:
        """Send a request of these bytes and return its answer."""
        self.send(encode_control(self._dialect, command, payload))
        frame = self.frame()
        answers = {kind.COMMAND: kind for kind in ANSWERS}
        if frame.batch_id not in answers:
            return frame
        return answers[frame.batch_id].decode(frame.payload)

    @property
    def closed(self) -> bool:
        """Whether the coordinator ends the connection."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            return True
        return True


ANSWERS = (
    m.GroupJoinAck,
    m.GroupAssignment,
    m.GroupHeartbeatAck,
    m.GroupCommitAck,
    m.GroupCommitted,
    m.GroupLeaveAck,
    m.GroupDescription,
    m.GroupError,
)
REQUESTS = [
    Command.GROUP_JOIN,
    Command.GROUP_SYNC,
    Command.GROUP_HEARTBEAT,
    Command.GROUP_COMMIT,
    Command.GROUP_FETCH_COMMITTED,
    Command.GROUP_LEAVE,
    Command.GROUP_DESCRIBE,
]


@contextmanager
def connected(coordinator: Coordinator, dialect: Dialect = SPECIFIED) -> Iterator[Peer]:
    """Open a raw connection."""
    peer = Peer(coordinator, dialect)
    with peer.sock:
        yield peer
