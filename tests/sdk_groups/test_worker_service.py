"""The worker service of the documentation: killed, suspended, deployed again."""

import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from lance_sdk import Client, TopicsProducer
from lance_sdk.groups import Coordinator
from lance_server.embedded import EmbeddedServer
from lance_server.testing import eventually

SERVICE = Path(__file__).with_name("service.py")
CUSTOMERS = 24


class Line(NamedTuple):
    """A line of the ledger."""

    kind: str
    topic: str
    offset: int
    rest: tuple[str, ...]


class Service:
    """Three workers, a ledger, and what has been paid.

    Attributes:
        topic: the partitioned topic.
        paid: how many payments each customer made.
        zombie: the worker that was suspended beyond its session.
    """

    def __init__(self, server: EmbeddedServer, coordinator: Coordinator, folder: Path) -> None:
        self.topic = f"payments{uuid4().hex[:8]}"
        self.paid = 0
        self.zombie = ""
        self._server, self._coordinator = server, coordinator
        self._ledger = folder / "ledger"
        self._workers: dict[str, subprocess.Popen[str]] = {}
        with Client(server.url) as client:
            client.create_topic(self.topic, partitions=8)
        self.producer = TopicsProducer(f"{server.url}/{self.topic}").open()

    def start(self, name: str) -> None:
        """Start a worker, and wait until it has partitions."""
        where = (self._server.url, self._coordinator.url, name, str(self._ledger), self.topic)
        self._workers[name] = subprocess.Popen(
            [sys.executable, SERVICE, *where], stdout=subprocess.PIPE, text=True
        )
        self.wait_for(name, "assigned")

    def wait_for(self, name: str, beginning: str) -> None:
        """Wait for a line that a worker prints."""
        output = self._workers[name].stdout
        assert output is not None
        assert any(line.startswith(beginning) for line in output)

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a worker a signal."""
        self._workers[name].send_signal(number)

    def end(self, name: str, number: signal.Signals) -> None:
        """End a worker, and wait until it has."""
        worker = self._workers.pop(name)
        worker.send_signal(number)
        worker.communicate(timeout=60)

    def pay(self, count: int) -> None:
        """Have every customer pay so many times more."""
        for number in range(self.paid, self.paid + count):
            for customer in range(CUSTOMERS):
                self.producer.send(b"%d" % number, key=b"customer-%d" % customer)
        self.producer.flush()
        self.paid += count

    def lines(self, *kinds: str) -> list[Line]:
        """Return the lines of these kinds in the ledger, in its order."""
        text = self._ledger.read_text() if self._ledger.exists() else ""
        split = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [
            Line(first, topic, int(offset), tuple(rest))
            for first, topic, offset, *rest in split
            if first in kinds
        ]

    def payments(self) -> dict[str, list[int]]:
        """Return the payments of each customer as they stand in the ledger."""
        found: dict[str, list[int]] = defaultdict(list)
        for line in self.lines("paid"):
            customer, number, _ = line.rest
            if number.isdecimal():
                found[customer].append(int(number))
        return found

    def all_written(self) -> bool:
        """Whether every payment is in the ledger."""
        found = self.payments()
        wanted = set(range(self.paid))
        return len(found) == CUSTOMERS and all(set(each) == wanted for each in found.values())

    def is_suspended(self) -> bool:
        """Whether a worker is suspended, which is the zombie then."""
        for name, worker in self._workers.items():
            state = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "T":
                self.zombie = name
        return bool(self.zombie)

    def close(self) -> None:
        """End everything."""
        self.producer.close()
        for worker in self._workers.values():
            worker.kill()
            worker.communicate()


@pytest.fixture(scope="module")
def service(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return the service with three workers."""
    folder = tmp_path_factory.mktemp("service")
    store = f"file:{folder}/offsets"
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.1) as coordinator:
        service = Service(server, coordinator, folder)
        try:
            for name in ("a", "b", "c"):
                service.start(name)
            yield service
        finally:
            service.close()


@pytest.fixture(scope="module")
def survived(service: Service) -> Service:
    """Return the service after a kill, a suspension and a deployment."""
    service.pay(10)
    eventually(service.all_written)
    service.pay(10)
    service.end("a", signal.SIGKILL)
    service.start("a")
    service.pay(10)
    eventually(service.all_written)
    service.producer.send(b"suspend", key=b"somebody", partition=3)
    service.producer.flush()
    eventually(service.is_suspended)
    service.pay(5)
    eventually(service.all_written)  # others have its partitions, beyond the session
    service.send(service.zombie, signal.SIGCONT)
    service.wait_for(service.zombie, "fenced")
    for name in ("a", "b", "c"):
        service.pay(2)
        service.end(name, signal.SIGTERM)
        service.start(name)
    service.pay(5)
    eventually(service.all_written)
    return service


def test_no_payment_is_lost(survived: Service) -> None:
    """Every payment of every customer is in the ledger."""
    assert survived.all_written()


def test_payments_of_a_customer_keep_their_order(survived: Service) -> None:
    """None stands in front of an earlier one that was not written before."""
    for numbers in survived.payments().values():
        newest = -1
        for number in numbers:
            assert number <= newest + 1
            newest = max(newest, number)


def test_only_what_was_not_committed_comes_twice(survived: Service) -> None:
    """What the killed and the suspended worker had in hand; no deployment repeats anything."""
    written = [line[1:3] for line in survived.lines("paid")]
    in_hand = 20  # max_poll_records of the service
    assert len(written) - len(set(written)) <= 2 * in_hand


def test_no_commit_goes_back(survived: Service) -> None:
    """The worker that was suspended is fenced: what it says later changes nothing."""
    committed: dict[str, int] = defaultdict(int)
    for line in survived.lines("done"):
        assert line.offset >= committed[line.topic]
        committed[line.topic] = line.offset


def test_nothing_is_written_again_after_its_commit(survived: Service) -> None:
    """But by the worker that was suspended in the middle of a batch."""
    committed: dict[str, int] = defaultdict(int)
    for line in survived.lines("paid", "done"):
        if line.kind == "done":
            committed[line.topic] = line.offset
        else:
            assert line.offset >= committed[line.topic] or line.rest[-1] == survived.zombie
