"""Committed offsets of consumers (LWP section 5.14, AMB-36)."""

from pathlib import Path

import pytest

from lance_server.log.consumers import ConsumerOffsets
from lance_server.refusals import Refusal
from lance_server.testing import FaultyStorage, LogDriver, ManualScheduler, MemoryStorage


def offsets(limit: int = 10) -> tuple[ConsumerOffsets, FaultyStorage, ManualScheduler]:
    """Return an empty store of committed offsets on its own disk."""
    disk, scheduler = FaultyStorage(MemoryStorage()), ManualScheduler()
    disk.make_dir(Path("/topic"))
    return ConsumerOffsets(disk, scheduler, Path("/topic"), limit=limit), disk, scheduler


def test_commits_during_a_save_share_the_next_one() -> None:
    """A hundred commits cost two saves."""
    store, disk, scheduler = offsets()
    outcomes = [store.commit(1, number) for number in range(100)]
    scheduler.run_work()
    assert (outcomes[0].done, outcomes[1].done) == (True, False)
    scheduler.run_work()
    assert all(outcome.done for outcome in outcomes)
    assert disk.calls["sync"] == 2 * 2
    again = ConsumerOffsets(disk, scheduler, Path("/topic"))
    again.load()
    assert again.committed(1) == 99


def test_commits_may_go_backwards() -> None:
    """A consumer that rewinds says so."""
    store, _, scheduler = offsets()
    store.commit(1, 100)
    store.commit(1, 5)
    scheduler.run_all()
    assert store.committed(1) == 5


def test_the_number_of_consumers_is_bounded() -> None:
    """A known one may still commit."""
    store, _, _ = offsets(limit=2)
    store.commit(1, 1)
    store.commit(2, 1)
    store.commit(1, 2)
    with pytest.raises(Refusal, match="limit"):
        store.commit(3, 1)


def test_lost_commits_are_reported_and_the_topic_is_served() -> None:
    """Both copies damaged: consumers begin anew, and the report says why."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.engine.topic(0).consumers.commit(1, 5)
    log.scheduler.run_all()
    for path in [path for path in disk.files() if path.name.startswith("consumers")]:
        disk.poke(path, b"{}")
    again = LogDriver(disk)
    assert again.engine.topic(0).consumers.committed(1) is None
    assert "committed offsets are lost" in again.engine.report.findings[0].note
