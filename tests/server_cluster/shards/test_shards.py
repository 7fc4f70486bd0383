"""A log of several shards: each topic belongs to one, and all of them to every node."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, SETTINGS, Cluster, end_of, listed, until

from lance_server.cluster.administration import create
from lance_server.cluster.memory import MemoryLog, forget_log, named_log
from lance_server.cluster.records import decode, encode
from lance_server.errors import ClusterLogError
from lance_server.testing import RawClient
from lance_spec.enums import Command
from lance_spec.messages import lwp
from lance_spec.messages.replication import Append, Genesis
from lance_spec.records import encode_records

SHARDS = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes whose log has several shards."""
    found = Cluster(tmp_path)
    found.log = MemoryLog("log-1", shards=SHARDS)
    for shard in range(SHARDS):
        found.log.put(shard, encode(SETTINGS.to_genesis(), 1, 0))
    for number in (1, 2):
        found.start(number)
    yield found
    for number in list(found.nodes):
        found.stop(number)


def shards_of(log: MemoryLog) -> dict[int, set[int]]:
    """Return in which shards there are batches of a topic, by topic."""
    found: dict[int, set[int]] = {}
    for shard in range(log.shards):
        for entry in log.entries(shard, 0, 1 << 30):
            body = decode(shard, entry).body
            if isinstance(body, Append):
                found.setdefault(body.topic_id, set()).add(shard)
    return found


def write(client: RawClient, topic_id: int, first: int, count: int) -> None:
    """Store batches."""
    for number in range(first, first + count):
        client.store([b"%050d" % number], batch_id=NONCE + number, topic_id=topic_id)


def test_a_new_topic_belongs_to_the_shard_with_the_fewest_bytes(cluster: Cluster) -> None:
    """So that each shard gets about the same."""
    with cluster.client(1) as client:
        write(client, 0, 1, 3)
        topics = []
        for _ in range(SHARDS):
            topics.append(client.create_topic(f"topic-{len(topics)}"))
            write(client, topics[-1], 1, 2)
    assert sorted(shards_of(cluster.log)[0]) == [0]
    assert [shards_of(cluster.log)[each] for each in topics] == [{1}, {2}, {1}]


def test_a_batch_is_stored_once_whatever_its_shard(cluster: Cluster) -> None:
    """A producer that repeats it at another node is answered, and nothing is stored again."""
    with cluster.client(1) as one, cluster.client(2) as two:
        topics = [0, *(one.create_topic(f"topic-{number}") for number in range(3))]
        for topic_id in topics:
            one.store([b"once"], batch_id=NONCE + 1, topic_id=topic_id)
            two.store([b"once"], batch_id=NONCE + 1, topic_id=topic_id)
            assert two.read_all(topic_id=topic_id) == encode_records([b"once"])


def test_the_files_are_equal(cluster: Cluster) -> None:
    """Of every shard, also where a node was stopped meanwhile."""
    with cluster.client(1) as one:
        topics = [0, *(one.create_topic(f"topic-{number}") for number in range(4))]
        for topic_id in topics:
            write(one, topic_id, 1, 20)
        cluster.stop(2)
        for topic_id in topics:
            write(one, topic_id, 21, 20)
        cluster.start(2)
        with cluster.client(2) as two:
            for topic_id in topics:
                end = end_of(one, topic_id)
                until(lambda topic_id=topic_id, end=end: known_end(two, topic_id) == end)  # type: ignore[misc]
    for number in (1, 2):
        cluster.stop(number)
    files = cluster.files(1)
    assert files == cluster.files(2)
    assert {name.partition("/")[0] for name in files} >= {str(each) for each in topics}


def known_end(client: RawClient, topic_id: int) -> object:
    """Return how far a node has applied a topic, or None where it does not know it yet."""
    return client.ask_json(Command.GET_TOPIC, lwp.GetTopic(topic_id).encode()).get("end_offset")


def test_a_topic_is_deleted_in_its_shard(cluster: Cluster) -> None:
    """Its files go, and its name may be given to a topic of another shard."""
    with cluster.client(1) as one, cluster.client(2) as two:
        write(one, 0, 1, 1)
        first = one.create_topic("orders")
        write(one, first, 1, 1)
        two.ask_json(Command.DELETE_TOPIC, lwp.DeleteTopic(first).encode())
        until(lambda: first not in listed(one))
        other = one.create_topic("other")
        write(one, other, 1, 1)
        until(lambda: known_end(two, other) == known_end(one, other))
        second = two.create_topic("orders")
        write(two, second, 1, 1)
        assert shards_of(cluster.log)[first] != shards_of(cluster.log)[second]
        until(lambda: second in listed(one))
    for number in (1, 2):
        cluster.stop(number)
    assert cluster.files(1) == cluster.files(2)
    assert not [name for name in cluster.files(1) if name.startswith(f"{first}/")]


class TestInit:
    """``lwp cluster init --shards``."""

    @pytest.fixture(autouse=True)
    def forgotten(self) -> Iterator[None]:
        """Forget the log afterwards."""
        yield
        forget_log("shards")

    def init(self, shards: int) -> list[str]:
        """Create a cluster in the log."""
        return list(
            create(
                "memory://shards",
                None,
                shards=shards,
                replicas=3,
                unsafe=True,
                cluster_id=None,
                segment_size=1000,
                window_entries=10,
                window_age_secs=10,
                max_topics=10,
            )
        )

    def beginnings(self, log: MemoryLog) -> list[Genesis]:
        """Return the first records of all shards."""
        bodies = [decode(each, log.entries(each, 0, 1)[0]).body for each in range(log.shards)]
        assert all(isinstance(body, Genesis) for body in bodies)
        return bodies

    def test_every_shard_begins_alike(self) -> None:
        """With the same settings."""
        log = named_log("shards", shards=SHARDS)
        assert f"{SHARDS} shard(s)" in self.init(SHARDS)[0]
        first, *others = self.beginnings(log)
        assert others == [first] * (SHARDS - 1)

    def test_a_command_that_was_killed_is_carried_on(self) -> None:
        """The settings of the one that began hold."""
        log = named_log("shards", shards=SHARDS)
        log.put(SHARDS - 1, encode(SETTINGS.to_genesis(), 1, 0))
        self.init(SHARDS)
        assert self.beginnings(log) == [SETTINGS.to_genesis()] * SHARDS

    def test_the_number_of_shards_is_fixed(self) -> None:
        """The message says how many there are."""
        named_log("shards", shards=SHARDS)
        with pytest.raises(ClusterLogError, match=r"has 3 partition.*give --shards 3"):
            self.init(2)
