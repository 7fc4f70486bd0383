"""Slots that another client used in between: nothing is deleted that no watermark covers."""

import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lance_sdk.journal import (
    Durability,
    Journal,
    JournalConfig,
    SegmentsOverlap,
    SlotHasGap,
    SlotKind,
    inspect,
)
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_sdk.journal.tools import repair
from lance_spec.checksum import CRC32C

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(kind=SlotKind.QWP, segment_bytes=256, background=False)
NOW = 1_800_000_000_000_000


def segment(generation: int) -> Path:
    """Path of a segment."""
    return SLOT / f"sf-{generation + 1:016x}.sfa"


def sfa(base: int, frames: dict[int, bytes], created: int = NOW, flags: int = 0) -> bytes:
    """A segment as a client writes it that follows the document."""
    out = struct.pack("<4sBBHQQ", b"SF01", 1, flags, 0, base, created)
    for payload in frames.values():
        body = struct.pack("<I", len(payload)) + payload
        out += struct.pack("<I", CRC32C(body)) + body
    return out.ljust(512, b"\0")


def ours(disk: ForgetfulDisk, frames: int, acked: int, *, closed: bool = True) -> ForgetfulDisk:
    """A slot that this project wrote; returned as the next process finds it."""
    journal = Journal.open(SLOT, CONFIG, files=disk)
    for _ in range(frames):
        journal.append(b"%04d" % journal.next_fsn)
    if acked >= 0:
        for _ in journal.read_from(journal.acked_fsn + 1):
            pass
        journal.ack(acked)
    journal.maintain()
    if closed:
        journal.close()
    return disk.killed()


def emptied(disk: ForgetfulDisk) -> None:
    """Do what a client does that drained a slot: delete segments and watermark, no more."""
    for name in disk.names(SLOT):
        if name.endswith(".sfa") or name == ".ack-watermark":
            disk.remove(SLOT / name)


def delivered(disk: ForgetfulDisk) -> list[bytes]:
    """What opening the slot gives to a sender."""
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        return [payload for _, payload in journal.read_from(journal.acked_fsn + 1)]


THEIRS = {fsn: b"their frame %d" % fsn for fsn in range(6)}


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize(("frames", "acked"), [(40, 39), (40, 20), (40, -1), (3, 2), (200, 150)])
@pytest.mark.parametrize("state", [True, False], ids=["with state", "of an older release"])
def test_frames_that_another_client_wrote_from_0_are_all_delivered(
    frames: int, acked: int, closed: bool, state: bool
) -> None:
    """It emptied our slot and began again, below our head and our watermark."""
    disk = ours(ForgetfulDisk(), frames, acked, closed=closed)
    emptied(disk)
    if not state:
        disk.remove(SLOT / ".slot-state")
    disk.put(segment(0), sfa(0, THEIRS))
    assert inspect(SLOT, SlotKind.QWP, files=disk).frames == len(THEIRS)
    assert delivered(disk) == list(THEIRS.values())


@pytest.mark.parametrize("fsn", [2, 5])
def test_a_watermark_of_ours_says_nothing_of_the_frames_of_another_writer(fsn: int) -> None:
    """A client that keeps no watermark leaves ours, and its own frames have low numbers again."""
    disk = ours(ForgetfulDisk(), 40, 39, closed=False)
    emptied(disk)
    disk.put(segment(0), sfa(0, THEIRS))
    disk.put(SLOT / ".ack-watermark", b"AKW1" + struct.pack("<Iq", 0, fsn))
    assert delivered(disk) == list(THEIRS.values())


def test_a_client_that_went_on_in_our_slot_is_believed() -> None:
    """It wrote more, trimmed what was acknowledged and keeps the document's watermark."""
    disk = ours(ForgetfulDisk(), 10, -1)
    more = {fsn: b"more %d" % fsn for fsn in range(10, 16)}
    disk.put(segment(7), sfa(10, more))
    disk.put(SLOT / ".ack-watermark", b"AKW1" + struct.pack("<Iq", 0, 11))
    assert inspect(SLOT, SlotKind.QWP, files=disk).problems == ()
    assert delivered(disk) == [more[fsn] for fsn in range(12, 16)]


def test_a_slot_that_another_client_drained_has_no_missing_frames() -> None:
    """`inspect` says what happened and names no problem; numbers go on where they were."""
    disk = ours(ForgetfulDisk(), 40, 20)
    emptied(disk)
    report = inspect(SLOT, SlotKind.QWP, files=disk)
    assert (report.frames, report.problems) == (0, ())
    assert report.notes == ("another client emptied the slot",)
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert journal.append(b"next") == 40


def test_segments_that_vanish_beside_their_watermark_are_missing() -> None:
    """No client deletes segments and leaves a watermark that does not cover them."""
    disk = ours(ForgetfulDisk(), 40, 20)
    for name in disk.names(SLOT):
        if name.endswith(".sfa"):
            disk.remove(SLOT / name)
    with pytest.raises(SlotHasGap, match="the frames 21 to 39"):
        Journal.open(SLOT, CONFIG, files=disk)


def test_repairing_deletes_no_frame_of_another_writer() -> None:
    """Whatever our manifest says of the numbers."""
    disk = ours(ForgetfulDisk(), 40, 39)
    disk.put(segment(0), sfa(0, THEIRS))
    done = repair(SLOT, files=disk)
    assert done.report.frames == len(THEIRS)
    assert delivered(disk) == list(THEIRS.values())


@pytest.mark.parametrize("frames", [0, 1, 40])
def test_a_drained_slot_leaves_nothing_that_another_client_could_send(frames: int) -> None:
    """No segment, no watermark and no manifest; the next number stays."""
    disk = ours(ForgetfulDisk(), frames, frames - 1)
    assert disk.names(SLOT) == [".lock.pid", ".next-fsn", ".slot-state"]
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert journal.problems == ()
        assert journal.append(b"next") == frames


def test_a_slot_that_is_not_drained_keeps_its_segments() -> None:
    """One frame without an acknowledgement is enough."""
    disk = ours(ForgetfulDisk(), 40, 38)
    assert delivered(disk) == [b"0039"]


@pytest.mark.parametrize("steps", range(14))
def test_a_kill_while_a_drained_slot_is_closed_loses_and_repeats_nothing(steps: int) -> None:
    """Whatever was deleted by then, nothing waits, no problem is told, and numbers go on."""
    disk = ForgetfulDisk()
    journal = Journal.open(SLOT, CONFIG, files=disk)
    for _ in range(20):
        journal.append(b"x")
    for _ in journal.read_from(0):
        pass
    journal.ack(19)
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        journal.close()
    with Journal.open(SLOT, CONFIG, files=disk.killed()) as again:
        assert again.problems == ()
        assert list(again.read_from(again.acked_fsn + 1)) == []
        assert again.append(b"y") == 20


def test_a_void_manifest_does_not_outrank_the_one_that_is_written_for_it() -> None:
    """Its generation may be higher; a kill right after the first records must not revive it."""
    for steps in range(40):
        disk = ours(ForgetfulDisk(), frames=8, acked=7)
        disk = ours(disk, frames=9, acked=14)
        emptied(disk)
        disk.put(SLOT / "sf-initial.sfa", sfa(0, THEIRS, created=NOW + 1))
        disk.cut_power_after(steps)
        with suppress(PowerCut):
            Journal.open(SLOT, CONFIG, files=disk)
        left = disk.killed()
        assert inspect(SLOT, SlotKind.QWP, files=left).damaged == 0
        assert delivered(left) == list(THEIRS.values())


def test_a_watermark_above_the_frames_is_gone_before_numbers_are_used_again() -> None:
    """A loss of power would bring it back, and new frames would count as acknowledged."""
    disk = ForgetfulDisk()
    disk.put(SLOT / "sf-initial.sfa", sfa(0, {0: b"a", 1: b"b"}))
    disk.put(SLOT / ".ack-watermark", b"AKW1" + struct.pack("<Iq", 0, 2))
    config = replace(CONFIG, durability=Durability.APPEND)
    Journal.open(SLOT, config, files=disk).append(b"new")
    assert delivered(disk.power_lost()) == [b"a", b"b", b"new"]


def test_what_is_durable_does_not_hang_on_a_watermark_that_nobody_synced() -> None:
    """Power brings an older one back, which covers numbers that were given again since."""
    disk = ForgetfulDisk()
    disk.put(SLOT / "sf-initial.sfa", sfa(0, {fsn: b"frame %d" % fsn for fsn in range(6)}))
    disk.put(SLOT / ".ack-watermark", b"AKW1" + struct.pack("<Iq", 0, 5))
    file = disk.open(SLOT / ".ack-watermark", writable=True)
    file.write(0, b"AKW1" + struct.pack("<Iq", 0, 2))
    config = replace(CONFIG, durability=Durability.APPEND)
    Journal.open(SLOT, config, files=disk).append(b"new")
    wanted = [b"frame 3", b"frame 4", b"frame 5", b"new"]
    assert delivered(disk.power_lost()) == wanted


@pytest.mark.parametrize("steps", range(16))
@pytest.mark.parametrize("back", [(0,), (1,), (0, 2), (0, 3), (1, 3), (0, 1, 2, 3)])
def test_deleted_segments_that_power_brings_back_in_part_are_no_gap(
    steps: int, back: tuple[int, ...]
) -> None:
    """The last one is gone, so nothing but manifest and watermark know them for ours."""
    disk = ForgetfulDisk()
    journal = Journal.open(SLOT, CONFIG, files=disk)
    for fsn in range(60):
        journal.append(b"%04d" % fsn)
    segments = {name: disk.content(SLOT / name) for name in disk.names(SLOT) if ".sfa" in name}
    for _ in journal.read_from(0):
        pass
    journal.ack(59)
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        journal.close()
    left = disk.killed()
    if not {"sf-manifest.bin", ".ack-watermark"} <= set(left.names(SLOT)):
        return  # their removal follows a sync of the folder
    for name in [sorted(segments)[number] for number in back]:
        if name not in left.names(SLOT):
            left.put(SLOT / name, segments[name])
    with Journal.open(SLOT, CONFIG, files=left) as again:
        assert [each for each in again.problems if each.lost] == []
        assert list(again.read_from(again.acked_fsn + 1)) == []
        assert again.append(b"y") == 60


OLDER = {fsn: b"older %d" % fsn for fsn in range(5)}
NEWER = {fsn: b"newer %d" % fsn for fsn in range(3)}


def doubled() -> ForgetfulDisk:
    """A slot where two clients began with number 0, and power brought back what one deleted."""
    disk = ForgetfulDisk()
    disk.put(SLOT / "sf-0000000000000000.sfa", sfa(0, OLDER))
    disk.put(SLOT / "sf-initial.sfa", sfa(0, NEWER, created=NOW + 1))
    disk.put(SLOT / ".ack-watermark", b"AKW1" + struct.pack("<Iq", 0, 1))
    return disk


def test_segments_of_the_same_numbers_are_refused_with_the_way_to_keep_both() -> None:
    """Which of them the watermark is about is not known; nothing is changed."""
    disk = doubled()
    before = {name: disk.content(SLOT / name) for name in disk.names(SLOT)}
    with pytest.raises(SegmentsOverlap, match="lwp sf repair"):
        Journal.open(SLOT, CONFIG, files=disk)
    assert {name: disk.content(SLOT / name) for name in before} == before


@pytest.mark.parametrize("steps", range(30))
def test_repairing_keeps_the_frames_of_both(steps: int) -> None:
    """The older first, all of them again; also where power goes in the middle of it."""
    disk = doubled()
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        repair(SLOT, files=disk)
    disk = disk.power_lost()
    repair(SLOT, files=disk)
    assert delivered(disk) == [*OLDER.values(), *NEWER.values()]
    assert inspect(SLOT, SlotKind.QWP, files=disk).problems == ()


def test_repairing_tells_the_new_numbers_of_what_it_parted() -> None:
    """And that frames may arrive twice."""
    (problem,) = repair(SLOT, files=doubled()).problems
    assert "from 5 on, and all frames are sent again" in problem.text


def test_a_gap_that_is_given_up_is_told_where_the_first_segment_gets_another_name() -> None:
    """It had number 0, which a published client may take for its spare."""
    disk = ForgetfulDisk()
    disk.put(SLOT / "sf-0000000000000000.sfa", sfa(0, OLDER))
    disk.put(SLOT / "sf-0000000000000002.sfa", sfa(9, NEWER))
    assert repair(SLOT, files=disk).lost_frames == 4
    assert delivered(disk) == [*OLDER.values(), *NEWER.values()]
