"""The kit's cases about restarts, asked of a node while the one that acknowledged is down."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.server_cluster.nodes.test_nodes import Cluster, until

from lance_conformance.app import app
from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.server.cases import all_cases
from lance_server.cluster.member import ClusterMember
from lance_server.testing import RawClient
from lance_spec.enums import Command

IDS = (
    "log/restart-keeps-batches",
    "log/restart-keeps-topics",
    "log/restart-keeps-offsets",
    "log/restart-goes-on",
    "log/restart-keeps-deletions",
    "log/restart-keeps-commits",
    "log/restart-knows-retries",
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes that answer linear reads."""
    found = Cluster(tmp_path)
    for number in (1, 2):
        start(found, number)
    yield found
    for number in list(found.nodes):
        found.stop(number)


def start(cluster: Cluster, number: int) -> None:
    """Start a node."""
    cluster.start(number, ClusterMember(cluster.log, linear_reads=True))


def target(cluster: Cluster, number: int) -> Target:
    """Return where a node listens."""
    return Target(*cluster.nodes[number].address)


def ask(cluster: Cluster, case_id: str) -> Result:
    """Ask node 1 a case, which ends it; node 2 is asked what follows."""

    async def stop(_target: Target) -> None:
        await asyncio.to_thread(cluster.stop, 1)

    conditions = Conditions(
        target(cluster, 1),
        SPECIFIED,
        SPECIFIED,
        restart=stop,
        fails_over=True,
        second=target(cluster, 2),
        capabilities=frozenset({"restart"}),
        budget=30.0,
    )
    cases = [case for case in all_cases() if case.id == case_id]
    (result,) = asyncio.run(ask_all(cases, conditions, jobs=1))
    return result


@pytest.mark.parametrize("case_id", IDS)
def test_what_a_node_acknowledged_another_one_has(cluster: Cluster, case_id: str) -> None:
    """While the first one is down."""
    result = ask(cluster, case_id)
    assert result.verdict is Verdict.PASS, result.message
    assert 1 not in cluster.nodes


def test_a_node_that_has_not_got_it_is_found(cluster: Cluster, tmp_path: Path) -> None:
    """One that is in no cluster with the first."""
    other = Cluster(tmp_path / "other")
    start(other, 2)
    cluster.stop(2)
    cluster.nodes[2] = other.nodes.pop(2)
    assert ask(cluster, IDS[0]).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "needs --second-target"),
        (["--second-target", "b", "--restart-cmd", "c"], "give --restart-cmd or --failover-cmd"),
        (["--second-target", "b", "--protocol", "rustlog"], "is for --protocol lwp"),
        (["--third-target", "b"], "--third-target needs --second-target"),
    ],
)
def test_a_failover_that_cannot_be_is_refused(options: list[str], words: str) -> None:
    """Before anything is asked."""
    done = CliRunner().invoke(app, ["--target", "a", "--failover-cmd", "c", *options])
    assert done.exit_code == 2
    assert words in done.output


def leader_of(client: RawClient) -> object:
    """Return which node leads, as far as one knows."""
    return client.ask_json(Command.GET_CLUSTER_STATUS)["leader_id"]


@pytest.mark.parametrize(
    "case_id", [case.id for case in all_cases() if "second-target" in case.needs]
)
def test_all_nodes_answer_alike(cluster: Cluster, case_id: str) -> None:
    """Each of three; where every node takes writes, none has to say who leads."""
    start(cluster, 3)
    for number in (1, 2, 3):
        with cluster.client(number) as client:
            until(lambda client=client: leader_of(client) == 1)
    others = {"second": target(cluster, 2), "third": target(cluster, 3)}
    conditions = Conditions(
        target(cluster, 1),
        SPECIFIED,
        SPECIFIED,
        capabilities=frozenset({"second-target"}),
        budget=30.0,
        **others,
    )
    cases = [case for case in all_cases() if case.id == case_id]
    (result,) = asyncio.run(ask_all(cases, conditions, jobs=1))
    expected = Verdict.SKIP if case_id == "clu/leader-address" else Verdict.PASS
    assert result.verdict is expected, result.message
