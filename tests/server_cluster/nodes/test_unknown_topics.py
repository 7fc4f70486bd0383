"""A node that lags and cannot read the shared log calls no topic missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import Cluster

from lance_sdk import Client, Producer
from lance_sdk.errors import ClusterNotReady
from lance_sdk.journal import StoreAndForwardSender
from lance_server.cluster.member import ClusterMember
from lance_server.config.settings import Address
from lance_server.testing.replicated_log import FaultyLog
from lance_spec.bodies import decode_topics, is_complete
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages import lwp


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Node 1 has a topic "orders"; node 2 does not see it, and its appends do not return."""
    found = Cluster(tmp_path)
    found.start(1)
    log = FaultyLog(found.log)
    found.start(2, ClusterMember(log, ack_timeout=0.1))
    log.visible[0] = found.log.end(0)
    with found.client(1) as client:
        client.create_topic("orders")
    yield found
    log.pending.clear()
    for number in list(found.nodes):
        found.stop(number)


def url(cluster: Cluster, *numbers: int) -> str:
    """Return the URL of some of the nodes."""
    return "lance://" + ",".join(str(Address(*cluster.nodes[each].address)) for each in numbers)


def test_its_list_says_that_topics_may_lack(cluster: Cluster) -> None:
    """It tells what it knows, so that reading goes on."""
    with cluster.client(2) as client:
        answer = bytes(client.ask(Command.LIST_TOPICS).payload)
    assert (decode_topics(answer), is_complete(answer)) == ([], False)


def test_a_list_of_a_node_that_reads_the_log_is_complete(cluster: Cluster) -> None:
    """It says nothing of the kind."""
    with cluster.client(1) as client:
        assert b"complete" not in bytes(client.ask(Command.LIST_TOPICS).payload)


@pytest.mark.parametrize(
    ("command", "request_body"),
    [
        (Command.GET_TOPIC, lwp.GetTopic(1).encode()),
        (Command.FETCH, lwp.Fetch(1, 0, 1000).encode()),
    ],
)
def test_a_request_by_number_is_refused_for_now(
    cluster: Cluster, command: Command, request_body: bytes
) -> None:
    """Another node may have the topic."""
    with cluster.client(2) as client:
        client.send(client.control(command, request_body))
        assert client.error().code == ErrorCode.CLUSTER_NOT_READY


def test_a_producer_asks_another_host(cluster: Cluster) -> None:
    """The topic is there, and so is the record."""
    with Producer(f"{url(cluster, 2, 1)}/orders") as producer:
        assert producer.send(b"one").result(30)


def test_a_client_is_told_to_ask_another_node(cluster: Cluster) -> None:
    """It is not told to create the topic."""
    with (
        Client(url(cluster, 2)) as client,
        pytest.raises(ClusterNotReady, match="as far as the node knows"),
    ):
        client.get_topic("orders")


def test_a_stored_frame_is_not_put_aside(cluster: Cluster, tmp_path: Path) -> None:
    """The sender goes on at another host, although frames of missing topics are put aside."""
    with StoreAndForwardSender(
        f"{url(cluster, 2, 1)}/orders", tmp_path / "slot", on_missing_topic="dead_letter"
    ) as sender:
        sender.send(b"one")
    with cluster.client(1) as client:
        assert client.read_all(topic_id=1)
