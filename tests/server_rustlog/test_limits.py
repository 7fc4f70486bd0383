"""Clients that lie, stall or ask for too much, and a disk that fails."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_server.errors import ConfigError
from lance_server.listeners.rustlog import RustlogOptions
from lance_server.listeners.rustlog.testing import Broker, RustlogPeer, broker
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage
from lance_spec.messages.rustlog import CreateTopicRequest, ErrorResponse, FetchResponse, Ping
from lance_spec.rustlog import json_messages

from .test_requests import commit, fetch, produce

MAX_FRAME = 10_485_760


def error(peer: RustlogPeer) -> tuple[int, str]:
    """Return code and text of the error that comes."""
    found = ErrorResponse.decode(peer.receive())
    return found.code, found.message


def test_an_empty_frame_closes(peer: RustlogPeer) -> None:
    """After code 1."""
    peer.socket.sendall(bytes(4))
    assert error(peer) == (1, "Frame error: invalid protocol: zero-length frame")
    assert peer.closed()


@pytest.mark.parametrize("size", [MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_over_10_mib_closes(peer: RustlogPeer, size: int) -> None:
    """Before a byte of it is read."""
    peer.socket.sendall(size.to_bytes(4, "big"))
    text = f"Frame error: frame too large: {size} bytes (max: 10485760)"
    assert error(peer) == (1, text)
    assert peer.closed()


def test_the_largest_frame_is_taken(peer: RustlogPeer) -> None:
    """And what it holds can be read again."""
    record = b"x" * (MAX_FRAME - len(produce("demo", b"").encode()))
    assert peer.ask(produce("demo", record)).record_count == 1
    assert peer.ask(fetch(max_bytes=1)).records == [record]


def test_a_count_is_held_against_the_frame(peer: RustlogPeer) -> None:
    """Four billion records in no bytes are refused before anything is made for them."""
    payload = produce("demo").encode()[:-4] + b"\xff" * 4
    assert peer.refused(payload) == (2, "Decode error: decode error: truncated record length")


def test_half_a_million_empty_records_are_stored(peer: RustlogPeer) -> None:
    """Each takes four bytes of the frame."""
    records = [b""] * 500_000
    assert peer.ask(produce("demo", *records)).record_count == len(records)
    assert peer.ask(fetch(499_999)).next_offset == len(records)


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker with little patience."""
    with broker(tmp_path / "hasty", RustlogOptions(idle_timeout=0.2, frame_timeout=0.2)) as found:
        yield found


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker with little room."""
    options = RustlogOptions(max_connections=2, max_partitions=3, max_groups=2)
    with broker(tmp_path / "narrow", options) as found:
        yield found


def test_a_silent_client_is_let_go(hasty: Broker) -> None:
    """Its place is for others."""
    with RustlogPeer(hasty.address) as client:
        assert client.closed()


def test_a_client_that_stalls_in_a_frame_is_let_go(hasty: Broker) -> None:
    """Whether it was silent before or not."""
    with RustlogPeer(hasty.address) as client:
        client.socket.sendall(b"\x00\x00\x00\x09\x01")
        assert client.closed()


def ask_for_ever(client: RustlogPeer, asking: bytes) -> None:
    """Send a request again and again, and read no answer."""
    while True:
        client.send(asking)


def test_a_client_that_takes_nothing_is_let_go(hasty: Broker) -> None:
    """What it was sent does not pile up."""
    with RustlogPeer(hasty.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        client.ask(produce("demo", b"x" * 9_000_000))
        asking = fetch().encode()
        with pytest.raises(OSError, match=r"reset|Broken"):
            ask_for_ever(client, asking)


def test_connections_are_counted(narrow: Broker) -> None:
    """One too many is closed at once."""
    with RustlogPeer(narrow.address) as first, RustlogPeer(narrow.address) as second:
        first.ask(CreateTopicRequest(topic="a", partitions=1))
        second.ask(CreateTopicRequest(topic="b", partitions=1))
        with RustlogPeer(narrow.address) as third:
            assert third.closed()


def test_partitions_are_bounded(narrow: Broker) -> None:
    """Each is a topic of the log."""
    with RustlogPeer(narrow.address) as client:
        assert client.ask(CreateTopicRequest(topic="a", partitions=3)).success
        assert client.ask(CreateTopicRequest(topic="b", partitions=4)).code == 12


@pytest.mark.parametrize("topic", ["demo", "none"])
def test_groups_are_bounded(narrow: Broker, topic: str) -> None:
    """Those of missing topics too."""
    with RustlogPeer(narrow.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        answers = [client.ask(commit(1, topic=topic, group=each)) for each in ("a", "b", "c", "a")]
    assert [isinstance(each, ErrorResponse) for each in answers] == [False, False, True, False]
    assert answers[2].code == 5
    assert answers[2].message.startswith("Offset commit failed: 2 ")


def test_names_of_groups_are_bounded(peer: RustlogPeer) -> None:
    """Each is kept in memory."""
    assert peer.ask(commit(1, group="g" * 1025)).code == 5
    assert peer.ask(commit(1, group="g", topic="t" * 1025)).code == 5


def test_large_json_and_small_requests_go_side_by_side(
    rustlog: Broker, peer: RustlogPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million brackets hold up nobody, however long they take."""
    begun, others_done = threading.Event(), threading.Event()
    decode = json_messages.decode_request

    def decode_slowly(data: bytes) -> object:
        begun.set()
        others_done.wait()
        return decode(data)

    monkeypatch.setattr(json_messages, "decode_request", decode_slowly)
    peer.send(
        b'{"Produce":{"topic":"demo","partition":0,"records":[' + b"[]," * 1_000_000 + b"[]]}}"
    )
    begun.wait()
    try:
        with RustlogPeer(rustlog.address) as other:
            for _ in range(20):
                other.send(Ping().encode())
                other.receive()
    finally:
        others_done.set()
    peer.receive()


def test_memory_is_shared_by_all(tmp_path: Path) -> None:
    """More clients than there is memory for wait for each other, and all are served."""
    options = RustlogOptions(max_memory=1 << 20)
    with broker(tmp_path, options) as found, RustlogPeer(found.address) as first:
        first.ask(CreateTopicRequest(topic="demo", partitions=1))
        threads = [
            threading.Thread(target=_store, args=(found, bytes([each]) * 400_000))
            for each in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(first.ask(fetch(max_bytes=2**32 - 1)).records) == 6


def _store(found: Broker, record: bytes) -> None:
    with RustlogPeer(found.address) as client:
        client.ask(produce("demo", record))


def test_a_disk_that_fails_is_told(tmp_path: Path) -> None:
    """Code 500, and what the disk says; the connection goes on."""
    disk = FaultyStorage(PwritevStorage())
    with broker(tmp_path, storage=disk) as found, RustlogPeer(found.address) as client:
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        disk.fail["sync"] = errno.EIO
        answer = client.ask(produce("demo", b"a"))
        disk.fail.clear()
        assert answer.code == 500
        assert answer.message.startswith("Failed to write record: ")
        assert "Input/output error" in answer.message
        assert client.ask(fetch()) == FetchResponse(records=[], next_offset=0)


def test_a_disk_that_hangs_is_waited_for_so_long(tmp_path: Path) -> None:
    """Then the client is told, and let go: nobody knows what becomes of the request."""
    disk = FaultyStorage(PwritevStorage())
    options = RustlogOptions(frame_timeout=0.3)
    with (
        broker(tmp_path, options, storage=disk, inline_commits=False) as found,
        RustlogPeer(found.address) as client,
    ):
        client.ask(CreateTopicRequest(topic="demo", partitions=1))
        disk.block_syncs()
        try:
            answer = client.ask(produce("demo", b"a"))
            assert (answer.code, answer.message) == (
                500,
                "Internal server error: not done in 0.3 s",
            )
            assert client.closed()
        finally:
            disk.release_syncs()


@pytest.mark.parametrize(
    "options", [{"dialect": "xml"}, {"max_partitions": 0}, {"idle_timeout": -1.0}]
)
def test_settings_that_make_no_sense_are_named(options: dict[str, object]) -> None:
    """Before anything listens."""
    [name] = options
    with pytest.raises(ConfigError, match=name):
        RustlogOptions(**options)
