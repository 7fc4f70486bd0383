"""The fast path: one compiled call answers the usual Fetch of a closed segment, byte for byte."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.log_manager import LogOptions
from lance_server.log.metadata.topic_file import LogStart, Retention
from lance_server.log.reading import segment_cache
from lance_server.log.reading.fast_fetch import FastFetch
from lance_server.log.segments.sidecar import OPAQUE
from lance_server.lwp.responses import fetch_form
from lance_server.storage.pwritev import PageCacheStorage
from lance_server.testing import FaultyStorage, LogDriver, SessionPeer, told
from lance_server.testing.peer import the_error
from lance_spec._native import accelerator
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import ErrorCode
from lance_spec.records import encode_records

EXTENDED = replace(SPECIFIED, name="extended", fetch_header=24)
DIALECTS = [SPECIFIED, DEPLOYED]
OPTIONS = LogOptions(segment_size=150)
BATCHES = [[b"v" * 7 * size for size in range(batch % 4 + 1)] for batch in range(14)]
PIECES = [b"no records" if number == 5 else encode_records(b) for number, b in enumerate(BATCHES)]
EDGES = list(accumulate(map(len, PIECES), initial=0))
MIB = 1024 * 1024
FORM = fetch_form(SPECIFIED)


def reads_without_waiting() -> bool:
    """Whether files where tests write them can be read from memory alone."""
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
        file.flush()
        try:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
        except OSError:
            return False


needs_lanes = pytest.mark.skipif(
    accelerator is None or not reads_without_waiting(),
    reason="the compiled loops were not built, or the file system cannot read without waiting",
)


class OpenDisk(FaultyStorage):
    """A disk that counts what is read through it, and may be read itself."""

    def plain_fd(self, fd: int) -> int | None:
        """Return what the disk below says."""
        return self._inner.plain_fd(fd)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data directory of a server that was stopped, with several segments."""
    folder = tmp_path_factory.mktemp("written")
    log = LogDriver(PageCacheStorage(), folder, OPTIONS)
    for number, piece in enumerate(PIECES):
        flags = OPAQUE if number == 5 else 0
        count = len(BATCHES[number])
        log.append_raw(piece, record_count=count, batch_id=number + 1, flags=flags)
        log.scheduler.run_all()
    log.close()
    return folder


def peer_on(
    folder: Path, dialect: Dialect = SPECIFIED, kind: type[FaultyStorage] = OpenDisk
) -> SessionPeer:
    """Return a client of a server that goes on with a data directory."""
    return SessionPeer(dialect, disk=kind(PageCacheStorage()), data_dir=folder)


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """Return a data directory to be changed."""
    return shutil.copytree(written, tmp_path / "copy")


@pytest.fixture
def peer(folder: Path) -> Iterator[SessionPeer]:
    """Return a client of a server with closed segments, of which everything was read once."""
    peer = peer_on(folder)
    read_all(peer)
    yield peer
    peer.log.engine.release()


def read_all(peer: SessionPeer) -> None:
    """Read every batch by itself."""
    for start, piece in zip(EDGES, PIECES, strict=False):
        peer.exchange(peer.fetch(start, len(piece)))


def reads(peer: SessionPeer) -> int:
    """Return how often the disk was asked for bytes."""
    return peer.disk.calls.get("read_into", 0)


def warm(peer: SessionPeer, start: int = 0) -> FastFetch:
    """Have a lane around an offset remembered, and return it."""
    peer.exchange(peer.fetch(start, 10))
    peer.exchange(peer.fetch(start, len(PIECES[EDGES.index(start)])))
    lane = peer.session._fetching._fast_fetch()
    assert lane is not None
    return lane


# The same answers ------------------------------------------------------------------------------

starts = st.sampled_from(EDGES) | st.integers(0, EDGES[-1] + 3)
mosts = st.sampled_from([*map(len, PIECES), MIB]) | st.integers(0, 250)
turns = st.lists(st.lists(st.tuples(starts, mosts), min_size=1, max_size=4), max_size=8)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
@pytest.mark.parametrize("spoiled", [None, EDGES[3] + 2, EDGES[9] + 2])
@settings(max_examples=40)
@given(turns=turns, parts=st.sampled_from([1, 3, 128]))
def test_a_session_answers_with_and_without_lanes_alike(
    written: Path,
    dialect: Dialect,
    spoiled: int | None,
    turns: list[list[tuple[int, int]]],
    parts: int,
) -> None:
    """Every answer and every count is the same, also about damage and what is not a record."""
    with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_cache, "_SEEK_ENTRIES", parts)
        patch.setattr(segment_cache, "_SCAN_ENTRIES", parts + 2)
        peers = []
        for kind in OpenDisk, FaultyStorage:
            folder = shutil.copytree(written, Path(temporary, kind.__name__))
            if spoiled is not None:
                spoil(folder, spoiled)
            peers.append(peer_on(folder, dialect, kind))
        with_lanes, without = peers
        for turn in turns:
            frames = [with_lanes.fetch(start, most) for start, most in turn]
            for peer in peers:
                peer.send(b"".join(frames))
                peer.work()
            sent = True
            while sent:
                answers, same = (peer.session.data_to_send() for peer in peers)
                assert b"".join(answers) == b"".join(same)
                for peer in peers:
                    peer.session.advance(peer.now)
                    peer.work()
                sent = bool(answers)
            assert with_lanes.counters.snapshot() == without.counters.snapshot()
            counts = [sum(peer.counters.read_latency._counts) for peer in peers]
            assert counts[0] == counts[1]
        for peer in peers:
            peer.log.engine.release()


def place_of(folder: Path, offset: int) -> tuple[Path, int]:
    """Return the file that holds an offset, and where in it."""
    paths = [path for path in folder.rglob("*.lnc") if path.parent.name == "0"]
    paths.sort(key=lambda path: int(path.name.partition("_")[0]))
    for path in paths:
        size = path.stat().st_size
        if offset < size:
            break
        offset -= size
    return path, offset


def spoil(folder: Path, offset: int) -> None:
    """Change a byte after the server's back."""
    path, place = place_of(folder, offset)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)
        file.seek(place)
        file.write(bytes([byte[0] ^ 1]))


# The usual case --------------------------------------------------------------------------------


@needs_lanes
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda each: each.name)
def test_reading_on_in_a_closed_segment_takes_the_lane(folder: Path, dialect: Dialect) -> None:
    """The disk is not asked again but where the next segment begins."""
    peer = peer_on(folder, dialect)
    read_all(peer)
    before = reads(peer)
    for start, piece in zip(EDGES, PIECES, strict=False):
        if start != EDGES[5]:
            assert told(peer.exchange(peer.fetch(start, len(piece)))) == ["FETCH_RESPONSE"]
    segments = peer.log.engine.topic(0).partition.segments
    assert reads(peer) - before <= segments + 2 < len(PIECES) - 3
    peer.log.engine.release()


@needs_lanes
def test_an_answer_from_the_lane_needs_no_other_call(
    peer: SessionPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the partition nor the reader is asked."""
    warm(peer)
    monkeypatch.setattr(peer.log.engine, "fetch_at_once", None)
    answers = peer.exchange(*(peer.fetch(0, len(PIECES[0])) for _ in range(3)))
    assert told(answers) == ["FETCH_RESPONSE"] * 3


@needs_lanes
def test_a_segment_that_was_read_while_it_was_written_has_one_once_it_is_closed(
    peer: SessionPeer,
) -> None:
    """It stays open, with the index of the time before."""
    partition = peer.log.engine.topic(0).partition
    end = peer.log.store([b"new"], batch_id=99)
    wanted = peer.fetch(end, 8)
    first, _ = peer.exchange(wanted, wanted)
    assert peer.session._fetching._fast_fetch() is None
    partition.roll()
    peer.work()
    _, again = peer.exchange(wanted, wanted)
    lane = peer.session._fetching._fast_fetch()
    assert lane is not None
    assert lane is partition.fast_fetch_at(end)
    assert again.payload == first.payload == peer.exchange(wanted)[0].payload


@needs_lanes
def test_a_large_answer_is_whole(tmp_path: Path) -> None:
    """What is read while other threads run is what was stored."""
    log = LogDriver(PageCacheStorage(), tmp_path)
    log.store([os.urandom(700_000)])
    log.close()
    peer = peer_on(tmp_path)
    first, again = (peer.exchange(peer.fetch(0, MIB))[0] for _ in range(2))
    before = reads(peer)
    (lane,) = peer.exchange(peer.fetch(0, MIB))
    assert reads(peer) == before
    assert first.payload == again.payload == lane.payload
    peer.log.engine.release()


# What never comes from a lane ------------------------------------------------------------------


@needs_lanes
def test_the_segment_that_is_being_written_has_none(peer: SessionPeer) -> None:
    """Its index grows."""
    end = peer.log.store([b"new"], batch_id=99)
    peer.exchange(peer.fetch(end, 100))
    assert peer.log.engine.topic(0).partition.fast_fetch_at(end) is None
    assert peer.session._fetching._fast_fetch() is None


def test_the_extended_form_has_none() -> None:
    """It is written by the ordinary way."""
    assert fetch_form(EXTENDED) is None


@needs_lanes
def test_a_disk_that_wants_to_be_asked_is_asked(folder: Path) -> None:
    """Each answer is read through it."""
    peer = peer_on(folder, kind=FaultyStorage)
    read_all(peer)
    before = reads(peer)
    peer.exchange(*(peer.fetch(0, len(PIECES[0])) for _ in range(3)))
    assert reads(peer) == before + 3
    peer.log.engine.release()


@needs_lanes
def test_a_dropped_file_answers_nothing(peer: SessionPeer) -> None:
    """Not even while somebody still reads it."""
    lane = warm(peer)
    file = lane._file()
    assert lane.answer(FORM, 0, len(PIECES[0])) is not None
    peer.log.engine._cache.close()
    assert file is not None
    assert lane.answer(FORM, 0, len(PIECES[0])) is None


@needs_lanes
def test_an_idle_client_keeps_no_file_open(peer: SessionPeer) -> None:
    """What the cache gives up is closed at once, and its index goes with it."""
    gc.disable()
    try:
        file = warm(peer)._file()
        assert file is not None
        data = file.data
        del file
        peer.log.engine._cache.close()
        assert peer.session._fetching._fast_fetch() is None
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(data)
    finally:
        gc.enable()


@needs_lanes
def test_what_retention_dropped_is_refused(peer: SessionPeer) -> None:
    """The lane of a segment ends with it."""
    warm(peer)
    topic = peer.log.engine.topic(0)
    topic.file.retention = Retention(max_bytes=200)
    peer.log.engine.upkeep.visit(topic)
    peer.work()
    assert topic.partition.start_offset > 0
    error = the_error(peer.exchange(peer.fetch(0, len(PIECES[0]))))
    assert error.code == ErrorCode.INVALID_OFFSET


@needs_lanes
def test_below_the_floor_nothing_is_answered(peer: SessionPeer) -> None:
    """Wherever it stands."""
    warm(peer)
    peer.log.engine.topic(0).partition.log_start = LogStart(EDGES[1], 1)
    error = the_error(peer.exchange(peer.fetch(0, len(PIECES[0]))))
    assert error.code == ErrorCode.INVALID_OFFSET


@needs_lanes
def test_a_segment_that_was_replaced_has_none(peer: SessionPeer) -> None:
    """What took its place, as a merge does, has one of its own."""
    partition = peer.log.engine.topic(0).partition
    lane = warm(peer)
    file, before = lane._file(), lane.answer(FORM, 0, len(PIECES[0]))
    source = partition.segment_list[0]
    partition.replace([source], replace(source))
    assert file is not None
    assert lane.answer(FORM, 0, len(PIECES[0])) is None
    peer.exchange(peer.fetch(0, len(PIECES[0])))
    assert warm(peer).answer(FORM, 0, len(PIECES[0])) == before


@needs_lanes
def test_a_deleted_topic_answers_nothing(peer: SessionPeer) -> None:
    """From the moment on at which its deletion is begun."""
    peer.exchange(peer.create("one"))
    topic = peer.log.engine.topic_named("one")
    assert topic is not None
    partition = topic.partition
    peer.exchange(peer.ingest(1, [b"one"], topic_id=topic.id))
    partition.roll()
    peer.log.engine.flusher.mark_dirty(partition)
    peer.work()
    wanted = peer.fetch(0, 8, topic_id=topic.id)
    assert told(peer.exchange(wanted, wanted, wanted)) == ["FETCH_RESPONSE"] * 3
    assert peer.session._fetching._fast_fetch() is not None
    peer.log.engine.delete_topic(topic.id, text="gone")
    assert the_error(peer.exchange(wanted)).code == ErrorCode.TOPIC_DELETED


@needs_lanes
def test_a_lane_is_not_taken_for_another_topic(peer: SessionPeer) -> None:
    """The same offsets stand for other bytes there."""
    warm(peer)
    peer.exchange(peer.create("one"))
    topic = peer.log.engine.topic_named("one")
    assert topic is not None
    peer.exchange(peer.ingest(1, [b"other"], topic_id=topic.id))
    (answer,) = peer.exchange(peer.fetch(0, 100, topic_id=topic.id))
    assert answer.payload[16:] == encode_records([b"other"])


@needs_lanes
def test_a_batch_that_was_never_compared_is_compared_first(folder: Path) -> None:
    """Damage behind what was read is found, although there is a lane."""
    spoil(folder, EDGES[1] + 3)
    peer = peer_on(folder)
    lane = warm(peer)
    assert lane.answer(FORM, 0, len(PIECES[0])) is not None
    assert lane.answer(FORM, EDGES[1], len(PIECES[1])) is None
    error = the_error(peer.exchange(peer.fetch(EDGES[1], len(PIECES[1]))))
    assert error.code == ErrorCode.STORAGE_ERROR
    peer.log.engine.release()


@needs_lanes
def test_a_file_that_was_cut_shorter_is_damage(peer: SessionPeer, folder: Path) -> None:
    """It is found, and worded, as without a lane."""
    warm(peer, EDGES[1])
    path, place = place_of(folder, EDGES[1])
    os.truncate(path, place + 2)
    error = the_error(peer.exchange(peer.fetch(EDGES[1], len(PIECES[1]))))
    assert error.code == ErrorCode.STORAGE_ERROR
    assert "damaged" in error.message
