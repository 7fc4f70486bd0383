"""A node with ``--read-consistency linear``: a read sees all that was acknowledged before it."""

import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server_cluster.nodes.test_nodes import NONCE, Cluster, until

from lance_server.cluster.member import ClusterMember
from lance_server.cluster.replicated_log import Delivered
from lance_server.testing import RawClient
from lance_server.testing.replicated_log import FaultyLog
from lance_spec.bodies import decode_topic, decode_topics
from lance_spec.checksum import Buffer
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages import lwp
from lance_spec.records import encode_records

RECORDS = encode_records([b"one"])


class LateLog(FaultyLog):
    """A connection that sees as much of the log as the test says.

    Attributes:
        takes: whether the log takes appends at once; otherwise the test decides.
    """

    takes = True

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append at once, or leave it to the test."""
        if self.takes:
            self.log.append(shard, record, delivered)
        else:
            super().append(shard, record, delivered)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """One node that is written to."""
    found = Cluster(tmp_path)
    found.start(1)
    yield found
    for number in list(found.nodes):
        found.stop(number)


@pytest.fixture
def log(cluster: Cluster) -> LateLog:
    """The connection of node 2, whose reads are linear."""
    late = LateLog(cluster.log)
    cluster.start(2, ClusterMember(late, linear_reads=True))
    return late


def ask_too_early(cluster: Cluster, log: LateLog, command: Command, request: bytes) -> bytes:
    """Ask node 2 while it lags behind what node 1 acknowledged; return its answer."""
    log.visible[0] = cluster.log.end(0)
    with cluster.client(1) as one, cluster.client(2) as two:
        one.create_topic("later")
        one.store([b"one"], batch_id=NONCE + 1)
        two.send(two.control(command, request))
        log.visible[0] = None
        return bytes(two.receive().payload)


def answered(client: RawClient) -> bool:
    """Whether an answer waits to be read."""
    return bool(select.select([client.socket], [], [], 0)[0])


def test_fetch_sees_what_another_node_acknowledged(cluster: Cluster, log: LateLog) -> None:
    """It waits until this node has applied that much."""
    answer = ask_too_early(cluster, log, Command.FETCH, lwp.Fetch(0, 0, 1000).encode())
    assert lwp.FetchResponse.decode(answer).data == RECORDS


def test_get_topic_tells_an_end_that_another_node_acknowledged(
    cluster: Cluster, log: LateLog
) -> None:
    """A consumer that begins at the end misses nothing that it was told of."""
    answer = ask_too_early(cluster, log, Command.GET_TOPIC, lwp.GetTopic(0).encode())
    assert decode_topic(answer).end_offset == len(RECORDS)


def test_a_list_has_a_topic_that_another_node_acknowledged(cluster: Cluster, log: LateLog) -> None:
    """With its name."""
    answer = ask_too_early(cluster, log, Command.LIST_TOPICS, b"")
    assert [each.name for each in decode_topics(answer)] == ["later"]


def test_offset_for_time_looks_at_all_that_was_acknowledged(cluster: Cluster, log: LateLog) -> None:
    """What arrived first is found, and not the end of what is applied."""
    answer = ask_too_early(
        cluster, log, Command.OFFSET_FOR_TIME, lwp.OffsetForTime(0, 2**63).encode()
    )
    assert lwp.OffsetForTimeResponse.decode(answer).offset == len(RECORDS)


def test_a_read_is_refused_where_the_node_cannot_tell(cluster: Cluster, log: LateLog) -> None:
    """The log does not take its barrier: nothing that may be old is handed out."""
    log.takes = False
    with cluster.client(2) as first, cluster.client(2) as second:
        for each in (first, second):
            each.send(each.control(Command.FETCH, lwp.Fetch(0, 0, 1000).encode()))

        def lose_all() -> bool:
            while log.pending:
                log.fail(applied=False)
            while log.reports:
                log.report()
            return answered(first) and answered(second)

        until(lose_all)
        refused = [each.error() for each in (first, second)]
    assert [each.code for each in refused] == [ErrorCode.QUORUM_NOT_REACHED] * 2
    assert "read from another node" in refused[0].message


def test_many_reads_at_once_are_all_answered(cluster: Cluster, log: LateLog) -> None:
    """Those that come while a barrier is under way share the next one."""
    del log
    with cluster.client(1) as one:
        one.store([b"one"], batch_id=NONCE + 1)
    clients = [cluster.client(2) for _ in range(20)]
    for client in clients:
        client.send(client.control(Command.FETCH, lwp.Fetch(0, 0, 1000).encode()) * 3)
    for client in clients:
        for _ in range(3):
            assert lwp.FetchResponse.decode(client.receive().payload).data == RECORDS
        client.close()
