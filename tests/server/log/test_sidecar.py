"""Sidecar entries: written fast, read carefully (AMB-14)."""

import os
from array import array
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.reading.fast_fetch import FastFetch
from lance_server.log.reading.reader import Fetched
from lance_server.log.reading.segment_cache import OpenFile
from lance_server.log.segments.segment_files import Segment, SegmentName
from lance_server.log.segments.sidecar import (
    DAMAGED,
    OPAQUE,
    VALID,
    BatchIndex,
    decode_entries,
    decode_header,
    encode_header,
)
from lance_server.log.segments.sidecar_scan import load_index
from lance_server.lwp.responses import fetch_form, fetch_response, room_for_headers
from lance_server.storage.pwritev import PwritevStorage
from lance_server.testing import MemoryStorage
from lance_spec._native import accelerator
from lance_spec.codec.ingest_runs import BatchMeta, encode_entries
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.errors import DecodeError
from lance_spec.messages.engine import SidecarEntry, SidecarHeader

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
metas = st.builds(BatchMeta, u32, u32, u64, u64, u64, u32, u32)


@settings(deadline=None)
@given(st.lists(metas, max_size=5), st.integers(0, 2**63), u64)
def test_entries_are_the_grammars_messages(
    batches: list[BatchMeta], start: int, durable_end: int
) -> None:
    """The fast path writes what the generated message would, checksum and all."""
    expected, place = [], start
    for length, count, batch_id, client_ns, server_ns, crc, flags in batches:
        entry = SidecarEntry(
            place, length, count, batch_id, client_ns, server_ns, durable_end, crc, flags
        ).with_crc()
        expected.append(entry)
        place += length
    raw = encode_entries(batches, start, durable_end)
    assert raw == b"".join(entry.encode() for entry in expected)
    assert list(decode_entries(raw)) == expected


@settings(deadline=None)
@given(metas, st.integers(0, 64 * 8 - 1))
def test_a_changed_bit_voids_an_entry(batch: BatchMeta, bit: int) -> None:
    """Any one of the 512."""
    raw = bytearray(encode_entries([batch], 0, 0))
    raw[bit // 8] ^= 1 << bit % 8
    assert list(decode_entries(raw)) == [None]


def test_zeros_are_no_entry() -> None:
    """A file that was only extended vouches for nothing."""
    assert list(decode_entries(bytes(64))) == [None]


def test_half_an_entry_is_ignored() -> None:
    """Only whole ones count."""
    raw = encode_entries([BatchMeta(1, 1, 1, 1, 1, 1, 0)] * 2, 0, 0)
    assert len(list(decode_entries(raw[:-1]))) == 1


def test_a_header_comes_back() -> None:
    """With everything that places the segment."""
    header = decode_header(encode_header(7, 1000, 50, 123))
    assert header == SidecarHeader(7, 1000, 50, 123).with_crc()


@pytest.mark.parametrize("place", range(64))
def test_a_changed_header_is_refused(place: int) -> None:
    """Any byte of it."""
    raw = bytearray(encode_header(7, 1000, 50, 123))
    raw[place] ^= 0x10
    with pytest.raises(DecodeError):
        decode_header(raw)


def test_an_entry_that_overlaps_the_one_before_is_void() -> None:
    """A checksum does not make nonsense true."""
    disk = MemoryStorage()
    batch = BatchMeta(10, 1, 1, 1, 1, 1, 0)
    entries = encode_entries([batch], 0, 0) + encode_entries([batch], 5, 0)
    index = index_of(disk, entries, bytes(20))
    assert list(zip(index.starts, index.ends, index.kinds, strict=True)) == [
        (0, 10, VALID),
        (10, 20, DAMAGED),
    ]


def index_of(disk: MemoryStorage, entries: bytes, data: bytes) -> BatchIndex:
    """Return the index that a closed segment with these entries and this data gets."""
    folder = Path("/topic")
    disk.make_dir(folder)
    segment = Segment(folder, SegmentName(0, 1, 1), 0, 0, size=len(data))
    fds = []
    for path, content in (
        (segment.data_path, data),
        (segment.sidecar_path, encode_header(0, 0, 0, 1) + entries),
    ):
        fds.append(disk.open(path, create=True))
        disk.write(fds[-1], content, 0)
    return load_index(disk, segment, *fds)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([VALID, OPAQUE, DAMAGED]))), st.data())
def test_a_run_has_one_kind_and_no_hole(parts: list[tuple[int, int]], data: st.DataObject) -> None:
    """Found without looking at each batch in turn, the same as by looking at each."""
    index, place, holes = BatchIndex(), 0, set()
    for number, (length, kind) in enumerate(parts):
        if data.draw(st.booleans()):
            place += 1
            holes.add(number)
        entry = SidecarEntry(place, length, 1, 1, 1, 1, 0, 0, 0)
        index.add(entry, kind=kind)
        place += length
    if not parts:
        return
    first = data.draw(st.integers(0, len(parts) - 1))
    limit = data.draw(st.integers(0, place))
    behind = first
    while (
        behind < len(parts)
        and index.ends[behind] <= limit
        and parts[behind][1] == parts[first][1]
        and (behind == first or behind not in holes)
    ):
        behind += 1
    assert index.run_end(first, limit) == behind


numbers = st.integers(0, 60)
batches = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 9), st.sampled_from([0, 0, 0, 1, 2]), st.booleans())
)


def columns_of(parts: list[tuple[int, int, int, bool]]) -> BatchIndex:
    """Return an index of batches given by the gap before each, its length, kind and mark."""
    index, end = BatchIndex(), 0
    for gap, length, kind, checked in parts:
        index._add(end + gap, end + gap + length, length * 3, 0, kind)
        index.checked[-1] = checked
        end += gap + length
    return index


@pytest.mark.skipif(accelerator is None, reason="the compiled loops were not built")
@given(batches, numbers, numbers)
def test_whole_batches_are_found_alike(
    parts: list[tuple[int, int, int, bool]], start: int, limit: int
) -> None:
    """The compiled search ends where the one in Python does, and counts the same records."""
    index = columns_of(parts)
    assert index.whole_batches(start, limit) == index._whole_in_python(start, limit)
    for begin in index.starts:
        assert index.whole_batches(begin, limit) == index._whole_in_python(begin, limit)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinaryIO]:
    """Return a file that can be read from memory alone."""
    with (tmp_path_factory.mktemp("stored") / "file").open("w+b") as file:
        os.write(file.fileno(), b"x")
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError as error:
            pytest.skip(f"the file system cannot read without waiting: {error.strerror}")
        yield file


@pytest.mark.skipif(accelerator is None, reason="the compiled loops were not built")
@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda each: each.name)
@given(parts=batches, base=st.sampled_from([0, 7, 2**40]), data=st.data())
def test_whole_batches_are_answered_alike(
    stored: BinaryIO,
    dialect: Dialect,
    parts: list[tuple[int, int, int, bool]],
    base: int,
    data: st.DataObject,
) -> None:
    """A lane gives the answer that is put together of what is found in Python, or none."""
    index, form = columns_of(parts), fetch_form(dialect)
    size = index.ends[-1] if parts else 0
    high = data.draw(st.sampled_from([size, *index.starts]), "high")
    content = os.urandom(size)[: data.draw(st.sampled_from([size, size, size // 2]), "kept")]
    os.ftruncate(stored.fileno(), 0)
    os.pwrite(stored.fileno(), content, 0)
    file = OpenFile(stored.fileno(), None, deque())
    segment = Segment(Path("/none"), SegmentName(0, 1, 1), base, 0, size=size)
    lane = FastFetch.over(PwritevStorage(), segment, file, index, high)
    assert lane is not None
    assert form is not None
    for start in {0, *index.starts, *index.ends, data.draw(numbers, "start")}:
        most = data.draw(numbers | st.sampled_from([size, 2**32 - 1]), "most")
        limit = min(start + most, size)
        whole = index._whole_in_python(start, limit) if limit <= high else None
        expected = None
        if whole is not None and whole[0] <= len(content):
            end, count = whole
            buffer = bytearray(room_for_headers(dialect)) + content[start:end]
            expected = fetch_response(dialect, Fetched(base + end, count, buffer), base + size)
        assert lane.answer(form, base + start, most) == expected


@pytest.mark.skipif(accelerator is None, reason="the compiled loops were not built")
def test_columns_of_unlike_length_are_refused() -> None:
    """The compiled search reads nothing after the end of a column."""
    numbers = [array("Q", [0, 5]), array("Q", [5, 9]), array("I", [1, 1]), array("I", [7, 7])]
    whole = [*numbers, bytearray(2), bytearray(b"\1\1")]
    assert accelerator.whole_batches(*whole, [], 0, 9) == (9, 2)
    for place in range(1, 6):
        with pytest.raises(ValueError, match="one length"):
            accelerator.whole_batches(
                *whole[:place], whole[place][:1], *whole[place + 1 :], [], 0, 9
            )
    for holes, start, error in (((), 0, TypeError), ([], -1, OverflowError), (["x"], 0, TypeError)):
        with pytest.raises(error):
            accelerator.whole_batches(*whole, holes, start, 9)
    assert accelerator.whole_batches(*whole, [2**40], 0, 9) == (9, 2)
