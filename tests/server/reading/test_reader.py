"""Fetch: where an answer begins and ends (AMB-06, AMB-18, AMB-19, AMB-27)."""

import resource
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.log_manager import LogOptions
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.segments.sidecar import OPAQUE
from lance_server.lwp.refusals import Refusal
from lance_server.storage.contract import WouldBlockError
from lance_server.testing import FaultyStorage, LogDriver, MemoryStorage
from lance_spec.records import encode_records, scan_records

batches = st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=6), min_size=1, max_size=6)


def filled(values: list[list[bytes]], segment_size: int, *, restart: bool) -> LogDriver:
    """Return a log of these batches, perhaps one that an earlier run wrote."""
    disk, options = MemoryStorage(), LogOptions(segment_size=segment_size)
    log = LogDriver(disk, options=options)
    for number, each in enumerate(values, start=1):
        log.store(each, batch_id=number)
    if restart:
        log.close()
        log = LogDriver(disk, options=options)
    return log


def boundaries(values: list[list[bytes]]) -> list[int]:
    """Return every offset at which a record begins, and the end."""
    sizes = (5 + len(value) for each in values for value in each)
    return list(accumulate(sizes, initial=0))


@settings(deadline=None)
@given(
    values=batches,
    segment_size=st.integers(1, 300),
    restart=st.booleans(),
    data=st.data(),
)
def test_every_answer_is_cut_as_agreed(
    values: list[list[bytes]], segment_size: int, restart: bool, data: st.DataObject
) -> None:
    """Never more than asked, on a record boundary when one record fits, counted from one."""
    log = filled(values, segment_size, restart=restart)
    stored = b"".join(encode_records(each) for each in values)
    edges = boundaries(values)
    start = data.draw(st.integers(0, len(stored) - 1), "start")
    max_bytes = data.draw(st.integers(1, len(stored) + 10), "max_bytes")
    fetched = log.fetch(start, max_bytes)
    end = fetched.next_offset
    assert fetched.buffer == stored[start:end]
    assert 0 < end - start <= max_bytes
    fits = [edge for edge in edges if start < edge <= start + max_bytes]
    if start in edges:
        assert fetched.record_count == scan_records(fetched.buffer).count
        assert end in fits or not fits
    else:
        assert fetched.record_count == 0
        assert end in fits or not fits


@settings(deadline=None)
@given(values=batches, segment_size=st.integers(1, 300), max_bytes=st.integers(1, 400))
def test_fetching_on_and_on_returns_every_byte_once(
    values: list[list[bytes]], segment_size: int, max_bytes: int
) -> None:
    """Whatever max_bytes is, following next_offset reads the whole log."""
    log = filled(values, segment_size, restart=False)
    stored = b"".join(encode_records(each) for each in values)
    found, place = b"", 0
    while place < len(stored):
        fetched = log.fetch(place, max_bytes)
        found += fetched.buffer
        place = fetched.next_offset
    assert found == stored


def test_the_end_reads_as_nothing() -> None:
    """At the end there is nothing, and the next offset is the same."""
    log = filled([[b"one"]], 100, restart=False)
    fetched = log.fetch(8)
    assert (bytes(fetched.buffer), fetched.next_offset, fetched.record_count) == (b"", 8, 0)


def test_asking_for_no_bytes_returns_none() -> None:
    """max_bytes 0 is answered empty and moves nothing."""
    log = filled([[b"one"]], 100, restart=False)
    assert log.fetch(0, 0).next_offset == 0


def test_a_record_larger_than_asked_for_is_cut() -> None:
    """Only such a record is cut, and it does not count as whole."""
    log = filled([[bytes(100)]], 1000, restart=False)
    fetched = log.fetch(0, 50)
    assert (fetched.next_offset, fetched.record_count) == (50, 0)


def test_the_place_of_a_cut_is_not_taken_for_a_boundary() -> None:
    """Going on where a record was cut still counts no records."""
    log = filled([[bytes(100), b"two"]], 1000, restart=False)
    cut = log.fetch(0, 50)
    rest = log.fetch(cut.next_offset, 100)
    assert (rest.next_offset, rest.record_count) == (113, 0)


def test_known_boundaries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many readers walk through a large batch."""
    monkeypatch.setattr("lance_server.log.reading.reader._KNOWN_BOUNDARIES", 4)
    log = filled([[b"x"] * 50], 1000, restart=False)
    for start in range(0, 290, 6):
        assert log.fetch(start, 6).record_count == 1
    assert len(log.engine.topic(0).partition._reader._boundaries) <= 4


def test_a_file_stays_open_while_it_is_read() -> None:
    """Also when its topic is deleted meanwhile; it is closed at the next turn."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"one"])
    (segment,) = log.engine.topic(0).partition._segments
    cache = log.engine._cache
    before = len(disk._open)
    file, _ = cache.open(segment, 0, 1, cached_only=False)
    cache.forget([segment])
    assert disk.size(file.data) == 8
    del file
    cache.forget([])
    assert len(disk._open) == before


def test_room_for_the_headers_is_left_free() -> None:
    """The data is read to where it is sent from; what stands before it may be anything."""
    log = filled([[b"one"]], 100, restart=False)
    topic = log.engine.topic(0)
    fetched = log.engine.fetch(topic, Range(start=0, max_bytes=100, room=60))
    assert isinstance(fetched, Fetched)
    assert fetched.buffer[60:] == encode_records([b"one"])


@pytest.mark.parametrize("restart", [False, True])
def test_opaque_batches_never_mix_with_valid_ones(restart: bool) -> None:
    """One answer holds either records or opaque bytes (AMB-27)."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"one"], batch_id=1)
    for number in (2, 3):
        log.append_raw(b"opaque", record_count=0, batch_id=number, flags=OPAQUE)
    log.scheduler.run_all()
    log.store([b"two"], batch_id=4)
    if restart:
        log.close()
        log = LogDriver(disk)
    pieces, place = [], 0
    while place < log.end():
        fetched = log.fetch(place, opaque=True)
        pieces.append((bytes(fetched.buffer), fetched.record_count))
        place = fetched.next_offset
    one, two = encode_records([b"one"]), encode_records([b"two"])
    assert pieces == [(one, 1), (b"opaqueopaque", 0), (two, 1)]


def test_opaque_batches_are_an_error_for_strict_clients() -> None:
    """The error leads behind the whole run of them (AMB-27)."""
    log = LogDriver(MemoryStorage())
    for number in (1, 2):
        log.append_raw(b"opaque", record_count=0, batch_id=number, flags=OPAQUE)
    log.scheduler.run_all()
    with pytest.raises(Refusal) as refused:
        log.fetch(3)
    assert refused.value.details == {"opaque": True, "next_offset": 12}


def test_cold_data_is_read_on_a_worker_thread() -> None:
    """The event loop never waits for the disk."""
    disk = FaultyStorage(MemoryStorage())
    log = LogDriver(disk)
    log.store([b"one"])
    disk.cold = True
    topic = log.engine.topic(0)
    with pytest.raises(WouldBlockError):
        topic.partition.read_cached(Range(start=0, max_bytes=100))
    assert log.fetch(0).buffer == encode_records([b"one"])


def test_a_batch_is_checked_when_it_is_first_read_after_a_start() -> None:
    """What an earlier run wrote is compared to its checksum, even for a part of it."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"one", b"two"])
    log.close()
    (path,) = [path for path in disk.files() if path.suffix == ".lnc"]
    content = bytearray(disk.peek(path))
    content[-1] ^= 1
    disk.poke(path, bytes(content))
    with pytest.raises(Refusal, match="damaged"):
        LogDriver(disk).fetch(0, 8)


def test_a_segment_that_shrinks_under_the_server_is_damage() -> None:
    """A file that is cut while it is served is an error, not a crash and not silence."""
    disk = MemoryStorage()
    log = LogDriver(disk)
    log.store([b"one"])
    log.fetch(0)
    (path,) = [path for path in disk.files() if path.suffix == ".lnc"]
    disk.poke(path, b"")
    with pytest.raises(Refusal, match="damaged"):
        log.fetch(0)


def test_open_segments_are_bounded() -> None:
    """However many segments are read, only so many stay open."""
    disk, options = MemoryStorage(), LogOptions(segment_size=1, open_segments=3)
    log = LogDriver(disk, options=options)
    for number in range(1, 11):
        log.store([b"each its own segment"], batch_id=number)
    log.read_all()
    assert len(disk._open) <= 3 + 2


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [(1024, 256), (20_000, 5000), (100, 64), (1 << 20, 16_384), (resource.RLIM_INFINITY, 16_384)],
)
def test_open_segments_follow_the_limit_of_descriptors(
    limit: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of what the process may have, within bounds."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert LogOptions().open_segments == allowed
