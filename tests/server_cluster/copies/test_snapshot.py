"""A copy of a node: another one starts on it and goes on from where it was made."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, end_of, until
from tests.simulation.cluster.alone import Node
from tests.simulation.cluster.logs import DATA_DIR

from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.copies.snapshot import NodeSnapshotWriter
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.replicated_log import LogTrimmedError
from lance_server.errors import ConfigError, DataDirError
from lance_server.offline.comparing import compare
from lance_server.offline.peer import ServerPeer
from lance_server.testing import FaultyStorage, MemoryStorage, ask_http

COPY = 9
COPIES = Path("/copies")
TARGET = COPIES / "one"


# Over real sockets and files ------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that runs."""
    found = Cluster(tmp_path)
    found.start(1)
    yield found
    for number in list(found.nodes):
        found.stop(number)


def write(cluster: Cluster, first: int, count: int) -> None:
    """Store batches at node 1."""
    with cluster.client(1) as client:
        for number in range(first, first + count):
            client.store([b"%05d" % number + b"." * 300], batch_id=NONCE + number)


def test_a_node_that_starts_on_a_copy_has_the_same_files(cluster: Cluster) -> None:
    """Closed segments, the open one, and what was written after the copy."""
    write(cluster, 1, 30)
    target = str(cluster.folder / f"node{COPY}")
    answer = ask_http(cluster.nodes[1], "/admin/snapshot", "POST", {"target": target})
    assert answer.status == 200, answer
    write(cluster, 31, 30)
    cluster.start(COPY)
    with cluster.client(1) as one, cluster.client(COPY) as copy:
        until(lambda: end_of(copy) == end_of(one))
        assert copy.read_all() == one.read_all()
    for number in (1, COPY):
        cluster.stop(number)
    assert cluster.files(COPY) == cluster.files(1)


def test_a_copy_stays_as_it_was_made(cluster: Cluster) -> None:
    """The node writes on, and what it shares with the copy never changes."""
    write(cluster, 1, 20)
    target = cluster.folder / "copy"
    answer = ask_http(cluster.nodes[1], "/admin/snapshot", "POST", {"target": str(target)})
    assert answer.status == 200, answer
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    write(cluster, 21, 40)
    cluster.stop(1)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before


def test_a_copy_has_the_bytes_that_a_node_hands_out(cluster: Cluster) -> None:
    """As far as it goes; what was written after it is counted, and no finding."""
    write(cluster, 1, 20)
    target = cluster.folder / "copy"
    answer = ask_http(cluster.nodes[1], "/admin/snapshot", "POST", {"target": str(target)})
    assert answer.status == 200, answer
    write(cluster, 21, 5)
    with ServerPeer("lance://{}:{}".format(*cluster.nodes[1].address)) as peer:
        found = compare(target, peer)
    assert found.findings == []
    assert found.compared == 4 * found.only_there > 0


def test_nodes_trim_their_log_and_a_copy_joins_all_the_same(cluster: Cluster) -> None:
    """What every node has made durable goes from the log; an empty node is told what to do."""
    cluster.stop(1)
    for number in (1, 2):
        cluster.start(number, ClusterMember(cluster.log, trim_log=True))
    write(cluster, 1, 10)
    until(lambda: cluster.log.earliest(0) > 10)
    with pytest.raises(DataDirError, match="lance-server clone"):
        cluster.start(COPY)
    target = str(cluster.folder / f"node{COPY + 1}")
    answer = ask_http(cluster.nodes[1], "/admin/snapshot", "POST", {"target": target})
    assert answer.status == 200, answer
    cluster.start(COPY + 1)
    write(cluster, 11, 5)
    with cluster.client(1) as one, cluster.client(COPY + 1) as copy:
        until(lambda: end_of(copy) == end_of(one))
        assert copy.read_all() == one.read_all()


def test_a_copy_is_not_made_into_the_data_directory(cluster: Cluster) -> None:
    """It would be taken for data."""
    target = str(cluster.folder / "node1" / "segments" / "copy")
    answer = ask_http(cluster.nodes[1], "/admin/snapshot", "POST", {"target": target})
    assert answer.status == 400
    assert "outside of the data directory" in answer.text


# Without a network ----------------------------------------------------------------------------


def no_links(source: Path, target: Path) -> None:
    """Refuse to link, as a disk in memory does."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(source), 0, str(target))


def snapshot(node: Node, disk: FaultyStorage | MemoryStorage) -> NodeSnapshotWriter:
    """Take hold of a node's files, which it has marked."""
    node.disk.make_dir(COPIES)
    node.replica.mark(0)
    writer = NodeSnapshotWriter(node.disk, DATA_DIR, disk, TARGET, no_links)
    writer.hold(node.replica)
    return writer


def fill(node: Node, first: int, count: int) -> None:
    """Append batches."""
    for number in range(first, first + count):
        node.append(number, [b"%05d" % number * 60])


def values_of(disk: MemoryStorage, root: Path) -> dict[str, bytes]:
    """Return the files of topic 0, by name."""
    folder = root / "segments" / "0"
    return {name: disk.peek(folder / name) for name in disk.list_dir(folder)}


def test_what_is_applied_meanwhile_is_not_in_the_copy(node: Node) -> None:
    """It is of one moment, though it is copied later; and all files that were held are closed."""
    fill(node, 1, 20)
    writer = snapshot(node, node.disk)
    position = node.replica.shards[0].state.position
    fill(node, 21, 40)
    node.replica.mark(0)
    writer.finish()
    copy = Replica.open(node.disk, TARGET, "log-1", 1, lambda _: 0)
    assert copy.shards[0].state.position == position
    copy.apply(0, node.entries[position:])
    for replica in (copy, node.replica):
        replica.mark(0)
        replica.release()
    assert values_of(node.disk, TARGET) == values_of(node.disk, DATA_DIR)
    assert len(node.disk._open) == 0


def test_a_copy_joins_a_log_that_was_trimmed(node: Node) -> None:
    """An empty node cannot: the log has not got its beginning any more."""
    fill(node, 1, 20)
    snapshot(node, node.disk).finish()
    position = node.replica.shards[0].state.position
    with pytest.raises(LogTrimmedError, match="lance-server clone"):
        Replica.open(node.disk, Path("/empty"), "log-1", 1, lambda _: position)
    copy = Replica.open(node.disk, TARGET, "log-1", 1, lambda _: position)
    assert copy.shards[0].state.position == position
    copy.release()


@pytest.mark.parametrize("method", ["write", "sync", "make_dir", "sync_dir", "rename"])
def test_a_disk_that_refuses_leaves_no_copy(node: Node, method: str) -> None:
    """Nor a file that is open; the node goes on, and the next copy is made."""
    fill(node, 1, 20)
    node.disk.make_dir(COPIES)
    node.replica.mark(0)
    open_before = len(node.disk._open)
    faulty = FaultyStorage(node.disk)
    writer = NodeSnapshotWriter(node.disk, DATA_DIR, faulty, TARGET, no_links)
    faulty.fail[method] = errno.ENOSPC

    def attempt() -> None:
        writer.hold(node.replica)
        writer.finish()

    with pytest.raises(OSError, match="No space left"):
        attempt()
    faulty.fail.clear()
    writer.give_up()
    assert node.disk.list_dir(COPIES) == []
    assert len(node.disk._open) == open_before
    fill(node, 21, 5)
    snapshot(node, node.disk).finish()
    assert node.disk.list_dir(COPIES) == [TARGET.name]


def test_a_node_of_no_cluster_is_not_copied(node: Node) -> None:
    """It has read nothing yet."""
    empty = Replica.open(node.disk, Path("/empty"), "log-1", 1, lambda _: 0)
    node.disk.make_dir(COPIES)
    writer = NodeSnapshotWriter(node.disk, Path("/empty"), node.disk, TARGET, no_links)
    with pytest.raises(ConfigError, match="has not begun"):
        writer.hold(empty)
    assert not writer.begun
