"""``lwp cluster status`` reads a log that nodes write and trim meanwhile."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from lance_server.cluster.commands import cluster
from lance_server.cluster.memory import MemoryLog, forget_log, named_log
from lance_server.cluster.records import encode
from lance_spec.messages.replication import HostLeaves, NodeStatus

NAME = "status"
RECORDS = 10


@pytest.fixture
def log() -> Iterator[MemoryLog]:
    """A log in which a node has told of itself last."""
    found = named_log(NAME, shards=1)
    for number in range(RECORDS):
        found.put(0, encode(HostLeaves(node_id=9, shard=0), 1, number + 1))
    told = NodeStatus(
        node_id=7,
        replaces=0,
        address="host7:1992",
        release="1",
        apply_version=1,
        clock_ns=1,
        positions=[],
    )
    found.put(0, encode(told, 1, RECORDS + 1))
    yield found
    forget_log(NAME)


def test_it_is_trimmed_while_it_is_read(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is read from where it begins now."""
    earliest, trims = MemoryLog.earliest, iter(range(1, 4))

    def trimmed(found: MemoryLog, shard: int) -> int:
        first = earliest(found, shard)
        found.trim(shard, next(trims, first))
        return first

    monkeypatch.setattr(MemoryLog, "earliest", trimmed)
    result = CliRunner().invoke(cluster, ["status", f"memory://{NAME}"])
    assert result.exit_code == 0, result.output
    assert "node 7 at host7:1992" in result.output
    assert log.end(0) == RECORDS + 1
