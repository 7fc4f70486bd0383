"""The server on real sockets: streams, limits, slow and rude peers."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lance_server import EmbeddedServer, running
from lance_server.errors import UncleanStopError
from lance_server.lwp.connection import LINGER_BYTES
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, RawClient, eventually
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind
from lance_spec.messages.lwp import Fetch, Subscribe
from lance_spec.records import encode_records

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server with an empty log."""
    with running(tmp_path) as running_server:
        yield running_server


@BOTH
def test_records_go_in_and_come_out(server: EmbeddedServer, dialect: Dialect) -> None:
    """Produce, acknowledge, fetch: the same bytes."""
    with RawClient(server.address, dialect) as client:
        topic = client.create_topic("orders")
        client.store([b"one", b"two"], batch_id=1, topic_id=topic)
        assert client.read_all(topic_id=topic) == encode_records([b"one", b"two"])


def test_both_dialects_share_a_log(server: EmbeddedServer) -> None:
    """What one client writes in one dialect another reads in the other."""
    with RawClient(server.address, DEPLOYED) as writer, RawClient(server.address) as reader:
        writer.store([b"shared"], batch_id=1)
        assert reader.read_all() == encode_records([b"shared"])


def test_a_request_may_come_a_byte_at_a_time(server: EmbeddedServer) -> None:
    """Each byte in a segment of its own, on a real socket."""
    with RawClient(server.address) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in client.batch([b"one"], batch_id=5):
            client.send(bytes([byte]))
        assert client.acked() == 5


def test_many_connections_use_one_buffer_without_mixing(server: EmbeddedServer) -> None:
    """Halves of frames from many connections, interleaved, end up where they belong."""
    clients = [RawClient(server.address) for _ in range(20)]
    frames = [
        client.batch([b"%d" % number * 500], batch_id=number + 1)
        for number, client in enumerate(clients)
    ]
    for part in range(4):
        for client, frame in zip(clients, frames, strict=True):
            size = len(frame) // 4 + 1
            client.send(frame[part * size : (part + 1) * size])
    assert [client.acked() for client in clients] == list(range(1, 21))
    stored = clients[0].read_all()
    assert all(b"%d" % number * 500 in stored for number in range(20))
    for client in clients:
        client.close()


def test_the_largest_record_goes_through(server: EmbeddedServer) -> None:
    """16 MiB of value, in one frame in and in one frame out (AMB-32)."""
    value = bytes(range(256)) * 65536
    with RawClient(server.address) as client:
        client.store([value], batch_id=1)
        answer = client.fetch(0, 2**32 - 1)
        assert bytes(answer.data) == encode_records([value])


def test_an_oversize_frame_is_told_even_while_it_is_being_sent(server: EmbeddedServer) -> None:
    """The answer arrives, not a reset, although the payload was never read (AMB-17)."""
    size = SPECIFIED.max_payload + 1
    with RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1))
        header = bytearray(client.ingest(b"x", batch_id=2)[:44])
        struct.pack_into("<I", header, 32, size)
        client.send(bytes(header), bytes(size))
        assert client.acked() == 1
        assert client.error().code is ErrorCode.PAYLOAD_TOO_LARGE
        assert client.wait_for_close() == []


def test_a_closed_connection_is_not_read_for_ever(server: EmbeddedServer) -> None:
    """Who keeps sending after the end of the stream is cut off."""
    with RawClient(server.address) as client:
        client.send(b"JUNK" * 11)
        assert client.wait_for_close() == []
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            client.send(bytes(2 * LINGER_BYTES))


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.1\r\n\r\n" * 4, b"\x16\x03\x01" * 20, bytes(64)])
def test_other_protocols_are_turned_away_and_others_served(
    server: EmbeddedServer, junk: bytes
) -> None:
    """A close without a frame; the next connection works."""
    with RawClient(server.address) as stranger, RawClient(server.address) as client:
        stranger.send(junk)
        assert stranger.wait_for_close() == []
        client.store([b"one"], batch_id=1)


def test_a_reset_connection_harms_nobody(server: EmbeddedServer) -> None:
    """A peer that vanishes with a batch under way."""
    rude = RawClient(server.address)
    rude.send(rude.batch([bytes(100_000)] * 10, batch_id=1))
    rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    rude.close()
    with RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)


def test_a_reader_that_does_not_read_holds_up_nobody(server: EmbeddedServer) -> None:
    """Its answers stay in the log; the server's memory does not grow with its requests."""
    with RawClient(server.address) as client:
        client.store([bytes(4 << 20)], batch_id=1)
        slow = RawClient(server.address)
        fetch = slow.control(Command.FETCH, Fetch(0, 0, 1 << 23).encode())
        slow.send(fetch * 200)
        eventually(lambda: server.stats()["fetches"] >= 1)
        client.store([b"quick"], batch_id=2)
        fetches = server.stats()["fetches"]
        client.store([b"quick"], batch_id=3)
        assert server.stats()["fetches"] == fetches < 20
        for _ in range(200):
            assert slow.receive().command == Command.FETCH_RESPONSE
        slow.close()


def test_a_reader_that_never_reads_is_cut_off(tmp_path: Path) -> None:
    """Taking nothing for as long as a slow peer may ends the connection."""
    with running(tmp_path, slow_peer_timeout=0.4) as server, RawClient(server.address) as client:
        client.store([bytes(8 << 20)], batch_id=1)
        client.send(client.control(Command.FETCH, Fetch(0, 0, 1 << 24).encode()) * 5)
        eventually(lambda: server.stats()["connections_open"] == 0)


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    """Silence beyond the timeout ends in a close (LWP section 11.4)."""
    with running(tmp_path, idle_timeout=0.2) as server, RawClient(server.address) as client:
        assert client.wait_for_close() == []
        assert server.stats()["idle_closed"] == 1


def test_a_peer_that_never_takes_its_last_answers_is_cut_off(tmp_path: Path) -> None:
    """A few bytes that it leaves in the socket do not keep a connection for ever."""
    with (
        running(tmp_path, idle_timeout=0.2, slow_peer_timeout=0.2) as server,
        RawClient(server.address),
    ):
        eventually(lambda: server.stats()["connections_open"] == 1)
        (connection,) = server._running.connection_manager
        connection._written = lambda: 1  # type: ignore[method-assign]
        eventually(lambda: server.stats()["connections_open"] == 0)


def test_half_a_frame_is_closed_when_it_stalls(tmp_path: Path) -> None:
    """The rest of a frame is not waited for longer than a frame would be."""
    with running(tmp_path, idle_timeout=0.2) as server, RawClient(server.address) as client:
        client.send(client.batch([b"one"], batch_id=1)[:50])
        assert client.wait_for_close() == []


@pytest.mark.parametrize(
    ("pinned", "dialect"), [("specified", SPECIFIED), ("auto", SPECIFIED), ("auto", DEPLOYED)]
)
def test_connections_over_the_limit_are_told(tmp_path: Path, dialect: Dialect, pinned: str) -> None:
    """In the dialect they speak; a place that gets free is given away."""
    with running(tmp_path, dialect=pinned, max_connections=1) as server:
        first = RawClient(server.address, dialect)
        first.store([b"one"], batch_id=1)
        with RawClient(server.address, dialect) as second:
            if pinned == "auto":
                second.send(second.batch([b"two"], batch_id=1))
            message = second.error().message
            assert "takes no more" in message
            assert second.wait_for_close() == []
        first.close()
        eventually(lambda: server.stats()["connections_open"] == 0)
        with RawClient(server.address, dialect) as third:
            third.store([b"two"], batch_id=2)


def test_a_silent_connection_over_the_limit_is_told_after_a_moment(tmp_path: Path) -> None:
    """In the form of the specification: the server cannot know better."""
    with running(tmp_path, max_connections=1) as server, RawClient(server.address) as first:
        first.store([b"one"], batch_id=1)
        with RawClient(server.address) as second:
            assert second.error().code is ErrorCode.CONNECTION_LIMIT
            assert second.wait_for_close() == []


def test_a_stalled_disk_is_told_with_a_backpressure_frame(tmp_path: Path) -> None:
    """And a keepalive is answered meanwhile, so that nobody reconnects (AMB-28)."""
    disk = FaultyStorage(PwritevStorage())
    with (
        running(tmp_path, storage=disk, inline_commits=False) as server,
        RawClient(server.address) as client,
    ):
        client.store([b"one"], batch_id=1)
        disk.block_syncs()
        client.send(client.batch([b"two"], batch_id=2), client.keepalive())
        assert client.receive().kind is FrameKind.BACKPRESSURE
        assert client.receive().kind is FrameKind.KEEPALIVE
        disk.release_syncs()
        assert client.acked() == 2


def test_nothing_is_acknowledged_or_readable_before_the_sync(tmp_path: Path) -> None:
    """While the sync of a batch hangs, readers do not see it."""
    disk = FaultyStorage(PwritevStorage())
    with ExitStack() as stack:
        server = stack.enter_context(running(tmp_path, storage=disk, inline_commits=False))
        writer, reader = (stack.enter_context(RawClient(server.address)) for _ in range(2))
        writer.store([b"one"], batch_id=1)
        disk.block_syncs()
        writer.send(writer.batch([b"two"], batch_id=2))
        assert disk.sync_reached.wait(10)
        assert reader.fetch(2**64 - 1).next_offset == 8
        assert reader.read_all() == encode_records([b"one"])
        disk.release_syncs()
        assert writer.acked() == 2
        assert reader.read_all() == encode_records([b"one", b"two"])


def test_a_failing_disk_leaves_the_server_up(tmp_path: Path) -> None:
    """An error for the batch; the same connection stores the next one once the topic is open."""
    disk = FaultyStorage(PwritevStorage())
    with running(tmp_path, storage=disk) as server, RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        disk.fail = {"sync": 5}
        client.send(client.batch([b"two"], batch_id=2))
        assert client.error().code is ErrorCode.STORAGE_ERROR
        disk.fail = {}

        def stored() -> bool:
            client.send(client.batch([b"three"], batch_id=3))
            return client.receive().kind is FrameKind.ACK

        eventually(stored)
        assert client.read_all() == encode_records([b"one", b"three"])


def test_a_subscriber_gets_what_others_store(server: EmbeddedServer) -> None:
    """Push across connections, on real sockets (AMB-21)."""
    with RawClient(server.address) as subscriber, RawClient(server.address) as writer:
        subscriber.ask(Command.SUBSCRIBE, Subscribe(0, 0, 1 << 20, 1).encode())
        for number in range(1, 11):
            writer.store([b"%d" % number], batch_id=number)
        pushed = b""
        expected = encode_records([b"%d" % number for number in range(1, 11)])
        while len(pushed) < len(expected):
            pushed += bytes(subscriber.receive().payload[16:])
        assert pushed == expected


def test_stopping_answers_what_was_received(tmp_path: Path) -> None:
    """Batches under way are stored and acknowledged, then the connection ends."""
    disk = FaultyStorage(PwritevStorage())
    with running(tmp_path, storage=disk, inline_commits=False) as server:
        client = RawClient(server.address)
        client.store([b"one"], batch_id=1)
        disk.block_syncs()
        client.send(client.batch([b"two"], batch_id=2))
        assert disk.sync_reached.wait(10)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        with pytest.raises(OSError, match=r"refused|reset"):  # reset: it waited to be accepted
            eventually(lambda: RawClient(server.address).close() is not None)
        disk.release_syncs()
        assert client.acked() == 2
        assert client.wait_for_close() == []
        client.close()
        stopping.join()
    with running(tmp_path) as again, RawClient(again.address) as client:
        assert again.report.clean
        assert client.read_all() == encode_records([b"one", b"two"])


def test_a_stop_that_takes_too_long_says_so(tmp_path: Path) -> None:
    """The drain has a deadline; missing it is an error, and the next start checks the log."""
    disk = FaultyStorage(PwritevStorage())
    stack = ExitStack()
    server = stack.enter_context(
        running(tmp_path, storage=disk, inline_commits=False, drain_timeout=0.3)
    )
    with RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        disk.block_syncs()
        client.send(client.batch([b"two"], batch_id=2))
        assert disk.sync_reached.wait(10)
        with pytest.raises(UncleanStopError, match="next start checks"):
            stack.close()
    disk.release_syncs()
    with running(tmp_path) as again, RawClient(again.address) as client:
        assert not again.report.clean
        assert client.read_all().startswith(encode_records([b"one"]))
