"""Every protocol at nodes over a real broker: one node is killed, and another one goes on."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.nodes import Nodes

from lance_sdk import Client, Consumer, Coordinator, GroupConsumer, Producer
from lance_sdk.fluvio import FluvioClient
from lance_sdk.journal import StoreAndForwardSender
from lance_sdk.journal.qwp import QwpSender
from lance_sdk.rustlog import RustlogClient
from lance_server.testing import free_port
from lance_server.testing.process import eventually
from lance_spec.enums import Command
from lance_spec.messages import lwp

PROTOCOLS: Final = ("qwp", "fluvio-sc", "fluvio-spu", "rustlog")
ROWS: Final = 200


class Speaking(Nodes):
    """Nodes that serve every protocol."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        super().__init__(folder, url, stack)
        self._ports: dict[tuple[int, str], int] = {}

    def options(self, number: int) -> list[str]:
        """Return what a node is told."""
        listeners = [[f"--{name}", self.at(number, name)] for name in PROTOCOLS]
        return [*super().options(number), *(each for pair in listeners for each in pair)]

    def at(self, number: int, protocol: str) -> str:
        """Return where a node serves a protocol."""
        port = self._ports.setdefault((number, protocol), free_port())
        return f"127.0.0.1:{port}"

    def lance(self, *numbers: int, path: str = "") -> str:
        """Return the URL of nodes in the server's own protocol."""
        hosts = [f"127.0.0.1:{self.running[number].address[1]}" for number in numbers]
        return f"lance://{','.join(hosts)}/{path}"

    def kill(self, number: int) -> None:
        """End a node at once."""
        self.running.pop(number).end(signal.SIGKILL)


@pytest.fixture
def nodes(tmp_path: Path, cluster: str) -> Iterator[Speaking]:
    """Two nodes that run."""
    with ExitStack() as stack:
        found = Speaking(tmp_path, cluster, stack)
        for number in (1, 2):
            found.start(number)
        yield found


def values(url: str) -> list[bytes]:
    """Return what a topic has up to its end, as its node knows it."""
    with Consumer(url, start="beginning", stop_at_end=True) as consumer:
        return [bytes(record.value) for record in consumer]


def test_rows_of_qwp_go_to_another_node(nodes: Speaking, tmp_path: Path) -> None:
    """Each row is stored; one whose acknowledgement was lost may be there twice, as anywhere."""
    hosts = ",".join(nodes.at(number, "qwp") for number in (1, 2))
    conf = f"ws::addr={hosts};sf_dir={tmp_path / 'spool'};sender_id=one;"
    with QwpSender.from_conf(conf) as sender:
        for number in range(ROWS):
            sender.row("trades", columns={"number": number})
            if number == ROWS // 2:
                assert sender.wait(timeout=60, fsn=sender.flush())
                nodes.kill(1)
        assert sender.wait(timeout=60, fsn=sender.flush())
    stored = Counter(values(nodes.lance(2, path="trades")))
    assert len(stored) == ROWS
    assert max(stored.values()) <= 2


def test_fluvio_topics_records_and_offsets_are_on_every_node(nodes: Speaking) -> None:
    """A consumer goes on at another node behind what it committed at the one that is gone."""
    with FluvioClient(nodes.at(1, "fluvio-sc")) as client:
        client.create_topic("orders", partitions=2)
        with client.producer("orders") as producer:
            for number in range(ROWS):
                producer.send(b"%d" % number, partition=0)
                if number % 50 == 0:
                    producer.flush()
        with client.consumer("orders", 0, consumer_id="worker", stop_at_end=True) as consumer:
            for number, record in enumerate(consumer):
                assert (record.offset, record.value) == (number, b"%d" % number)
                if number == ROWS // 2:
                    consumer.commit()
                    break
    nodes.kill(1)
    with FluvioClient(nodes.at(2, "fluvio-sc")) as client:
        with client.consumer("orders", 0, consumer_id="worker", stop_at_end=True) as consumer:
            assert [record.offset for record in consumer] == list(range(ROWS // 2 + 1, ROWS))
        with client.producer("orders") as producer:
            producer.send(b"more", partition=0)
            (place,) = producer.flush()
    assert place.base_offset == ROWS


def test_rustlog_topics_records_and_groups_are_on_every_node(nodes: Speaking) -> None:
    """A group goes on at another node where it was at the one that is gone."""
    with RustlogClient(nodes.at(1, "rustlog")) as client:
        client.create_topic("orders", partitions=2)
        for number in range(ROWS):
            assert client.produce("orders", [b"%d" % number]).base_offset == number
        client.commit("billing", "orders", ROWS // 2)
    nodes.kill(1)
    with RustlogClient(nodes.at(2, "rustlog")) as client:
        assert client.committed("billing", "orders") == ROWS // 2
        found = [record.value for record in client.records("orders", ROWS // 2)]
        assert found == [b"%d" % number for number in range(ROWS // 2, ROWS)]
        assert client.produce("orders", [b"more"]).base_offset == ROWS


def test_a_store_and_forward_sender_goes_on_at_another_node(
    nodes: Speaking, tmp_path: Path
) -> None:
    """Every record is there once, in order."""
    sent = [b"record %d" % number for number in range(ROWS)]
    with Client(nodes.lance(1)) as client:
        client.create_topic("orders")
    url = nodes.lance(1, 2, path="orders")
    with StoreAndForwardSender(url, tmp_path / "journal", close_timeout=60) as sender:
        for number, value in enumerate(sent):
            sender.send(value)
            if number == ROWS // 2:
                nodes.kill(1)
    assert values(nodes.lance(2, path="orders")) == sent


def test_a_group_goes_on_at_another_node(nodes: Speaking, tmp_path: Path) -> None:
    """Its member reads everything once, in order, and commits."""
    url = nodes.lance(1, 2)
    sent = [b"record %d" % number for number in range(ROWS)]
    with Producer(f"{url}orders", create_topic=True) as producer:
        for value in sent:
            producer.send(value)
    with nodes.client(1) as one, nodes.client(2) as two:
        topic = one.ask_json(Command.LIST_TOPICS)["topics"][-1]["id"]  # type: ignore[index]
        asked = lwp.GetTopic(topic).encode()
        end = one.ask_json(Command.GET_TOPIC, asked)["end_offset"]
        eventually(lambda: two.ask_json(Command.GET_TOPIC, asked).get("end_offset") == end)
    with (
        Coordinator("127.0.0.1:0", store=f"sqlite:{tmp_path / 'groups.db'}") as coordinator,
        GroupConsumer(
            url,
            group="billing",
            topics=["orders"],
            coordinator=coordinator.url,
            stop_at_end=True,
            max_poll_records=10,
        ) as consumer,
    ):
        found = []
        for record in consumer:
            found.append(bytes(record.value))
            if len(found) == ROWS // 2:
                nodes.kill(1)
            if len(found) % 10 == 0:
                consumer.commit()
    assert found == sent
