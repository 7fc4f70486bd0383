"""Nodes over a real broker that host some of the shards."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.nodes import UNSAFE, Nodes, lwp_cluster

from lance_sdk import Client, Consumer, Producer
from lance_server.testing.process import eventually
from lance_spec.enums import Command

RECORDS = [b"record %d" % number for number in range(200)]


@pytest.fixture
def nodes(tmp_path: Path, url: str) -> Iterator[Nodes]:
    """Two nodes that host shard 1, and one that hosts only shard 0, which all host."""
    done = lwp_cluster("init", url, "--replicas", "1", "--shards", "2", *UNSAFE)
    assert done.returncode == 0, done.stderr
    with ExitStack() as stack:
        found = Nodes(tmp_path, url, stack)
        for number, shards in ((1, "1"), (2, "1"), (3, "0")):
            found.start(number, "--shards", shards)
        with Client(address(found, 1)) as client:
            client.create_topic("orders")
        eventually(lambda: hosts(found, 3) == {"0": [1, 2, 3], "1": [1, 2]})
        yield found


def address(nodes: Nodes, number: int, path: str = "") -> str:
    """Return the URL of a node."""
    return f"lance://127.0.0.1:{nodes.running[number].address[1]}/{path}"


def hosts(nodes: Nodes, number: int) -> object:
    """Return which live nodes host each shard, as a node says."""
    with nodes.client(number) as client:
        return client.ask_json(Command.GET_CLUSTER_STATUS)["hosts"]


def values(url: str) -> list[bytes]:
    """Return what a topic has up to its end."""
    with Consumer(url, start="beginning", stop_at_end=True) as consumer:
        return [bytes(record.value) for record in consumer]


def test_a_killed_host_leaves_what_is_forwarded_to_the_other_one(nodes: Nodes) -> None:
    """Each record is stored once, in order, by a producer that knows only the third node."""
    with Producer(address(nodes, 3, "orders"), max_in_flight=1, delivery_timeout=60) as producer:
        for number, value in enumerate(RECORDS):
            producer.send(value)
            if number == len(RECORDS) // 2:
                producer.flush()
                nodes.running.pop(1).end(signal.SIGKILL)
    assert values(address(nodes, 3, "orders")) == RECORDS
    nodes.start(1, "--shards", "1")
    eventually(lambda: values(address(nodes, 1, "orders")) == RECORDS)
    for number in (1, 2, 3):
        nodes.stop(number)
    assert nodes.files(1) == nodes.files(2) != {}
    assert {name.partition("/")[0] for name in nodes.files(3)} == {"0"}


def test_a_node_that_hosts_a_shard_no_more_removes_its_files(nodes: Nodes) -> None:
    """Once two others have all of it; until then it counts as a host of it."""
    with Producer(address(nodes, 3, "orders")) as producer:
        for value in RECORDS:
            producer.send(value)
    nodes.stop(3)
    nodes.start(3, "--shards", "1")
    eventually(lambda: hosts(nodes, 1) == {"0": [1, 2, 3], "1": [1, 2, 3]})
    eventually(lambda: values(address(nodes, 3, "orders")) == RECORDS)
    nodes.stop(1)
    nodes.start(1, "--shards", "0")
    folder = nodes.folder / "node1" / "segments"
    eventually(lambda: [each.name for each in folder.iterdir()] == ["0"])
    assert values(address(nodes, 1, "orders")) == RECORDS
