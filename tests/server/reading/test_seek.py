"""Seeking in long segments: what is touched, and that it changes nothing."""

from itertools import accumulate
from math import ceil, log2
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.log_manager import LogOptions
from lance_server.log.reading import segment_cache
from lance_server.log.segments.segment_files import Segment, SegmentName, View
from lance_server.log.segments.sidecar import HEADER_SIZE, encode_header
from lance_server.log.segments.sidecar_search import SidecarSearch, first_since
from lance_server.storage.contract import StorageBackend
from lance_server.testing import LogDriver, MemoryStorage
from lance_spec.codec.ingest_runs import BatchMeta, encode_entries
from lance_spec.records import decode_records

FOLDER = Path("/data")
PAGE = 4096
BATCH = 64 * 1024


class CountingStorage(MemoryStorage):
    """Knows which pages of which files were read."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: set[tuple[int, int]] = set()

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Read, and note the pages."""
        got = super().read_into(fd, target, offset, cached_only=cached_only)
        self.pages |= {(fd, page) for page in range(offset // PAGE, -(-(offset + got) // PAGE))}
        return got


def sidecar_of(storage: StorageBackend, batches: int) -> Segment:
    """Make a closed segment of 64 KiB batches, one a microsecond; the data is not there."""
    storage.make_dir(FOLDER)
    segment = Segment(FOLDER, SegmentName(0, 1, 2), 0, 0, size=batches * BATCH, last_ns=batches)
    metas = [BatchMeta(BATCH, 1, number + 1, 1, number, 0, 0) for number in range(batches)]
    for path, content in (
        (segment.sidecar_path, encode_header(0, 0, 0, 1) + encode_entries(metas, 0, 0)),
        (segment.data_path, b""),
    ):
        fd = storage.open(path, create=True)
        storage.write(fd, content, 0)
        storage.close(fd)
    return segment


def test_a_seek_in_a_long_topic_touches_few_pages() -> None:
    """At most twice the logarithm of the index's pages, and four more (10 GiB in one segment)."""
    storage = CountingStorage()
    batches = (10 << 30) // BATCH
    segment = sidecar_of(storage, batches)
    allowed = 2 * log2(ceil((HEADER_SIZE + 64 * batches) / PAGE)) + 4
    segments = segment_cache.SegmentCache(storage)
    for place in (0, 1, batches // 3, batches - 2, batches - 1):
        segments.close()
        storage.pages.clear()
        _, index = segments.open(segment, place * BATCH + 7, 1 << 20, cached_only=False)
        assert index.starts[index.find(place * BATCH + 7)] == place * BATCH
        assert len(storage.pages) <= allowed


def test_a_search_by_time_touches_few_pages() -> None:
    """Finding when a batch arrived is a search by halves, too."""
    storage = CountingStorage()
    segment = sidecar_of(storage, 50_000)
    storage.pages.clear()
    found = first_since(storage, View([segment], 0, segment.size), 31_337)
    assert found == 31_337 * BATCH
    assert len(storage.pages) <= 20


def filled(batches: int) -> tuple[MemoryStorage, LogDriver]:
    """Return a disk with one closed segment of small batches, and a log that has opened it."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions())
    for number in range(batches):
        log.append([b"%d" % number], batch_id=number + 1)
    log.scheduler.run_all()
    log.close()
    return disk, LogDriver(disk, options=LogOptions())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load indexes in parts of a few batches."""
    monkeypatch.setattr(segment_cache, "_SEEK_ENTRIES", 3)
    monkeypatch.setattr(segment_cache, "_SCAN_ENTRIES", 5)


@pytest.mark.usefixtures("small_parts")
def test_reading_through_parts_finds_every_record() -> None:
    """From one end to the other nothing is left out at the seams."""
    _, log = filled(50)
    values = [value for _, value in decode_records(log.read_all().data)]
    assert values == [b"%d" % number for number in range(50)]


def test_an_answer_is_not_cut_short_at_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as fits is returned, wherever the parts of the index end."""
    monkeypatch.setattr(segment_cache, "_SEEK_ENTRIES", 3)
    disk, log = filled(50)
    whole = log.read_all().data
    for start in (0, 6, 30, 42):
        for size in (6, 30, 100, 200):
            again = LogDriver(disk.copy())
            assert len(again.fetch(start, size).buffer) > size - 8
            assert whole[start:].startswith(again.fetch(start, size).buffer)


@pytest.mark.usefixtures("small_parts")
def test_reading_from_anywhere_begins_there() -> None:
    """Every offset of a batch is found, in any order."""
    _, log = filled(30)
    starts = list(accumulate((5 + len(b"%d" % number) for number in range(30)), initial=0))
    for number in (29, 0, 17, 16, 18, 3, 29, 1):
        fetched = log.fetch(starts[number], 7)
        assert decode_records(fetched.buffer)[0] == (1, b"%d" % number)


@pytest.mark.usefixtures("small_parts")
@settings(deadline=None, max_examples=40)
@given(st.sets(st.integers(0, 29), max_size=12))
def test_void_entries_read_as_damage_wherever_the_seams_are(void: set[int]) -> None:
    """Damage in a closed segment is found around every seam, and what is between it is read."""
    disk, log = filled(30)
    log.close()
    (path,) = [each for each in disk.files() if each.suffix == ".batches"]
    raw = bytearray(disk.peek(path))
    for number in void:
        raw[HEADER_SIZE + number * 64 + 60] ^= 0xFF
    disk.poke(path, bytes(raw))
    found = LogDriver(disk).read_all()
    values = {value for data in found.pieces.values() for _, value in decode_records(data)}
    assert values == {b"%d" % number for number in range(30) if number not in void}
    assert bool(found.damage) == bool(void)


@given(st.sets(st.integers(0, 39), max_size=39), st.integers(0, 40 * BATCH - 1))
def test_a_search_agrees_with_reading_everything(void: set[int], position: int) -> None:
    """Halving finds the last valid entry at or before a position, whatever is void."""
    storage = MemoryStorage()
    segment = sidecar_of(storage, 40)
    raw = bytearray(storage.peek(segment.sidecar_path))
    for number in void:
        raw[HEADER_SIZE + number * 64 + 60] ^= 0xFF
    storage.poke(segment.sidecar_path, bytes(raw))
    search = SidecarSearch(storage, storage.open(segment.sidecar_path))
    valid = [number for number in range(40) if number not in void]
    expected = max((number for number in valid if number * BATCH <= position), default=0)
    assert search.entry_at(position) == expected
    since = search.first_since(position // BATCH)
    assert (since.batch_id - 1 if since else None) == next(
        (number for number in valid if number >= position // BATCH), None
    )
