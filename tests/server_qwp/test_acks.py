"""Acknowledgements: in order, and never before the rows are durable."""

import errno
from pathlib import Path

from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.testing import (
    DEFER,
    PUBLISHED,
    Endpoint,
    QwpPeer,
    endpoint,
    longs,
    message,
)
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import FaultyStorage, eventually
from lance_spec.messages.qwp import DurableAck, OkResponse, Status

DURABLE = [("X-QWP-Request-Durable-Ack", "true")]


def test_an_ok_counts_messages_from_zero(qwp: Endpoint) -> None:
    """The Nth message of a connection has number N, and names its tables."""
    with QwpPeer(qwp.addr) as peer:
        assert peer.ok(PUBLISHED).wire_sequence == 0
        peer.send(PUBLISHED)
        answer = peer.receive()
    assert isinstance(answer, OkResponse)
    assert answer.wire_sequence == 1
    assert [(each.name, each.sequence) for each in answer.tables] == [(b"t", 2)]


def test_a_table_goes_on_counting_on_the_next_connection(qwp: Endpoint) -> None:
    """Sequence numbers of a table never go back."""
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 1, 2, 3))
    with QwpPeer(qwp.addr) as peer:
        assert peer.ok(longs("t", 4)).tables[0].sequence == 4


def test_a_dictionary_alone_is_acknowledged(qwp: Endpoint) -> None:
    """Senders catch a new connection up with messages without tables."""
    with QwpPeer(qwp.addr) as peer:
        assert peer.ok(message(b"\0\x02\x01a\x01b", 0)).tables == []


def test_nothing_is_acknowledged_before_it_is_durable(tmp_path: Path) -> None:
    """While the disk does not answer, neither does the endpoint."""
    disk = FaultyStorage(PwritevStorage())
    with endpoint(tmp_path, storage=disk, inline_commits=False) as qwp, QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 1))
        disk.block_syncs()
        try:
            peer.send(longs("t", 2))
            assert disk.sync_reached.wait(10)
            assert peer.silent()
        finally:
            disk.release_syncs()
        answer = peer.receive()
        assert isinstance(answer, OkResponse)
        assert answer.wire_sequence == 1


def test_messages_that_are_durable_together_share_an_ok(tmp_path: Path) -> None:
    """An OK is about all messages up to its number, so one is enough for many."""
    disk = FaultyStorage(PwritevStorage())
    with endpoint(tmp_path, storage=disk, inline_commits=False) as qwp, QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 0))
        disk.block_syncs()
        try:
            peer.send(longs("t", 1))
            assert disk.sync_reached.wait(10)
            peer.send(*(longs("t", each) for each in range(2, 12)))
            assert peer.silent()  # all of them have arrived by then
        finally:
            disk.release_syncs()
        numbers = []
        while not numbers or numbers[-1] < 11:
            answer = peer.receive()
            assert isinstance(answer, OkResponse)
            numbers.append(answer.wire_sequence)
    assert numbers == sorted(numbers)
    assert len(numbers) < 11


def test_a_durable_ack_follows_where_it_was_asked_for(qwp: Endpoint) -> None:
    """It names the tables and how far each is safe."""
    with QwpPeer(qwp.addr, headers=DURABLE) as peer:
        peer.ok(PUBLISHED)
        answer = peer.receive()
    assert isinstance(answer, DurableAck)
    assert [(each.name, each.sequence) for each in answer.tables] == [(b"t", 1)]


def test_a_disk_that_fails_is_a_write_error(tmp_path: Path) -> None:
    """The sender keeps its rows and tries again."""
    disk = FaultyStorage(PwritevStorage())
    with endpoint(tmp_path, storage=disk) as qwp, QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 1))
        disk.fail["sync"] = errno.EIO
        answer = peer.refused(longs("t", 2))
        disk.fail.clear()
        assert (answer.wire_sequence, answer.status) == (1, Status.WRITE_ERROR)
        assert qwp.values("t") == [1]


def test_rows_that_wait_for_a_commit_are_not_acknowledged(qwp: Endpoint) -> None:
    """The OK comes with the commit, and covers them."""
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1, flags=DEFER), longs("t", 2, flags=DEFER))
        assert peer.silent()
        assert qwp.rows("t") == []
        peer.send(longs("t", 3))
        answer = peer.receive()
        assert isinstance(answer, OkResponse)
        assert answer.wire_sequence == 2
    assert qwp.values("t") == [1, 2, 3]


def test_a_message_without_tables_commits(qwp: Endpoint) -> None:
    """So a sender can commit when it has nothing to add."""
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1, flags=DEFER))
        peer.ok(message(b"\0\0", 0))
    assert qwp.values("t") == [1]


def test_rows_that_nobody_commits_are_gone_with_the_connection(qwp: Endpoint) -> None:
    """A connection that ends rolls them back."""
    with QwpPeer(qwp.addr) as peer:
        peer.send(longs("t", 1, flags=DEFER))
        assert peer.silent()
    with QwpPeer(qwp.addr) as peer:
        peer.ok(longs("t", 3))
    assert qwp.values("t") == [3]


def test_waiting_rows_are_bounded(tmp_path: Path) -> None:
    """Who never commits is told to come back, and its memory is given back."""
    options = QwpOptions(max_memory=4000)
    with endpoint(tmp_path, options=options) as qwp:
        with QwpPeer(qwp.addr) as peer:
            uncommitted = (longs("t", *range(20), flags=DEFER) for _ in range(20))
            assert peer.send_until_closed(*uncommitted) == 1013
        eventually(lambda: qwp.listener.quota.used == 0)
        assert qwp.rows("t") == []


def test_rows_beyond_the_memory_are_refused_and_given_back(tmp_path: Path) -> None:
    """The account is even afterwards, and what fits is taken."""
    with endpoint(tmp_path, options=QwpOptions(max_memory=2000)) as qwp:
        with QwpPeer(qwp.addr) as peer:
            peer.send(longs("t", *range(100)))
            assert peer.closed() == 1013
        eventually(lambda: qwp.listener.quota.used == 0)
        with QwpPeer(qwp.addr) as peer:
            peer.ok(longs("t", 7))
        eventually(lambda: qwp.listener.quota.used == 0)
        assert qwp.values("t") == [7]


def test_dictionaries_count_as_memory(tmp_path: Path) -> None:
    """Symbols are kept as long as the connection lives, so they are accounted for."""
    with endpoint(tmp_path, options=QwpOptions(max_memory=1000)) as qwp:
        with QwpPeer(qwp.addr) as peer:
            peer.send(message(b"\0\x01\xa0\x1f" + b"x" * 4000, 0))
            assert peer.closed() == 1013
        eventually(lambda: qwp.listener.quota.used == 0)


def test_an_unfinished_message_counts_as_memory(tmp_path: Path) -> None:
    """Half a message is held in memory, so it is accounted for too."""
    with (
        endpoint(tmp_path, options=QwpOptions(max_memory=100_000)) as qwp,
        QwpPeer(qwp.addr) as peer,
    ):
        frame = b"\x82\xff" + (1_000_000).to_bytes(8) + bytes(4)
        peer.socket.socket.sendall(frame + bytes(500_000))
        assert peer.closed() in {1013, 1006}
        eventually(lambda: qwp.listener.quota.used == 0)


def test_a_silent_peer_is_let_go(tmp_path: Path) -> None:
    """Half a message does not keep a connection for ever."""
    with (
        endpoint(tmp_path, options=QwpOptions(idle_timeout=0.2)) as qwp,
        QwpPeer(qwp.addr) as peer,
    ):
        peer.socket.socket.sendall(b"\x82\xff" + (1_000_000).to_bytes(8) + bytes(40))
        assert peer.closed() == 1001


def test_stopping_answers_what_was_received(tmp_path: Path) -> None:
    """A server that is stopped finishes, and says goodbye in order."""
    disk = FaultyStorage(PwritevStorage())
    with endpoint(tmp_path, storage=disk) as qwp:
        peer = QwpPeer(qwp.addr)
        assert peer.ok(longs("t", 1)).wire_sequence == 0
    assert peer.closed() == 1001
    peer.__exit__(None, None, None)
