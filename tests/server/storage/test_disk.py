"""The watched disk: circuit breaker, latency, and a data directory that goes away."""

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from lance_server import running
from lance_server.errors import UncleanStopError
from lance_server.runtime.circuit_breaker import BreakerPolicy, CircuitBreaker, CircuitState
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.storage.contract import StorageBackend, Write
from lance_server.storage.pwritev import PageCacheStorage, PwritevStorage
from lance_server.telemetry.distribution import Distribution
from lance_server.testing import (
    FaultyStorage,
    MemoryStorage,
    RawClient,
    SessionPeer,
    eventually,
    the_error,
    told,
)
from lance_spec.enums import ErrorCode
from lance_spec.frames import FrameKind

POLICY = BreakerPolicy(failure_threshold=3, success_threshold=2, reset_timeout=30.0)


class Clock:
    """Time that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def tripped(clock: Clock) -> CircuitBreaker:
    """A breaker after as many failures as it takes."""
    breaker = CircuitBreaker(POLICY, clock)
    for _ in range(3):
        breaker.failed()
    return breaker


# The circuit ------------------------------------------------------------------------------------


def test_failures_in_a_row_open_the_circuit(clock: Clock) -> None:
    """Not earlier than the threshold."""
    breaker = CircuitBreaker(POLICY, clock)
    breaker.failed()
    breaker.failed()
    assert breaker.state is CircuitState.CLOSED
    breaker.failed()
    assert (breaker.state, breaker.trips) == (CircuitState.OPEN, 1)


def test_a_success_between_failures_starts_the_count_anew(clock: Clock) -> None:
    """Single failures never open it."""
    breaker = CircuitBreaker(POLICY, clock)
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.state is CircuitState.CLOSED


def test_old_failures_do_not_count(clock: Clock) -> None:
    """Those before the window are forgotten."""
    breaker = CircuitBreaker(POLICY, clock)
    for _ in range(10):
        breaker.failed()
        clock.now += POLICY.failure_window + 1
    assert breaker.state is CircuitState.CLOSED


def test_after_a_while_writes_go_through_on_trial(clock: Clock) -> None:
    """As many successes as it takes close the circuit."""
    breaker = tripped(clock)
    clock.now += 29.9
    assert breaker.state is CircuitState.OPEN
    clock.now += 0.2
    assert breaker.state is CircuitState.HALF_OPEN
    breaker.succeeded()
    assert breaker.state is CircuitState.HALF_OPEN
    breaker.succeeded()
    assert breaker.state is CircuitState.CLOSED


def test_a_failure_on_trial_opens_it_again(clock: Clock) -> None:
    """At once, for the full time."""
    breaker = tripped(clock)
    clock.now += 31
    breaker.failed()
    assert (breaker.state, breaker.retry_after) == (CircuitState.OPEN, 30.0)


def test_failures_behind_an_open_circuit_do_not_keep_it_open(clock: Clock) -> None:
    """Work on one closed topic that fails every 8 s does not shut out all topics for good."""
    breaker = tripped(clock)
    for _ in range(4):
        clock.now += 7.0
        breaker.failed()
    assert breaker.state is CircuitState.OPEN
    clock.now += 2.0
    assert breaker.state is CircuitState.HALF_OPEN
    breaker.succeeded()
    breaker.succeeded()
    assert breaker.state is CircuitState.CLOSED


def test_the_circuit_is_switched_by_hand(clock: Clock) -> None:
    """An operator knows more than a counter."""
    breaker = CircuitBreaker(POLICY, clock)
    breaker.trip()
    assert breaker.state is CircuitState.OPEN
    breaker.reset()
    assert breaker.state is CircuitState.CLOSED


def test_with_an_open_circuit_batches_are_refused_without_trying() -> None:
    """Backpressure: nothing was stored, and when to come again (AMB-35)."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1))
    peer.disk.fail = {"sync": 5}
    codes = []
    for batch in range(2, 8):
        codes.append(the_error(peer.exchange(peer.ingest(batch))).code)
        peer.log.reopen_topics()
    assert codes[0] is ErrorCode.STORAGE_ERROR
    assert codes[-1] is ErrorCode.BACKPRESSURE
    peer.disk.fail = {}
    peer.log.reopen_topics()
    error = the_error(peer.exchange(peer.ingest(9)))
    assert error.code is ErrorCode.BACKPRESSURE
    assert 29_000 < error.details["retry_after_ms"] <= 30_000
    assert told(peer.exchange(peer.fetch())) == ["FETCH_RESPONSE"]
    peer.service.disk.breaker.reset()
    assert told(peer.exchange(peer.ingest(9))) == [9]


def test_a_full_disk_does_not_open_the_circuit() -> None:
    """It is not broken; it works again as soon as there is room."""
    peer = SessionPeer()
    peer.exchange(peer.ingest(1))
    peer.disk.fail = {"write": 28}
    for batch in range(2, 9):
        peer.exchange(peer.ingest(batch))
    peer.disk.fail = {}
    assert told(peer.exchange(peer.ingest(9))) == [9]


# Figures ----------------------------------------------------------------------------------------


def test_a_distribution_counts_by_size() -> None:
    """Cumulative, as a scrape wants it."""
    values = Distribution((10, 100), recent=4)
    for value in (5, 10, 11, 1000):
        values.observe(value)
    assert values.cumulative() == ([("10", 2.0), ("100", 3.0), ("+Inf", 4.0)], 1026)


def test_a_percentile_is_of_the_recent_values() -> None:
    """What was long ago says nothing about now."""
    values = Distribution((10,), recent=100)
    assert values.percentile(0.99) == 0
    for value in [9999] * 50 + list(range(1, 101)):
        values.observe(value)
    assert (values.percentile(0.5), values.percentile(0.99)) == (50, 99)


def test_errors_and_latencies_are_counted() -> None:
    """By kind of operation and number of the error."""
    inner = FaultyStorage(MemoryStorage())
    disk = WatchedStorage(inner)
    disk.make_dir(Path("/data"))
    fd = disk.open(Path("/data/file"), create=True)
    disk.write(fd, b"one", 0)
    disk.sync(fd)
    inner.fail = {"sync": 5}
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync(fd)
    assert disk.errors == {5: 1}
    assert [disk.latency[kind].cumulative()[0][-1][1] for kind in ("write", "sync")] == [1.0, 1.0]


# The data directory -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_nothing_is_acknowledged_once_the_data_directory_is_gone(tmp_path: Path, how: str) -> None:
    """What is written into a folder without a name is lost at the end of the process."""
    folder, copy, elsewhere = (tmp_path / name for name in ("data", "copy", "elsewhere"))
    with running(folder):
        pass
    shutil.copytree(folder, copy)
    with running(folder) as server, RawClient(server.address) as client:
        client.store([b"one"], batch_id=1)
        folder.rename(elsewhere)  # in one step, since the server may be writing a file of it
        if how == "removed":
            shutil.rmtree(elsewhere)
        elif how == "replaced":
            copy.rename(folder)
        client.send(client.batch([b"two"], batch_id=2))
        error = client.error()
        # Where the clock's save noticed it before, the circuit is open already.
        assert error.code in {ErrorCode.STORAGE_ERROR, ErrorCode.BACKPRESSURE}
        assert "was removed, moved or replaced" in error.message
        client.send(client.batch([b"three"], batch_id=3))
        assert client.error().code is ErrorCode.BACKPRESSURE
        assert server.stats()["batches_acked"] == 1
        with pytest.raises(UncleanStopError, match="could not be closed cleanly"):
            server.stop()


def test_a_data_directory_that_goes_while_the_disk_works_is_noticed() -> None:
    """The last look is behind the sync: a slow one leaves time for much."""
    inner, gone = MemoryStorage(), list[OSError]()

    class Removed(FaultyStorage):
        """A disk during whose commits the folder is removed."""

        def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
            gone.append(OSError(errno.ESTALE, "gone"))
            return super().commit(writes)

    def check() -> None:
        if gone:
            raise gone[0]

    disk = WatchedStorage(Removed(inner))
    disk.check_with(check)
    disk.make_dir(Path("/data"))
    fd = disk.open(Path("/data/file"), create=True)
    assert disk.commit([Write(fd, b"one", 0)]) == gone


# Signals to slow down ---------------------------------------------------------------------------


def test_a_slow_disk_is_told_to_producers(tmp_path: Path) -> None:
    """When 99 of 100 syncs take longer than they may (design section 6.1)."""
    with (
        running(tmp_path, max_disk_latency=1e-9) as server,
        RawClient(server.address) as client,
    ):
        client.store([b"one"], batch_id=1)
        batch_id = 1

        def told_to_slow_down() -> bool:
            nonlocal batch_id
            batch_id += 1
            client.send(client.batch([b"more"], batch_id=batch_id))
            kinds = [client.receive().kind]
            while kinds[-1] is not FrameKind.ACK:
                kinds.append(client.receive().kind)
            return FrameKind.BACKPRESSURE in kinds

        eventually(told_to_slow_down)


@pytest.mark.parametrize(
    ("storage", "plain"),
    [
        (MemoryStorage(), None),
        (FaultyStorage(PwritevStorage()), None),
        (WatchedStorage(FaultyStorage(PwritevStorage())), None),
        (WatchedStorage(PwritevStorage()), 3),
        (PageCacheStorage(), 3),
    ],
)
def test_a_disk_for_tests_is_never_read_past(storage: StorageBackend, plain: int | None) -> None:
    """Nor one behind others; a real one may be."""
    assert storage.plain_fd(3) == plain
