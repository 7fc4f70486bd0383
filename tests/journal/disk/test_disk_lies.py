"""Disks that fail a sync, cut a file short or cannot punch holes: what is said stays true."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lance_sdk.journal import Durability, FrameDamaged, Journal, JournalConfig, JournalFailed
from lance_sdk.journal.testing import ForgetfulDisk

SLOT = Path("/disk/slot")
EIO = OSError(errno.EIO, "input/output error")
FOLDING = JournalConfig(segment_bytes=1 << 20, background=False, punch_holes=True)
FRAMES = {fsn: b"%04d" % fsn * 256 for fsn in range(900)}


def half_acked(disk: ForgetfulDisk) -> Journal:
    """A segment with 900 synced frames, of which 700 are acknowledged and none is folded yet."""
    journal = Journal.open(SLOT, FOLDING, files=disk)
    for payload in FRAMES.values():
        journal.append(payload)
    journal.sync()
    for _ in journal.read_from(0):
        pass
    journal.ack(699)
    return journal


def delivered(journal: Journal) -> dict[int, bytes]:
    """Every frame that is not acknowledged, by its number."""
    return dict(journal.read_from(journal.acked_fsn + 1))


@pytest.mark.parametrize("operation", ["sync", "write", "punch"])
@pytest.mark.parametrize("nth", range(8))
def test_a_fold_that_fails_anywhere_moves_no_frame(operation: str, nth: int) -> None:
    """In this process, after a retry, and when it is opened again: each number has its frame."""
    disk = ForgetfulDisk()
    journal = half_acked(disk)
    left = nth

    def before(name: str) -> None:
        nonlocal left
        disk.broken.pop(operation, None)
        if name == operation:
            if left == 0:
                disk.broken[operation] = EIO
            left -= 1

    disk.before = before
    for _ in range(3):
        with suppress(OSError):
            journal.maintain()
    disk.before = lambda _: None
    disk.broken.clear()
    wanted = {fsn: FRAMES[fsn] for fsn in range(700, 900)}
    assert delivered(journal) == wanted
    for after in (disk.killed(), disk.power_lost()):
        with Journal.open(SLOT, FOLDING, files=after) as again:
            assert wanted.items() <= delivered(again).items()
            assert all(FRAMES[fsn] == each for fsn, each in delivered(again).items())


def test_a_file_system_without_holes_delivers_every_frame_under_its_number() -> None:
    """After a reconnect, in the process that tried, and for everyone who opens it later."""
    disk = ForgetfulDisk()
    disk.broken["punch"] = OSError(errno.EOPNOTSUPP, "operation not supported")
    journal = half_acked(disk)
    journal.maintain()
    wanted = {fsn: FRAMES[fsn] for fsn in range(700, 900)}
    assert delivered(journal) == wanted
    journal.append(b"later")
    assert delivered(journal) == wanted | {900: b"later"}
    for after in (disk.killed(), disk.power_lost()):
        with Journal.open(SLOT, FOLDING, files=after) as again:
            assert wanted.items() <= delivered(again).items()
            assert again.problems == ()


def test_after_a_failed_sync_nothing_is_durable_until_it_was_written_again() -> None:
    """The kernel calls the pages clean; a later sync in the same boot would prove nothing."""
    disk, config = ForgetfulDisk(), JournalConfig(durability=Durability.FLUSH, background=False)
    journal = Journal.open(SLOT, config, files=disk)
    journal.append(b"frame")
    disk.broken["sync"] = EIO
    with pytest.raises(JournalFailed):
        journal.flush()
    disk.broken.clear()
    with suppress(JournalFailed):
        journal.close()
    found = disk.killed()
    with Journal.open(SLOT, config, files=found) as again:
        assert again.durable_fsn == -1
        again.flush()
        assert again.durable_fsn == 0
        left = found.power_lost()
        with Journal.open(SLOT, config, files=left) as later:
            assert delivered(later) == {0: b"frame"}


def test_what_was_synced_in_this_boot_is_not_written_again() -> None:
    """A restart of the program costs the disk nothing for frames that are safe."""
    disk, config = ForgetfulDisk(), JournalConfig(durability=Durability.FLUSH, background=False)
    with Journal.open(SLOT, config, files=disk) as journal:
        for fsn in range(100):
            journal.append(b"%d" % fsn)
        journal.flush()
    with Journal.open(SLOT, config, files=disk) as again:
        before = disk.done["write"]
        again.sync()
        assert disk.done["write"] - before <= 1  # the state; no frame


def test_a_side_file_whose_sync_failed_is_written_again() -> None:
    """A watermark that the disk refused once is on disk before a segment is deleted for it."""
    disk = ForgetfulDisk()
    config = JournalConfig(segment_bytes=256, background=False)
    journal = Journal.open(SLOT, config, files=disk)
    for _ in range(17):
        journal.append(bytes(24))
    journal.sync()
    for _ in journal.read_from(0):
        pass
    journal.ack(8)
    disk.broken["sync"] = EIO
    journal.maintain()
    disk.broken.clear()
    journal.maintain()
    with Journal.open(SLOT, config, files=disk.power_lost()) as again:
        assert again.acked_fsn == 8


_CHILD = """
import os, sys
from pathlib import Path
from lance_sdk.journal import FrameDamaged, Journal, JournalConfig
slot = Path(sys.argv[1])
journal = Journal.open(slot, JournalConfig(segment_bytes=1 << 16, background=False))
for fsn in range(150):
    journal.append(bytes(1000))
for segment in sorted(slot.glob("sf-*")):
    os.truncate(segment, 100)
try:
    list(journal.read_from(0))
except FrameDamaged as damaged:
    print("damaged", damaged.fsn)
journal.append(b"goes on")
print(journal.stats().backlog_frames)
"""


def test_a_segment_that_another_program_cuts_short_does_not_kill_this_one(tmp_path: Path) -> None:
    """The frame is told to be damaged; a map would have ended the process with SIGBUS."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path / "slot")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    assert done.returncode != -signal.SIGBUS
    assert done.stdout.splitlines() == ["damaged 0", "151"]


def test_a_read_error_is_an_error_of_one_read() -> None:
    """The frame can be read later, when the disk answers again."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, JournalConfig(background=False), files=disk) as journal:
        journal.append(b"x")
        disk.broken["pread"] = EIO
        with pytest.raises(OSError, match="input/output"):
            list(journal.read_from(0))
        disk.broken.clear()
        assert delivered(journal) == {0: b"x"}


def test_a_write_that_fails_takes_no_frame_for_stored() -> None:
    """The journal refuses from then on; opened again, it has what was stored and goes on."""
    disk = ForgetfulDisk()
    journal = Journal.open(SLOT, JournalConfig(background=False), files=disk)
    journal.append(b"stored")
    disk.broken["write"] = EIO
    with pytest.raises(JournalFailed, match="input/output"):
        journal.append(b"refused")
    disk.broken.clear()
    with pytest.raises(JournalFailed):
        journal.append(b"refused, too")
    with Journal.open(SLOT, JournalConfig(background=False), files=disk.killed()) as again:
        assert delivered(again) == {0: b"stored"}
        assert again.append(b"next") == 1


def test_a_frame_damaged_on_disk_is_told_with_its_number() -> None:
    """Also where the file ends before the frame that was asked for."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, JournalConfig(background=False), files=disk) as journal:
        for fsn in range(20):
            journal.append(b"%04d" % fsn)
        disk.open(SLOT / "sf-0000000000000000.sfl", writable=True).truncate(40)
        with pytest.raises(FrameDamaged) as damaged:
            list(journal.read_from(10))
        assert damaged.value.fsn in {1, 10}
