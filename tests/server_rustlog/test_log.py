"""What RustLog's clients and others see of each other, and what outlives a stop."""

import signal
from pathlib import Path

import pytest

from lance_server.listeners.rustlog.codecs import BINARY, JSON
from lance_server.listeners.rustlog.groups import FILE_NAME
from lance_server.listeners.rustlog.refusals import RustlogRefusal
from lance_server.listeners.rustlog.testing import Broker, RustlogPeer, broker
from lance_server.testing import RawClient, ServerProcess
from lance_spec.bodies import decode_topics
from lance_spec.enums import Command, RecordType
from lance_spec.messages.lwp import CreatePartitionedTopic, KeyTimestamped, KeyValue, Timestamped
from lance_spec.messages.rustlog import CreateTopicRequest, ListTopicsRequest
from lance_spec.records import decode_records, encode_record

from .test_requests import commit, committed, fetch, produce, read_all


def topics_of(client: RawClient) -> dict[str, int]:
    """Return the log's topics by name."""
    return {each.name: each.id for each in decode_topics(client.ask(Command.LIST_TOPICS).payload)}


def test_records_are_raw_data_in_the_log(rustlog: Broker, peer: RustlogPeer) -> None:
    """Partition 1 of ``demo`` is the topic ``demo.1``."""
    peer.ask(produce("demo", b"a"))
    peer.ask(produce("demo", b"b", b"c", partition=1))
    with RawClient(rustlog.server.address) as client:
        topics = topics_of(client)
        assert decode_records(client.read_all(topic_id=topics["demo"])) == [
            (RecordType.RAW_DATA, b"a")
        ]
        assert len(decode_records(client.read_all(topic_id=topics["demo.1"]))) == 2


def test_topics_of_others_are_there_with_one_partition(rustlog: Broker, peer: RustlogPeer) -> None:
    """And their records are counted as they stand."""
    with RawClient(rustlog.server.address) as client:
        topic = client.create_topic("orders")
        client.store([b"a", b"b"], batch_id=1, topic_id=topic)
        client.store([b"c"], batch_id=2, topic_id=topic)
    assert peer.ask(fetch(1, topic="orders")).records == [b"b", b"c"]
    assert ("orders", 1) in [
        (each.topic, each.partitions) for each in peer.ask(ListTopicsRequest()).topics
    ]


def test_a_partitioned_topic_is_there_with_its_partitions(
    rustlog: Broker, peer: RustlogPeer
) -> None:
    """AMB-59: and those are no topics of their own."""
    with RawClient(rustlog.server.address) as client:
        request = CreatePartitionedTopic(b"orders", 3, 1, 0, 0).encode()
        client.ask_json(Command.CREATE_PARTITIONED_TOPIC, request)
        client.store([b"a", b"b"], batch_id=1, topic_id=topics_of(client)["orders-2"])
    listed = [(each.topic, each.partitions) for each in peer.ask(ListTopicsRequest()).topics]
    assert sorted(listed) == [("demo", 2), ("orders", 3)]
    assert peer.ask(fetch(topic="orders", partition=2)).records == [b"a", b"b"]


def test_keys_and_times_are_left_out(rustlog: Broker, peer: RustlogPeer) -> None:
    """RustLog has neither."""
    payload = b"".join(
        [
            encode_record(KeyValue(key=b"k", value=b"kv").encode(), RecordType.KEY_VALUE),
            encode_record(Timestamped(timestamp_ns=1, data=b"ts").encode(), RecordType.TIMESTAMPED),
            encode_record(
                KeyTimestamped(timestamp_ns=1, key=b"k", value=b"kt").encode(),
                RecordType.KEY_TIMESTAMPED,
            ),
            encode_record(b"", RecordType.NULL),
            encode_record(b"odd", RecordType.KEY_TIMESTAMPED),
        ]
    )
    with RawClient(rustlog.server.address) as client:
        topic = client.create_topic("typed")
        client.send(client.raw_ingest(payload, count=5, topic_id=topic))
        client.acked()
    assert peer.ask(fetch(topic="typed")).records == [b"kv", b"ts", b"kt", b"", b"odd"]


def test_a_record_over_a_frame_is_skipped_with_a_word(rustlog: Broker, peer: RustlogPeer) -> None:
    """Others may write up to 16 MiB; the published broker would drop the connection."""
    with RawClient(rustlog.server.address) as client:
        topic = client.create_topic("large")
        client.store([b"x" * 11_000_000], batch_id=1, topic_id=topic)
        client.store([b"small"], batch_id=2, topic_id=topic)
    answer = peer.ask(fetch(topic="large"))
    assert (answer.code, answer.message) == (
        4,
        "Fetch failed: the record at offset 0 does not fit in a frame; go on from offset 1",
    )
    assert peer.ask(fetch(1, topic="large")).records == [b"small"]


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """Records, topics, and what groups committed; the published broker forgets all of it."""
    with broker(tmp_path) as found, RustlogPeer(found.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=2))
        client.ask(produce("demo", b"a", b"b"))
        client.ask(commit(1))
    with broker(tmp_path) as found, RustlogPeer(found.address) as client:
        assert client.ask(committed()).offset == 1
        assert client.ask(fetch(group="g")).records == [b"b"]
        assert client.ask(produce("demo", b"c")).base_offset == 2


@pytest.mark.parametrize("max_bytes", [100, 1 << 20])
def test_records_are_found_in_every_segment(tmp_path: Path, max_bytes: int) -> None:
    """While they are written, and after a restart."""
    sent = [b"%d" % each * 20 for each in range(400)]
    with broker(tmp_path, segment_size=4096) as found, RustlogPeer(found.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        for start in range(0, 400, 50):
            client.ask(produce("demo", *sent[start : start + 50]))
        assert read_all(client, max_bytes) == sent
    with broker(tmp_path, segment_size=4096) as found, RustlogPeer(found.address) as client:
        assert read_all(client, max_bytes) == sent
        assert client.ask(fetch(399)).records == sent[399:]


def test_what_retention_removed_is_answered_by_the_dialects_rule() -> None:
    """The binary one says nothing of it; JSON says where to go on."""
    assert BINARY.beyond(2, start=5, end=9) == 2
    with pytest.raises(RustlogRefusal, match="offset out of range: 2 is gone; go on from offset 5"):
        JSON.beyond(2, start=5, end=9)


def test_a_commit_made_before_the_topic_counts(rustlog: Broker) -> None:
    """The published clients do so."""
    with RustlogPeer(rustlog.address) as client:
        client.ask(commit(1))
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        client.ask(produce("demo", b"a", b"b"))
        assert client.ask(fetch(group="g")).records == [b"b"]


def test_offsets_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """With the file, and what to do."""
    with broker(tmp_path) as found, RustlogPeer(found.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        client.ask(commit(1))
    [path] = tmp_path.rglob(FILE_NAME)
    for each in path.parent.glob(FILE_NAME + "*"):
        each.write_bytes(b"nonsense")
    with broker(tmp_path) as found, RustlogPeer(found.address) as client:
        answer = client.ask(committed())
        assert answer.code == 5
        assert str(path) in answer.message
        assert "remove it to begin again" in answer.message


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_acknowledged_outlives_the_process(tmp_path: Path, number: signal.Signals) -> None:
    """However it ends."""
    options = (tmp_path / "data", "--rustlog", "127.0.0.1:0")
    server = ServerProcess(*options)
    with RustlogPeer(server.others["rustlog"]) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        client.ask(produce("demo", b"a", b"b"))
        client.ask(commit(1))
        server.end(number)
    with (
        ServerProcess.running(*options) as server,
        RustlogPeer(server.others["rustlog"]) as client,
    ):
        assert client.ask(fetch()).records == [b"a", b"b"]
        assert client.ask(committed()).offset == 1
