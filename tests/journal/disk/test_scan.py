"""Finding frames in a segment, and numbering them, as rules."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.journal._ring.shared_state import LagTracker
from lance_sdk.journal._slot.scan import follow, follow_in_python, last_nonzero, scan
from lance_sdk.journal._slot.sequence import assign_sequence, least_width
from lance_spec.checksum import CRC32C

HEADER = bytes(24)
SIZE = 2048

payloads = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=12)


def frame(payload: bytes) -> bytes:
    """A frame as SF client section 6.2 lays it out."""
    body = struct.pack("<I", len(payload)) + payload
    return struct.pack("<I", CRC32C(body)) + body


def segment(frames: list[bytes]) -> bytearray:
    """A segment of valid frames and zeros."""
    return bytearray((HEADER + b"".join(map(frame, frames))).ljust(SIZE, b"\0"))


@given(frames=payloads)
def test_valid_frames_are_one_run_with_nothing_behind(frames: list[bytes]) -> None:
    """A clean segment has no hole and no residue."""
    found = scan(memoryview(segment(frames)))
    end = 24 + sum(8 + len(each) for each in frames)
    assert [(run.offset, run.end, run.count) for run in found.runs] == [(24, end, len(frames))]
    assert (found.holes, found.end, found.residue) == ([], end, end)


@given(frames=payloads, data=st.data())
@settings(deadline=None)
def test_a_damaged_payload_costs_its_frame_only(frames: list[bytes], data: st.DataObject) -> None:
    """Whatever bytes a payload turns into, every other frame is found where it was."""
    content, number = segment(frames), data.draw(st.integers(0, len(frames) - 1))
    start = 24 + sum(8 + len(each) for each in frames[:number]) + 8
    changed = data.draw(st.binary(min_size=len(frames[number]), max_size=len(frames[number])))
    content[start : start + len(changed)] = changed
    found = scan(memoryview(content))
    lost = int(changed != frames[number])
    assert found.frames == len(frames) - lost
    assert lost == 0 or number == len(frames) - 1 or [h.frames for h in found.holes] == [1]


@pytest.mark.parametrize("count", [40, 20_000], ids=["nearly empty", "nearly full"])
@pytest.mark.parametrize("damaged", [(5, 6), (5, 20), (5, 9, 13, 17, 21, 25, 29)], ids=str)
def test_damage_in_a_large_segment_of_small_frames_costs_only_those(
    count: int, damaged: tuple[int, ...]
) -> None:
    """Their bytes look like lengths of megabytes nearly everywhere: no search is led astray."""
    body = b"QWP1\x01\x00\x01\x00%%\0\0\0\x01t\x01\x03\x01s\t\x01v\x05\0\x10\0\x01\x03s%02d"
    frames = [body % (each % 100) + struct.pack("<xxqq", each, each) for each in range(count)]
    width = len(frame(frames[0]))
    content = bytearray((HEADER + b"".join(map(frame, frames))).ljust(4 << 20, b"\0"))
    for number in damaged:
        content[24 + number * width + 30] ^= 1
    found = scan(memoryview(content))
    assert found.frames == count - len(damaged)
    assert found.unsearched == 0


def test_bytes_that_were_not_searched_to_the_end_count_as_frames() -> None:
    """A frame may be among them, so nobody says that nothing is lost."""
    content = bytearray(HEADER + frame(b"before")).ljust(1 << 18, b"\1")
    content[38:] = b"\x40\x80\x01\x00" * ((len(content) - 38) // 4) + b"\1\1"
    found = scan(memoryview(content))
    assert [hole.frames for hole in found.holes] == [None]
    assert assign_sequence(found, 0, None).lost[0][1:] == (1, (len(content) - 38) // 9)


@given(frames=payloads, data=st.data())
@settings(deadline=None, max_examples=200)
def test_whatever_is_overwritten_nothing_is_invented(
    frames: list[bytes], data: st.DataObject
) -> None:
    """Frames that are found are frames that were written, in their order."""
    content = segment(frames)
    start = data.draw(st.integers(24, SIZE - 1))
    noise = data.draw(st.binary(max_size=80))[: SIZE - start]
    content[start : start + len(noise)] = noise
    found = scan(memoryview(content))
    read = []
    for run in found.runs:
        offset = run.offset
        for _ in range(run.count):
            length = struct.unpack_from("<I", content, offset + 4)[0]
            read.append(bytes(content[offset + 8 : offset + 8 + length]))
            offset += 8 + length
        assert offset == run.end
    rest = iter(frames)
    assert all(each in rest for each in read)
    before = [
        each
        for number, each in enumerate(frames)
        if 24 + sum(8 + len(f) for f in frames[: number + 1]) <= start
    ]
    assert read[: len(before)] == before


@given(noise=st.binary(max_size=600))
@settings(deadline=None)
def test_noise_holds_no_frames(noise: bytes) -> None:
    """Arbitrary bytes are read to their end, and nothing is found."""
    found = scan(memoryview(HEADER + noise))
    assert found.frames == 0
    assert found.residue == 24 + len(noise.rstrip(b"\0"))


@given(frames=payloads, base=st.integers(0, 2**62), more=st.integers(0, 9), data=st.data())
@settings(deadline=None)
def test_numbers_never_overlap_and_fill_the_room(
    frames: list[bytes], base: int, more: int, data: st.DataObject
) -> None:
    """Between its base and the next segment's, each number is one frame's or lost."""
    content = segment(frames)
    start = data.draw(st.integers(24, SIZE - 1))
    content[start] ^= data.draw(st.integers(1, 255))
    found = scan(memoryview(content))
    following = base + least_width(found) + more
    assignment = assign_sequence(found, base, following)
    used = [n for run in assignment.runs for n in range(run.fsn, run.fsn + run.count)]
    used += [n for _, first, last in assignment.lost for n in range(first, last + 1)]
    assert sorted(used) == list(range(base, following))
    assert assignment.next_fsn == following


@given(frames=payloads, base=st.integers(0, 2**62), data=st.data())
@settings(deadline=None)
def test_numbers_stay_when_a_segment_follows(
    frames: list[bytes], base: int, data: st.DataObject
) -> None:
    """What the last segment's frames were numbered at one opening they are at each later one."""
    content = segment(frames)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(24, SIZE - 1))
        stop = data.draw(st.integers(start, SIZE))
        content[start:stop] = bytes(stop - start)
    found = scan(memoryview(content))
    stated = data.draw(st.integers(0, base + 2 * SIZE))
    first = assign_sequence(found, base, None, stated)
    later = assign_sequence(found, base, first.next_fsn + data.draw(st.integers(0, 99)))
    assert later.runs == first.runs
    assert later.lost[: len(found.holes)] == first.lost[: len(found.holes)]


def test_a_frame_that_reaches_beyond_the_segment_is_none() -> None:
    """A length up to the last byte is fine, one more is not."""
    exact = HEADER + frame(b"x" * 10)
    assert follow(memoryview(exact), 24).count == 1
    assert follow(memoryview(exact[:-1]), 24).count == 0


@given(size=st.integers(0, 200_000), place_of=st.integers(0, 200_000), start=st.integers(0, 999))
@settings(deadline=None)
def test_the_last_byte_is_found_wherever_it_is(size: int, place_of: int, start: int) -> None:
    """Also across the chunks that are compared at once."""
    content = bytearray(size)
    if place_of < size:
        content[place_of] = 1
    expected = place_of + 1 if start <= place_of < size else min(start, max(start, 0))
    assert last_nonzero(memoryview(content), start) == expected


@given(waits=st.lists(st.floats(0, 5), min_size=1, max_size=300), data=st.data())
@settings(deadline=None)
def test_an_age_is_never_too_young(waits: list[float], data: st.DataObject) -> None:
    """However many frames share a mark, the oldest is at least as old as it is said to be."""
    lag, now, appended = LagTracker(), 100.0, []
    for fsn, wait in enumerate(waits):
        now += wait
        appended.append(now)
        lag.appended(fsn, now)
    acked = data.draw(st.integers(-1, len(waits) - 2))
    lag.acked(acked)
    age = lag.of(acked + 1, now)
    assert age is not None
    assert now - appended[acked + 1] <= age <= now - appended[acked + 1] + 0.06


def test_marks_of_ages_are_bounded() -> None:
    """A long outage makes ages coarser, not memory larger."""
    lag = LagTracker()
    for fsn in range(20_000):
        lag.appended(fsn, float(fsn))
    assert len(lag._marks) <= 4097
    assert lag.of(0, 20_000.0) == 20_000.0


@given(
    frames=st.lists(st.binary(max_size=400), max_size=10),
    noise=st.binary(max_size=40),
    data=st.data(),
)
def test_compiled_or_not_the_same_frames_are_followed(
    frames: list[bytes], noise: bytes, data: st.DataObject
) -> None:
    """Whatever is cut off or flipped; without a compiler both are the same function."""
    content = bytearray(HEADER + b"".join(map(frame, frames)) + noise)
    if data.draw(st.booleans()):
        bit = data.draw(st.integers(0, len(content) * 8 - 1))
        content[bit // 8] ^= 1 << bit % 8
    view = memoryview(content)[: data.draw(st.integers(24, len(content)))]
    run = follow(view, 24)
    assert (run.count, run.end) == follow_in_python(view, 24)
