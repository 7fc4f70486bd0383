"""Nodes as processes over a real broker: starting them, what they refuse, what they survive."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.cluster.nodes import UNSAFE, Nodes, cloned, created, end_of, lwp_cluster, reasons

from lance_server.cluster.log_address import parse_address
from lance_server.testing import RawClient
from lance_server.testing.kafka_brokers import KafkaCluster
from lance_server.testing.process import ServerProcess, eventually
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind
from lance_spec.records import encode_records

NONCE = 9 << 40


@pytest.fixture
def nodes(tmp_path: Path, cluster: str) -> Iterator[Nodes]:
    """Two nodes that run."""
    with ExitStack() as stack:
        found = Nodes(tmp_path, cluster, stack)
        for number in (1, 2):
            found.start(number)
        yield found


def test_a_write_is_at_its_offset_on_every_node_and_files_are_equal(nodes: Nodes) -> None:
    """Whoever took it."""
    with nodes.client(1) as one, nodes.client(2) as two:
        for number in range(40):
            (one, two)[number % 2].store([b"value %d" % number], batch_id=NONCE + number)
        size = sum(len(encode_records([b"value %d" % number])) for number in range(40))
        for client in (one, two):
            eventually(lambda client=client: end_of(client) == size)
        assert two.read_all() == one.read_all()
    for number in (1, 2):
        nodes.stop(number)
    assert nodes.files(1) == nodes.files(2) != {}


def test_a_cluster_begins_with_the_data_of_a_single_server(tmp_path: Path, url: str) -> None:
    """A second node begins with a clone; both go on alike."""
    with ServerProcess.running(tmp_path / "node1") as server, RawClient(server.address) as client:
        for number in range(20):
            client.store([bytes(1000)], batch_id=NONCE + number)
        before = client.read_all()
        assert server.end(signal.SIGTERM)[0] == 0
    data = ("--from-data-dir", str(tmp_path / "node1"))
    done = lwp_cluster("init", url, "--replicas", "1", *UNSAFE, *data)
    assert done.returncode == 0, done.stderr
    with ExitStack() as stack:
        nodes = Nodes(tmp_path, url, stack)
        offering = nodes.start(1, "--offer-copies")
        assert offering.http is not None, "it was asked for"
        done = cloned(tmp_path / "node2", "{}:{}".format(*offering.http))
        assert done.returncode == 0, done.stderr
        nodes.start(2)
        with nodes.client(1) as one, nodes.client(2) as two:
            assert two.read_all() == one.read_all() == before
            two.store([bytes(1000)], batch_id=NONCE + 1)
            assert end_of(two) == len(before)
            two.store([b"new"], batch_id=NONCE + 20)
            eventually(lambda: end_of(one) > len(before))
        for number in (1, 2):
            nodes.stop(number)
        assert nodes.files(1) == nodes.files(2) != {}


def test_a_killed_node_has_everything_again(nodes: Nodes) -> None:
    """It goes on at its mark, and its files are those of the node that stayed."""
    with nodes.client(1) as one:
        for number in range(40):
            one.store([bytes(1000)], batch_id=NONCE + number)
            if number == 20:
                nodes.running.pop(2).end(signal.SIGKILL)
        data = one.read_all()
    nodes.start(2)
    with nodes.client(2) as two:
        eventually(lambda: end_of(two) == len(data))
        two.store([b"more"], batch_id=NONCE + 100)
        end = end_of(two)
    with nodes.client(1) as one:
        eventually(lambda: end_of(one) == end)
    for number in (2, 1):
        nodes.stop(number)
    assert nodes.files(1) == nodes.files(2) != {}


def test_a_log_that_does_not_answer_leaves_writes_open(nodes: Nodes, broker: KafkaCluster) -> None:
    """They are maybe applied; reads go on; when it is back, the batch is stored once."""
    with nodes.client(1) as one:
        one.store([b"before"], batch_id=NONCE + 1)
        broker.pause(1)
        try:
            one.send(one.batch([b"open"], batch_id=NONCE + 2))
            while (answer := one.receive()).kind is FrameKind.BACKPRESSURE:
                pass
            assert one.error(answer).code == ErrorCode.QUORUM_NOT_REACHED
            with nodes.client(1) as reader:
                assert reader.read_all() == encode_records([b"before"])
            eventually(
                lambda: any("cannot be reached" in each for each in reasons(nodes.running[1]))
            )
        finally:
            broker.resume(1)
    eventually(lambda: reasons(nodes.running[1]) == [])
    with nodes.client(2) as two:
        two.store([b"open"], batch_id=NONCE + 2)
        assert two.read_all() == encode_records([b"before", b"open"])


def test_a_foreign_record_stops_all_nodes(nodes: Nodes) -> None:
    """They say which position it has, serve what they have, and take no writes."""
    address = parse_address(nodes.url)
    with nodes.client(1) as one:
        one.store([b"kept"], batch_id=NONCE + 1)
        producer = Producer({"bootstrap.servers": address.brokers, "log_level": 2})
        producer.produce(address.topic, b"from another program", partition=0)
        producer.flush(30)
        for number, node in nodes.running.items():
            eventually(lambda node=node: any("another program" in each for each in reasons(node)))
            with nodes.client(number) as client:
                assert client.read_all() == encode_records([b"kept"])
                client.send(client.batch([b"more"], batch_id=NONCE + 2))
                assert client.error().code == ErrorCode.CLUSTER_NOT_READY
        one.wait_for_close()


def test_a_log_that_was_made_again_stops_all_nodes(nodes: Nodes) -> None:
    """They say that its id is another one; a start is refused, too."""
    address = parse_address(nodes.url)
    admin = AdminClient({"bootstrap.servers": address.brokers, "log_level": 2})
    with nodes.client(1) as one:
        one.store([b"kept"], batch_id=NONCE + 1)
        admin.delete_topics([address.topic])[address.topic].result(30)
        for node in nodes.running.values():
            eventually(lambda node=node: any("had no topic" in each for each in reasons(node)))
        created(nodes.url)
        for node in nodes.running.values():
            eventually(lambda node=node: any("made again" in each for each in reasons(node)))
        with nodes.client(1) as again:
            assert again.read_all() == encode_records([b"kept"])
    code, _, problems = nodes.running.pop(1).end(signal.SIGTERM)
    assert code == 1
    assert "made again" in problems
    refused = start_refused(nodes, 1)
    assert "it was made again, or belongs to another cluster" in refused


def test_a_cluster_whose_log_is_lost_goes_on_in_another_one(nodes: Nodes) -> None:
    """With what a node has; batches of before are recognised, and files are equal."""
    address = parse_address(nodes.url)
    admin = AdminClient({"bootstrap.servers": address.brokers, "log_level": 2})
    with nodes.client(1) as one, nodes.client(2) as two:
        for number in range(20):
            one.store([bytes(1000)], batch_id=NONCE + number)
        before = one.read_all()
        eventually(lambda: end_of(two) == len(before))
    admin.delete_topics([address.topic])[address.topic].result(30)
    for number in (1, 2):
        nodes.running.pop(number).end(signal.SIGKILL)
    nodes.url = f"{nodes.url}-after"
    data = ("--from-data-dir", str(nodes.folder / "node1"))
    done = lwp_cluster("init", nodes.url, "--replicas", "1", *UNSAFE, *data)
    assert done.returncode == 0, done.stderr
    offering = nodes.start(1, "--offer-copies")
    assert offering.http is not None, "it was asked for"
    done = cloned(nodes.folder / "node2", "{}:{}".format(*offering.http))
    assert done.returncode == 0, done.stderr
    nodes.start(2)
    with nodes.client(1) as one, nodes.client(2) as two:
        found = two.read_all()
        assert before.startswith(found)
        for number in range(20):
            two.store([bytes(1000)], batch_id=NONCE + number)
        assert two.read_all() == before
        eventually(lambda: one.read_all() == before)
    for number in (1, 2):
        nodes.stop(number)
    assert nodes.files(1) == nodes.files(2) != {}


def start_refused(nodes: Nodes, number: int) -> str:
    """Return what a node says that does not start."""
    with pytest.raises(AssertionError) as caught:
        nodes.start(number)
    return str(caught.value)


def test_a_trimmed_position_is_refused(nodes: Nodes) -> None:
    """A new node needs a snapshot then."""
    from lance_server.cluster.kafka_log.log import KafkaLog  # noqa: PLC0415 - needs an extra

    with nodes.client(1) as one:
        one.store([b"kept"], batch_id=NONCE + 1)
    log = KafkaLog.open(parse_address(nodes.url), unsafe=True)
    log.trim(0, 1)
    log.close()
    assert "position 0 is trimmed" in start_refused(nodes, 3)


class TestCommands:
    """``lwp cluster`` and starts that are refused."""

    def test_init_is_done_once(self, cluster: str) -> None:
        """A second one changes nothing and prints the same id."""
        again = lwp_cluster("init", cluster, "--replicas", "1", "--cluster-id", "other", *UNSAFE)
        assert again.returncode == 0
        assert "exists already" in again.stdout
        assert "other" not in again.stdout

    def test_init_refuses_one_broker(self, url: str) -> None:
        """Three are needed; nothing is created."""
        done = lwp_cluster("init", url)
        assert done.returncode == 5
        assert "cannot be created" in done.stderr

    def test_init_refuses_a_topic_of_another_program(self, url: str) -> None:
        """Its first record is not a Genesis."""
        address = parse_address(url)
        created(url.replace("test-", "other-"))
        from lance_server.cluster.kafka_log.log import create_topic  # noqa: PLC0415 - needs an extra

        assert create_topic(address, 1, 1)
        producer = Producer({"bootstrap.servers": address.brokers, "log_level": 2})
        producer.produce(address.topic, b"foreign", partition=0)
        producer.flush(30)
        done = lwp_cluster("init", url, *UNSAFE)
        assert done.returncode == 5
        assert "is not a record of a LANCE cluster" in done.stderr

    def test_init_refuses_another_number_of_partitions(self, url: str) -> None:
        """Their number is fixed, and has to be given."""
        from lance_server.cluster.kafka_log.log import create_topic  # noqa: PLC0415 - needs an extra

        assert create_topic(parse_address(url), 2, 1)
        done = lwp_cluster("init", url, *UNSAFE)
        assert done.returncode == 5
        assert "the topic has 2 partition(s), not 1" in done.stderr

    def test_init_makes_shards(self, url: str) -> None:
        """The log has a partition for each; status shows all of them."""
        assert (
            "2 shard(s)"
            in lwp_cluster("init", url, "--shards", "2", "--replicas", "1", *UNSAFE).stdout
        )
        assert "shard 1: positions 0 to 1" in lwp_cluster("status", url).stdout

    def test_status_shows_log_and_nodes(self, nodes: Nodes) -> None:
        """What it survives, and how far each node is."""
        done = lwp_cluster("status", nodes.url)
        assert done.returncode == 0, done.stderr
        assert "it survives the loss of 0 of them" in done.stdout
        for number in (1, 2):
            assert f"node {number} at 127.0.0.1:" in done.stdout
        assert done.stdout.count(", live, ") == 2

    def test_a_node_that_runs_is_not_removed(self, nodes: Nodes) -> None:
        """It would join again; one that is gone is."""
        refused = lwp_cluster("remove", nodes.url, "2", *UNSAFE)
        assert refused.returncode == 5
        assert "node 2 runs" in refused.stderr
        nodes.stop(2)
        done = lwp_cluster("remove", nodes.url, "2", "--force", *UNSAFE)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "node 2 is removed\n"
        with nodes.client(1) as one:
            eventually(lambda: one.ask_json(Command.GET_CLUSTER_STATUS)["node_count"] == 1)

    def test_a_node_that_nobody_has_heard_of_is_told(self, nodes: Nodes) -> None:
        """The number may be a mistake."""
        done = lwp_cluster("remove", nodes.url, "7", *UNSAFE)
        assert done.returncode == 0, done.stderr
        assert "if there was one: it has told nothing" in done.stdout
        assert "those that have: 1, 2" in done.stdout

    def test_versions_rise_once_all_nodes_know_them(self, nodes: Nodes) -> None:
        """All of them know the first."""
        done = lwp_cluster("apply-version", nodes.url, "1", *UNSAFE)
        assert done.returncode == 0, done.stderr

    def test_a_missing_log_ends_the_start(self, tmp_path: Path, url: str) -> None:
        """With the command that creates it, and an exit code of its own."""
        code, problems = started(tmp_path, url, "--cluster-timeout", "1", *UNSAFE)
        assert code == 5
        assert "lwp cluster init" in problems

    def test_unsafe_settings_end_the_start(self, tmp_path: Path, cluster: str) -> None:
        """Each is named."""
        code, problems = started(tmp_path, cluster)
        assert code == 5
        assert "min.insync.replicas is 1; set it to 2 or more" in problems

    def test_brokers_that_do_not_answer_end_the_start(self, tmp_path: Path) -> None:
        """After the time that was given."""
        nowhere = "kafka://127.0.0.1:1/lance"
        code, problems = started(tmp_path, nowhere, "--cluster-timeout", "1")
        assert code == 5
        assert "cannot be reached" in problems

    def test_a_setting_that_the_client_does_not_know_ends_the_start(
        self, tmp_path: Path, url: str
    ) -> None:
        """It is named."""
        code, problems = started(tmp_path, f"{url}?sekurity.protocol=SSL")
        assert code == 2
        assert "sekurity.protocol" in problems


def started(folder: Path, url: str, *options: str) -> tuple[int, str]:
    """Start a node that does not come up; return its exit code and what it wrote."""
    command = [
        *(sys.executable, "-m", "lance_server", "--data-dir", str(folder / "node")),
        *("--listen", "127.0.0.1:0", "--node-id", "1", "--cluster", url, *options),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stderr
