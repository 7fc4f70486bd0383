"""The simulated disk keeps what it must, and nothing more."""

import errno
from pathlib import Path
from random import Random

import pytest
from tests.simulation.disk import File, Folder, Move, SimDisk
from tests.simulation.faults import Fault, class_of
from tests.simulation.mount import Mount, StoppedError
from tests.simulation.world import Pace, World

from lance_server.storage.contract import Write, write_again

ROOT = Path("/data")
SEEDS = range(40)


def mounted(kind: str = "dsync") -> tuple[SimDisk, Mount]:
    """Return a disk with an empty data directory, and a process's view of it."""
    disk = SimDisk()
    disk.root.change(Move(None, ROOT.name, Folder()))
    disk.root.sync()
    return disk, Mount(disk, World(Random(1), Pace(pause=0.0)), kind, lambda _: None)


def written(mount: Mount, name: str, data: bytes) -> int:
    """Return a new file with data in it, its name durable."""
    fd = mount.open(ROOT / name, create=True)
    mount.sync_dir(ROOT)
    mount.write(fd, data, 0)
    return fd


def content(disk: SimDisk, name: str) -> bytes:
    """Return what a file reads as."""
    node = disk.find(ROOT / name)
    assert isinstance(node, File)
    return bytes(node.content)


def test_a_kill_keeps_what_was_written() -> None:
    """The page cache outlives a process."""
    disk, mount = mounted()
    written(mount, "file", b"cached")
    disk.kill(Random(1))
    assert content(disk, "file") == b"cached"


def test_power_may_take_what_was_not_synced() -> None:
    """Unsynced bytes are there after a loss of power, or not, by chance."""
    found = set()
    for seed in SEEDS:
        disk, mount = mounted()
        written(mount, "file", b"unsure")
        disk.power(Random(seed))
        found.add(content(disk, "file"))
    assert found == {b"", b"unsure"}


def test_power_keeps_what_was_synced() -> None:
    """A sync is a promise."""
    for seed in SEEDS:
        disk, mount = mounted()
        mount.sync(written(mount, "file", b"synced"))
        disk.power(Random(seed))
        assert content(disk, "file") == b"synced"


def test_a_sync_after_one_that_failed_promises_nothing() -> None:
    """What a failed sync was to write is clean and lost: the next sync does not write it."""
    found = set()
    for seed in SEEDS:
        disk, mount = mounted()
        mount._world.random = Random(seed)
        fd = written(mount, "file", b"lost")
        mount.faults = [Fault("sync", "*", 0, "EIO")]
        with pytest.raises(OSError, match="Input/output"):
            mount.sync(fd)
        mount.sync(fd)
        assert content(disk, "file") == b"lost"
        disk.power(Random(seed))
        found.add(content(disk, "file"))
    assert b"" in found


def test_a_cut_that_a_failed_sync_lost_is_made_again() -> None:
    """What is written again after a failed sync keeps its length when power is lost."""
    found = set()
    for seed in SEEDS:
        disk, mount = mounted()
        mount._world.random = Random(seed)
        fd = written(mount, "file", b"kept, and torn")
        mount.sync(fd)
        mount.truncate(fd, 4)
        mount.faults = [Fault("sync", "*", 0, "EIO")]
        with pytest.raises(OSError, match="Input/output"):
            mount.sync(fd)
        write_again(mount, fd)
        disk.power(Random(seed))
        found.add(content(disk, "file"))
    assert found == {b"kept"}


def test_a_durable_write_keeps_its_range_alone() -> None:
    """A commit makes its own bytes durable, not those that were written before it."""
    found = set()
    for seed in SEEDS:
        disk, mount = mounted()
        fd = written(mount, "file", b"before")
        assert mount.commit([Write(fd, b"after", 6)]) == [None]
        disk.power(Random(seed))
        found.add(content(disk, "file"))
    assert {data[6:] for data in found} == {b"after"}
    assert bytes(6) + b"after" in found


def test_any_subset_of_names_survives() -> None:
    """Without a sync of the folder a later name may be there and an earlier one not."""
    found = set()
    for seed in SEEDS:
        disk, mount = mounted()
        for name in ("first", "second"):
            mount.open(ROOT / name, create=True)
        disk.power(Random(seed))
        found.add(tuple(sorted(disk.folder(ROOT).names)))
    assert found == {(), ("first",), ("second",), ("first", "second")}


def test_a_torn_write_is_cut_at_sectors() -> None:
    """Of a long write any sectors survive, each as a whole."""
    disk, mount = mounted()
    sizes = set()
    for seed in SEEDS:
        disk, mount = mounted()
        written(mount, "file", b"x" * 2000)
        disk.power(Random(seed))
        data = content(disk, "file")
        sizes.add(data.count(b"x"))
        sectors = [data[start : start + 512] for start in range(0, len(data), 512)]
        assert all(len(set(sector)) == 1 for sector in sectors)
    assert len(sizes) > 3


def test_a_full_disk_takes_what_fits() -> None:
    """A write to a full disk leaves the bytes that there was room for."""
    disk, mount = mounted()
    fd = written(mount, "file", b"")
    disk.room = 3
    with pytest.raises(OSError, match="No space") as raised:
        mount.write(fd, b"12345", 0)
    assert raised.value.errno == errno.ENOSPC
    assert content(disk, "file") == b"123"


@pytest.mark.parametrize("after", [False, True])
def test_a_fault_strikes_before_or_after_the_effect(after: bool) -> None:
    """A rename that reports failure may have happened."""
    disk, mount = mounted()
    written(mount, "old", b"")
    mount.faults = [Fault("rename", "*", 0, "EIO", after=after)]
    with pytest.raises(OSError, match="Input/output"):
        mount.rename(ROOT / "old", ROOT / "new")
    assert list(disk.folder(ROOT).names) == ["new" if after else "old"]


def test_a_fault_waits_for_its_call() -> None:
    """A fault strikes the nth call of a method on a class of files."""
    fault = Fault("write", "data", 1, "EIO")
    calls = [("write", "a.lnc"), ("sync", "a.lnc"), ("write", "a.batches"), ("write", "b.lnc")]
    assert [fault.meets(method, Path(name)) for method, name in calls] == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("1_2.lnc", "data"),
        ("1_2.lnc.tmp", "draft"),
        ("metadata.json.bak", "backup"),
        ("7", "folder"),
    ],
)
def test_paths_have_classes(name: str, kind: str) -> None:
    """Faults are planned by what kind of file a path is."""
    assert class_of(Path(name)) == kind


def test_a_process_that_is_over_changes_nothing() -> None:
    """After a kill nothing of what its threads still do reaches the disk."""
    disk, mount = mounted()
    fd = written(mount, "file", b"before")
    mount.dead = True
    with pytest.raises(StoppedError):
        mount.write(fd, b"after!", 0)
    assert content(disk, "file") == b"before"
