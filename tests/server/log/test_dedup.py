"""The duplicate window: how long a batch is remembered, and what that costs (AMB-25)."""

import tracemalloc
from struct import Struct

from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log import dedup
from lance_server.log.dedup import DuplicateWindow, WindowLimits
from lance_server.log.log_manager import LogOptions
from lance_server.testing import LogDriver, ManualClock, MemoryStorage
from lance_spec.codec.ingest_runs import BatchMeta, BatchTable

NONCE = 7 << 40
DAY_NS = 24 * 3600 * 1_000_000_000


def digest(number: int) -> bytes:
    """Return the content of one of several batches."""
    return number.to_bytes(16, "little")


def described(digests: dict[int, bytes]) -> BatchTable:
    """Return batches by their digests."""
    fields = Struct("<LLQ")  # as `BatchMeta.digest` has them
    batches = []
    for batch_id, stored in digests.items():
        crc, length, time_ns = fields.unpack(stored)
        batches.append(BatchMeta(length, 1, batch_id, time_ns, 0, crc, 0))
    return BatchTable.of(batches)


def remember(window: DuplicateWindow, digests: dict[int, int], now_ns: int = 0) -> None:
    """Store batches, each in a group of its own."""
    for batch_id, number in digests.items():
        window.announce(batch_id)
        window.update(described({batch_id: digest(number)}), now_ns)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=120),
    st.integers(1, 40),
)
def test_the_last_batches_are_remembered_whatever_their_order(
    sent: list[tuple[int, int]], entries: int
) -> None:
    """Each of the stated number of last stored batches is found, with its newest content."""
    window = DuplicateWindow(WindowLimits(entries))
    digests: dict[int, int] = {}
    for place, (nonce, counter) in enumerate(sent):
        batch_id = (nonce + 1) << 40 | counter
        digests[batch_id] = place
        remember(window, {batch_id: place})
    newest = {(nonce + 1) << 40 | counter for nonce, counter in sent[-entries:]}
    assert all(window.may_know(batch_id) for batch_id in newest)
    assert {batch_id: window.find(batch_id) for batch_id in newest} == {
        batch_id: digest(digests[batch_id]) for batch_id in newest
    }


def test_a_first_send_is_known_to_be_new_without_a_search() -> None:
    """An id above the highest of its producer was never announced."""
    window = DuplicateWindow(WindowLimits(10))
    remember(window, {NONCE + 5: 1})
    assert window.may_know(NONCE + 5)
    assert not window.may_know(NONCE + 6)
    assert not window.may_know((8 << 40) + 1)


def test_batches_older_than_the_window_are_forgotten() -> None:
    """Seven days later the id may be stored again."""
    window = DuplicateWindow(WindowLimits(2, max_age_secs=7 * 24 * 3600))
    remember(window, {NONCE + 1: 1, NONCE + 2: 2}, now_ns=0)
    remember(window, {NONCE + 3: 3, NONCE + 4: 4}, now_ns=8 * DAY_NS)
    assert window.find(NONCE + 1) is None
    assert window.find(NONCE + 4) == digest(4)


def test_a_window_that_is_off_remembers_nothing() -> None:
    """0 entries: every batch is new."""
    window = DuplicateWindow(WindowLimits(0))
    remember(window, {NONCE + 1: 1})
    assert not window.may_know(NONCE + 1)
    assert len(window) == 0


def test_forgotten_producers_cost_nothing() -> None:
    """A nonce leaves no trace once its last batch has left the window."""
    window = DuplicateWindow(WindowLimits(4))
    remember(window, {(nonce << 40) + 1: nonce for nonce in range(1, 200)})
    assert len(window._highest) <= 2 * 4


def test_the_memory_is_what_is_stated() -> None:
    """About 24 bytes a batch, plus one mebibyte for the newest."""
    count = 10 * dedup._GENERATION
    tracemalloc.start()
    window = DuplicateWindow(WindowLimits(count))
    for start in range(0, count, 1024):
        digests = {NONCE + start + step + 1: digest(step << 64) for step in range(1024)}
        for batch_id in digests:
            window.announce(batch_id)
        window.update(described(digests), 0)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(window) == count
    assert used < 30 * count + 2 * 1024 * 1024


def store_raw(log: LogDriver, batch_id: int) -> None:
    """Store a batch with a fixed content."""
    log.append([b"same"], batch_id=batch_id, timestamp_ns=9)
    log.scheduler.run_all()


def test_a_batch_in_flight_is_known_when_its_producer_is_forgotten() -> None:
    """The older batches leave the window while a straggler waits for its sync."""
    log = LogDriver(MemoryStorage(), options=LogOptions(window=WindowLimits(2)))
    other = 8 << 40
    for batch_id in (NONCE + 5, other + 1, other + 2):
        store_raw(log, batch_id)
    log.append([b"same"], batch_id=other + 3)
    log.scheduler.run_soon()
    log.append([b"same"], batch_id=NONCE + 3)
    log.scheduler.run_work()
    partition = log.engine.topic(0).partition
    assert partition._window.find(NONCE + 5) is None
    assert partition.may_know(NONCE + 3)


def test_the_window_survives_a_restart() -> None:
    """It is filled again from the sidecars, clean stop or not."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=20))
    for counter in range(1, 8):
        store_raw(log, NONCE + counter)
    partition = LogDriver(disk.copy()).engine.topic(0).partition
    stored = log.engine.topic(0).partition._window.find(NONCE + 3)
    assert stored is not None
    duplicate = partition.find_duplicate(NONCE + 3, stored)
    assert duplicate is not None
    assert (duplicate.same, duplicate.outcome) == (True, None)


def test_only_what_fits_the_window_is_read_back() -> None:
    """A restart remembers the newest batches, not the oldest."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=20))
    for counter in range(1, 8):
        store_raw(log, NONCE + counter)
    options = LogOptions(window=WindowLimits(3))
    window = LogDriver(disk.copy(), options=options).engine.topic(0).partition._window
    assert window.find(NONCE + 7) is not None
    assert window.find(NONCE + 1) is None


def test_what_is_too_old_is_not_read_back() -> None:
    """Batches of last week are no duplicates after a restart either."""
    disk = MemoryStorage()
    log = LogDriver(disk, clock=ManualClock(DAY_NS))
    store_raw(log, NONCE + 1)
    again = LogDriver(disk.copy(), clock=ManualClock(20 * DAY_NS))
    assert not again.engine.topic(0).partition.may_know(NONCE + 1)
