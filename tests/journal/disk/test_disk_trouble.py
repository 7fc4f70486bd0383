"""Disks that are full, slow or broken: what a caller sees, and what stays safe."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_sdk.journal import (
    Durability,
    Journal,
    JournalConfig,
    JournalFailed,
    JournalFull,
    NotYetDurable,
)
from lance_sdk.journal.testing import ForgetfulDisk

SLOT = Path("/disk/slot")
EIO = OSError(errno.EIO, "input/output error")
ENOSPC = OSError(errno.ENOSPC, "no space left on device")
EACCES = PermissionError(errno.EACCES, "permission denied")


def opened(disk: ForgetfulDisk, **changes: object) -> Journal:
    """Open the slot with small segments and without threads, unless told otherwise."""
    settings = {"segment_bytes": 256, "max_total_bytes": 4096, "background": False} | changes
    return Journal.open(SLOT, JournalConfig(**settings), files=disk)  # type: ignore[arg-type]


def filled(journal: Journal, frames: int) -> None:
    """Append so many frames of which seven fit in a segment."""
    for _ in range(frames):
        journal.append(bytes(24))


def test_a_full_disk_refuses_the_first_segment() -> None:
    """A new slot cannot be opened where nothing can be kept, and no file is left behind."""
    disk = ForgetfulDisk(space=3 * 8192 + 100)
    with pytest.raises(JournalFull, match="no space for the next segment") as caught:
        opened(disk)
    assert caught.value.reason == "disk"
    assert not disk.locked
    assert not [name for name in disk.names(SLOT) if name.endswith(".sfl")]


def test_a_full_disk_is_backpressure_and_not_loss() -> None:
    """SF-22: what was accepted stays and can be sent; the error names the disk's own."""
    disk = ForgetfulDisk(space=3 * 8192 + 100 + 2 * 256)
    journal = opened(disk)
    filled(journal, 14)
    with pytest.raises(JournalFull, match=r"no space left on device.*\.sfl") as caught:
        journal.append(bytes(24), timeout=0)
    assert isinstance(caught.value.cause, OSError)
    assert journal.next_fsn == 14
    assert len(list(journal.read_from(0))) == 14
    assert "no space left" in journal.stats().last_disk_error


def test_room_on_the_disk_ends_the_backpressure() -> None:
    """Acknowledged segments are deleted, and the next append passes."""
    disk = ForgetfulDisk(space=3 * 8192 + 100 + 2 * 256)
    journal = opened(disk)
    filled(journal, 14)
    with pytest.raises(JournalFull):
        journal.append(bytes(24), timeout=0)
    list(journal.read_from(0))
    journal.ack(6)
    assert journal.append(bytes(24), timeout=0) == 14
    assert journal.stats().last_disk_error == ""


def test_a_slot_can_be_drained_on_a_full_disk() -> None:
    """Opening a slot with frames takes no new space."""
    disk = ForgetfulDisk()
    with opened(disk) as journal:
        filled(journal, 14)
    disk.space = 0
    disk.broken["replace"] = ENOSPC
    with opened(disk) as journal:
        assert len(list(journal.read_from(0))) == 14
        journal.ack(13)
        assert journal.acked_fsn == 13


def test_a_foreign_slot_can_be_drained_on_a_full_disk() -> None:
    """Without space for side files they live in memory, and the problems say so."""
    disk = ForgetfulDisk()
    with opened(disk) as journal:
        filled(journal, 14)
    for name in ("sf-manifest.bin", ".ack-watermark", ".next-fsn"):
        disk.remove(SLOT / name)
    disk.space = 0
    with opened(disk, append_timeout=0.0) as journal:
        told = [each.path.name for each in journal.problems if "cannot be written" in each.text]
        assert told == ["sf-manifest.bin", ".ack-watermark", ".next-fsn"]
        assert len(list(journal.read_from(0))) == 14
        with pytest.raises(JournalFull, match="no space left"):
            filled(journal, 14)


def test_a_sparse_segment_on_a_full_disk_is_not_written() -> None:
    """A store into a block that cannot be had would kill the process (SIGBUS)."""
    disk = ForgetfulDisk()
    with opened(disk) as journal:
        filled(journal, 3)
    disk.space = 0
    disk.broken["reserve"] = ENOSPC
    with opened(disk) as journal:
        assert len(list(journal.read_from(0))) == 3
        with pytest.raises(JournalFull, match="no space"):
            journal.append(b"x", timeout=0)


@pytest.mark.parametrize("durability", [Durability.FLUSH, Durability.APPEND])
def test_a_sync_that_fails_is_an_error_for_good(durability: Durability) -> None:
    """The kernel may have dropped what it could not write: no later success is believed."""
    disk = ForgetfulDisk()
    journal = opened(disk, durability=durability)
    disk.broken["sync"] = EIO
    told = r"input/output error.*up to -1 are on disk"
    if durability is Durability.APPEND:
        with pytest.raises(JournalFailed, match=told):
            journal.append(b"x")
    else:
        journal.append(b"x")
        with pytest.raises(JournalFailed, match=told):
            journal.flush()
    disk.broken.clear()
    with pytest.raises(JournalFailed):
        journal.append(b"y")
    with pytest.raises(JournalFailed):
        journal.flush()
    assert journal.durable_fsn == -1


def test_after_a_failure_frames_can_still_be_sent() -> None:
    """Reading, acknowledging and every counter go on; closing tells the failure once more."""
    disk = ForgetfulDisk()
    journal = opened(disk, durability=Durability.FLUSH)
    filled(journal, 3)
    disk.broken["sync"] = EIO
    with pytest.raises(JournalFailed):
        journal.flush()
    assert len(list(journal.read_from(0))) == 3
    journal.ack(1)
    stats = journal.stats()
    assert (stats.next_fsn, stats.acked_fsn, stats.backlog_frames) == (3, 1, 1)
    assert "input/output error" in stats.last_disk_error
    disk.broken.clear()
    with pytest.raises(JournalFailed):
        journal.close()
    assert not disk.locked
    assert journal.stats().acked_fsn == 1


@pytest.mark.parametrize("operation", ["remove", "sync_folder"])
def test_a_trim_that_fails_is_tried_again(operation: str) -> None:
    """Lost permission is not the end: segments stay a little longer, and appends go on."""
    disk = ForgetfulDisk()
    journal = opened(disk)
    filled(journal, 20)
    list(journal.read_from(0))
    journal.ack(19)
    disk.broken[operation] = EACCES
    journal.maintain()
    assert "permission denied" in journal.stats().last_disk_error
    assert journal.append(b"x") == 20
    disk.broken.clear()
    journal.maintain()
    left = [name for name in disk.names(SLOT) if name.endswith(".sfl")]
    assert left == ["sf-0000000000000002.sfl", "sf-0000000000000003.sfl"]


def test_a_slot_that_cannot_be_read_is_unlocked_again() -> None:
    """An error while opening names the file and leaves no lock."""
    disk = ForgetfulDisk()
    with opened(disk) as journal:
        filled(journal, 3)
    disk.broken["open"] = EIO
    with pytest.raises(OSError, match=r"input/output error: .*sf-0+\.sfl"):
        opened(disk)
    assert not disk.locked


def test_closing_unlocks_even_when_the_disk_fails() -> None:
    """The slot must not stay locked by an object that is gone."""
    disk = ForgetfulDisk()
    journal = opened(disk)
    filled(journal, 3)
    disk.broken["sync"] = EIO
    with pytest.raises((JournalFailed, OSError)):
        journal.close()
    assert not disk.locked


class Gate:
    """Holds one kind of operation until the test lets it go."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.reached = threading.Event()
        self.open = threading.Event()
        self.open.set()

    def __call__(self, operation: str) -> None:
        """Wait here while the gate is closed."""
        if operation == self.operation and not self.open.is_set():
            self.reached.set()
            assert self.open.wait(30)


@pytest.fixture
def slow_sync() -> Iterator[tuple[ForgetfulDisk, Gate]]:
    """A disk whose syncs take as long as a test wants."""
    disk, gate = ForgetfulDisk(), Gate("sync")
    disk.before = gate
    yield disk, gate
    gate.open.set()


def test_appends_that_wait_share_one_sync(slow_sync: tuple[ForgetfulDisk, Gate]) -> None:
    """Group commit: nine producers behind one slow sync need one more, not nine."""
    disk, gate = slow_sync
    journal = opened(
        disk,
        background=True,
        durability=Durability.APPEND,
        segment_bytes=1 << 16,
        max_total_bytes=1 << 20,
    )
    gate.open.clear()
    producers = [threading.Thread(target=journal.append, args=(b"x",)) for _ in range(10)]
    producers[0].start()
    assert gate.reached.wait(30)
    for each in producers[1:]:
        each.start()
    while journal.next_fsn < 10:
        producers[1].join(0.001)
    before = journal.stats().syncs
    gate.open.set()
    for each in producers:
        each.join(30)
    assert journal.durable_fsn == 9
    assert journal.stats().syncs - before == 2
    journal.close()


def test_a_disk_that_does_not_confirm_in_time_is_told(
    slow_sync: tuple[ForgetfulDisk, Gate],
) -> None:
    """The frame is stored, and the error says that it must not be appended again."""
    disk, gate = slow_sync
    journal = opened(disk, background=True, durability=Durability.APPEND)
    gate.open.clear()
    with pytest.raises(NotYetDurable, match="frame 0 is stored but not yet synced") as caught:
        journal.append(b"x", timeout=0.05)
    assert caught.value.maybe_applied
    assert journal.next_fsn == 1
    gate.open.set()
    assert journal.sync() == 0
    journal.close()


def test_a_slow_sync_does_not_keep_a_producer_from_its_next_segment(
    slow_sync: tuple[ForgetfulDisk, Gate],
) -> None:
    """In memory durability, frames go on into fresh segments while a sealed one is synced."""
    disk, gate = slow_sync
    journal = opened(disk, background=True)
    gate.open.clear()
    filled(journal, 8)
    assert gate.reached.wait(30)
    filled(journal, 62)
    assert journal.stats().segments == 10
    gate.open.set()
    journal.close()


def test_a_slow_sync_keeps_neither_reading_nor_acknowledging_waiting(
    slow_sync: tuple[ForgetfulDisk, Gate],
) -> None:
    """The network's thread never waits for the disk."""
    disk, gate = slow_sync
    journal = opened(disk, background=True)
    gate.open.clear()
    filled(journal, 20)
    assert gate.reached.wait(30)
    assert len(list(journal.read_from(0))) == 20
    journal.ack(19)
    assert journal.stats().backlog_frames == 0
    gate.open.set()
    journal.close()


def test_segments_that_are_not_synced_do_not_pile_up(
    slow_sync: tuple[ForgetfulDisk, Gate],
) -> None:
    """Each keeps descriptors open; beyond 32 producers wait, and are told why."""
    disk, gate = slow_sync
    journal = opened(disk, background=True, max_total_bytes=1 << 20, append_timeout=0.5)
    gate.open.clear()
    filled(journal, 8)
    assert gate.reached.wait(30)  # one segment is being synced, and counts beside the 32
    with pytest.raises(JournalFull, match="slow to reserve") as caught:
        filled(journal, 7 * 40)
    assert caught.value.reason == "reserving"
    assert journal.stats().segments <= 34
    gate.open.set()
    assert journal.append(bytes(24)) == journal.next_fsn - 1
    journal.close()


def test_a_worker_that_breaks_does_not_leave_producers_waiting() -> None:
    """An error nobody foresaw ends the journal with its cause instead of a hang."""
    disk = ForgetfulDisk()
    journal = opened(disk, background=True)

    def break_it(operation: str) -> None:
        if operation == "create":
            raise ZeroDivisionError

    disk.before = break_it
    with pytest.raises(JournalFailed, match="ZeroDivisionError"):
        filled(journal, 30)
    with pytest.raises(JournalFailed):
        journal.close()
    assert not disk.locked
