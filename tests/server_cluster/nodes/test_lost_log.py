"""A node whose log was made again keeps all that it has applied: nothing else may have it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, end_of, readiness, until

from lance_server.cluster import member
from lance_server.cluster.applying.mark import load_mark
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.node_options import NodeOptions
from lance_server.cluster.replicated_log import LogReplacedError
from lance_server.errors import UncleanStopError
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing.replicated_log import FaultyLog


class Replaceable(FaultyLog):
    """A log that is made again when a test says so."""

    replaced = False

    def limit(self, shard: int, position: int) -> int:
        """Return how much may be seen.

        Raises:
            LogReplacedError: the log was made again.
        """
        if self.replaced:
            raise LogReplacedError("the log was made again")
        return super().limit(shard, position)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that runs."""
    found = Cluster(tmp_path)
    found.start(1)
    yield found
    for number in list(found.nodes):
        found.stop(number)


def test_a_mark_is_written_before_the_node_stops_applying(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although none is due: a cluster goes on in another log with what the marks say."""
    monkeypatch.setattr(member, "NodeOptions", partial(NodeOptions, mark_seconds=1e9))
    log = Replaceable(cluster.log)
    node = cluster.start(3, ClusterMember(log))
    with cluster.client(1) as one, cluster.client(3) as three:
        one.store([b"kept"], batch_id=NONCE + 1)
        end = end_of(one)
        until(lambda: end_of(three) == end)
    log.replaced = True
    until(lambda: "the log was made again" in readiness(node))
    with pytest.raises(UncleanStopError, match="made again"):
        cluster.nodes.pop(3).stop()
    mark = load_mark(PwritevStorage(), cluster.folder / "node3", 0)
    assert mark is not None, "one was written"
    assert mark.topics[0].state.end == end
