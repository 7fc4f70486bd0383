"""Nodes in one process, over real sockets and files, with a log that they share."""

import errno
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Consumer, Producer
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.records import encode
from lance_server.cluster.replicated_log import Entry, ReplicatedLogError, ShardReader
from lance_server.config.settings import Address, ServerConfig
from lance_server.embedded import EmbeddedServer, running
from lance_server.errors import DataDirError, UncleanStopError
from lance_server.listeners.listener_api import Listener
from lance_server.storage.contract import StorageBackend
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, RawClient, ask_http
from lance_server.testing.replicated_log import FaultyLog
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages import lwp
from lance_spec.records import encode_records

NONCE = 9 << 40
SETTINGS = Settings(cluster_id="c-1", created_ns=1_700_000_000_000_000_000, segment_size=2000)


class Cluster:
    """Two nodes and their log.

    Attributes:
        log: the log.
        folder: where the nodes have their directories.
        nodes: those that run, by number.
    """

    def __init__(self, folder: Path) -> None:
        self.log = MemoryLog("log-1")
        self.log.put(0, encode(SETTINGS.to_genesis(), 1, 0))
        self.folder = folder
        self.nodes: dict[int, EmbeddedServer] = {}

    def start(
        self,
        number: int,
        member: ClusterMember | None = None,
        storage: StorageBackend | None = None,
        listeners: Sequence[Listener] = (),
    ) -> EmbeddedServer:
        """Start a node."""
        config = ServerConfig(
            data_dir=self.folder / f"node{number}",
            node_id=number,
            http=Address("127.0.0.1", 0),
            admin=True,
        )
        node = EmbeddedServer(config, storage, listeners, cluster=member or ClusterMember(self.log))
        self.nodes[number] = node
        until(lambda: has_begun(node))
        return node

    def stop(self, number: int) -> None:
        """Stop a node cleanly."""
        self.nodes.pop(number).stop()

    def client(self, number: int) -> RawClient:
        """Connect to a node."""
        return RawClient(self.nodes[number].address)

    def files(self, number: int) -> dict[str, bytes]:
        """Return what a stopped node has of its topics."""
        root = self.folder / f"node{number}" / "segments"
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes that run."""
    found = Cluster(tmp_path)
    for number in (1, 2):
        found.start(number)
    yield found
    for number in list(found.nodes):
        found.stop(number)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that another thread makes true; fail after a long time."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def has_begun(node: EmbeddedServer) -> bool:
    """Whether a node has read as far as the beginning of the cluster."""
    try:
        with RawClient(node.address) as client:
            answer = client.ask_json(Command.GET_TOPIC, lwp.GetTopic(0).encode())
    except ConnectionError:  # a node that stops applying ends its connections
        return False
    assert "id" in answer or answer["code"] == ErrorCode.CLUSTER_NOT_READY
    return "id" in answer


def end_of(client: RawClient, topic_id: int = 0) -> int:
    """Return how far a node has applied a topic."""
    answer = client.ask_json(Command.GET_TOPIC, lwp.GetTopic(topic_id).encode())
    end = answer["end_offset"]
    assert isinstance(end, int)
    return end


def test_a_client_reads_its_own_write(cluster: Cluster) -> None:
    """An acknowledged batch can be read at the node that took it."""
    with cluster.client(1) as client:
        client.store([b"one"], batch_id=NONCE + 1)
        assert client.read_all() == encode_records([b"one"])


def test_a_write_is_at_its_offset_on_every_node(cluster: Cluster) -> None:
    """What one node acknowledges, all of them serve, in one order."""
    with cluster.client(1) as one, cluster.client(2) as two:
        for number in range(20):
            writer = (one, two)[number % 2]
            writer.store([b"value %d" % number], batch_id=NONCE + number)
        end = end_of(two)  # it acknowledged the last one, and so has all before it
        until(lambda: end_of(one) == end)
        assert one.read_all() == two.read_all()
        assert len(two.read_all()) == end


def test_the_files_are_equal(cluster: Cluster) -> None:
    """After both have applied everything, byte for byte."""
    with cluster.client(1) as one, cluster.client(2) as two:
        for number in range(60):
            (one, two)[number % 2].store([bytes(100)], batch_id=NONCE + number)
        end = end_of(one)
        until(lambda: end_of(two) == end_of(one) >= end)
    for number in (1, 2):
        cluster.stop(number)
    files = cluster.files(1)
    assert files == cluster.files(2)
    assert sum(name.endswith(".lnc") for name in files) > 2


def test_a_batch_that_another_node_took_is_stored_once(cluster: Cluster) -> None:
    """A producer that repeats a batch elsewhere is answered, and nothing is stored again."""
    with cluster.client(1) as one, cluster.client(2) as two:
        one.store([b"once"], batch_id=NONCE + 1)
        two.store([b"once"], batch_id=NONCE + 1)
        assert two.read_all() == encode_records([b"once"])


def test_an_offset_that_a_node_has_not_applied_is_catching_up(cluster: Cluster) -> None:
    """Its answer says how far it is."""
    with cluster.client(1) as client:
        client.store([b"one"], batch_id=NONCE + 1)
        end = end_of(client)
        assert client.catching_up(end + 100) == end


def test_topics_are_created_and_deleted_anywhere(cluster: Cluster) -> None:
    """Every node lists what any node has acknowledged."""
    with cluster.client(1) as one, cluster.client(2) as two:
        topic_id = one.create_topic("orders")
        assert topic_id in listed(two)
        two.store([b"one"], batch_id=NONCE + 1, topic_id=topic_id)
        two.ask_json(Command.DELETE_TOPIC, lwp.DeleteTopic(topic_id).encode())
        assert topic_id not in listed(one)


def listed(client: RawClient) -> list[int]:
    """Return the topics that a node lists."""
    topics = client.ask_json(Command.LIST_TOPICS)["topics"]
    assert isinstance(topics, list)
    return [each["id"] for each in topics]


def test_a_topic_is_known_everywhere_once_it_is_acknowledged(cluster: Cluster) -> None:
    """A node that has not applied its creation reads the log before it says that there is none."""
    with cluster.client(1) as one, cluster.client(2) as two:
        for number in range(30):
            topic_id = one.create_topic(f"topic-{number}")
            two.send(two.batch([b"one"], batch_id=NONCE + 1, topic_id=topic_id))
            two.send(two.batch([b"two"], batch_id=NONCE + 2, topic_id=topic_id))
            assert [two.acked(), two.acked()] == [NONCE + 1, NONCE + 2]
            assert two.read_all(topic_id=topic_id) == encode_records([b"one", b"two"])


def test_a_topic_that_does_not_exist_is_refused(cluster: Cluster) -> None:
    """After the node has read the log."""
    with cluster.client(1) as client:
        client.send(client.batch([b"one"], batch_id=NONCE + 1, topic_id=77))
        assert client.error().code == ErrorCode.TOPIC_NOT_FOUND
        frame = client.ask(Command.GET_TOPIC, lwp.GetTopic(77).encode())
        assert client.error(frame).code == ErrorCode.TOPIC_NOT_FOUND


def test_a_name_is_given_once(cluster: Cluster) -> None:
    """Two nodes cannot create a topic of one name."""
    with cluster.client(1) as one, cluster.client(2) as two:
        one.create_topic("orders")
        frame = two.ask(Command.CREATE_TOPIC, lwp.CreateTopic(b"orders").encode())
        assert two.error(frame).code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_retention_is_set_anywhere(cluster: Cluster) -> None:
    """Two changes at two nodes: the later one holds at both."""
    with cluster.client(1) as one, cluster.client(2) as two:
        for client, size in ((one, 1000), (two, 2000), (one, 3000)):
            client.ask_json(Command.SET_RETENTION, lwp.SetRetention(0, 0, size).encode())
        for client in (one, two):
            until(lambda client=client: shown(client)["max_bytes"] == 3000)  # type: ignore[misc]


def shown(client: RawClient) -> dict[str, object]:
    """Return the retention of the default topic."""
    body = client.ask_json(Command.GET_TOPIC, lwp.GetTopic(0).encode())
    retention = body.get("retention", body)
    assert isinstance(retention, dict)
    return retention


def test_the_housekeeping_keeps_topics_within_their_retention(cluster: Cluster) -> None:
    """One node proposes it, and both drop the same segments."""
    with cluster.client(1) as one, cluster.client(2) as two:
        one.ask_json(Command.SET_RETENTION, lwp.SetRetention(0, 0, 2500).encode())
        for number in range(60):
            one.store([bytes(100)], batch_id=NONCE + number)
        for client in (one, two):
            until(lambda client=client: start_of(client) > 0)  # type: ignore[misc]
        assert start_of(one) % 105 == 0


def start_of(client: RawClient) -> int:
    """Return where the default topic begins at a node."""
    start = client.ask_json(Command.GET_TOPIC, lwp.GetTopic(0).encode())["start_offset"]
    assert isinstance(start, int)
    return start


def test_commits_are_seen_on_every_node(cluster: Cluster) -> None:
    """A consumer goes on at another node where it was."""
    with cluster.client(1) as one, cluster.client(2) as two:
        one.store([b"one"], batch_id=NONCE + 1)
        end = end_of(one)
        until(lambda: end_of(two) == end)
        for client in (one, two, one):
            frame = client.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(0, 5, end).encode())
            assert lwp.CommitAck.decode(frame.payload).offset == end


def test_the_status_tells_of_the_cluster(cluster: Cluster) -> None:
    """Every node knows the others, and the lowest of them leads."""
    with cluster.client(1) as one, cluster.client(2) as two:
        for client in (one, two):
            until(lambda client=client: status(client)["healthy_nodes"] == 2)  # type: ignore[misc]
        assert [status(client)["leader_id"] for client in (one, two)] == [1, 1]
        assert [status(client)["is_leader"] for client in (one, two)] == [True, False]
        assert status(one)["mode"] == "shared_log"
        peers = status(one)["peer_states"]
        assert isinstance(peers, dict)
        assert peers["2"]["address"] == str(Address(*cluster.nodes[2].address))


def status(client: RawClient) -> dict[str, object]:
    """Return what a node tells of the cluster."""
    return client.ask_json(Command.GET_CLUSTER_STATUS)


def test_page_and_metrics_show_the_cluster(cluster: Cluster) -> None:
    """The nodes with their addresses; and who leads, how many work, what is open."""
    with cluster.client(2) as two:
        until(lambda: status(two)["healthy_nodes"] == 2)
    page = ask_http(cluster.nodes[2], "/").text
    for node in cluster.nodes.values():
        assert str(Address(*node.address)) in page.partition("Topics")[0]
    metrics = ask_http(cluster.nodes[2], "/metrics").text
    for line in (
        'lance_cluster_healthy_nodes{node_id="2"} 2.0',
        'lance_cluster_is_leader{node_id="2"} 0.0',
        'lance_cluster_quorum_available{node_id="2"} 1.0',
        'lance_replication_lag_records{node_id="2",peer="1"}',
        'lance_cluster_appends_timed_out_total{node_id="2"} 0.0',
    ):
        assert line in metrics


def test_a_stopped_node_catches_up(cluster: Cluster) -> None:
    """What was written meanwhile is there after its start."""
    cluster.stop(2)
    with cluster.client(1) as one:
        for number in range(30):
            one.store([bytes(100)], batch_id=NONCE + number)
        data = one.read_all()
    cluster.start(2)
    with cluster.client(2) as two:
        until(lambda: end_of(two) == len(data))
        assert two.read_all() == data
        two.store([b"more"], batch_id=NONCE + 100)


def test_a_new_node_applies_the_whole_log(cluster: Cluster) -> None:
    """A third node that comes later has everything."""
    with cluster.client(1) as one:
        one.store([b"early"], batch_id=NONCE + 1)
    cluster.start(3)
    with cluster.client(3) as three:
        until(lambda: end_of(three) > 0)
        assert three.read_all() == encode_records([b"early"])


def test_a_copy_of_a_stopped_node_is_a_node(cluster: Cluster) -> None:
    """Where the log has not got its beginning any more, a directory is where a node begins."""
    with cluster.client(1) as one:
        one.store([b"early"], batch_id=NONCE + 1)
        end = end_of(one)
    with cluster.client(2) as two:
        until(lambda: end_of(two) == end)
    cluster.stop(2)
    cluster.log.trim(0, cluster.log.end(0) - 1)
    with pytest.raises(DataDirError, match="position 0 is trimmed"):
        cluster.start(3)
    shutil.rmtree(cluster.folder / "node3")
    cluster.stop(1)
    shutil.copytree(cluster.folder / "node1", cluster.folder / "node3")
    cluster.start(3)
    with cluster.client(3) as three:
        three.store([b"late"], batch_id=NONCE + 2)
        assert three.read_all() == encode_records([b"early", b"late"])


def test_a_full_disk_stops_one_node_and_no_other(cluster: Cluster) -> None:
    """It says so and serves what it has; a start with room goes on where it was."""
    disk = FaultyStorage(PwritevStorage())
    cluster.start(3, storage=disk)
    with cluster.client(1) as one, cluster.client(3) as three:
        one.store([b"early"], batch_id=NONCE + 1)
        until(lambda: end_of(three) > 0)
        disk.fail["write"] = errno.ENOSPC
        one.store([b"late"], batch_id=NONCE + 2)
        node = cluster.nodes.pop(3)
        until(lambda: "No space left" in readiness(node))
        assert "make room on the disk, or mend it, and start this node again" in readiness(node)
        three.wait_for_close()
        with RawClient(node.address) as again:
            assert again.read_all() == encode_records([b"early"])
        one.store([b"later"], batch_id=NONCE + 3)
        with pytest.raises(UncleanStopError, match="No space left"):
            node.stop()
        end = end_of(one)
    cluster.start(3)
    with cluster.client(3) as three:
        until(lambda: end_of(three) == end)
        assert three.read_all() == encode_records([b"early", b"late", b"later"])


def test_a_producer_leaves_a_node_that_stopped(cluster: Cluster) -> None:
    """What that node refuses goes to another one."""
    disk = FaultyStorage(PwritevStorage())
    broken = cluster.start(3, storage=disk)
    hosts = ",".join(str(Address(*cluster.nodes[number].address)) for number in (3, 1))
    with Producer(f"lance://{hosts}/orders", create_topic=True) as producer:
        producer.send(b"early").result(60)
        disk.fail["write"] = errno.ENOSPC
        for number in range(100):
            producer.send(b"%d" % number).result(60)
    until(lambda: "No space left" in readiness(broken))
    with pytest.raises(UncleanStopError):
        cluster.nodes.pop(3).stop()


def test_a_consumer_leaves_a_node_that_stopped(cluster: Cluster) -> None:
    """It goes on at another one, where it was."""
    disk = FaultyStorage(PwritevStorage())
    broken = cluster.start(3, storage=disk)
    hosts = ",".join(str(Address(*cluster.nodes[number].address)) for number in (3, 1))
    with Producer(f"lance://{hosts}/orders", create_topic=True) as producer:
        producer.send(b"early").result(60)
        with Consumer(f"lance://{hosts}/orders", start="beginning") as consumer:
            assert [record.value for record in consumer.poll(60) or ()] == [b"early"]
            disk.fail["write"] = errno.ENOSPC
            producer.send(b"late").result(60)
            assert [record.value for record in consumer.poll(60) or ()] == [b"late"]
    assert "No space left" in readiness(broken)
    with pytest.raises(UncleanStopError):
        cluster.nodes.pop(3).stop()


def test_a_node_that_read_other_records_stops(cluster: Cluster) -> None:
    """It finds that most others have another digest at the same position; they go on."""
    log = AlteredLog(cluster.log)
    cluster.start(3, ClusterMember(log))
    with cluster.client(1) as one:
        one.store([b"right"], batch_id=NONCE + 1)
        node = cluster.nodes.pop(3)
        until(lambda: "the records that this node has applied are not those of" in readiness(node))
        one.store([b"more"], batch_id=NONCE + 2)
    with pytest.raises(UncleanStopError, match="read another log"):
        node.stop()


class AlteredLog:
    """A log that gives one node other bytes than the others get."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    @property
    def shards(self) -> int:
        """How many shards the log has."""
        return self._log.shards

    def read(self, shard: int, position: int, epoch: int = 0) -> ShardReader:
        """Return a reader that alters batches."""
        return _Altering(self._log.read(shard, position, epoch))


class _Altering:
    def __init__(self, reader: ShardReader) -> None:
        self._reader = reader

    def read(self, most: int, wait: float) -> list[Entry]:
        """Return entries in which every batch says something else."""
        found = self._reader.read(most, wait)
        return [each._replace(record=each.record.replace(b"right", b"wrong")) for each in found]

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


class TestWithoutQuorum:
    """A log that does not answer: writes are maybe applied, reads go on."""

    @pytest.fixture
    def log(self, cluster: Cluster) -> FaultyLog:
        """The connection of a third node, whose appends stay where they are."""
        log = FaultyLog(cluster.log)
        cluster.start(3, ClusterMember(log, ack_timeout=0.1))
        return log

    def test_a_write_is_maybe_applied(self, cluster: Cluster, log: FaultyLog) -> None:
        """It is answered with 0x21 in time, and may be sent again anywhere."""
        with cluster.client(1) as one, cluster.client(3) as three:
            one.store([b"before"], batch_id=NONCE + 1)
            until(lambda: end_of(three) > 0)
            three.send(three.batch([b"open"], batch_id=NONCE + 2))
            assert three.error().code == ErrorCode.QUORUM_NOT_REACHED
            with cluster.client(3) as reader:
                assert reader.read_all() == encode_records([b"before"])
            one.store([b"open"], batch_id=NONCE + 2)
            assert one.read_all() == encode_records([b"before", b"open"])
        log.pending.clear()

    def test_nothing_after_it_is_answered(self, cluster: Cluster, log: FaultyLog) -> None:
        """The connection ends: what was sent after it is sent again after it."""
        del log
        with cluster.client(3) as three:
            three.send(three.batch([b"open"], batch_id=NONCE + 1))
            assert three.error().code == ErrorCode.QUORUM_NOT_REACHED
            three.wait_for_close()

    def test_a_node_that_cannot_read_the_log_is_not_ready(
        self, cluster: Cluster, log: FaultyLog
    ) -> None:
        """It says so, and is ready again when the log is back."""
        node = cluster.nodes[3]
        until(lambda: "the shared log cannot be reached" not in readiness(node))
        log.reachable = False
        until(lambda: "the shared log cannot be reached" in readiness(node))
        log.reachable = True
        until(lambda: "the shared log cannot be reached" not in readiness(node))

    def test_a_refusal_of_the_log_passes(
        self, cluster: Cluster, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broker that knows of another leader is asked again; the node does not stop."""
        node = cluster.nodes[3]

        def refuse(_shard: int) -> int:
            raise ReplicatedLogError("Leader epoch is older than broker epoch")

        with monkeypatch.context() as patch:
            patch.setattr(log, "end", refuse)
            until(lambda: "Leader epoch is older" in readiness(node))
        until(lambda: "Leader epoch is older" not in readiness(node))

    def test_a_node_whose_records_are_not_confirmed_is_not_ready(
        self, cluster: Cluster, log: FaultyLog
    ) -> None:
        """Although it reads the log; it is ready again once the log takes its records."""
        node = cluster.nodes[3]
        until(lambda: "the shared log has confirmed nothing of this node" in readiness(node))

        def is_ready() -> bool:
            log.take_all()
            return readiness(node) == ""

        until(is_ready)


def readiness(node: EmbeddedServer) -> str:
    """Return why a node is not ready."""
    answer = ask_http(node, "/health/ready")
    reasons = json.loads(answer.text)["reasons"]
    return "; ".join(reasons)


class TestRefusals:
    """What must not be mixed is refused with a reason."""

    def test_a_single_server_does_not_take_a_nodes_directory(self, cluster: Cluster) -> None:
        """What it writes would be lost."""
        cluster.stop(2)
        with (
            pytest.raises(DataDirError, match="directory of a node of a cluster"),
            running(cluster.folder / "node2"),
        ):
            pytest.fail("it started")

    def test_a_node_does_not_take_a_single_servers_directory(self, cluster: Cluster) -> None:
        """Its topics are not in the log, and would be removed."""
        with running(cluster.folder / "node3") as alone, RawClient(alone.address) as client:
            client.store([b"kept"], batch_id=NONCE + 1)
        with pytest.raises(DataDirError, match="data of a single server"):
            cluster.start(3)
        with running(cluster.folder / "node3") as alone, RawClient(alone.address) as client:
            assert client.read_all() == encode_records([b"kept"])

    def test_a_node_does_not_follow_another_log(self, cluster: Cluster) -> None:
        """The log was made again: the node does not start."""
        cluster.stop(2)
        other = MemoryLog("log-2")
        other.put(0, encode(replace(SETTINGS, cluster_id="c-2").to_genesis(), 1, 0))
        with pytest.raises(DataDirError, match=r"cannot join.*log-1.*log-2"):
            cluster.start(2, ClusterMember(other))

    def test_a_log_with_another_genesis_is_not_followed(self, cluster: Cluster) -> None:
        """Also where its id is the same, as in a copy: the node says so, and serves what it has."""
        with cluster.client(1) as one:
            one.store([b"kept"], batch_id=NONCE + 1)
        for number in (1, 2):
            cluster.stop(number)
        end = cluster.log.end(0)
        cluster.log = MemoryLog("log-1")
        other = replace(SETTINGS, cluster_id="c-2")
        for _ in range(end + 1):
            cluster.log.put(0, encode(other.to_genesis(), 1, 0))
        node = cluster.start(1)
        until(lambda: "begins with the Genesis of cluster c-2" in readiness(node))
        with cluster.client(1) as one:
            assert one.read_all() == encode_records([b"kept"])
        with pytest.raises(Exception, match="this node's data is that of cluster c-1"):
            cluster.nodes.pop(1).stop()

    def test_a_foreign_record_stops_the_node(self, cluster: Cluster) -> None:
        """It reads on what it has, and takes no writes."""
        with cluster.client(1) as one:
            one.store([b"kept"], batch_id=NONCE + 1)
            cluster.log.put(0, b"from another program")
            for node in cluster.nodes.values():
                until(lambda node=node: "has stopped applying" in readiness(node))  # type: ignore[misc]
        with cluster.client(1) as one:
            assert one.read_all() == encode_records([b"kept"])
            one.send(one.batch([b"more"], batch_id=NONCE + 2))
            error = one.error()
            assert error.code == ErrorCode.CLUSTER_NOT_READY
            assert "another program writes to the log" in error.message
        for number in (1, 2):
            with pytest.raises(Exception, match="another program"):
                cluster.nodes.pop(number).stop()

    def test_a_number_belongs_to_one_process(self, cluster: Cluster, tmp_path: Path) -> None:
        """The older process stops when a newer one has its number."""
        node = cluster.nodes[1]
        with cluster.client(2) as two:
            until(lambda: status(two)["healthy_nodes"] == 2)
        cluster.folder = tmp_path / "elsewhere"
        older = cluster.nodes.pop(1)
        cluster.start(1)
        until(lambda: "another process has begun as node 1" in readiness(node))
        with pytest.raises(Exception, match="another process has begun"):
            older.stop()
