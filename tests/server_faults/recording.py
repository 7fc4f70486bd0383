"""A client that records what became of each batch, and the judge of what a server has then."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final, NamedTuple

from lance_server.log.recovery.recovery_report import RecoveryReport
from lance_server.testing import RawClient
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.messages.lwp import Fetch, FetchResponse
from lance_spec.records import decode_records

SECONDS: Final = float(os.environ.get("LANCE_FAULT_SECONDS", "0"))
"""How long faults of all kinds are looked for; the long profile sets an hour."""
LONG: Final = SECONDS > 0
Read = dict[int, bytes]
"""Values by offset."""
_WINDOW: Final = 8
_PAUSE: Final = 0.02
"""Seconds that a producer waits after batches were refused."""
_SIZES: Final = (10, 80, 700, 2_500, 9_000, 40_000)


class Outcome(Enum):
    """What the server said of a batch."""

    ACKED = "acknowledged"
    REFUSED = "nothing was stored"
    UNKNOWN = "not known"


class Fact(NamedTuple):
    """What became of a batch, and how many changes of the disk were recorded by then."""

    outcome: Outcome
    at: int


@dataclass
class History:
    """Everything that was sent to one topic, in order, and everything that was read.

    Attributes:
        topic_id: the topic.
        created: after how many changes of the disk it was there.
        sent: the values of each batch, by its number.
        facts: what became of it.
        seen: what was read, and after how many changes first.
        volatile: batches whose acknowledgement a loss of power may take back.
        doubtful: those of them that one may have taken.
    """

    topic_id: int
    created: int = 0
    sent: dict[int, list[bytes]] = field(default_factory=dict)
    facts: dict[int, Fact] = field(default_factory=dict)
    seen: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    volatile: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)

    def acked(self, until: int | None = None) -> list[int]:
        """Return the batches that were acknowledged before so many changes; None: ever."""
        return [
            number
            for number, fact in self.facts.items()
            if fact.outcome is Outcome.ACKED and (until is None or fact.at <= until)
        ]

    def new_batch(self) -> tuple[int, list[bytes]]:
        """Return the number of the next batch and its values."""
        number = len(self.sent) + 1
        random = Random(self.topic_id * 1_000_003 + number)
        values = [
            b"%d/%d/%d " % (self.topic_id, number, part) + random.randbytes(random.choice(_SIZES))
            for part in range(random.randint(1, 3))
        ]
        self.sent[number] = values
        return number, values

    def lose_power(self) -> None:
        """Note that what was not durable may be gone."""
        self.doubtful |= self.volatile
        self.volatile.clear()

    def forget_lost(self, read: Read) -> None:
        """Take what a loss of power was allowed to take back, and did, for not acknowledged."""
        for number in self.doubtful - set(self._batches(read)):
            self.facts[number] = Fact(Outcome.UNKNOWN, 0)
        self.doubtful.clear()
        self.seen.clear()

    def judge(
        self,
        read: Read,
        acked: Sequence[int],
        *,
        until: int | None = None,
        lossy: bool = False,
    ) -> None:
        """Compare what a server has with what happened.

        Args:
            read: all that it has of the topic.
            acked: the batches that were acknowledged before it was read.
            until: the disk is as it was after so many changes, or later; None: as it is.
            lossy: what was acknowledged may be lost.

        Raises:
            AssertionError: something is lost, invented, repeated, out of order or moved.
        """
        found = list(self._batches(read))
        assert found == sorted(set(found)), f"topic {self.topic_id}: out of order, or repeated"
        held = set(found)
        if not lossy:
            lost = set(acked) - held - self.doubtful
            assert not lost, f"topic {self.topic_id}: acknowledged batches {sorted(lost)} are lost"
        for number in held:
            fact = self.facts.get(number)
            refused = fact is not None and fact.outcome is Outcome.REFUSED
            assert not refused or (until is not None and fact.at > until), (
                f"topic {self.topic_id}: batch {number} was refused, and is there"
            )
        for offset, (value, at) in self.seen.items():
            if (until is None or at <= until) and not (lossy or self.doubtful):
                assert read.get(offset) == value, f"topic {self.topic_id}: {offset} has changed"

    def _batches(self, read: Read) -> Iterator[int]:
        """Yield the numbers of the batches that stand whole in a topic; there is nothing else."""
        values = [value for _, value in sorted(read.items())]
        place = 0
        while place < len(values):
            number = int(values[place].split(b"/")[1])
            expected = self.sent[number]
            assert values[place : place + len(expected)] == expected, (
                f"topic {self.topic_id}: batch {number} is not what was sent"
            )
            yield number
            place += len(expected)


class Producer(threading.Thread):
    """Sends batches to one topic, as many as are wanted, until it is told to stop.

    It ends early when the server is gone. After a refusal it waits a moment, as clients do.

    Args:
        address: the server.
        history: where it writes down what happens.
        clock: how many changes of the disk were recorded.

    Attributes:
        outcomes: how many batches ended in which way.
    """

    def __init__(
        self, address: tuple[str, int], history: History, clock: Callable[[], int] = lambda: 0
    ) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._history = history
        self._clock = clock
        self._news = threading.Condition()
        self._open: list[int] = []
        self._stopping = self._ended = False
        self._wanted: tuple[Outcome, ...] = ()
        self._goal = 0
        self.outcomes = dict.fromkeys(Outcome, 0)

    def want(self, count: int, *outcomes: Outcome) -> None:
        """Send until so many more batches have one of some outcomes."""
        with self._news:
            self._wanted = outcomes
            self._goal = count + self._count()
            self._news.notify_all()

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until what is wanted has happened, or the server is gone; return which.

        Raises:
            AssertionError: neither happened in time.
        """
        with self._news:
            done = self._news.wait_for(lambda: self._is_satisfied or self._ended, timeout)
            assert done, f"topic {self._history.topic_id}: {self.outcomes}"
            return self._is_satisfied

    def stop(self) -> None:
        """Send nothing any more, and wait for what is on its way."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        self.join()

    def run(self) -> None:
        """Send and write down."""
        try:
            with RawClient(self._address) as client:
                while self._open or self._may_send():
                    while len(self._open) < _WINDOW and not (self._stopping or self._is_satisfied):
                        self._send(client)
                    if self._open:
                        self._receive(client)
        except (ConnectionError, TimeoutError):
            pass
        for number in list(self._open):
            self._settle(number, Outcome.UNKNOWN)
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _count(self) -> int:
        return sum(self.outcomes[each] for each in self._wanted)

    @property
    def _is_satisfied(self) -> bool:
        return self._count() >= self._goal

    def _may_send(self) -> bool:
        """Wait until there is something to send; False: there never will be."""
        with self._news:
            self._news.wait_for(lambda: self._stopping or not self._is_satisfied)
            return not self._stopping

    def _send(self, client: RawClient) -> None:
        number, values = self._history.new_batch()
        self._open.append(number)
        client.send(client.batch(values, batch_id=number, topic_id=self._history.topic_id))

    def _receive(self, client: RawClient) -> None:
        frame = client.receive()
        if frame.kind is FrameKind.ACK:
            self._settle(frame.batch_id, Outcome.ACKED)
        elif frame.command == Command.ERROR_RESPONSE:
            error = client.error(frame)
            refused = error.code == ErrorCode.BACKPRESSURE
            number = int(str(error.details["batch_id"]))
            self._settle(number, Outcome.REFUSED if refused else Outcome.UNKNOWN)
            if not self._open:
                with self._news:
                    self._news.wait_for(lambda: self._stopping or self._is_satisfied, _PAUSE)

    def _settle(self, number: int, outcome: Outcome) -> None:
        self._open.remove(number)
        with self._news:
            self._history.facts[number] = Fact(outcome, self._clock())
            self.outcomes[outcome] += 1
            self._news.notify_all()


def meet(producers: Sequence[Producer], count: int, *outcomes: Outcome) -> None:
    """Have each producer send until so many more of its batches have one of some outcomes.

    Raises:
        AssertionError: that did not happen, or the server is gone.
    """
    for each in producers:
        each.want(count, *outcomes)
    for each in producers:
        assert each.wait(), "the server is gone"


@contextmanager
def load(
    address: tuple[str, int], histories: Sequence[History], clock: Callable[[], int] = lambda: 0
) -> Iterator[list[Producer]]:
    """Have a producer for each topic for as long as the context lasts."""
    producers = [Producer(address, each, clock) for each in histories]
    for each in producers:
        each.start()
    try:
        yield producers
    finally:
        for each in producers:
            each.stop()


def create_topics(
    address: tuple[str, int], count: int, clock: Callable[[], int] = lambda: 0
) -> list[History]:
    """Create topics and begin their histories."""
    with RawClient(address) as client:
        ids = [client.create_topic(f"topic-{number}") for number in range(count)]
        return [History(topic_id, clock()) for topic_id in ids]


def read_topic(client: RawClient, topic_id: int) -> Read:
    """Return all values of a topic by their offsets.

    Raises:
        AssertionError: the server refused to read it.
    """
    read: Read = {}
    start = 0
    while True:
        request = Fetch(topic_id, start, 4 * 1024 * 1024).encode()
        frame = client.ask(Command.FETCH, request)
        assert frame.command == Command.FETCH_RESPONSE, (topic_id, start, bytes(frame.payload))
        answer = FetchResponse.decode(frame.payload)
        offset = start
        for _, value in decode_records(bytes(answer.data)):
            read[offset] = bytes(value)
            offset += RECORD_HEADER_SIZE + len(value)
        if answer.next_offset == start:
            return read
        start = answer.next_offset


def judge_all(
    address: tuple[str, int],
    histories: Sequence[History],
    *,
    until: int | None = None,
    lossy: bool = False,
    keep: bool = False,
) -> None:
    """Read all topics and compare them with what happened; see `History.judge`.

    Args:
        address: the server.
        histories: what happened, by topic.
        until: the disk is as it was after so many changes; None: as it is.
        lossy: what was acknowledged may be lost.
        keep: what was read is to be there from now on, and what is lost is.
    """
    with RawClient(address) as client:
        for history in histories:
            acked = history.acked(until)  # first: producers may have more acknowledged meanwhile
            read = read_topic(client, history.topic_id)
            history.judge(read, acked, until=until, lossy=lossy)
            if keep:
                if history.doubtful:
                    history.forget_lost(read)
                for offset, value in read.items():
                    history.seen.setdefault(offset, (value, 0))


def assert_nothing_is_damaged(report: RecoveryReport) -> None:
    """A start found nothing that was acknowledged and is lost."""
    bad = {"damage", "lost segment", "unavailable topic", "unrepeated write"}
    assert [str(each) for each in report.findings if each.kind in bad] == []
