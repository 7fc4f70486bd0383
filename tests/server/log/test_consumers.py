"""Committed offsets of consumers (LWP section 5.14, AMB-36, AMB-55)."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.checksummed_file import save_document
from lance_server.log.metadata.consumer_offsets import FILE_NAME, FIRST_FILE_NAME, ConsumerOffsets
from lance_server.lwp.refusals import Refusal
from lance_server.security.tokens import AuthConfig
from lance_server.testing import (
    FaultyStorage,
    LogDriver,
    ManualClock,
    ManualScheduler,
    MemoryStorage,
    SessionPeer,
    told,
)
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import CommitAck, CommitOffset

FOLDER = Path("/topic")
LOG = FOLDER / FILE_NAME


class Store:
    """An empty store of committed offsets on its own disk, and a clock to set."""

    def __init__(self, limit: int = 10) -> None:
        self.memory, self.scheduler, self.now = MemoryStorage(), ManualScheduler(), 0
        self.disk = FaultyStorage(self.memory)
        self.limit = limit
        self.disk.make_dir(FOLDER)
        self.offsets = self.opened()

    def opened(self) -> ConsumerOffsets:
        """Return a store on the same disk that was read from it."""
        found = ConsumerOffsets(
            self.disk, self.scheduler, FOLDER, limit=self.limit, clock=lambda: self.now
        )
        self.problem = found.load()
        return found

    def commit(self, consumer_id: int, offset: int) -> None:
        """Commit, and wait until it is durable."""
        outcome = self.offsets.commit(consumer_id, offset)
        self.scheduler.run_all()
        outcome.result()


def test_commits_during_a_write_share_the_next_one() -> None:
    """A hundred commits in a row cost one write when they come together."""
    store = Store()
    store.commit(1, 0)
    before = store.disk.calls["sync"]
    outcomes = [store.offsets.commit(1, number) for number in range(100)]
    store.scheduler.run_all()
    assert all(outcome.done for outcome in outcomes)
    assert store.disk.calls["sync"] == before + 1
    assert store.opened().committed(1) == 99


def test_a_commit_counts_when_it_is_durable() -> None:
    """Not before: a crash would take it back."""
    store = Store()
    outcome = store.offsets.commit(1, 5)
    assert store.offsets.committed(1) is None
    store.scheduler.run_all()
    assert (outcome.done, store.offsets.committed(1)) == (True, 5)


def test_commits_may_go_backwards() -> None:
    """A consumer that rewinds says so."""
    store = Store()
    store.commit(1, 100)
    store.commit(1, 5)
    assert store.opened().committed(1) == 5


def test_the_number_of_consumers_is_bounded() -> None:
    """A known one may still commit, and another once one was deleted."""
    store = Store(limit=2)
    for consumer_id in (1, 2, 1):
        store.commit(consumer_id, 1)
    with pytest.raises(Refusal, match="limit"):
        store.offsets.commit(3, 1)
    store.offsets.delete(2)
    store.scheduler.run_all()
    store.commit(3, 1)
    assert store.opened().offsets() == {1: 1, 3: 1}


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_refused_commit_is_never_reported_later(call: str) -> None:
    """Neither by the server that refused it nor after a restart."""
    store = Store()
    store.commit(1, 5)
    store.disk.fail[call] = errno.EIO
    outcome = store.offsets.commit(1, 9)
    store.scheduler.run_all()
    with pytest.raises(Refusal):
        outcome.result()
    assert store.offsets.committed(1) == 5
    store.disk.fail.clear()
    assert store.opened().committed(1) == 5


def test_after_a_failed_write_everything_is_written_again() -> None:
    """A failed sync may have lost what was there before."""
    store = Store()
    store.commit(1, 5)
    store.disk.fail["sync"] = errno.EIO
    store.offsets.commit(2, 9)
    store.scheduler.run_all()
    store.disk.fail.clear()
    store.memory.poke(LOG, bytes(64))
    store.commit(3, 1)
    assert store.opened().offsets() == {1: 5, 3: 1}


@given(
    st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 2**64 - 1)), max_size=40),
    st.integers(0, 2000),
)
def test_what_is_read_is_a_prefix_of_what_was_committed(
    steps: list[tuple[int, int | None]], cut: int
) -> None:
    """However the file was torn, and whatever was deleted."""
    store, states = Store(), [dict[int, int]()]
    for consumer_id, offset in steps:
        if offset is not None:
            store.commit(consumer_id, offset)
        elif store.offsets.committed(consumer_id) is not None:
            store.offsets.delete(consumer_id)
            store.scheduler.run_all()
        states.append(store.offsets.offsets())
    assert store.opened().offsets() == states[-1]
    if steps and LOG in store.memory.files():
        fd = store.disk.open(LOG)
        store.disk.truncate(fd, max(store.disk.size(fd) - cut, 32))
        store.disk.close(fd)
        assert store.opened().offsets() in states


def test_the_log_stays_small() -> None:
    """Entries out of date go when they are most of it."""
    store = Store()
    for number in range(5000):
        store.offsets.commit(1, number)
        store.scheduler.run_all()
    fd = store.disk.open(LOG)
    assert store.disk.size(fd) < 32 * 1100
    store.disk.close(fd)
    assert store.opened().committed(1) == 4999


def test_what_the_first_release_kept_is_taken_over() -> None:
    """Its files go once there is a log, in whatever step a crash comes."""
    store = Store()
    save_document(store.disk, FOLDER / FIRST_FILE_NAME, {"offsets": {"7": 42}})
    store.offsets = store.opened()
    assert store.offsets.committed(7) == 42
    assert store.opened().committed(7) == 42
    store.commit(8, 1)
    assert [path.name for path in store.memory.files()] == [FILE_NAME]
    assert store.opened().offsets() == {7: 42, 8: 1}


def test_a_log_counts_more_than_the_files_of_the_first_release() -> None:
    """A crash between the two steps of the move leaves both."""
    store = Store()
    store.commit(7, 43)
    save_document(store.disk, FOLDER / FIRST_FILE_NAME, {"offsets": {"7": 42}})
    assert store.opened().committed(7) == 43


def test_an_old_commit_expires() -> None:
    """Of a consumer that is not connected; what is committed again is new."""
    store = Store()
    for consumer_id in (1, 2, 3):
        store.commit(consumer_id, 1)
    store.offsets.connect(2)
    store.now = 100
    store.commit(3, 1)
    assert store.offsets.expire(100) == 1
    store.scheduler.run_all()
    assert sorted(store.opened().offsets()) == [2, 3]
    store.offsets.disconnect(2)
    assert store.offsets.expire(100) == 1


DAY_NS = 24 * 3600 * 10**9


def kept_after(
    days: int, *, connected: bool = False, jumped: bool = False, retention_days: int = 30
) -> bool:
    """Whether a commit is there after some days, by the machine's time or by its clock alone."""
    clock = ManualClock()
    options = LogOptions(commit_retention_secs=retention_days * 24 * 3600)
    log = LogDriver(MemoryStorage(), options=options, clock=clock)
    consumers = log.engine.topic(0).consumers
    consumers.commit(7, 0)
    if connected:
        consumers.connect(7)
    log.engine.start_upkeep(60.0)
    for _ in range(days):
        if jumped:
            clock.jump(24 * 3600)
        else:
            clock.now_ns += DAY_NS
        log.scheduler.pass_time(60.0)
        log.scheduler.run_all()
    return consumers.committed(7) is not None


def test_commits_expire_after_thirty_days() -> None:
    """Unless their consumer is connected, the clock jumped, or they are kept for ever."""
    assert kept_after(29)
    assert not kept_after(31)
    assert kept_after(31, connected=True)
    assert kept_after(31, jumped=True)
    assert kept_after(400, retention_days=0)


def test_that_a_consumer_was_connected_outlives_a_crash() -> None:
    """Its commit is of the last day it was there, not of the day it was made."""
    store = Store()
    store.commit(1, 5)
    store.offsets.connect(1)
    store.now = 40 * DAY_NS
    assert store.offsets.expire(10 * DAY_NS) == 0
    store.scheduler.run_all()
    store.offsets = store.opened()
    assert store.offsets.expire(10 * DAY_NS) == 0
    assert store.offsets.commits()[1].time_ns == 40 * DAY_NS


def test_a_commit_is_kept_for_the_full_time_after_its_consumer_left() -> None:
    """However long it was connected without a commit."""
    store = Store()
    store.commit(1, 5)
    store.offsets.connect(1)
    store.now = 40 * DAY_NS
    store.offsets.disconnect(1)
    store.scheduler.run_all()
    assert store.opened().expire(39 * DAY_NS) == 0


def test_a_commit_under_way_does_not_expire() -> None:
    """It would be deleted the moment it is durable."""
    store = Store()
    store.commit(1, 1)
    store.now = 100
    store.offsets.commit(1, 2)
    assert store.offsets.expire(100) == 0
    store.scheduler.run_all()
    assert store.opened().committed(1) == 2


def test_lost_commits_are_reported_and_the_topic_is_served() -> None:
    """The log is damaged at its beginning: consumers begin again, and the report says why."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.engine.topic(0).consumers.commit(1, 5)
    log.scheduler.run_all()
    for path in [path for path in disk.files() if path.name.startswith("consumers")]:
        disk.poke(path, b"{}")
    again = LogDriver(disk)
    assert again.engine.topic(0).consumers.committed(1) is None
    assert "committed offsets are lost" in again.engine.report.findings[0].note


# Over the wire -----------------------------------------------------------------------------------


def commit(peer: SessionPeer, offset: int) -> bytes:
    """Return a CommitOffset frame of consumer 7."""
    return peer.control(Command.COMMIT_OFFSET, CommitOffset(0, 7, offset).encode())


def test_a_commit_beyond_the_end_is_refused() -> None:
    """The next Subscribe would fail."""
    peer = SessionPeer()
    error = peer.error(Command.COMMIT_OFFSET, CommitOffset(0, 7, 1).encode())
    assert (error.code, error.details["end_offset"]) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)


def test_a_published_client_never_commits_beyond_the_end() -> None:
    """It is told what its own server tells; its next Subscribe works."""
    peer = SessionPeer(DEPLOYED)
    peer.log.store([b"one", b"two"])
    answer = peer.ask(Command.COMMIT_OFFSET, CommitOffset(0, 7, 1000).encode())
    assert CommitAck.decode(answer.payload) == CommitAck(7, 1000)
    assert peer.log.engine.topic(0).consumers.committed(7) == 16


def test_a_consumer_is_connected_as_long_as_its_connection_is() -> None:
    """Its commit does not expire meanwhile."""
    peer = SessionPeer()
    peer.exchange(commit(peer, 0))
    consumers = peer.log.engine.topic(0).consumers
    assert consumers.expire(2**63) == 0
    peer.session.close("it leaves")
    assert consumers.expire(2**63) == 1


def test_commits_of_one_connection_share_a_write() -> None:
    """They are not carried out one by one."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1, [bytes(995)]), commit(peer, 0))
    before = peer.disk.calls["sync"]
    answers = peer.exchange(*[commit(peer, offset) for offset in range(100)])
    assert told(answers) == ["COMMIT_ACK"] * 100
    assert peer.disk.calls["sync"] == before + 1


def test_a_commit_waits_for_the_batch_before_it() -> None:
    """The end is where that batch ends."""
    peer = SessionPeer()
    assert told(peer.exchange(peer.ingest(1, [bytes(995)]), commit(peer, 1000))) == [
        1,
        "COMMIT_ACK",
    ]


def test_a_commit_needs_a_token_where_writing_does() -> None:
    """Also where reading needs none: it changes something."""
    peer = SessionPeer(auth=AuthConfig(tokens=("a-secret-token",), write_only=True))
    error = peer.error(Command.COMMIT_OFFSET, CommitOffset(0, 7, 0).encode())
    assert error.code is ErrorCode.AUTHENTICATION_REQUIRED
