"""QWP, Fluvio and RustLog at nodes that host some of the shards."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server_cluster.shards.test_hosting import ONE, TWO, Hosts, names

from lance_sdk.fluvio import FluvioClient
from lance_sdk.fluvio.errors import FluvioRefused
from lance_sdk.journal.qwp import QwpSender
from lance_sdk.rustlog import RustlogClient
from lance_sdk.rustlog.errors import RustlogError
from lance_server.config.settings import Address
from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.listener import FluvioListener, fluvio_listeners
from lance_server.listeners.qwp.listener import QwpListener
from lance_server.listeners.rustlog.listener import RustlogListener

LOCAL = Address("127.0.0.1", 0)


class Speaking(Hosts):
    """Nodes that serve every protocol: the first one hosts shard 1, the second one shard 2."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.qwp: dict[int, QwpListener] = {}
        self.rustlog: dict[int, RustlogListener] = {}
        self.fluvio: dict[int, list[FluvioListener]] = {}
        for number, shards in ((1, ONE), (2, TWO)):
            qwp, rustlog = QwpListener(LOCAL), RustlogListener(LOCAL)
            fluvio = fluvio_listeners(LOCAL, LOCAL, Cluster())
            self.host(number, shards, listeners=[qwp, rustlog, *fluvio])
            self.qwp[number], self.rustlog[number] = qwp, rustlog
            self.fluvio[number] = fluvio


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Speaking]:
    """Nodes, and a topic of the second one."""
    found = Speaking(tmp_path_factory.mktemp("nodes"))
    with found.client(2) as client:
        client.create_topic("orders")
    yield found
    for number in list(found.nodes):
        found.stop(number)


def test_rows_for_another_node_go_there(nodes: Speaking) -> None:
    """The first one refuses them, and says that it is about the moment: none is dropped."""
    hosts = ",".join(str(nodes.qwp[number].address) for number in (1, 2))
    with QwpSender.from_conf(f"ws::addr={hosts};") as sender:
        sender.row("orders", columns={"number": 1})
        assert sender.wait(timeout=60, fsn=sender.flush())
    with nodes.client(2) as two:
        assert b'{"number":1}' in two.read_all(topic_id=names(two)["orders"])


def _produce(client: RustlogClient) -> object:
    return client.produce("orders", [b"one"])


def _read(client: RustlogClient) -> object:
    return list(client.records("orders", 0))


def _commit(client: RustlogClient) -> object:
    return client.commit("billing", "orders", 1)


def _look_up(client: RustlogClient) -> object:
    return client.committed("billing", "orders")


@pytest.mark.parametrize("ask", [_produce, _read, _commit, _look_up])
def test_rustlog_names_the_host_of_a_topic(
    nodes: Speaking, ask: Callable[[RustlogClient], object]
) -> None:
    """In the text of what is refused."""
    with (
        RustlogClient(str(nodes.rustlog[1].address)) as client,
        pytest.raises(RustlogError, match=f"the node at {nodes.address(2)} does"),
    ):
        ask(client)


def test_rustlog_lists_the_topics_that_the_node_has(nodes: Speaking) -> None:
    """No other."""
    with RustlogClient(str(nodes.rustlog[1].address)) as client:
        assert "orders" not in client.topics()


def _create(client: FluvioClient) -> object:
    return client.create_topic("orders")


def _delete(client: FluvioClient) -> object:
    return client.delete_topic("orders")


@pytest.mark.parametrize("ask", [_create, _delete])
def test_fluvio_names_the_host_of_a_topic(
    nodes: Speaking, ask: Callable[[FluvioClient], object]
) -> None:
    """In the text of what is refused."""
    with (
        FluvioClient(str(nodes.fluvio[1][1].address)) as client,
        pytest.raises(FluvioRefused, match=f"the node at {nodes.address(2)} does"),
    ):
        ask(client)


def test_fluvio_lists_the_topics_that_the_node_has(nodes: Speaking) -> None:
    """No other; so its clients find no topic of another node."""
    with FluvioClient(str(nodes.fluvio[1][1].address)) as client:
        assert "orders" not in [each.name for each in client.topics()]
        with pytest.raises(FluvioRefused, match="topic not found"):
            client.producer("orders")
