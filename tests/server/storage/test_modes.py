"""What "durable" means in each mode, and what becomes of offsets after a crash (AMB-29)."""

import errno
from pathlib import Path
from random import Random

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.storage.contract import Write
from lance_server.storage.pwritev import PageCacheStorage
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage
from lance_spec.records import decode_records

OS = LogOptions(segment_size=2000, synced=False)


class PageCacheMemory(MemoryStorage):
    """A disk in memory whose commits sync nothing."""

    def commit(self, writes: list[Write]) -> list[OSError | None]:  # type: ignore[override]
        """Write without a sync."""
        for each in writes:
            self.write(*each)
        return [None] * len(writes)


@pytest.mark.parametrize("seed", range(30))
def test_no_offset_that_was_visible_is_given_to_other_bytes(seed: int) -> None:
    """In ``os`` mode a machine's crash may lose records; their offsets stay lost."""
    disk, random = PageCacheMemory(), Random(seed)
    log = LogDriver(disk, options=OS)
    for number in range(random.randint(1, 30)):
        log.store([b"%d" % number + bytes(random.randint(0, 400))], batch_id=number + 1)
    visible = log.end()
    again = LogDriver(disk.crash(random), options=OS)
    assert again.end() >= visible
    assert again.store([b"after the crash"], batch_id=99) >= visible
    found = again.read_all()
    last = max(found.pieces)
    assert decode_records(found.pieces[last])[-1] == (1, b"after the crash")


@pytest.mark.parametrize("seed", range(20))
def test_what_a_crash_lost_reads_as_gaps_or_damage_never_as_records(seed: int) -> None:
    """Nothing is invented: whatever is read was written."""
    disk, random = PageCacheMemory(), Random(seed)
    log = LogDriver(disk, options=OS)
    sent = [b"%d" % number + bytes(random.randint(0, 400)) for number in range(20)]
    for number, value in enumerate(sent):
        log.store([value], batch_id=number + 1)
    found = LogDriver(disk.crash(random), options=OS).read_all()
    for data in found.pieces.values():
        assert all(value in sent for _, value in decode_records(data))


def test_a_stop_that_settles_a_topic_gives_none_of_its_offsets_back() -> None:
    """A start could not settle what a crash left; the clean stop does, and learns no end by it."""
    disk = PageCacheMemory()
    log = LogDriver(disk, options=OS)
    log.store([b"seen, and lost with the power"])
    visible = log.end()
    faulty = FaultyStorage(disk.crash(Random(1)))
    faulty.within, faulty.fail = Path("/data/segments/0"), {"sync_dir": errno.EIO}
    log = LogDriver(faulty, options=OS)
    assert set(log.engine.problems) == {0}
    faulty.fail = {}
    log.close()
    assert LogDriver(faulty, options=OS).store([b"other bytes"]) >= visible


def test_a_clean_stop_leaves_no_gap() -> None:
    """Offsets that were reserved and not used are given back at a clean stop."""
    disk = PageCacheMemory()
    log = LogDriver(disk, options=OS)
    log.store([b"one"])
    end = log.end()
    log.close()
    assert LogDriver(disk, options=OS).store([b"two"]) == end


def test_offsets_are_reserved_rarely() -> None:
    """The topic's file is written once for many batches."""
    disk = PageCacheMemory()
    log = LogDriver(disk, options=LogOptions(synced=False))
    log.store([b"first"])
    file = log.engine.topic(0).file
    reserved = file.next_offset
    for number in range(50):
        log.store([bytes(1000)], batch_id=number + 2)
    assert file.next_offset == reserved >= log.end() + (1 << 20)


def test_the_page_cache_backend_writes_without_a_sync(tmp_path: Path) -> None:
    """Its commits can be read at once."""
    storage = PageCacheStorage()
    fd = storage.open(tmp_path / "a", create=True)
    read_only = storage.open(Path("/dev/full"))
    errors = storage.commit([Write(fd, b"abc", 0), Write(read_only, b"abc", 0)])
    assert errors[0] is None
    assert isinstance(errors[1], OSError)
    assert (tmp_path / "a").read_bytes() == b"abc"
