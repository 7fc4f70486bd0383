"""The ten requests of the binary dialect, as the published broker answers them."""

from collections.abc import Sequence

import pytest

from lance_server.listeners.rustlog.testing import Broker, RustlogPeer
from lance_spec.messages.rustlog import (
    CreateTopicRequest,
    CreateTopicResponse,
    DescribePartitionRequest,
    DescribeTopicRequest,
    ErrorResponse,
    FetchRequest,
    FetchResponse,
    ListedTopic,
    ListTopicsRequest,
    MetricsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    ProduceResponse,
)


def produce(topic: str, *records: bytes, partition: int = 0) -> ProduceRequest:
    """Return a request to append."""
    return ProduceRequest(topic=topic, partition=partition, records=list(records))


def fetch(
    offset: int = 0,
    *,
    topic: str = "demo",
    partition: int = 0,
    group: str = "",
    max_bytes: int = 1 << 20,
) -> FetchRequest:
    """Return a request to read."""
    return FetchRequest(
        group=group, topic=topic, partition=partition, offset=offset, max_bytes=max_bytes
    )


def commit(offset: int, *, topic: str = "demo", group: str = "g") -> OffsetCommitRequest:
    """Return a request to commit."""
    return OffsetCommitRequest(group=group, topic=topic, partition=0, offset=offset)


def committed(*, topic: str = "demo", group: str = "g") -> OffsetFetchRequest:
    """Return a request for what was committed."""
    return OffsetFetchRequest(group=group, topic=topic, partition=0)


def test_ping_is_answered_with_ping(peer: RustlogPeer) -> None:
    """A byte in, the same byte out."""
    peer.send(b"\xff")
    assert peer.receive() == b"\xff"


def test_offsets_count_records_from_0(peer: RustlogPeer) -> None:
    """Each request tells the offset of its first record."""
    assert peer.ask(produce("demo", b"a", b"b", b"c")) == ProduceResponse(
        base_offset=0, record_count=3
    )
    assert peer.ask(produce("demo", b"d")).base_offset == 3


def test_partitions_count_for_themselves(peer: RustlogPeer) -> None:
    """What one holds says nothing of another."""
    peer.ask(produce("demo", b"a", b"b"))
    assert peer.ask(produce("demo", b"c", partition=1)).base_offset == 0


def test_an_empty_produce_tells_0_and_0(peer: RustlogPeer) -> None:
    """It stores nothing, wherever the partition ends."""
    peer.ask(produce("demo", b"a"))
    assert peer.ask(produce("demo")) == ProduceResponse(base_offset=0, record_count=0)


def test_records_may_be_empty(peer: RustlogPeer) -> None:
    """An empty record has an offset as any other."""
    peer.ask(produce("demo", b"", b"a", b""))
    assert peer.ask(fetch()) == FetchResponse(records=[b"", b"a", b""], next_offset=3)


def test_a_fetch_begins_at_its_offset(peer: RustlogPeer) -> None:
    """In the middle of what was one request too."""
    peer.ask(produce("demo", b"a", b"b", b"c"))
    assert peer.ask(fetch(1)) == FetchResponse(records=[b"b", b"c"], next_offset=3)


def test_max_bytes_counts_12_for_each_record(peer: RustlogPeer) -> None:
    """Two records of 4 bytes take 32."""
    peer.ask(produce("demo", b"aaaa", b"bbbb", b"cccc"))
    assert len(peer.ask(fetch(max_bytes=32)).records) == 2
    assert len(peer.ask(fetch(max_bytes=31)).records) == 1


def test_one_record_comes_whatever_max_bytes_says(peer: RustlogPeer) -> None:
    """Or else nobody would get past a large one."""
    peer.ask(produce("demo", b"a" * 100_000, b"b"))
    assert peer.ask(fetch(max_bytes=1)) == FetchResponse(records=[b"a" * 100_000], next_offset=1)


def test_max_bytes_0_takes_nothing(peer: RustlogPeer) -> None:
    """That is the exception."""
    peer.ask(produce("demo", b"a"))
    assert peer.ask(fetch(max_bytes=0)) == FetchResponse(records=[], next_offset=0)


@pytest.mark.parametrize("offset", [1, 2, 2**64 - 1])
def test_behind_the_end_the_requested_offset_comes_back(peer: RustlogPeer, offset: int) -> None:
    """The broker does not tell where the end is."""
    peer.ask(produce("demo", b"a"))
    assert peer.ask(fetch(offset)) == FetchResponse(records=[], next_offset=offset)


def read_all(peer: RustlogPeer, max_bytes: int) -> Sequence[bytes]:
    """Return all records, fetched bit by bit."""
    found: list[bytes] = []
    while records := peer.ask(fetch(len(found), max_bytes=max_bytes)).records:
        found += records
    return found


@pytest.mark.parametrize("max_bytes", [1, 100, 5_000, 1 << 20])
def test_reading_on_returns_every_record_once(peer: RustlogPeer, max_bytes: int) -> None:
    """However small the steps, and across requests."""
    sent = [b"%d" % each * (each % 7) for each in range(300)]
    for start in range(0, 300, 60):
        peer.ask(produce("demo", *sent[start : start + 60]))
    assert read_all(peer, max_bytes) == sent


def test_a_group_reads_from_its_commit_only(peer: RustlogPeer) -> None:
    """Even when that is lower than what it asks for."""
    peer.ask(produce("demo", b"a", b"b", b"c"))
    peer.ask(commit(1))
    assert peer.ask(fetch(2, group="g")) == FetchResponse(records=[b"b", b"c"], next_offset=3)


def test_a_group_without_commit_reads_nothing(peer: RustlogPeer) -> None:
    """And is told 0, wherever it asks."""
    peer.ask(produce("demo", b"a"))
    assert peer.ask(fetch(1, group="g")) == FetchResponse(records=[], next_offset=0)


def test_a_group_without_commit_is_not_told_of_missing_topics(peer: RustlogPeer) -> None:
    """Nothing is looked up for it."""
    assert peer.ask(fetch(topic="none", group="g")) == FetchResponse(records=[], next_offset=0)


def test_commits_may_go_back(peer: RustlogPeer) -> None:
    """The last one counts."""
    peer.ask(commit(7))
    assert peer.ask(commit(3)).success
    assert peer.ask(committed()).offset == 3


def test_what_nobody_committed_is_none(peer: RustlogPeer) -> None:
    """0 would be a commit."""
    assert peer.ask(committed()).offset is None


def test_offsets_of_missing_topics_are_kept_too(peer: RustlogPeer) -> None:
    """The broker does not look whether there is one."""
    assert peer.ask(commit(2**64 - 1, topic="none")).success
    assert peer.ask(committed(topic="none")).offset == 2**64 - 1


def test_topics_are_listed_by_name(peer: RustlogPeer) -> None:
    """With how many partitions they have."""
    peer.ask(CreateTopicRequest(topic="alpha", partitions=1))
    assert peer.ask(ListTopicsRequest()).topics == [
        ListedTopic(topic="alpha", partitions=1),
        ListedTopic(topic="demo", partitions=2),
    ]


def test_a_description_tells_the_end_of_each_partition(peer: RustlogPeer) -> None:
    """The published broker always says 0."""
    peer.ask(produce("demo", b"a", b"b", partition=1))
    described = peer.ask(DescribeTopicRequest(topic="demo"))
    assert [each.high_watermark for each in described.partitions] == [0, 2]
    one = peer.ask(DescribePartitionRequest(topic="demo", partition=1))
    assert one.high_watermark == 2


def test_metrics_are_in_prometheus_form(peer: RustlogPeer) -> None:
    """They count what this listener did."""
    peer.ask(produce("demo", b"a", b"b"))
    assert "messages_produced_total 2.0" in peer.ask(MetricsRequest()).text


def test_bytes_behind_a_request_are_ignored(peer: RustlogPeer) -> None:
    """As the published broker does."""
    peer.send(CreateTopicRequest(topic="more", partitions=1).encode() + b"rest")
    assert CreateTopicResponse.decode(peer.receive()).success


def test_requests_sent_at_once_are_answered_in_order(peer: RustlogPeer) -> None:
    """One at a time: each sees what the one before did."""
    for number in range(20):
        peer.send(produce("demo", b"%d" % number).encode())
    answers = [ProduceResponse.decode(peer.receive()) for _ in range(20)]
    assert [each.base_offset for each in answers] == list(range(20))


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (
            produce("none", b"a"),
            10,
            "Topic or partition does not exist: topic=none, partition=0",
        ),
        (
            produce("demo", b"a", partition=2),
            10,
            "Topic or partition does not exist: topic=demo, partition=2",
        ),
        (
            fetch(topic="none", partition=7),
            10,
            "Topic or partition does not exist: topic=none, partition=7",
        ),
        (CreateTopicRequest(topic="demo", partitions=1), 11, "Topic 'demo' already exists"),
        (CreateTopicRequest(topic="x", partitions=0), 12, "Invalid partition count: 0"),
        (
            CreateTopicRequest(topic="x", partitions=2**32 - 1),
            12,
            "Invalid partition count: 4294967295",
        ),
        (
            DescribeTopicRequest(topic="none"),
            13,
            "DescribeTopic failed: Topic 'none' not found",
        ),
        (
            DescribePartitionRequest(topic="demo", partition=9),
            14,
            "DescribePartition failed: Partition 9 not found in topic 'demo'",
        ),
    ],
)
def test_errors_have_the_brokers_codes_and_words(
    guest: RustlogPeer, request_: ProduceRequest, code: int, text: str
) -> None:
    """And the connection goes on."""
    assert guest.ask(request_) == ErrorResponse(code=code, message=text)
    assert guest.ask(produce("demo", b"a")).record_count == 1


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("aa", "unknown request type: 170"),
        ("00", "unknown request type: 0"),
        ("01", "decode error: missing topic length"),
        ("01000464", "decode error: truncated topic"),
        ("0100016100", "decode error: missing partition"),
        ("0100016100000000", "decode error: missing record count"),
        ("010001610000000000000001", "decode error: truncated record length"),
        ("01000161000000000000000100000002ff", "decode error: truncated record"),
        ("01000161" + "00000000" + "00000003" + "00000005", "decode error: truncated record"),
        ("0200", "decode error: missing group_id length"),
        ("02000261", "decode error: truncated group_id"),
        ("02000000016100000000", "decode error: missing offset"),
        ("0200000001610000000000000000000000000000", "decode error: missing max_bytes"),
        ("0300", "decode error: missing group length"),
        ("03000161", "decode error: missing topic length"),
        ("05000161", "decode error: missing partition count"),
        ("08000161", "decode error: missing partition"),
        (
            "070002" + "61ff",
            "decode error: invalid utf8 topic: invalid utf-8 sequence of 1 bytes from index 1",
        ),
        (
            "02000161" + "0002e282",
            "decode error: invalid utf8 topic: incomplete utf-8 byte sequence from index 0",
        ),
    ],
)
def test_what_cannot_be_read_is_told_in_the_brokers_words(
    guest: RustlogPeer, payload: str, text: str
) -> None:
    """Code 2, and the connection goes on."""
    assert guest.refused(bytes.fromhex(payload)) == (2, f"Decode error: {text}")
    assert guest.ask(ListTopicsRequest()).topics


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 256, "tab\t"])
def test_names_that_the_log_cannot_have_are_refused(guest: RustlogPeer, name: str) -> None:
    """The published broker takes any; this log does not (AMB-24)."""
    answer = guest.ask(CreateTopicRequest(topic=name, partitions=1))
    assert answer.code == 2
    assert answer.message.startswith("Decode error: decode error: invalid topic: ")


def test_a_creation_that_would_take_records_of_others_is_refused(
    peer: RustlogPeer, rustlog: Broker
) -> None:
    """Partition 1 would be a topic that somebody else filled."""
    del rustlog
    peer.ask(CreateTopicRequest(topic="x.1", partitions=1))
    peer.ask(produce("x.1", b"theirs"))
    assert peer.ask(CreateTopicRequest(topic="x", partitions=2)).code == 11
