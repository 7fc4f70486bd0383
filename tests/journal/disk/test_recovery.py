"""Opening slots that were damaged or cut short."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from lance_sdk.journal import (
    Durability,
    Journal,
    JournalConfig,
    Problem,
    SlotHasGap,
    SlotKind,
    SlotUnreadable,
    inspect,
)
from lance_sdk.journal.testing import ForgetfulDisk
from lance_spec.checksum import CRC32C

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(
    kind=SlotKind.QWP,
    segment_bytes=160,
    max_total_bytes=4096,
    background=False,
    durability=Durability.FLUSH,
)
FRAMES = {fsn: b"frame %02d" % fsn + b"." * (fsn % 4) for fsn in range(17)}
"""Seven frames fit in a segment of 160 bytes."""
MANIFEST_FLAG = 8 * 5
"""The bit of a header that may be 0 or 1."""


def segment(number: int) -> Path:
    """Path of a segment of ours, counted from 0."""
    return SLOT / f"sf-{number + 1:016x}.sfa"


def slot_of_three() -> ForgetfulDisk:
    """A slot with two full segments and a third that is partly filled, closed in order."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        for fsn, payload in FRAMES.items():
            assert journal.append(payload) == fsn
    return disk


def open_slot(disk: ForgetfulDisk) -> tuple[dict[int, bytes], tuple[Problem, ...]]:
    """Recover a slot: what it delivers, and what was wrong."""
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        return dict(journal.read_from(journal.acked_fsn + 1)), journal.problems


def places() -> dict[tuple[int, int], int]:
    """The number of the frame that each byte of each segment belongs to."""
    found: dict[tuple[int, int], int] = {}
    disk = slot_of_three()
    fsn = 0
    for number in range(3):
        content, offset = disk.content(segment(number)), 24
        while struct.unpack_from("<I", content, offset + 4)[0]:
            end = offset + 8 + struct.unpack_from("<I", content, offset + 4)[0]
            found |= {(number, byte): fsn for byte in range(offset, end)}
            offset, fsn = end, fsn + 1
    return found


def test_the_slot_has_the_shape_that_these_tests_need() -> None:
    """Three segments, all frames, nothing wrong."""
    disk = slot_of_three()
    assert [name for name in disk.names(SLOT) if name.endswith(".sfa")] == [
        segment(number).name for number in range(3)
    ]
    assert open_slot(disk) == (FRAMES, ())


@pytest.mark.parametrize("number", range(3))
def test_any_single_bit_may_flip(number: int) -> None:
    """One flipped bit costs at most the frame it is in, and is told with file and offset.

    A header that speaks of another format is refused, and nothing is changed.
    """
    original, of_byte = slot_of_three(), places()
    for bit in range(8 * 160):
        byte = bit // 8
        disk = original.killed()
        content = bytearray(disk.content(segment(number)))
        content[byte] ^= 1 << bit % 8
        disk.put(segment(number), bytes(content))
        if 4 <= byte < 8 and bit != MANIFEST_FLAG:
            with pytest.raises(SlotUnreadable, match=f"{segment(number)} at byte {min(byte, 6)}"):
                Journal.open(SLOT, CONFIG, files=disk)
            assert disk.content(segment(number)) == bytes(content)
            continue
        frames, problems = open_slot(disk)
        assert frames.items() <= FRAMES.items()
        lost = {of_byte[number, byte]} if (number, byte) in of_byte else set()
        assert set(FRAMES) - set(frames) == lost, f"bit {bit}"
        if bit == MANIFEST_FLAG or 16 <= byte < 24:
            assert not problems
        else:
            assert problems
            assert all(each.path == segment(number) for each in problems)
            assert all(each.offset <= byte for each in problems)


@pytest.mark.parametrize("number", range(3))
def test_a_segment_may_be_cut_at_any_byte(number: int) -> None:
    """Frames before the cut are delivered, those of other segments too, and the loss is told."""
    original, of_byte = slot_of_three(), places()
    for size in range(160):
        disk = original.killed()
        disk.put(segment(number), disk.content(segment(number))[:size])
        frames, problems = open_slot(disk)
        gone = {fsn for (of, byte), fsn in of_byte.items() if of == number and byte >= size}
        whole = {fsn for (of, _), fsn in of_byte.items() if of == number} if size < 24 else set()
        assert frames == {fsn: FRAMES[fsn] for fsn in FRAMES if fsn not in gone | whole}
        cut_something = bool(gone | whole) and (size, number) not in whole_frames(of_byte)
        assert not cut_something or problems, f"cut at {size}"
        assert all(each.path.parent == SLOT for each in problems)


def whole_frames(of_byte: dict[tuple[int, int], int]) -> set[tuple[int, int]]:
    """Cuts of the last segment that leave whole frames: nothing says that there were more."""
    ends = {
        byte for of, byte in of_byte if of == 2 and of_byte.get((2, byte - 1)) != of_byte[2, byte]
    }
    return {(size, 2) for size in ends}


@pytest.mark.parametrize("name", ["sf-manifest.bin", ".next-fsn", ".slot-state"])
def test_any_single_bit_of_a_side_file_may_flip(name: str) -> None:
    """Nothing is lost; damage to a record is told."""
    disk = slot_of_three()
    content = disk.content(SLOT / name)
    for start in (0, 4096):
        for bit in range(8 * start, 8 * (start + 64)):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            found = disk.killed()
            found.put(SLOT / name, bytes(damaged))
            frames, problems = open_slot(found)
            assert frames == FRAMES
            assert [each.path.name for each in problems] == [name]
            assert problems[0].kind == "damaged_side_file"


def test_a_bit_of_the_watermark_that_makes_it_nonsense_is_told() -> None:
    """Letters, zeros and numbers beyond the last frame; nothing is lost."""
    disk = slot_of_three()
    content = disk.content(SLOT / ".ack-watermark")
    for bit in range(8 * 16):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        found = disk.killed()
        found.put(SLOT / ".ack-watermark", bytes(damaged))
        frames, problems = open_slot(found)
        assert frames == FRAMES
        assert [each.path.name for each in problems] == [".ack-watermark"]


@pytest.mark.parametrize("name", ["sf-manifest.bin", ".ack-watermark", ".next-fsn", ".slot-state"])
def test_a_side_file_may_be_missing_or_have_any_size(name: str) -> None:
    """Without them everything that is not acknowledged is delivered."""
    original = slot_of_three()
    for size in (None, 0, 1, 15, 17, 64, 127, 129, 4096, 8191, 8193):
        disk = original.killed()
        if size is None:
            disk.remove(SLOT / name)
        else:
            disk.put(SLOT / name, disk.content(SLOT / name)[:size].ljust(size, b"\0"))
        assert open_slot(disk)[0] == FRAMES
        assert open_slot(disk) == (FRAMES, ())


def test_a_lost_frame_is_named_with_its_number() -> None:
    """The text can be acted on: file, offset, frame."""
    disk = slot_of_three()
    content = bytearray(disk.content(segment(1)))
    content[40] ^= 1
    disk.put(segment(1), bytes(content))
    problems = open_slot(disk)[1]
    fsn = places()[1, 40]
    assert problems[0].lost == (fsn, fsn)
    assert str(problems[0]) == (
        f"{segment(1)} at byte 24: the frame does not match its checksum; "
        f"frame {fsn} cannot be delivered"
    )


def test_damage_to_an_acknowledged_frame_is_no_problem() -> None:
    """What the server has need not be read again."""
    disk = slot_of_three()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        list(journal.read_from(0))
        journal.ack(2)
    content = bytearray(disk.content(segment(0)))
    content[24 + 20] ^= 1
    disk.put(segment(0), bytes(content))
    frames, problems = open_slot(disk)
    assert set(frames) == set(range(3, 17))
    assert problems == ()


def test_a_damaged_segment_is_kept_when_it_is_given_up() -> None:
    """Once its other frames are acknowledged the file is renamed, not deleted."""
    disk = slot_of_three()
    content = bytearray(disk.content(segment(0)))
    content[40] ^= 1
    disk.put(segment(0), bytes(content))
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        list(journal.read_from(0))
        journal.ack(16)
        journal.maintain()
    assert disk.content(SLOT / f"{segment(0).name}.corrupt") == bytes(content)
    assert segment(1).name not in disk.names(SLOT)


def test_the_tail_of_a_killed_append_is_copied_and_cleared() -> None:
    """SF-20: left in place, it could be read as a frame after a shorter append."""
    disk = slot_of_three()
    content = bytearray(disk.content(segment(2)))
    end = content.rstrip(b"\0").__len__()
    content[end : end + 20] = struct.pack("<II", 0, 30) + b"half a frame"
    disk.put(segment(2), bytes(content))
    frames, problems = open_slot(disk)
    assert frames == FRAMES
    assert [each.kind for each in problems] == ["torn_tail"]
    assert problems[0].offset == end
    copy = SLOT / f"{segment(2).name}.{end}.corrupt"
    assert disk.content(copy) == bytes(content[end : end + 20])
    assert disk.content(segment(2))[end:] == bytes(160 - end)


def test_copies_of_damage_do_not_grow_without_bound() -> None:
    """Beyond quarantine_bytes tails are cleared without a copy, and the problem says so."""
    config = JournalConfig(
        segment_bytes=160,
        max_total_bytes=4096,
        background=False,
        kind=SlotKind.QWP,
        quarantine_bytes=10,
    )
    disk = slot_of_three()
    content = bytearray(disk.content(segment(2)))
    content[-20:] = b"x" * 20
    disk.put(segment(2), bytes(content))
    with Journal.open(SLOT, config, files=disk) as journal:
        assert "without a copy: quarantine_bytes" in journal.problems[0].text
    assert not any(name.endswith(".corrupt") for name in disk.names(SLOT))


def test_numbering_goes_on_behind_the_last_frame() -> None:
    """A recovered slot gives the next number to the next frame."""
    disk = slot_of_three()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert journal.append(b"next") == 17
    assert open_slot(disk)[0] == FRAMES | {17: b"next"}


def test_numbering_goes_on_in_a_slot_that_was_drained() -> None:
    """SF-08: other clients start at 0 again, this one does not."""
    disk = slot_of_three()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        list(journal.read_from(0))
        journal.ack(16)
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert (journal.next_fsn, journal.acked_fsn) == (17, 16)
        assert list(journal.read_from(17)) == []


def test_a_frame_that_looks_like_frames_is_one_frame() -> None:
    """Bytes of a segment inside a payload are not taken for frames, with its length damaged."""
    inner = b"".join(
        struct.pack("<II", CRC32C(b"\4\0\0\0" + each), 4) + each for each in (b"fake", b"null")
    )
    disk = ForgetfulDisk()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        for payload in (b"before", inner, b"behind"):
            journal.append(payload)
    for bit in range(32):
        found = disk.killed()
        content = bytearray(found.content(segment(0)))
        content[24 + 14 + 4 + bit // 8] ^= 1 << bit % 8
        found.put(segment(0), bytes(content))
        assert open_slot(found)[0] == {0: b"before", 2: b"behind"}


def test_a_search_behind_damage_has_an_end() -> None:
    """Crafted bytes that look like a frame everywhere do not keep a slot from opening."""
    disk = ForgetfulDisk()
    config = JournalConfig(kind=SlotKind.QWP, segment_bytes=1 << 18, background=False)
    with Journal.open(SLOT, config, files=disk) as journal:
        journal.append(b"before")
    content = bytearray(disk.content(segment(0)))
    content[38:] = b"\x40\x80\x01\x00" * ((len(content) - 38) // 4) + b"\0\0"
    disk.put(segment(0), bytes(content))
    with Journal.open(SLOT, config, files=disk) as journal:
        assert dict(journal.read_from(0)) == {0: b"before"}
        assert "were not searched" in journal.problems[0].text


def mended(disk: ForgetfulDisk) -> tuple[dict[int, bytes], tuple[Problem, ...]]:
    """Open a slot with a gap and give up what is missing; open it again as any client would."""
    config = replace(CONFIG, accept_gaps=True)
    with Journal.open(SLOT, config, files=disk) as journal:
        problems = journal.problems
    return open_slot(disk)[0], problems


@pytest.mark.parametrize("number", range(3))
def test_a_missing_segment_is_refused_with_the_numbers_of_its_frames(number: int) -> None:
    """SF client section 6.5: a gap is fatal; nothing is changed, and looking tells the same."""
    disk = slot_of_three()
    gone = sorted({fsn for (of, _), fsn in places().items() if of == number})
    disk.remove(segment(number))
    before = {name: disk.content(SLOT / name) for name in disk.names(SLOT)}
    with pytest.raises(SlotHasGap, match=f"the frames {gone[0]} to {gone[-1]}") as refused:
        Journal.open(SLOT, CONFIG, files=disk)
    assert refused.value.lost == ((gone[0], gone[-1]),)
    assert {name: disk.content(SLOT / name) for name in before} == before
    seen = inspect(SLOT, SlotKind.QWP, files=disk).problems
    assert [(each.kind, each.lost) for each in seen] == [("missing_frames", (gone[0], gone[-1]))]


@pytest.mark.parametrize("number", range(3))
def test_a_gap_that_is_given_up_leaves_a_slot_that_every_client_reads(number: int) -> None:
    """The frames before it get the numbers up to it, so segments join; the rest is delivered."""
    disk = slot_of_three()
    gone = {fsn for (of, _), fsn in places().items() if of == number}
    disk.remove(segment(number))
    frames, problems = mended(disk)
    assert list(frames.values()) == [FRAMES[fsn] for fsn in FRAMES if fsn not in gone]
    assert [each.lost for each in problems] == [(min(gone), max(gone))]
    assert sorted(frames) == list(range(min(frames), max(frames) + 1))
    assert open_slot(disk)[1] == ()


@pytest.mark.parametrize("frames", [1, 100, 4000])
def test_a_killed_process_and_a_missing_only_segment(frames: int) -> None:
    """What is told covers the loss and is near it: 64 frames, or an eighth, more at most."""
    disk = ForgetfulDisk()
    config = JournalConfig(kind=SlotKind.QWP, background=False)
    with Journal.open(SLOT, config, files=disk) as journal:
        for fsn in range(frames):
            journal.append(b"%d" % fsn)
        left = disk.killed()
    left.remove(segment(0))
    (problem,) = inspect(SLOT, SlotKind.QWP, files=left).problems
    assert problem.lost is not None
    first, last = problem.lost
    assert (first, problem.kind) == (0, "missing_frames")
    assert frames - 1 <= last < frames + max(64, frames // 8)
    with pytest.raises(SlotHasGap):
        Journal.open(SLOT, config, files=left)
    with Journal.open(SLOT, replace(config, accept_gaps=True), files=left) as journal:
        assert journal.next_fsn == last + 1  # no number is given out again (SF-08)


def test_a_missing_last_segment_that_was_acknowledged_is_no_loss() -> None:
    """Whoever drained the slot may have deleted what it had."""
    disk = slot_of_three()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        for fsn, _ in journal.read_from(0):
            journal.ack(fsn)
    for name in disk.names(SLOT):
        if name.endswith(".sfa"):
            disk.remove(SLOT / name)
    assert open_slot(disk) == ({}, ())


def test_looking_changes_nothing() -> None:
    """`inspect` tells what is there and wrong, without a lock and without a write."""
    disk = slot_of_three()
    content = bytearray(disk.content(segment(1)))
    content[40] ^= 1
    disk.put(segment(1), bytes(content))
    before = {name: disk.content(SLOT / name) for name in disk.names(SLOT)}
    done = disk.done.copy()
    report = inspect(SLOT, SlotKind.QWP, files=disk)
    assert (report.frames, report.first_fsn, report.last_fsn, report.acked_fsn) == (16, 0, 16, -1)
    assert report.segments == tuple(segment(number).name for number in range(3))
    assert [each.path for each in report.problems] == [segment(1)]
    assert {name: disk.content(SLOT / name) for name in disk.names(SLOT)} == before
    assert set(disk.done - done) == {"names", "open", "read"}
