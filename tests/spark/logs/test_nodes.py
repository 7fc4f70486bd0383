"""Spark at the nodes of a cluster: what one node served, the next one goes on with."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.server_cluster.shards.test_hosting import running
from tests.spark.streaming.test_streams import Query

from lance_sdk import Client, Producer
from lance_sdk.spark.options import Options
from lance_sdk.spark.writing import sinks
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.records import encode
from lance_server.config.settings import ServerConfig
from lance_server.embedded import EmbeddedServer

VALUES = [b"value %d" % number for number in range(500)]


class Nodes:
    """Two nodes of one log.

    Attributes:
        running: those that run, by number.
        at: the options that lead to both.
    """

    def __init__(self, folder: Path) -> None:
        log = MemoryLog("log-1")
        log.put(0, encode(Settings(cluster_id="c-1", created_ns=1).to_genesis(), 1, 0))
        self.running: dict[int, EmbeddedServer] = {}
        for number in (1, 2):
            config = ServerConfig(data_dir=folder / f"node{number}", node_id=number)
            self.running[number] = EmbeddedServer(config, cluster=ClusterMember(log))
        hosts = ["{}:{}".format(*node.address) for node in self.running.values()]
        self.at: Mapping[str, str] = {"servers": ",".join(hosts), "dialect": "specified"}
        self.url = f"lance://{','.join(hosts)}/"

    def stop(self, number: int) -> None:
        """Stop a node; whoever is connected to it is cut off."""
        self.running.pop(number).stop()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Two nodes that run."""
    found = Nodes(tmp_path)
    yield found
    for number in list(found.running):
        found.stop(number)


def test_a_stream_goes_on_at_another_node(nodes: Nodes, reader: Any) -> None:
    """Its offsets mean the same there, and a micro-batch that is repeated is the same."""
    with Producer(f"{nodes.url}orders", create_topic=True) as producer:
        producer.send_many(VALUES[:200])
    query = Query(reader, **nodes.at, topic="orders")
    first = query.rest()
    end = query.at
    nodes.stop(1)
    with Producer(f"{nodes.url}orders") as producer:
        producer.send_many(VALUES[200:])
    assert first + query.rest() == VALUES
    again = Query(reader, **nodes.at, topic="orders")
    assert again.replay(end) == first


def test_a_sink_goes_on_at_another_node(nodes: Nodes, reader: Any) -> None:
    """Every row is there once, in order, although its node stopped in the middle."""
    with Client(nodes.url) as client:
        client.create_topic("copy")
    said = Options.parse({**nodes.at, "topic": "copy", "batchBytes": "500"})

    def batches(harm: Callable[[], None]) -> Iterator[pa.RecordBatch]:
        for place in range(0, len(VALUES), 100):
            if place == 200:
                harm()
            yield pa.RecordBatch.from_pydict({"value": VALUES[place : place + 100]})

    sink = sinks.batch_sink(said, ["value"], overwrite=False)
    written = sink.write(batches(lambda: nodes.stop(1)), sinks.Task())
    assert written.records == len(VALUES)
    assert reader.values(**nodes.at, topic="copy") == VALUES


@pytest.mark.parametrize("redirects", [False, True])
def test_a_node_leads_to_what_others_host(tmp_path: Path, reader: Any, redirects: bool) -> None:
    """Rows are written to, and read and streamed from, a topic that only another node has."""
    for hosts in running(tmp_path, redirects=redirects):
        with hosts.client(2) as two:
            two.create_topic("far")
        at = {"servers": hosts.address(1), "dialect": "specified", "topic": "far"}
        sink = sinks.batch_sink(Options.parse(at), ["value"], overwrite=False)
        sink.write(iter([pa.RecordBatch.from_pydict({"value": VALUES})]), sinks.Task())
        assert reader.values(**at) == VALUES
        assert Query(reader, **at).rest(100) == VALUES
