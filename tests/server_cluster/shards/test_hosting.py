"""Nodes that host some of the shards: requests for the topics of others reach a host."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, SETTINGS, Cluster, listed, until
from tests.server_cluster.shards.test_shards import shards_of, write

from lance_sdk import AsyncTopicsConsumer, Client, Consumer, Producer, TopicsConsumer
from lance_sdk.groups import Coordinator, GroupConsumer
from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.records import encode
from lance_server.config.settings import Address
from lance_server.errors import DataDirError
from lance_server.listeners.listener_api import Listener
from lance_server.testing import RawClient, ask_http
from lance_spec.enums import Command, ErrorCode, Flag
from lance_spec.messages import lwp
from lance_spec.messages.replication import CreateTopic
from lance_spec.records import encode_records

SHARDS = 4
LONELY = 3
ONE, TWO = frozenset({1}), frozenset({2})
_names = count()


class Hosts(Cluster):
    """Nodes of a log of which a shard has no host."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log = MemoryLog("log-1", shards=SHARDS)
        for shard in range(SHARDS):
            self.log.put(shard, encode(SETTINGS.to_genesis(), 1, 0))

    def host(
        self,
        number: int,
        shards: frozenset[int] | None,
        *,
        redirects: bool = False,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Start a node that hosts some shards, and wait until all that run know that."""
        member = ClusterMember(self.log, shards=shards, redirects=redirects)
        self.start(number, member, listeners=listeners)
        for node in self.nodes:
            with self.client(node) as client:
                for shard in sorted(shards or range(SHARDS)):
                    until(lambda client=client, shard=shard: number in hosts(client)[shard])  # type: ignore[misc]

    def address(self, number: int) -> str:
        """Return where a node is."""
        return str(Address(*self.nodes[number].address))


def running(folder: Path, *, redirects: bool = False) -> Iterator[Hosts]:
    """Run a node that hosts shard 1 and another one that hosts shard 2."""
    found = Hosts(folder)
    found.host(1, ONE, redirects=redirects)
    found.host(2, TWO)
    yield found
    for number in list(found.nodes):
        found.stop(number)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Nodes that no test stops."""
    yield from running(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def redirecting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The same, and the first one forwards nothing."""
    yield from running(tmp_path_factory.mktemp("redirecting"), redirects=True)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Hosts]:
    """Nodes of one test."""
    yield from running(tmp_path)


def hosts(client: RawClient) -> dict[int, list[int]]:
    """Return which live nodes host each shard, as one of them says."""
    told = client.ask_json(Command.GET_CLUSTER_STATUS)["hosts"]
    assert isinstance(told, dict)
    return {int(shard): nodes for shard, nodes in told.items()}


def topic_at(cluster: Cluster, number: int) -> int:
    """Create a topic at a node."""
    with cluster.client(number) as client:
        return client.create_topic(f"topic-{next(_names)}")


class TestPlaces:
    """Which node has which topic."""

    def test_a_topic_goes_to_a_shard_that_its_creator_hosts(self, cluster: Hosts) -> None:
        """So the client chooses it by the node that it asks."""
        topics = [topic_at(cluster, number) for number in (1, 2)]
        with cluster.client(1) as one:
            for topic_id in topics:
                write(one, topic_id, 1, 1)
        assert [shards_of(cluster.log)[each] for each in topics] == [{1}, {2}]

    def test_a_node_stores_the_topics_of_its_shards(self, own: Hosts) -> None:
        """And no other."""
        topics = [topic_at(own, number) for number in (1, 2)]
        with own.client(1) as one:
            for topic_id in topics:
                write(one, topic_id, 1, 3)
        for number in (1, 2):
            own.stop(number)
        for number, topic_id in zip((1, 2), topics, strict=True):
            folders = {name.partition("/")[0] for name in own.files(number)}
            assert folders == {"0", str(topic_id)}

    def test_every_node_lists_all_topics(self, own: Hosts) -> None:
        """Those of other nodes among them."""
        topics = [topic_at(own, number) for number in (1, 2)]
        for number in (1, 2):
            with own.client(number) as client:
                assert listed(client) == topics

    def test_a_shard_that_the_log_has_not_got_is_refused(self, cluster: Hosts) -> None:
        """At the start."""
        member = ClusterMember(cluster.log, shards=frozenset({7}))
        with pytest.raises(DataDirError, match=r"shards 0 to 3, and --shards names 7"):
            cluster.start(3, member)


class TestForwarding:
    """A node that does not host a topic."""

    def test_it_takes_batches_in_order(self, cluster: Hosts) -> None:
        """They are stored at the host, and acknowledged in the order of receipt."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one, cluster.client(2) as two:
            for number in range(50):
                target = topic_id if number % 5 else 0
                one.send(one.batch([b"%d" % number], batch_id=NONCE + number, topic_id=target))
            assert [one.acked() - NONCE for _ in range(50)] == list(range(50))
            wanted = [b"%d" % number for number in range(50) if number % 5]
            assert two.read_all(topic_id=topic_id) == encode_records(wanted)

    def test_it_reads(self, cluster: Hosts) -> None:
        """What the host has."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one, cluster.client(2) as two:
            write(two, topic_id, 1, 3)
            assert one.read_all(topic_id=topic_id) == two.read_all(topic_id=topic_id)

    def test_it_tells_of_a_topic(self, cluster: Hosts) -> None:
        """What the host tells."""
        body = lwp.GetTopic(topic_at(cluster, 2)).encode()
        with cluster.client(1) as one, cluster.client(2) as two:
            assert one.ask_json(Command.GET_TOPIC, body) == two.ask_json(Command.GET_TOPIC, body)

    def test_it_changes_the_retention(self, cluster: Hosts) -> None:
        """At the host."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one, cluster.client(2) as two:
            one.ask_json(Command.SET_RETENTION, lwp.SetRetention(topic_id, 5000, 0).encode())
            told = two.ask_json(Command.GET_TOPIC, lwp.GetTopic(topic_id).encode())
        assert told["max_age_secs"] == 5000

    def test_it_finds_an_offset(self, cluster: Hosts) -> None:
        """The host does."""
        topic_id = topic_at(cluster, 2)
        body = lwp.OffsetForTime(topic_id, 2**63).encode()
        with cluster.client(1) as one:
            write(one, topic_id, 1, 1)
            found = one.ask(Command.OFFSET_FOR_TIME, body)
            assert lwp.OffsetForTimeResponse.decode(found.payload).offset == 55

    def test_it_tells_when_batches_were_stored(self, cluster: Hosts) -> None:
        """The host does."""
        topic_id = topic_at(cluster, 2)
        body = lwp.BatchTimes(topic_id, 0, 2**63).encode()
        with cluster.client(1) as one:
            write(one, topic_id, 1, 1)
            found = one.ask(Command.BATCH_TIMES, body)
            told = lwp.BatchTimesResponse.decode(found.payload)
            assert (told.next_offset, len(told.times)) == (55, 16)

    def test_it_commits(self, cluster: Hosts) -> None:
        """The host knows the commit."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one, cluster.client(2) as two:
            write(one, topic_id, 1, 2)
            one.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(topic_id, 9, 55).encode())
            ack = two.ask(Command.SUBSCRIBE, lwp.Subscribe(topic_id, 0, 1000, 9).encode())
            assert lwp.SubscribeAck.decode(ack.payload).offset == 55

    def test_it_deletes_a_topic(self, own: Hosts) -> None:
        """And then lists it no more."""
        topic_id = topic_at(own, 2)
        with own.client(1) as one, own.client(2) as two:
            one.ask_json(Command.DELETE_TOPIC, lwp.DeleteTopic(topic_id).encode())
            assert listed(one) == listed(two) == []
            one.send(one.batch([b"one"], batch_id=NONCE + 1, topic_id=topic_id))
            assert one.error().code is ErrorCode.TOPIC_DELETED

    def test_a_subscription_is_for_the_host(self, cluster: Hosts) -> None:
        """NotLeader says where that is."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one:
            body = lwp.Subscribe(topic_id, 0, 1000, 9)
            error = one.error(one.ask(Command.SUBSCRIBE, body.encode()))
        assert error.code is ErrorCode.NOT_LEADER
        assert error.details["leader_addr"] == cluster.address(2)

    def test_a_host_that_is_gone_leaves_no_batch_in_doubt(self, own: Hosts) -> None:
        """Whoever wrote there is told to connect again; nothing is stored out of order."""
        topic_id = topic_at(own, 2)
        with own.client(1) as one:
            write(one, topic_id, 1, 1)
            own.stop(2)
            one.send(one.batch([b"two"], batch_id=NONCE + 2, topic_id=topic_id))
            assert one.error().code in {ErrorCode.CLUSTER_NOT_READY, ErrorCode.QUORUM_NOT_REACHED}
            one.wait_for_close()

    def test_a_batch_that_was_cut_off_may_be_stored(self, own: Hosts) -> None:
        """The answer says so, and nothing more is answered on the connection."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host = Address(*listener.getsockname()[:2])
            own.stop(2)
            member = ClusterMember(own.log, advertise=host, shards=TWO)
            own.start(2, member)
            with own.client(1) as one:
                until(lambda: address_of(one, 2) == str(host))
                topic_id = topic_at(own, 2)
                one.send(one.batch([b"one"], batch_id=NONCE + 1, topic_id=topic_id))
                one.send(one.batch([b"two"], batch_id=NONCE + 2, topic_id=topic_id))
                peer, _ = listener.accept()
                peer.recv(64, socket.MSG_WAITALL)
                peer.close()
                error = one.error()
                assert error.code is ErrorCode.QUORUM_NOT_REACHED
                assert error.details["batch_id"] == NONCE + 1
                assert [each for each in one.wait_for_close() if each.flags & Flag.ACK] == []

    def test_without_a_live_host_nothing_is_stored(self, cluster: Hosts) -> None:
        """The answer says which shard has none, and nothing more is answered."""
        body = CreateTopic(name="lonely", max_age_secs=0, max_bytes=0, shard=LONELY, accepted_ns=1)
        cluster.log.put(0, encode(body, 7, 1))
        with cluster.client(1) as one:
            until(lambda: "lonely" in names(one))
            topic_id = names(one)["lonely"]
            one.send(one.batch([b"one"], batch_id=NONCE + 1, topic_id=topic_id))
            error = one.error()
            one.wait_for_close()
        assert error.code is ErrorCode.CLUSTER_NOT_READY
        assert f"no live node hosts shard {LONELY}" in error.message

    @pytest.mark.parametrize(
        ("path", "more"), [("/admin/offsets/set", {"offset": 0}), ("/admin/offsets/delete", {})]
    )
    def test_the_http_port_says_that_others_host_a_topic(
        self, cluster: Hosts, path: str, more: dict[str, int]
    ) -> None:
        """It does not say that there is none."""
        topic_id = topic_at(cluster, 2)
        with cluster.client(1) as one:
            write(one, topic_id, 1, 1)
        asked = {"topic_id": topic_id, "consumer_id": 1, **more}
        answer = ask_http(cluster.nodes[1], path, "POST", asked)
        assert (answer.status, "does not host topic" in answer.text) == (404, True)


def names(client: RawClient) -> dict[str, int]:
    """Return the topics that a node lists, by name."""
    topics = client.ask_json(Command.LIST_TOPICS)["topics"]
    assert isinstance(topics, list)
    return {each["name"]: each["id"] for each in topics}


def address_of(client: RawClient, number: int) -> object:
    """Return where a node is, as another one says."""
    peers = client.ask_json(Command.GET_CLUSTER_STATUS)["peer_states"]
    assert isinstance(peers, dict)
    return peers.get(str(number), {}).get("address")


class TestRedirects:
    """A node with ``--redirect`` that does not host a topic."""

    def test_it_names_the_host_of_a_batch(self, redirecting: Hosts) -> None:
        """In NotLeader."""
        topic_id = topic_at(redirecting, 2)
        with redirecting.client(1) as one:
            one.send(one.batch([b"one"], batch_id=NONCE + 1, topic_id=topic_id))
            error = one.error()
        assert error.code is ErrorCode.NOT_LEADER
        assert error.details["leader_addr"] == redirecting.address(2)

    def test_it_names_the_host_of_a_fetch(self, redirecting: Hosts) -> None:
        """The same."""
        topic_id = topic_at(redirecting, 2)
        with redirecting.client(1) as one:
            error = one.error(one.ask(Command.FETCH, lwp.Fetch(topic_id, 0, 1000).encode()))
        assert error.code is ErrorCode.NOT_LEADER
        assert error.details["leader_addr"] == redirecting.address(2)


@pytest.mark.parametrize("which", ["cluster", "redirecting"])
def test_a_consumer_goes_on_where_the_host_has_its_commit(
    which: str, request: pytest.FixtureRequest
) -> None:
    """Whichever node it asks."""
    found: Hosts = request.getfixturevalue(which)
    topic_id = topic_at(found, 2)
    with found.client(1) as one:
        (name,) = (name for name, each in names(one).items() if each == topic_id)
    with Producer(f"lance://{found.address(2)}/{name}") as producer:
        for number in range(4):
            producer.send(b"%d" % number)
    read = []
    for _ in range(2):
        with Consumer(
            f"lance://{found.address(1)}/{name}",
            consumer="billing",
            offsets="server",
            start="beginning",
        ) as consumer:
            read += [each.value for each in islice(consumer, 2)]
            consumer.commit()
    assert read == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("which", ["cluster", "redirecting"])
def test_the_sdk_writes_and_reads_any_topic_at_any_node(
    which: str, request: pytest.FixtureRequest
) -> None:
    """Whether it is forwarded or redirected."""
    found: Hosts = request.getfixturevalue(which)
    with found.client(2) as two:
        two.create_topic("orders")
    url = f"lance://{found.address(1)}/orders"
    with Producer(url) as producer:
        for number in range(20):
            producer.send(b"%d" % number)
        producer.flush()
    with Consumer(url, start="beginning") as consumer:
        assert [each.value for each in islice(consumer, 20)] == [b"%d" % each for each in range(20)]


def test_a_client_is_led_to_the_host(redirecting: Hosts) -> None:
    """With each of its commands, also with those that are not repeated."""
    topic_id = topic_at(redirecting, 2)
    with Client(f"lance://{redirecting.address(1)}") as client:
        assert client.get_topic(topic_id).id == topic_id
        assert client.get_topic(topic_at(redirecting, 1)).end_offset == 0
        client.set_retention(topic_id, max_age_secs=60)
        assert client.offset_for_time(topic_id, 0) == 0
        client.delete_topic(topic_id)
        assert topic_id not in [each.id for each in client.list_topics()]


@pytest.mark.parametrize("which", ["cluster", "redirecting"])
def test_a_group_reads_topics_of_several_hosts(which: str, request: pytest.FixtureRequest) -> None:
    """By one member, which asks only the first node."""
    found: Hosts = request.getfixturevalue(which)
    topics = {topic_at(found, number) for number in (1, 2)}
    with found.client(1) as one:
        group = [name for name, each in names(one).items() if each in topics]
    for name in group:
        with Producer(f"lance://{found.address(1)}/{name}") as producer:
            producer.send_many([name.encode()] * 20)
    with (
        Coordinator("127.0.0.1:0", store="memory:") as coordinator,
        GroupConsumer(
            f"lance://{found.address(1)}",
            group="billing",
            topics=group,
            coordinator=coordinator.url,
            start="beginning",
            stop_at_end=True,
        ) as consumer,
    ):
        read = [record.value for record in consumer]
    assert sorted(read) == sorted(name.encode() for name in group for _ in range(20))


def accepted(found: Hosts) -> dict[int, int]:
    """Return how many connections each node has accepted."""
    return {number: node.stats()["connections_accepted"] for number, node in found.nodes.items()}


class Writer:
    """Writes to some topics over connections that stay open.

    Attributes:
        topics: their names.
        sent: records that were sent: topic and value.
    """

    def __init__(self, found: Hosts, stack: ExitStack, numbers: Sequence[int]) -> None:
        topics = {topic_at(found, number) for number in numbers}
        with found.client(1) as one:
            self.topics = [name for name, each in names(one).items() if each in topics]
        self._producers = {
            name: stack.enter_context(
                Producer(f"lance://{found.address(1)}/{name}", backoff_cap=0.1)
            )
            for name in self.topics
        }
        self.sent: list[tuple[str, bytes]] = []

    def write(self) -> None:
        """Write one record to each topic."""
        for name, producer in self._producers.items():
            value = b"%d" % len(self.sent)
            producer.send(value).result()
            self.sent.append((name, value))


@pytest.mark.parametrize("which", ["cluster", "redirecting"])
def test_topics_of_several_hosts_have_a_connection_each(
    which: str, request: pytest.FixtureRequest
) -> None:
    """It stays, whether the nodes forward or redirect."""
    found: Hosts = request.getfixturevalue(which)
    with ExitStack() as stack:
        writer = Writer(found, stack, (1, 2, 1, 2))
        url = f"lance://{found.address(1)}"
        consumer = stack.enter_context(TopicsConsumer(url, writer.topics, start="beginning"))
        records, read = iter(consumer), []
        for rounds in range(10):
            writer.write()
            read += [(each.topic, each.value) for each in islice(records, len(writer.topics))]
            if rounds == 2:
                before = accepted(found)
        assert accepted(found) == before
    assert sorted(read) == sorted(writer.sent)


@pytest.mark.parametrize("which", ["cluster", "redirecting"])
def test_topics_of_several_hosts_have_a_connection_each_for_tasks(
    which: str, request: pytest.FixtureRequest
) -> None:
    """As for threads."""
    found: Hosts = request.getfixturevalue(which)

    async def read(url: str, writer: Writer) -> list[tuple[str | None, bytes]]:
        seen = list[tuple[str | None, bytes]]()
        async with AsyncTopicsConsumer(url, writer.topics, start="beginning") as consumer:
            for rounds in range(10):
                await anyio.to_thread.run_sync(writer.write)
                while len(seen) < len(writer.sent):
                    batch = await consumer.poll(60)
                    assert batch is not None, "records are there"
                    seen += [(each.topic, bytes(each.value)) for each in batch]
                if rounds == 2:
                    before = accepted(found)
            assert accepted(found) == before
        return seen

    with ExitStack() as stack:
        writer = Writer(found, stack, (1, 2, 1, 2))
        seen = anyio.run(read, f"lance://{found.address(1)}", writer)
    assert sorted(seen) == sorted(writer.sent)  # type: ignore[type-var]


def test_topics_of_a_host_that_goes_are_read_at_the_next_one(tmp_path: Path) -> None:
    """Each record once."""
    found = Hosts(tmp_path)
    found.host(1, ONE, redirects=True)
    for number in (2, 3):
        found.host(number, TWO)
    with ExitStack() as stack:
        stack.callback(lambda: [found.stop(number) for number in list(found.nodes)])
        writer = Writer(found, stack, (1, 2))
        url = f"lance://{found.address(1)}"
        consumer = stack.enter_context(
            TopicsConsumer(url, writer.topics, start="beginning", backoff_cap=0.1)
        )
        records, read = iter(consumer), []
        for rounds in range(6):
            writer.write()
            read += [(each.topic, each.value) for each in islice(records, len(writer.topics))]
            if rounds == 2:
                found.stop(2)
    assert sorted(read) == sorted(writer.sent)
