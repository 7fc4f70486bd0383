"""The other side of a session, without a socket, threads or time."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from lance_server.config.settings import ServerConfig
from lance_server.fault_injection.role import Role
from lance_server.fault_injection.session import SimulatedSession
from lance_server.lwp.service import Service
from lance_server.lwp.session import Session
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.security.authorizer import Security
from lance_server.testing.log import LogDriver
from lance_server.testing.requests import Requests
from lance_server.testing.storage import FaultyStorage, MemoryStorage
from lance_spec.bodies import ErrorBody, decode_error, decode_json
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.messages.lwp import CreateTopic, Fetch
from lance_spec.records import encode_records

_LARGEST_ANSWER: Final = 1 << 30


class SessionPeer(Requests):
    """A connection whose every step is taken by the test.

    Args:
        speaks: the peer's dialect.
        disk: the disk below the log; one in memory by default.
        data_dir: where on it.
        role: what the node plays; it may be changed later. By default it plays nothing.
        options: fields of `ServerConfig`.

    Attributes:
        now: the time in seconds; `wait` moves it.
        disk: the disk below the log.
        log: the log below the session.
        session: what is tested.
    """

    def __init__(
        self,
        speaks: Dialect = SPECIFIED,
        *,
        disk: FaultyStorage | None = None,
        data_dir: Path = Path("/data"),
        role: Role | None = None,
        **options: Any,
    ) -> None:
        self.dialect = speaks
        self.now = 0.0
        self.disk = disk or FaultyStorage(MemoryStorage())
        watched = WatchedStorage(self.disk)
        self.log = LogDriver(watched, data_dir)
        self.config = ServerConfig(data_dir=data_dir, **options)
        security = Security(self.config.tls, self.config.auth, self.config.access)
        self.service = Service(self.log.engine, self.config, watched, security)
        self.service.work_clock = lambda: self.now
        self.counters = self.service.counters
        self._role = role
        self.session = self._connect()

    def _connect(self) -> Session:
        self._splitter = FrameSplitter((self.dialect,), max_payload=_LARGEST_ANSWER)
        kind = Session if self._role is None else partial(SimulatedSession, role=self._role)
        session: Session = kind(
            self.service,
            self.config.dialects,
            wake=lambda: session.advance(self.now),
            now=self.now,
        )
        return session

    def reconnect(self) -> None:
        """Go on with a new connection to the same server."""
        self.session.close("the peer reconnects")
        self.session = self._connect()

    # Dialogue ----------------------------------------------------------------------------------

    def send(self, *frames: bytes) -> None:
        """Send frames in one piece; worker threads do not run yet."""
        self.session.receive_data(b"".join(frames), self.now)
        self.go_on()
        self.log.scheduler.run_soon()

    def go_on(self) -> None:
        """Give the session its turns of the loop until it wants no more."""
        while self.session.yields:
            self.session.advance(self.now)

    def work(self) -> None:
        """Let the worker threads finish."""
        self.log.scheduler.run_all()

    def received(self) -> list[Frame]:
        """Return the frames that were sent by now."""
        frames: list[Frame] = []
        while answers := self.session.data_to_send():
            frames += self._splitter.receive_data(b"".join(answers))
            self.session.advance(self.now)
            self.go_on()
        return frames

    def exchange(self, *frames: bytes) -> list[Frame]:
        """Send frames, let everything finish, return the answers."""
        self.send(*frames)
        answers: list[Frame] = []
        self.work()
        while some := self.received():
            answers += some
            self.work()
        return answers

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.session.tick(self.now)

    def ask(self, command: int, payload: bytes = b"") -> Frame:
        """Send a command and return its only answer."""
        (answer,) = self.exchange(self.control(command, payload))
        return answer

    def json(self, command: int, payload: bytes = b"") -> dict[str, Any]:
        """Send a command and return the JSON it is answered with."""
        return decode_json(self.ask(command, payload).payload, "answer")

    def error(self, command: int, payload: bytes = b"") -> ErrorBody:
        """Send a command and return the error it is answered with."""
        return the_error([self.ask(command, payload)])

    # Frames ------------------------------------------------------------------------------------

    def ingest(self, batch_id: int, values: Sequence[bytes] = (b"value",), **fields: int) -> bytes:
        """Return an Ingest frame with raw-data records; ``fields`` as for `raw_ingest`."""
        return self.raw_ingest(encode_records(values), batch_id, **{"count": len(values), **fields})

    def fetch(self, start: int = 0, max_bytes: int = 1024, *, topic_id: int = 0) -> bytes:
        """Return a Fetch frame."""
        return self.control(Command.FETCH, Fetch(topic_id, start, max_bytes).encode())

    def create(self, name: str) -> bytes:
        """Return a CreateTopic frame."""
        return self.control(Command.CREATE_TOPIC, CreateTopic(name.encode()).encode())


def told(frames: list[Frame]) -> list[str | int]:
    """Return what answers are, in short: the batch id of an Ack, else a name."""
    return [
        frame.batch_id
        if frame.kind is FrameKind.ACK
        else frame.kind.name
        if frame.kind is not FrameKind.CONTROL
        else Command(frame.batch_id).name
        for frame in frames
    ]


def the_error(frames: list[Frame]) -> ErrorBody:
    """Return what the only answer says, which must be an error."""
    if told(frames) != ["ERROR_RESPONSE"]:
        raise AssertionError(f"expected one ErrorResponse, got {told(frames)}")
    return decode_error(frames[0].payload)
