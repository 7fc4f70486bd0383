"""Offsets of groups that count records, as a node shows them: their lag is in bytes, too."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, end_of

from lance_server.listeners.shared_offsets import consumer_number, counts_records
from lance_server.testing import ask_http
from lance_spec.enums import Command
from lance_spec.messages import lwp

RECORDS = 20
GROUP = consumer_number("rustlog", "billing")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that runs, with records in several segments."""
    found = Cluster(tmp_path)
    found.start(1)
    with found.client(1) as client:
        for number in range(RECORDS):
            client.store([b"." * 300], batch_id=NONCE + number)
    yield found
    found.stop(1)


@pytest.mark.parametrize("committed", [0, 1, 10, RECORDS, RECORDS + 5])
def test_the_lag_of_a_group_is_in_bytes(cluster: Cluster, committed: int) -> None:
    """All records have the same size here."""
    with cluster.client(1) as client:
        client.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(0, GROUP, committed).encode())
        end = end_of(client)
    (told,) = json.loads(ask_http(cluster.nodes[1], "/status.json").text)["consumers"]
    assert told["committed"] == committed
    assert told["lag"] == end * max(0, RECORDS - committed) // RECORDS


def test_offsets_of_other_consumers_are_bytes(cluster: Cluster) -> None:
    """As LWP has them."""
    with cluster.client(1) as client:
        client.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(0, 5, 305).encode())
        end = end_of(client)
    (told,) = json.loads(ask_http(cluster.nodes[1], "/status.json").text)["consumers"]
    assert told["lag"] == end - 305


def test_names_and_protocols_are_apart() -> None:
    """Each has a number of its own, which says what it counts."""
    numbers = {consumer_number(each, name) for each in ("rustlog", "fluvio") for name in "abc"}
    assert len(numbers) == 6
    assert all(map(counts_records, numbers))
    assert not counts_records(5)
