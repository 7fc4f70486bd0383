"""Commands that read: Fetch, times, consumers and their commits."""

from struct import iter_unpack

import pytest

from lance_server.testing import LogDriver, MemoryStorage, SessionPeer
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import FrameKind
from lance_spec.limits import END_OFFSET
from lance_spec.messages import lwp

BOTH = pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=str)


# Fetch -----------------------------------------------------------------------------------------


def fetched(peer: SessionPeer, start: int, max_bytes: int = 1000) -> lwp.FetchResponse:
    """Fetch from the default topic."""
    answer = peer.ask(Command.FETCH, lwp.Fetch(0, start, max_bytes).encode())
    assert answer.command == Command.FETCH_RESPONSE
    return lwp.FetchResponse.decode(answer.payload)


def test_a_fetch_counts_whole_records() -> None:
    """As specified; from inside a record the count is 0 (AMB-19)."""
    peer = SessionPeer(SPECIFIED)
    peer.log.store([b"one", b"two"])
    assert (fetched(peer, 0).next_offset, fetched(peer, 0).record_count) == (16, 2)
    assert fetched(peer, 3).record_count == 0


def test_a_deployed_fetch_counts_one() -> None:
    """The published server says 1 for any data and 0 for none."""
    peer = SessionPeer(DEPLOYED)
    peer.log.store([b"one", b"two"])
    assert [fetched(peer, start).record_count for start in (0, 3, 16)] == [1, 1, 0]


@BOTH
def test_the_end_can_be_asked_for(dialect: Dialect) -> None:
    """Offset 2^64-1 is answered empty, with the end (AMB-06)."""
    peer = SessionPeer(dialect)
    peer.log.store([b"one"])
    answer = fetched(peer, END_OFFSET)
    assert (answer.next_offset, answer.bytes_returned) == (8, 0)


@BOTH
@pytest.mark.parametrize("start", [9, 2**63 - 1, END_OFFSET - 1])
def test_beyond_the_end_the_answer_is_catching_up(dialect: Dialect, start: int) -> None:
    """0x12 with the durable end (AMB-18)."""
    peer = SessionPeer(dialect)
    peer.log.store([b"one"])
    answer = peer.ask(Command.FETCH, lwp.Fetch(0, start, 10).encode())
    assert answer.command == Command.CATCHING_UP
    assert lwp.CatchingUp.decode(answer.payload).current_max_offset == 8


def test_a_fetch_never_exceeds_the_dialects_limit() -> None:
    """A client that asks for four gigabytes gets what a frame may carry (AMB-32)."""
    peer = SessionPeer(DEPLOYED)
    for number in range(1, 20):
        peer.log.store([bytes(1 << 20)], batch_id=number)
    assert peer.log.end() > DEPLOYED.max_fetch_data
    assert fetched(peer, 0, 2**32 - 1).bytes_returned <= DEPLOYED.max_fetch_data


@BOTH
def test_a_time_leads_to_an_offset(dialect: Dialect) -> None:
    """The first batch that arrived then or later; the end when there is none (AMB-37)."""
    peer = SessionPeer(dialect)
    times = []
    for number in range(1, 6):
        times.append(peer.log.clock.now_ns)
        peer.log.store([b"one"], batch_id=number)

    def offset_at(time_ns: int) -> int:
        answer = peer.ask(Command.OFFSET_FOR_TIME, lwp.OffsetForTime(0, time_ns).encode())
        assert answer.command == Command.OFFSET_FOR_TIME_RESPONSE
        return lwp.OffsetForTimeResponse.decode(answer.payload).offset

    assert [offset_at(time_ns + 1) for time_ns in times] == [0, 8, 16, 24, 32]
    assert (offset_at(0), offset_at(peer.log.clock.now_ns + 1)) == (0, 40)


@BOTH
def test_batches_have_times(dialect: Dialect) -> None:
    """Offset and time of each that has bytes in the range (AMB-61)."""
    peer = SessionPeer(dialect)
    came = []
    for number in range(1, 4):
        came.append(peer.log.clock.now_ns)
        peer.log.store([b"one"], batch_id=number)
    answer = peer.ask(Command.BATCH_TIMES, lwp.BatchTimes(0, 9, 17).encode())
    assert answer.command == Command.BATCH_TIMES_RESPONSE
    told = lwp.BatchTimesResponse.decode(answer.payload)
    (first, then), (second, later) = iter_unpack("<QQ", told.times)
    assert (first, second, told.next_offset) == (8, 16, 17)
    assert came[1] <= then <= came[2] <= later


# Consumers -------------------------------------------------------------------------------------


@BOTH
def test_a_commit_is_acknowledged_with_its_offset(dialect: Dialect) -> None:
    """CommitAck repeats consumer and offset (LWP section 5.14)."""
    peer = SessionPeer(dialect)
    peer.log.store([b"one", b"two"])
    answer = peer.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(0, 77, 16).encode())
    assert lwp.CommitAck.decode(answer.payload) == lwp.CommitAck(77, 16)


@BOTH
def test_unsubscribe_is_answered_with_an_ack_of_the_consumer(dialect: Dialect) -> None:
    """Also when there was no subscription (AMB-22)."""
    answer = SessionPeer(dialect).ask(Command.UNSUBSCRIBE, lwp.Unsubscribe(0, 77).encode())
    assert (answer.kind, answer.batch_id) == (FrameKind.ACK, 77)


@BOTH
def test_subscribe_at_zero_resumes_at_the_commit(dialect: Dialect) -> None:
    """An explicit offset outranks it (AMB-36)."""
    peer = SessionPeer(dialect)
    peer.log.store([b"one", b"two"])
    peer.ask(Command.COMMIT_OFFSET, lwp.CommitOffset(0, 77, 16).encode())
    answer = peer.ask(Command.SUBSCRIBE, lwp.Subscribe(0, 0, 100, 77).encode())
    assert lwp.SubscribeAck.decode(answer.payload) == lwp.SubscribeAck(77, 16)
    peer.ask(Command.UNSUBSCRIBE, lwp.Unsubscribe(0, 77).encode())
    peer.log.store([b"three"], batch_id=2)
    answer = peer.ask(Command.SUBSCRIBE, lwp.Subscribe(0, 26, 100, 77).encode())
    assert lwp.SubscribeAck.decode(answer.payload).offset == 26


def test_commits_survive_a_restart() -> None:
    """They are durable before they are acknowledged (AMB-36)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    outcome = log.engine.topic(0).consumers.commit(5, 99)
    log.scheduler.run_all()
    outcome.result()
    assert LogDriver(disk.copy()).engine.topic(0).consumers.committed(5) == 99
