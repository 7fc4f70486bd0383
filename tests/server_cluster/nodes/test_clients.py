"""The SDK against a cluster: a node goes while it writes, and another one takes over."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulation.cluster.logs import SETTINGS

from lance_sdk import Client, Consumer, Producer
from lance_sdk.journal import StoreAndForwardSender
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.records import encode
from lance_server.config.settings import Address, ServerConfig
from lance_server.embedded import EmbeddedServer

RECORDS = 300


class Nodes:
    """Nodes of one log.

    Attributes:
        running: those that run, by number.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = MemoryLog("log-1")
        settings = SETTINGS.__class__(cluster_id="c-1", created_ns=SETTINGS.created_ns)
        self._log.put(0, encode(settings.to_genesis(), 1, 0))
        self.running: dict[int, EmbeddedServer] = {}

    def start(self, number: int, port: int = 0) -> None:
        """Start a node."""
        config = ServerConfig(
            data_dir=self._folder / f"node{number}",
            listen=Address("127.0.0.1", port),
            node_id=number,
        )
        self.running[number] = EmbeddedServer(config, cluster=ClusterMember(self._log))

    def stop(self, number: int) -> None:
        """Stop a node."""
        self.running.pop(number).stop()

    def url(self, *numbers: int, topic: str) -> str:
        """Return the URL of some of the nodes."""
        addresses = [Address(*self.running[number].address) for number in numbers]
        hosts = ",".join(map(str, addresses))
        return f"lance://{hosts}/{topic}"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Two nodes that run."""
    found = Nodes(tmp_path)
    for number in (1, 2):
        found.start(number)
    yield found
    for number in list(found.running):
        found.stop(number)


def read(url: str, count: int = RECORDS) -> list[bytes]:
    """Return the first values of a topic; wait for them."""
    found: list[bytes] = []
    with Consumer(url, start="beginning") as consumer:
        while len(found) < count:
            batch = consumer.poll(30)
            assert batch is not None, f"only {len(found)} came"
            found += [bytes(record.value) for record in batch]
    return found


def test_a_producer_goes_on_at_another_node(nodes: Nodes) -> None:
    """Every record is there once, in order, although its node stopped in the middle."""
    sent = [b"record %d" % number for number in range(RECORDS)]
    url = nodes.url(1, 2, topic="orders")
    gone = threading.Thread(target=nodes.stop, args=(1,))
    with Producer(url, create_topic=True) as producer:
        for number, value in enumerate(sent):
            producer.send(value)
            if number == RECORDS // 2:
                gone.start()
            if number % 10 == 0:
                producer.flush()
    gone.join()
    assert read(nodes.url(2, topic="orders")) == sent


def test_offsets_hold_on_every_node(nodes: Nodes) -> None:
    """A consumer that was at one node goes on at another where it was."""
    with Producer(nodes.url(1, topic="orders"), create_topic=True) as producer:
        for number in range(RECORDS):
            producer.send(b"record %d" % number)
    assert read(nodes.url(1, topic="orders")) == read(nodes.url(2, topic="orders"))


def test_all_nodes_are_restarted_one_after_the_other_under_load(nodes: Nodes) -> None:
    """As an upgrade does it: every record is there once, in order, on every node."""
    sent = [b"record %d" % number for number in range(RECORDS)]
    url = nodes.url(1, 2, topic="orders")
    ports = {number: node.address[1] for number, node in nodes.running.items()}
    begun = threading.Event()

    def restart_all() -> None:
        begun.wait()
        for number, port in ports.items():
            nodes.stop(number)
            nodes.start(number, port)

    restarts = threading.Thread(target=restart_all)
    restarts.start()
    with Producer(url, create_topic=True) as producer:
        for number, value in enumerate(sent):
            producer.send(value)
            if number == RECORDS // 4:
                begun.set()
            if number % 10 == 0:
                producer.flush()
        restarts.join()
        producer.flush()
    for number in ports:
        assert read(nodes.url(number, topic="orders")) == sent


def test_a_store_and_forward_sender_goes_on_at_another_node(nodes: Nodes, tmp_path: Path) -> None:
    """What it kept on its disk is stored once, in order, although its node stopped."""
    sent = [b"record %d" % number for number in range(RECORDS)]
    url = nodes.url(1, 2, topic="orders")
    with Client(nodes.url(1, topic="")) as client:
        client.create_topic("orders")
    with StoreAndForwardSender(url, tmp_path / "journal", close_timeout=60) as sender:
        for value in sent[: RECORDS // 2]:
            sender.send(value)
        assert read(nodes.url(1, topic="orders"), RECORDS // 2) == sent[: RECORDS // 2]
        nodes.stop(1)
        for value in sent[RECORDS // 2 :]:
            sender.send(value)
    assert read(nodes.url(2, topic="orders")) == sent
