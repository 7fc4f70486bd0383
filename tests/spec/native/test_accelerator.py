"""The compiled loops do what the Python ones do, only faster."""

import dataclasses
import os
import subprocess
import sys
from array import array
from itertools import pairwise
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec import frames, records
from lance_spec._native import accelerator
from lance_spec.checksum import CRC32C
from lance_spec.codec import ingest_runs
from lance_spec.codec.ingest_runs import BatchMeta, BatchTable
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Flag
from lance_spec.frames import FrameFault, FrameSplitter
from lance_spec.records import encode_records
from lance_spec.strategies.frames import frames as frame_bytes

pytestmark = pytest.mark.skipif(
    accelerator is None, reason="the compiled loops were not built (no C compiler)"
)

FIELDS = [field.name for field in dataclasses.fields(frames.Frame)]
chains = st.lists(st.binary(max_size=40), max_size=12).map(encode_records)
damaged = st.one_of(
    chains,
    st.binary(max_size=200),
    st.tuples(chains, st.binary(max_size=20)).map(b"".join),
    st.tuples(chains, st.integers(0, 300)).map(lambda pair: pair[0][: pair[1]]),
)


@given(damaged)
def test_records_are_walked_alike(data: bytes) -> None:
    """Compiled and interpreted walks count the same records and end at the same byte."""
    assert accelerator.scan_records(data) == records._walk_in_python(data)


@given(damaged)
def test_records_are_taken_alike(data: bytes) -> None:
    """Compiled and interpreted decoding give the same records and end at the same byte."""
    assert accelerator.decode_records(data) == records._take_in_python(data)


@given(damaged)
def test_bounds_are_found_alike(data: bytes) -> None:
    """The same places, and the same end; as many of them as records are counted."""
    bounds, end = accelerator.record_bounds(data)
    assert (bounds, end) == records._bounds_in_python(data)
    assert (len(bounds) // 8 - 1, end) == accelerator.scan_records(data)


@given(damaged)
def test_values_are_moved_alike(data: bytes) -> None:
    """The same types, places and values; nothing moves where a record is not whole."""
    fast, slow = bytearray(data), bytearray(data)
    found = accelerator.part_records(fast, memoryview(fast))
    assert (found, fast) == (records._part_in_python(slow, memoryview(slow)), slow)
    if found is None:
        assert fast == data


@given(damaged)
def test_values_are_moved_elsewhere_alike(data: bytes) -> None:
    """The data stays as it is, and so do the bytes after the values."""
    fast, slow, here = bytearray(len(data) + 3), bytearray(len(data) + 3), bytearray(data)
    found = accelerator.part_records(data, fast)
    assert (found, fast) == (records._part_in_python(data, slow), slow)
    if found is not None:
        accelerator.part_records(here, here)
        size = array("i", found[1])[-1]
        assert fast[:size] == here[:size]


def test_values_are_not_moved_where_there_is_no_room() -> None:
    """Both refuse a target that is smaller than the data."""
    data = encode_records([b"x"])
    for part in accelerator.part_records, records._part_in_python:
        with pytest.raises(ValueError, match="smaller"):
            part(data, bytearray(len(data) - 1))


def test_values_are_only_moved_where_they_can_be_written() -> None:
    """Both refuse bytes, and a view that only reads."""
    for part in accelerator.part_records, records._part_in_python:
        for fixed in b"", encode_records([b"x"]), memoryview(bytearray(5)).toreadonly():
            with pytest.raises(BufferError):
                part(fixed, fixed)


@pytest.mark.parametrize("length", [16 * 1024 * 1024, 16 * 1024 * 1024 + 1, 2**32 - 1])
def test_the_limit_of_a_value_is_the_same(length: int) -> None:
    """A length over 16 MiB ends the walk, whatever follows."""
    data = memoryview(pack("<BL", 1, length) + bytes(16 * 1024 * 1024 + 8))
    assert accelerator.scan_records(data) == records._walk_in_python(data)


def _splits(
    dialect: Dialect, pieces: list[bytes], *, fast: bool
) -> tuple[list[tuple[object, ...]], FrameFault | None, int]:
    splitter = FrameSplitter((dialect,))
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(frames, "accelerator", None)
        found = [
            tuple(f.payload.tobytes() if name == "payload" else getattr(f, name) for name in FIELDS)
            for piece in pieces
            for f in splitter.receive_data(piece)
        ]
    return found, splitter.fault, splitter.pending


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda each: each.name)
@settings(deadline=None)
@given(data=st.data())
def test_streams_are_split_alike(dialect: Dialect, data: st.DataObject) -> None:
    """The same frames, the same fault and the same rest come out of any stream in any portions."""
    stream = b"".join(data.draw(st.lists(frame_bytes(dialect), max_size=6)))
    if stream and data.draw(st.booleans()):
        flipped = bytearray(stream)
        flipped[data.draw(st.integers(0, len(stream) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        stream = bytes(flipped)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert _splits(dialect, pieces, fast=True) == _splits(dialect, pieces, fast=False)


def test_frames_of_every_flags_byte_are_split_alike() -> None:
    """What the flags say is decided the same way, also where no kind or several are set."""
    for dialect in (SPECIFIED, DEPLOYED):
        one = frames.encode_header(dialect, 1 << 5)
        for flags in range(256):
            stream = one + frames.encode_header(dialect, flags, payload=b"abc") + b"abc"
            assert _splits(dialect, [one, stream], fast=True) == _splits(
                dialect, [one, stream], fast=False
            )


@given(
    st.sampled_from([SPECIFIED, DEPLOYED]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.one_of(st.binary(max_size=100), st.binary(min_size=4090, max_size=4100)),
)
def test_frames_are_sealed_alike(
    dialect: Dialect, command: int, topic_id: int, payload: bytes
) -> None:
    """The header that is written before a payload is the one that is encoded for it."""
    sealed = bytearray(b"x" * 44 + payload)
    frames.seal_control(dialect, command, sealed, topic_id)
    header = frames.encode_header(
        dialect, Flag.CONTROL, batch_id=command, topic_id=topic_id, payload=payload
    )
    assert sealed == header + payload


def test_freed_memory_is_kept_where_the_library_can_be_told() -> None:
    """Asking twice does no harm; sizes that are no numbers are refused."""
    assert accelerator.keep_freed(64 << 20, 32 << 20) == accelerator.keep_freed(64 << 20, 32 << 20)
    with pytest.raises(OverflowError):
        accelerator.keep_freed(1 << 40, 1)


def test_only_what_is_kept_on_purpose_is_given_back() -> None:
    """A program that keeps nothing is left as it is; it may be asked any number of times."""
    asked = "from lance_spec.codec.buffers import give_back, keep_freed"
    code = f"{asked}; print(give_back(), keep_freed(1 << 20, 1 << 20), give_back(), give_back())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, kept, *after = said.stdout.split()
    assert (before, set(after)) == ("False", {kept})


def _ring(payloads: list[bytes]) -> bytes:
    bodies = [pack("<L", len(payload)) + payload for payload in payloads]
    return b"".join(pack("<L", CRC32C(body)) + body for body in bodies)


def _follow(data: bytes, offset: int) -> tuple[int, int]:
    count = 0
    while offset + 8 <= len(data):
        end = offset + 8 + int.from_bytes(data[offset + 4 : offset + 8], "little")
        stated = int.from_bytes(data[offset : offset + 4], "little")
        if end > len(data) or CRC32C(data[offset + 4 : end]) != stated:
            break
        count, offset = count + 1, end
    return count, offset


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=60) | st.integers(4000, 5000).map(bytes), max_size=9).map(_ring),
    st.data(),
)
def test_ring_frames_are_followed_alike(ring: bytes, data: st.DataObject) -> None:
    """Frames of any size are counted up to the first that its checksum does not fit."""
    damaged_ring = bytearray(ring)
    if ring and data.draw(st.booleans()):
        damaged_ring[data.draw(st.integers(0, len(ring) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    whole = bytes(damaged_ring[: data.draw(st.integers(0, len(ring)) | st.just(len(ring)))])
    assert accelerator.follow_ring(whole, 0, CRC32C.compute) == _follow(whole, 0)


@pytest.mark.parametrize("offset", [-1, 9])
def test_an_offset_outside_the_ring_is_refused(offset: int) -> None:
    """An offset that is not within the data is an error, not a read beside it."""
    with pytest.raises(ValueError, match="outside the data"):
        accelerator.follow_ring(b"12345678", offset, CRC32C.compute)


def test_a_failing_checksum_function_is_reported() -> None:
    """An exception of the checksum function comes out as it is."""
    with pytest.raises(ZeroDivisionError):
        accelerator.follow_ring(_ring([bytes(5000)]), 0, lambda _: 1 // 0)


def test_a_class_without_the_fields_is_refused() -> None:
    """Frames are only built of a class whose fields are where the compiled loops fill them."""

    class Other:
        kind = None

    with pytest.raises(TypeError, match="not derived from FrameFields"):
        accelerator.split_frames(
            memoryview(b""), 0, {}, 9, CRC32C.compute, True, memoryview(b""), Other, []
        )


@pytest.mark.parametrize(
    ("environment", "answer"), [({}, "False"), ({"LANCE_PURE_PYTHON": "1"}, "True")]
)
def test_the_compiled_loops_can_be_left_out(environment: dict[str, str], answer: str) -> None:
    """``LANCE_PURE_PYTHON`` makes everything run in Python."""
    code = "from lance_spec._native import accelerator; print(accelerator is None)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == answer


def _frames(draws: list[tuple[int, int, int, int, list[bytes], int, int]]) -> list[frames.Frame]:
    """Return frames as the splitter would, sorted so that ids rise now and then."""
    made = []
    for batch_id, stamp, topic_id, more, values, flags, cut in draws:
        payload = encode_records(values)[: 1000 - cut]
        kind = frames.FrameKind.INGEST if flags < 2**6 else frames.FrameKind.CONTROL
        view = memoryview(payload)
        crc = CRC32C(payload)
        count = len(values) + more
        made.append(frames.Frame(kind, flags, batch_id, stamp, count, topic_id, view, crc))
    return sorted(made, key=lambda frame: frame.batch_id)


often = st.sampled_from
some_frames = st.lists(
    st.tuples(
        st.integers(1, 40) | st.integers(0, 2**64 - 1) | st.integers(7 << 40, (7 << 40) + 40),
        often([5, 5, 5, 5, 2**64 - 1, 0]),
        often([0] * 6 + [2**32 - 1]),
        often([0] * 6 + [1]),
        st.lists(st.binary(max_size=9), min_size=0, max_size=3),
        often([4] * 8 + [4 | 1, 4 | 2, 64]),
        often([0] * 8 + [990, 995]),
    ),
    min_size=2,
    max_size=12,
).map(_frames)


@settings(deadline=None)
@given(some_frames, st.integers(0, 12), st.booleans())
def test_runs_are_counted_alike(run: list[frames.Frame], most: int, validates: bool) -> None:
    """The same frames go with the one before them, whatever is odd about any of them."""
    places = [
        (run, first, most, (topic_id, run[first - 1].batch_id))
        for first in range(1, len(run))
        for topic_id in (run[first - 1].topic_id, ingest_runs.ANY_TOPIC)
    ]
    assert [ingest_runs.count_run(*place, validates=validates) for place in places] == [
        ingest_runs._count_in_python(*place, validates=validates) for place in places
    ]


@settings(deadline=None)
@given(some_frames, st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_runs_are_gathered_alike(run: list[frames.Frame], now_ns: int, flags: int) -> None:
    """The same bytes and descriptions come of the same frames."""
    found = []
    for gather in ingest_runs.gather_run, ingest_runs._gather_in_python:
        data, table = bytearray(b"before"), BatchTable.of([BatchMeta(1, 2, 3, 4, 5, 6, 7)])
        gather(run, now_ns, flags, data, table)
        found.append((data, table.rows))
    assert found[0] == found[1]


u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


@given(st.lists(st.builds(BatchMeta, u32, u32, u64, u64, u64, u32, u32)), u64, u64)
def test_entries_are_written_alike(metas: list[BatchMeta], start: int, end: int) -> None:
    """Sidecar entries are the same to the last bit."""
    compiled, slow = BatchTable.of(metas).rows, BatchTable.of(metas).rows
    accelerator.seal_entries(compiled, start % 2**63, end, CRC32C.compute)
    ingest_runs._seal_in_python(slow, start % 2**63, end, CRC32C.compute)
    assert compiled == slow


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda each: each.name)
@given(st.lists(u64))
def test_acks_are_joined_alike(dialect: Dialect, ids: list[int]) -> None:
    """Several at once are what each is by itself."""
    joined = b"".join(frames.encode_ack(dialect, each) for each in ids)
    assert frames.encode_acks(dialect, ids) == joined


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("count_run", ([1, 2], 1, 5, 0, 1, None, 0, True)),
        ("count_run", ([frames.Frame.__new__(frames.Frame)] * 2, 1, 5, 0, 1, None, 0, True)),
        ("count_run", ([], 1, 5, 0, 1, None, 0, True)),
        ("gather_run", ([object()], 1, 0, bytearray(), bytearray())),
        ("gather_run", ([], 1, 2**32, bytearray(), bytearray())),
        ("gather_run", ([], 1, 0, *[bytearray()] * 2)),
        ("write_each", ([None],)),
        ("write_each", ([(0, b"x")],)),
        ("write_each", ([(0, "text", 0)],)),
        ("write_each", ([(2**40, b"x", 0)],)),
        ("write_each", ([(0, b"x", -1)],)),
        ("seal_entries", (bytes(64), 0, 0, None)),
        ("seal_entries", (bytearray(64), 2**64, 0, None)),
    ],
)
def test_nonsense_is_refused(name: str, arguments: tuple[object, ...]) -> None:
    """What is no frame, id or description is an error, not a crash."""
    with pytest.raises((TypeError, ValueError, OverflowError)):
        getattr(accelerator, name)(*arguments)


def test_a_released_payload_is_refused() -> None:
    """Bytes that are gone are not read, and nothing is appended."""
    (frame,) = _frames([(1, 5, 0, 0, [b"x"], 4, 0)])
    frame.payload.release()
    data, table = bytearray(b"before"), BatchTable()
    with pytest.raises(ValueError, match="released"):
        ingest_runs.gather_run([frame], 1, 0, data, table)
    assert (data, len(table)) == (b"before", 0)


def test_no_loop_writes_outside_its_buffers() -> None:
    """Everything above goes well under the allocator that notices, too."""
    files = [__file__, str(Path(__file__).with_name("test_answering.py"))]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        [*command, "-k", "not outside_its_buffers"],
        env={**os.environ, "PYTHONMALLOC": "debug"},
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_buffer_to_be_filled_has_its_size() -> None:
    """Its bytes may be any; everything else is as where they are zeros."""
    for make in accelerator.unfilled, bytearray:
        assert (type(make(70_000)), len(make(70_000)), make(0)) == (bytearray, 70_000, b"")
        with pytest.raises(ValueError, match="negative count"):
            make(-1)
