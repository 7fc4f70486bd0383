"""Attempts to connect, counted on a manual clock: at most ten a second, whatever happens."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.events import Close, Connect
from lance_sdk.config import ClientConfig
from lance_sdk.errors import DeadlineExceeded
from lance_sdk.journal import ForwardConfig, Journal, JournalConfig, OutboxLimits
from lance_sdk.journal._sending.error_queue import ErrorInbox
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal._sending.reconnecting import ReconnectLimiter
from lance_sdk.journal.lwp.batch_ids import BatchIdAssigner
from lance_sdk.journal.lwp.settings import LwpSettings
from lance_sdk.journal.lwp.transport import LwpTransports
from lance_sdk.testing import LoadedDice, ManualClock
from lance_sdk.url import parse_url
from lance_spec.bodies import encode_json
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import (
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_control,
    encode_keepalive,
)
from lance_spec.records import encode_record


class World:
    """A sender with records to send, and no network but what a test plays.

    Args:
        hosts: how many hosts the URL names.
        dialect: the ``dialect`` option.
        budget: the longest outage, or None.
    """

    def __init__(self, hosts: int = 1, dialect: str = "auto", budget: float | None = None) -> None:
        self.clock = ManualClock()
        url = parse_url("lance://" + ",".join(f"h{n}" for n in range(hosts)) + "/readings")
        client = ClientConfig(dialect=dialect, open_timeout=1e9, backoff_cap=5.0)
        settings = LwpSettings(url=url, forward=ForwardConfig(), client=client)
        self.journal = Journal.open(None, JournalConfig(background=False))
        self.outbox = Outbox(
            self.journal,
            OutboxLimits(),
            ErrorInbox(),
            None,
            backoff=Backoff(0.1, 5.0, LoadedDice()),
            wall_clock=lambda: 0.0,
        )
        transports = LwpTransports(settings)
        self.core = ReconnectLimiter(transports(self.outbox), self.outbox, budget=budget)
        number = transports.metadata(self.outbox).number("readings")
        stamper = BatchIdAssigner(self.journal, lambda: 7, 1.0)
        for _ in range(1000):
            stamper.append(number, 1, encode_record(b"x"))
        self.attempts: list[float] = []

    def run(self, seconds: float, play: "Play") -> None:
        """Let a server treat every connection in one way for some seconds."""
        end = self.clock.now + seconds
        self.core.open(self.clock.now)
        while self.clock.now < end and not self.core.finished:
            action = self.core.next_action(self.clock.now)
            self.core.take_events()
            if isinstance(action, Connect):
                self.attempts.append(self.clock.now)
                play(self)
                continue
            assert not isinstance(action, Close)
            due = max(self.core.next_deadline(), self.clock.now + 1e-6)
            self.clock.now = min(due, end)
            self.core.handle_timeout(self.clock.now)

    def most_in_a_second(self) -> int:
        """Return the largest number of attempts within any one second."""
        return max(
            sum(1 for other in self.attempts if start <= other < start + 1.0)
            for start in self.attempts
        )

    def connect(self) -> None:
        """The connection is made."""
        self.core.connected("192.0.2.1:1992", self.clock.now)

    def drop(self, error: OSError | None = None) -> None:
        """The connection is gone."""
        self.core.disconnected(error, self.clock.now)

    def serve(self, dialect: Dialect, frames: int) -> None:
        """Answer like a server until so many frames are acknowledged."""
        splitter, acked = FrameSplitter((dialect,)), 0
        while buffers := self.core.data_to_send(self.clock.now):
            answers = []
            for buffer in buffers:
                for frame in splitter.receive_data(bytes(buffer)):
                    if frame.kind is FrameKind.KEEPALIVE:
                        answers.append(encode_keepalive(dialect))
                    elif frame.batch_id == Command.GET_CLUSTER_STATUS:
                        body = encode_json({"is_leader": True, "node_count": 1, "healthy_nodes": 1})
                        code = Command.CLUSTER_STATUS_RESPONSE
                        answers.append(encode_control(dialect, code, body))
                    elif frame.kind is FrameKind.CONTROL:
                        topic = {"id": 1, "name": "readings", "created_at": 5}
                        body = encode_json({"topics": [topic]})
                        answers.append(encode_control(dialect, Command.TOPIC_RESPONSE, body))
                    elif acked < frames:
                        answers.append(encode_ack(dialect, frame.batch_id))
                        acked += 1
            for answer in answers:
                self.core.receive_data(answer, self.clock.now)
            if acked >= frames and answers == []:
                return
            self.core.handle_timeout(self.clock.now)


Play: TypeAlias = Callable[[World], None]


def refused(world: World) -> None:
    """Nobody listens."""
    error = ConnectionRefusedError(111, "Connection refused")
    world.core.dial_failed([("tcp", "192.0.2.1:1992", error)], world.clock.now)


def closed_at_once(world: World) -> None:
    """The server accepts and closes before its first byte."""
    world.connect()
    world.drop()


def reset_at_once(world: World) -> None:
    """The server accepts and resets."""
    world.connect()
    world.drop(ConnectionResetError(104, "Connection reset by peer"))


def garbage(world: World) -> None:
    """The server says something that is not a frame."""
    world.connect()
    world.core.receive_data(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3, world.clock.now)
    world.drop()


def closed_when_ready(world: World) -> None:
    """The server says hello and closes, as one that is being drained."""
    world.connect()
    world.serve(SPECIFIED, 0)
    world.drop()


def closed_after_an_ack(world: World) -> None:
    """There is progress on every connection, so the backoff starts over each time."""
    world.connect()
    world.serve(SPECIFIED, 1)
    world.drop()


def closed_after_an_ack_deployed(world: World) -> None:
    """The same by a published server."""
    world.connect()
    world.serve(DEPLOYED, 1)
    world.drop()


PLAYS = [refused, closed_at_once, reset_at_once, garbage, closed_when_ready, closed_after_an_ack]


@pytest.mark.parametrize("hosts", [1, 3])
@pytest.mark.parametrize("play", [*PLAYS, closed_after_an_ack_deployed])
def test_at_most_ten_attempts_a_second(play: Play, hosts: int) -> None:
    """Under every close pattern, with one host or several, whatever dialects are tried."""
    world = World(hosts)
    world.run(60.0, play)
    assert 2 <= world.most_in_a_second() <= 10
    assert world.core.attempts == len(world.attempts)


@pytest.mark.parametrize("play", [refused, closed_at_once, garbage, closed_when_ready])
def test_without_progress_attempts_get_rare(play: Play) -> None:
    """The delay grows to the cap when nothing is acknowledged."""
    world = World(1, dialect="specified")
    world.run(600.0, play)
    late = [each for each in world.attempts if each > world.attempts[0] + 60]
    assert len(late) <= 600 / 5 + 1


def test_progress_goes_on_between_closes() -> None:
    """A server that takes one frame for each connection gets all of them in the end."""
    world = World(1, dialect="specified")
    world.run(30.0, closed_after_an_ack)
    assert world.journal.acked_fsn > 100


def test_a_budget_is_about_outages() -> None:
    """It ends when no connection could be used for that long; a usable one starts it over."""
    world = World(1, dialect="specified", budget=3.0)
    world.run(60.0, refused)
    assert isinstance(world.core.failure, DeadlineExceeded)
    assert 2.9 <= world.clock.now - world.attempts[0] <= 3.1
    world = World(1, dialect="specified", budget=3.0)
    world.run(60.0, closed_after_an_ack)
    assert world.core.failure is None


def test_an_attempt_that_is_held_back_can_be_called_off() -> None:
    """Closing in between leaves nothing behind."""
    world = World(3)
    world.run(0.05, closed_at_once)
    held = world.core.next_action(world.clock.now)
    assert held is None
    world.core.close(world.clock.now, 0.0)
    world.core.handle_timeout(world.clock.now)
    world.core.next_action(world.clock.now)
    assert world.core.finished
