"""A data directory with a log: other modes, the first release, a clean stop, a full disk."""

import errno
from pathlib import Path

import pytest
from tests.server.storage.test_wal import ROOT, disk, make_room

from lance_server.errors import ConfigError
from lance_server.storage.backend_selection import open_storage
from lance_server.storage.contract import Write
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import FOLDER
from lance_server.testing import FaultyStorage, LogDriver
from lance_spec.disk.redo_entries import END, Entry, decode_entries
from lance_spec.disk.wal_frames import (
    GUARD,
)


@pytest.mark.parametrize("durability", ["auto", "fsync", "os"])
def test_another_mode_repeats_what_was_left_and_removes_it(durability: str, tmp_path: Path) -> None:
    """Changing the durability loses nothing."""
    (tmp_path / "wal").mkdir()
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "wal" / "0.wal").write_bytes(Entry(1, "a", 0, b"kept").encode() + END)
    open_storage("pwritev2", durability, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"kept"
    assert not (tmp_path / "wal").exists()


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """With those there are."""
    with pytest.raises(ConfigError, match="fsync, os, wal"):
        open_storage("auto", "maybe", tmp_path)


def test_the_first_release_refuses_the_log_and_keeps_it() -> None:
    """It reads an entry of its own that names a file outside the data directory."""
    memory = disk()
    WalStorage(memory, ROOT, size=1024)
    for number in range(3):
        found = memory.peek(ROOT / "wal" / f"{number}.wal")
        (entry,) = decode_entries(found[: len(GUARD)])
        assert entry.name.startswith("../")
        assert next(decode_entries(found)).name == entry.name


def test_a_clean_stop_leaves_no_log() -> None:
    """An older release can open the data directory."""
    memory = disk()
    log = LogDriver(WalStorage(memory, ROOT))
    log.store([b"kept"])
    assert FOLDER in memory.list_dir(ROOT)
    log.close()
    assert FOLDER not in memory.list_dir(ROOT)
    assert LogDriver(memory).read_all().damage == []


def test_without_room_for_a_log_the_server_starts_and_tells(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Commits are durable in their places; the log is made once there is room."""
    memory = disk()
    faulty = FaultyStorage(memory)
    now = [0.0]
    faulty.fail["write"] = errno.ENOSPC
    storage = WalStorage(faulty, ROOT, size=1024, clock=lambda: now[0])
    assert "there is no room in the write-ahead log" in caplog.text
    assert "No space left" in caplog.text
    del faulty.fail["write"]
    fd = storage.open(ROOT / "a", create=True)
    assert storage.commit([Write(fd, b"direct", 0)]) == [None]
    assert bytes(memory._folders[ROOT]["a"].durable) == b"direct"  # type: ignore[union-attr]
    now[0] = 10.0
    make_room(storage)
    direct = storage.direct_commits
    assert storage.commit([Write(fd, b"logged", 6)]) == [None]
    assert storage.direct_commits == direct
