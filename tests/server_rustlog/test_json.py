"""The JSON that RustLog's specification describes, on the same port."""

import json
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.rustlog import RustlogOptions
from lance_server.listeners.rustlog.testing import RustlogPeer, broker
from lance_spec.messages.rustlog import CreateTopicRequest, MetricsRequest, Ping

from .test_requests import fetch, produce


def ask(peer: RustlogPeer, variant: str, **members: Any) -> dict[str, Any]:
    """Send a request about partition 0 of ``demo`` and return its answer."""
    place: dict[str, Any] = {"topic": "demo", "partition": 0}
    peer.send(json.dumps({variant: place | members}).encode())
    answer: dict[str, Any] = json.loads(peer.receive())
    return answer


def read(peer: RustlogPeer, offset: int = 0, **members: Any) -> dict[str, Any]:
    """Fetch and return the answer."""
    return ask(peer, "Fetch", **({"offset": offset, "max_bytes": 1000} | members))


def values(answer: dict[str, Any]) -> list[bytes]:
    """Return the records of an answer to a Fetch."""
    return [bytes(each["payload"]) for each in answer["Fetch"]["records"]]


def test_a_produce_is_told_every_offset(peer: RustlogPeer) -> None:
    """As in the specification's first example."""
    assert ask(peer, "Produce", records=[[10, 20], [30, 40]]) == {"Produce": {"offsets": [0, 1]}}
    assert ask(peer, "Produce", records=[[50, 60]]) == {"Produce": {"offsets": [2]}}


def test_a_fetch_is_told_the_offset_of_every_record(peer: RustlogPeer) -> None:
    """Beside its bytes."""
    peer.ask(produce("demo", b"a", b"bc"))
    assert read(peer) == {
        "Fetch": {
            "records": [{"offset": 0, "payload": [97]}, {"offset": 1, "payload": [98, 99]}],
            "next_offset": 2,
        }
    }


def test_both_dialects_share_a_connection(peer: RustlogPeer) -> None:
    """The first byte of each request decides."""
    ask(peer, "Produce", records=[[104, 105]])
    assert peer.ask(fetch()).records == [b"hi"]


@pytest.mark.parametrize("space", [b" ", b"\n", b"\r", b"\t"])
def test_white_space_opens_json_too(peer: RustlogPeer, space: bytes) -> None:
    """A tab as well, although it is the type of a request."""
    peer.send(space + b'{"OffsetFetch":{"topic":"demo","partition":0,"group_id":"g"}}')
    assert json.loads(peer.receive()) == {"OffsetFetch": {"offset": None}}


def test_a_tab_alone_asks_for_metrics(peer: RustlogPeer) -> None:
    """That request is one byte long."""
    assert "messages_produced" in peer.ask(MetricsRequest()).text


@pytest.mark.parametrize(("committed", "requested", "first"), [(2, 0, b"c"), (1, 2, b"c")])
def test_a_group_reads_from_the_higher_of_both(
    peer: RustlogPeer, committed: int, requested: int, first: bytes
) -> None:
    """The committed and the requested offset."""
    peer.ask(produce("demo", b"a", b"b", b"c"))
    ask(peer, "OffsetCommit", group_id="g", offset=committed)
    assert values(read(peer, requested, group_id="g"))[0] == first


def test_a_group_without_commit_reads_from_where_it_asks(peer: RustlogPeer) -> None:
    """Unlike in the binary dialect."""
    peer.ask(produce("demo", b"a", b"b"))
    assert values(read(peer, 1, group_id="g")) == [b"b"]


def test_behind_the_end_the_end_is_told(peer: RustlogPeer) -> None:
    """Unlike in the binary dialect."""
    peer.ask(produce("demo", b"a"))
    assert read(peer, 9) == {"Fetch": {"records": [], "next_offset": 1}}


def test_max_bytes_0_takes_one_record(peer: RustlogPeer) -> None:
    """At least one is promised without exception."""
    peer.ask(produce("demo", b"a", b"b"))
    assert values(read(peer, max_bytes=0)) == [b"a"]


def test_max_bytes_counts_the_records_alone(peer: RustlogPeer) -> None:
    """Two records of 4 bytes take 8."""
    peer.ask(produce("demo", b"aaaa", b"bbbb", b"cccc"))
    assert len(values(read(peer, max_bytes=8))) == 2


def test_both_dialects_share_what_was_committed(peer: RustlogPeer) -> None:
    """A group may be read either way."""
    ask(peer, "OffsetCommit", group_id="g", offset=1)
    peer.ask(produce("demo", b"a", b"b"))
    assert peer.ask(fetch(group="g")).records == [b"b"]


def test_a_commit_for_a_missing_topic_fails(peer: RustlogPeer) -> None:
    """``success`` is false, as the specification has it."""
    answer = ask(peer, "OffsetCommit", topic="none", group_id="g", offset=1)
    assert answer == {"OffsetCommit": {"success": False}}


@pytest.mark.parametrize("variant", ["Produce", "Fetch"])
def test_a_missing_topic_is_named(peer: RustlogPeer, variant: str) -> None:
    """In the specification's words."""
    members = {"offset": 0, "max_bytes": 1, "records": []}
    assert ask(peer, variant, topic="none", **members) == {
        "Error": {"message": "partition not found: topic=none, partition=0"}
    }


def test_a_request_that_cannot_be_read_is_told_what_is_wrong(peer: RustlogPeer) -> None:
    """And the connection goes on."""
    message = ask(peer, "Fetch", offset=-1, max_bytes=1)["Error"]["message"]
    assert message.startswith("failed to parse request: Fetch.offset")
    assert read(peer)["Fetch"]["records"] == []


def test_records_that_json_makes_too_large_are_skipped_with_a_word(peer: RustlogPeer) -> None:
    """A frame has 10 MiB; each byte takes up to four of them."""
    peer.ask(produce("demo", b"\xff" * 3_000_000, b"small"))
    text = "does not fit in a frame; go on from offset 1"
    assert text in read(peer)["Error"]["message"]
    assert values(read(peer, 1)) == [b"small"]


def test_records_that_do_not_fit_together_come_one_after_the_other(peer: RustlogPeer) -> None:
    """An answer is a frame."""
    peer.ask(produce("demo", b"\xff" * 1_500_000, b"\xff" * 1_500_000))
    assert len(values(read(peer, max_bytes=2**64 - 1))) == 1


def test_deep_json_is_refused(peer: RustlogPeer) -> None:
    """A million brackets bring nobody down."""
    peer.send(b'{"Produce":' + b"[" * 1_000_000)
    assert "failed to parse request" in json.loads(peer.receive())["Error"]["message"]


def test_strict_binary_takes_a_brace_for_a_type(tmp_path: Path) -> None:
    """Code 2, as the published broker answers (RL-01)."""
    options = RustlogOptions(dialect="binary")
    with broker(tmp_path, options) as found, RustlogPeer(found.address) as client:
        assert client.refused(b"{}") == (2, "Decode error: unknown request type: 123")


def test_strict_json_takes_binary_for_nonsense(tmp_path: Path) -> None:
    """Even an empty frame is answered in JSON."""
    options = RustlogOptions(dialect="json")
    with broker(tmp_path, options) as found, RustlogPeer(found.address) as client:
        client.send(Ping().encode())
        assert "failed to parse" in json.loads(client.receive())["Error"]["message"]
        client.socket.sendall(bytes(4))
        assert "an empty frame" in json.loads(client.receive())["Error"]["message"]
        assert client.closed()


def test_topics_are_made_in_the_binary_dialect(peer: RustlogPeer) -> None:
    """JSON has four requests; the others are refused by name."""
    peer.ask(CreateTopicRequest(topic="more", partitions=1))
    message = ask(peer, "CreateTopic", partitions=1)["Error"]["message"]
    assert "one of Produce, Fetch, OffsetCommit, OffsetFetch" in message
