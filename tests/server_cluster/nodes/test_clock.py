"""A node whose clock is wrong says so, takes no writes, and proposes nothing."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, end_of, readiness, until

from lance_server.cluster import member
from lance_server.cluster import node as node_module
from lance_server.cluster.node import ClusterNode
from lance_spec.enums import ErrorCode
from lance_spec.messages.replication import Roll
from lance_spec.records import encode_records


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that runs."""
    found = Cluster(tmp_path)
    found.start(1)
    yield found
    for number in list(found.nodes):
        found.stop(number)


class WrongClock:
    """Stands for the module ``time`` where a node takes its clocks from.

    Attributes:
        off_ns: how far its clock is off.
    """

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.off_ns = 0

    def time_ns(self) -> int:
        """Return what the clock shows."""
        return time.time_ns() + self.off_ns


@pytest.mark.parametrize("hours", [1, -1])
def test_a_node_whose_clock_is_wrong_takes_no_writes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """It says so until the clock agrees; reads go on, and so do other nodes."""
    clock = WrongClock()
    monkeypatch.setattr(member, "time", clock)
    node = cluster.start(3)
    clock.off_ns = hours * 3600 * 10**9
    until(lambda: "s off the log's: set it right" in readiness(node))
    with cluster.client(1) as one, cluster.client(3) as three:
        one.store([b"one"], batch_id=NONCE + 1)
        until(lambda: end_of(three) == end_of(one))
        assert three.read_all() == encode_records([b"one"])
        three.send(three.batch([b"two"], batch_id=NONCE + 2))
        error = three.error()
        assert error.code is ErrorCode.CLUSTER_NOT_READY
        assert "write to another node" in error.message
    clock.off_ns = 0
    until(lambda: readiness(node) == "")
    with cluster.client(3) as three:
        three.store([b"two"], batch_id=NONCE + 2)


def test_a_node_whose_clock_is_wrong_closes_no_segment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the first one, which proposes that; it does so once its clock agrees."""
    clock = WrongClock()
    monkeypatch.setattr(member, "time", clock)
    due: list[tuple[int, Any]] = [(0, Roll(topic_id=0, end=0))]
    looks: list[list[tuple[int, Any]]] = []
    plan = ClusterNode._plan

    def look(node: ClusterNode) -> list[tuple[int, Any]]:
        looks.append(plan(node))
        return looks[-1]

    cluster.stop(1)
    monkeypatch.setattr(node_module, "proposals", lambda *_told: due)
    monkeypatch.setattr(ClusterNode, "_plan", look)
    node = cluster.start(1)
    clock.off_ns = 3600 * 10**9
    until(lambda: "s off the log's" in readiness(node))
    looks.clear()
    until(lambda: len(looks) > 1)
    assert looks[1:] == [[]] * len(looks[1:])
    clock.off_ns = 0
    until(lambda: looks[-1] == due)
