"""Keepalives, stalls, slow peers, time, and disks that fail (AMB-23, AMB-28, AMB-35)."""

import pytest

from lance_server.lwp.flow_control.stall_detector import STALL_AFTER, STALL_REPEAT
from lance_server.testing import SessionPeer, the_error, told
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import CommitOffset, Fetch

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


# Keepalives and stalls --------------------------------------------------------------------------


def test_a_burst_of_keepalives_is_answered_at_once() -> None:
    """A hundred pings get a hundred answers."""
    peer = SessionPeer()
    assert len(peer.exchange(*[peer.keepalive()] * 100)) == 100


def test_a_storm_of_keepalives_is_answered_once_a_second_and_in_full() -> None:
    """Beyond the burst none is dropped, and none makes the server busy (AMB-23)."""
    peer = SessionPeer()
    answered = len(peer.exchange(*[peer.keepalive()] * 300))
    assert answered == 256
    for _ in range(44):
        peer.wait(1.0)
        answered += len(peer.received())
    assert answered == 300


def test_a_stall_is_told_and_lets_keepalives_through() -> None:
    """After a second of waiting for the disk: Backpressure, then the keepalives (AMB-28)."""
    peer = SessionPeer()
    peer.send(peer.ingest(1), peer.keepalive())
    peer.wait(STALL_AFTER - 0.1)
    assert peer.received() == []
    peer.wait(0.1)
    assert told(peer.received()) == ["BACKPRESSURE", "KEEPALIVE"]
    peer.send(peer.keepalive())
    assert told(peer.received()) == ["KEEPALIVE"]
    peer.wait(STALL_REPEAT)
    assert told(peer.received()) == ["BACKPRESSURE"]
    peer.work()
    assert told(peer.received()) == [1]


def test_keepalives_behind_a_held_command_pass_it_in_a_stall() -> None:
    """A client that waits for a fetch learns that the server is alive."""
    peer = SessionPeer()
    peer.send(peer.ingest(1), peer.fetch(), peer.keepalive())
    peer.wait(STALL_AFTER)
    assert told(peer.received()) == ["BACKPRESSURE", "KEEPALIVE"]
    peer.work()
    assert told(peer.received()) == [1, "FETCH_RESPONSE"]


def test_deployed_keepalives_never_overtake() -> None:
    """They are the barrier by which a client without batch ids in errors finds its way."""
    peer = SessionPeer(DEPLOYED)
    peer.send(peer.ingest(1), peer.keepalive())
    peer.wait(STALL_AFTER)
    assert told(peer.received()) == ["BACKPRESSURE"]
    peer.work()
    assert told(peer.received()) == [1, "KEEPALIVE"]


# Flow and time ----------------------------------------------------------------------------------


def test_reading_stops_while_too_much_is_unanswered() -> None:
    """What waits for the disk is bounded for each connection."""
    peer = SessionPeer(max_unacked_bytes=10_000)
    peer.send(peer.ingest(1, [bytes(4000)]), peer.ingest(2, [bytes(4000)]))
    assert peer.session.wants_data
    peer.send(peer.ingest(3, [bytes(4000)]))
    assert not peer.session.wants_data
    peer.work()
    assert peer.session.wants_data


def test_reading_stops_while_the_peer_takes_no_answers() -> None:
    """A slow reader's requests are not even read."""
    peer = SessionPeer()
    peer.session.writable = False
    assert not peer.session.wants_data


def test_commands_wait_until_their_predecessors_answers_are_taken() -> None:
    """Thousands of fetches in one piece do not fill the memory with answers."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1, [bytes(200_000)]))
    fetch = peer.control(Command.FETCH, Fetch(0, 0, 1 << 20).encode())
    peer.send(*[fetch] * 50)
    sizes: list[int] = []
    while chunks := peer.session.data_to_send():
        sizes.append(sum(map(len, chunks)))
        peer.session.advance(0.0)
    assert sum(sizes) > 50 * 200_000
    assert max(sizes) < 2 << 20


def test_silence_ends_a_connection() -> None:
    """Thirty seconds without a frame are enough (LWP section 11.4)."""
    peer = SessionPeer()
    peer.exchange(peer.keepalive())
    peer.wait(29.9)
    assert peer.session.closing is None
    peer.wait(0.2)
    assert peer.session.closing == "no frame for 30 s"


def test_a_dribbling_frame_does_not_keep_a_connection_alive() -> None:
    """A frame that grows by a byte a second is no sign of life."""
    peer = SessionPeer()
    frame = peer.ingest(1, [bytes(1000)])
    for place in range(31):
        peer.session.receive_data(frame[place : place + 1], peer.now)
        peer.wait(1.0)
    assert peer.session.closing is not None


def test_a_large_frame_on_a_slow_line_gets_its_time() -> None:
    """A frame that keeps growing at a fair rate is not cut off."""
    peer = SessionPeer()
    frame = peer.ingest(1, [bytes(8 << 20)])
    for start in range(0, len(frame), 32 * 1024):
        peer.session.receive_data(frame[start : start + 32 * 1024], peer.now)
        peer.wait(0.25)
    peer.work()
    assert told(peer.received()) == [1]


def test_what_came_before_does_not_count_for_an_unfinished_frame() -> None:
    """A busy connection that stalls in the middle of a frame is closed like any other."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1, [bytes(4 << 20)]))
    peer.session.receive_data(peer.ingest(2)[:20], peer.now)
    peer.wait(30.0)
    assert peer.session.closing is not None


def test_a_client_that_waits_for_the_disk_is_not_idle() -> None:
    """Silence while the server owes an answer is the server's."""
    peer = SessionPeer()
    peer.send(peer.ingest(1))
    peer.wait(40.0)
    assert peer.session.closing is None


def test_silence_counts_from_the_last_answer() -> None:
    """A client that waited long for the disk has the whole time for its next frame."""
    peer = SessionPeer()
    peer.send(peer.ingest(1))
    peer.wait(40.0)
    peer.work()
    assert told(peer.received())[-1:] == [1]
    peer.wait(29.9)
    assert peer.session.closing is None
    peer.wait(0.2)
    assert peer.session.closing == "no frame for 30 s"


def test_silence_counts_from_when_the_answers_are_taken() -> None:
    """A client that reads a large answer slowly is not idle."""
    peer = SessionPeer()
    peer.exchange(peer.keepalive())
    peer.session.writable = False
    peer.wait(40.0)
    peer.session.writable = True
    peer.wait(29.9)
    assert peer.session.closing is None


# Storage faults ---------------------------------------------------------------------------------


def test_a_failing_disk_is_an_error_and_no_ack() -> None:
    """StorageError names the batch; the connection goes on."""
    peer = SessionPeer()
    peer.disk.fail = {"sync": 5}
    first, second = peer.exchange(peer.ingest(1), peer.ingest(2))
    assert {decode_error(answer.payload).code for answer in (first, second)} == {
        ErrorCode.STORAGE_ERROR
    }
    peer.disk.fail = {}
    assert told(peer.exchange(peer.ingest(3))) == [3]


def test_a_full_disk_refuses_for_now() -> None:
    """Backpressure as an error: this frame was refused, try again later (AMB-35)."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1))
    peer.disk.fail = {"write": 28}
    error = the_error(peer.exchange(peer.ingest(2)))
    assert (error.code, error.details) == (ErrorCode.BACKPRESSURE, {"batch_id": 2})


def test_a_commit_that_is_not_durable_is_an_error() -> None:
    """A commit is acknowledged when it would survive, else refused (AMB-36)."""
    peer = SessionPeer()
    peer.disk.fail = {"sync": 5}
    commit = peer.control(Command.COMMIT_OFFSET, CommitOffset(0, 5, 0).encode())
    assert the_error(peer.exchange(commit)).code is ErrorCode.STORAGE_ERROR
