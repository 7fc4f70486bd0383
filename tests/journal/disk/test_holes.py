"""Giving back acknowledged space inside a segment."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lance_sdk._io.platform import punch
from lance_sdk.journal import Durability, Journal, JournalConfig, SlotKind, inspect
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_spec.messages.store_forward import SegmentFrame, SegmentHeader, WatermarkSimple

SIZE = 1 << 20
SLOT = Path("/disk/slot")


def configured(**changes: object) -> JournalConfig:
    """Large segments, no threads, holes."""
    settings = {"segment_bytes": SIZE, "background": False, "punch_holes": True} | changes
    return JournalConfig(**settings)  # type: ignore[arg-type]  # test values fit


def half_acked(journal: Journal) -> None:
    """Fill most of a segment and acknowledge most of that."""
    for fsn in range(900):
        journal.append(b"%04d" % fsn * 256)
    for _ in journal.read_from(0):
        pass
    journal.ack(699)
    journal.maintain()


def blocks(path: Path) -> int:
    """Bytes that a file takes on its volume."""
    return path.stat().st_blocks * 512


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="holes are punched on Linux")
def test_acknowledged_space_goes_back_to_the_file_system(tmp_path: Path) -> None:
    """The file keeps its size and loses blocks, and the counters say how many."""
    with Journal.open(tmp_path / "slot", configured()) as journal:
        half_acked(journal)
        stats = journal.stats()
        if stats.holes != "on":
            pytest.skip(stats.holes)
        segment = tmp_path / "slot" / "sf-0000000000000000.sfl"
        assert segment.stat().st_size == SIZE
        assert stats.reclaimed_bytes == 700 * 1032 // 4096 * 4096 - 4096
        assert blocks(segment) <= SIZE - stats.reclaimed_bytes + 8192
        assert stats.resident_bytes == SIZE - stats.reclaimed_bytes + (stats.segments - 1) * SIZE


def test_what_is_not_acknowledged_is_read_as_before(tmp_path: Path) -> None:
    """In the same process and after a restart, with nothing to complain about."""
    with Journal.open(tmp_path / "slot", configured()) as journal:
        half_acked(journal)
        assert [fsn for fsn, _ in journal.read_from(700)] == list(range(700, 900))
    assert inspect(tmp_path / "slot").problems == ()
    with Journal.open(tmp_path / "slot", configured()) as journal:
        frames = list(journal.read_from(700))
        assert frames == [(fsn, b"%04d" % fsn * 256) for fsn in range(700, 900)]
        assert journal.append(b"next") == 900


def test_any_client_can_read_a_segment_with_a_hole() -> None:
    """The acknowledged frames became one valid frame of zeros, numbered as the last of them."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, configured(kind=SlotKind.QWP), files=disk) as journal:
        half_acked(journal)
    content = disk.content(SLOT / "sf-0000000000000001.sfa")
    assert SegmentHeader.decode(content[:24]).base_seq == 699
    length = 700 * 1032 - 8
    folded = SegmentFrame.decode(content[24 : 24 + 8 + length])
    assert folded.payload == bytes(length)
    report = inspect(SLOT, SlotKind.QWP, files=disk)
    assert (report.first_fsn, report.frames, report.problems) == (700, 200, ())


@pytest.mark.parametrize("said", [None, 5000], ids=["lost", "beyond the last frame"])
def test_what_a_hole_was_made_of_is_not_sent_without_a_watermark(said: int | None) -> None:
    """Those zeros are no frame that anybody appended."""
    disk, watermark = ForgetfulDisk(), SLOT / ".ack-watermark"
    with Journal.open(SLOT, configured(), files=disk) as journal:
        half_acked(journal)
    disk.remove(watermark)
    if said is not None:
        disk.put(watermark, WatermarkSimple(said).encode())
    with Journal.open(SLOT, configured(), files=disk) as journal:
        assert next(journal.read_from(journal.acked_fsn + 1)) == (700, b"0700" * 256)


def test_a_hole_grows_with_later_acknowledgements() -> None:
    """Folding a segment again keeps numbers and frames."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, configured(), files=disk) as journal:
        half_acked(journal)
        for fsn in range(900, 1000):
            journal.append(b"%04d" % fsn * 256)
        for _ in journal.read_from(700):
            pass
        journal.ack(989)
        journal.maintain()
        assert journal.stats().reclaimed_bytes > 700 * 1032
    with Journal.open(SLOT, configured(), files=disk) as journal:
        assert [fsn for fsn, _ in journal.read_from(990)] == list(range(990, 1000))


def test_a_slow_second_reader_does_not_see_the_hole() -> None:
    """What was acknowledged meanwhile is skipped, not delivered as zeros or called damaged."""
    with Journal.open(SLOT, configured(), files=ForgetfulDisk()) as journal:
        for fsn in range(900):
            journal.append(b"%04d" % fsn * 256)
        slow = [journal.read_from(0), journal.read_from(0)]
        next(slow[1])
        half_read = dict(journal.read_from(0))
        journal.ack(699)
        journal.maintain()
        assert journal.stats().reclaimed_bytes > 0
        for each in slow:
            assert dict(each) == {fsn: half_read[fsn] for fsn in range(700, 900)}


def test_a_fully_acknowledged_segment_keeps_its_last_frame() -> None:
    """The segment never looks empty, so the next number is right after a restart."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, configured(), files=disk) as journal:
        half_acked(journal)
        journal.ack(899)
        journal.maintain()
    with Journal.open(SLOT, configured(), files=disk) as journal:
        assert (journal.acked_fsn, journal.next_fsn) == (899, 900)
        assert journal.problems == ()


@pytest.mark.parametrize("steps", range(12))
def test_power_may_go_while_a_hole_is_made(steps: int) -> None:
    """At any step, nothing that is not acknowledged is lost or called damaged."""
    disk, config = ForgetfulDisk(), configured(durability=Durability.APPEND)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(900):
        journal.append(b"%04d" % fsn * 256)
    for _ in journal.read_from(0):
        pass
    journal.ack(699)
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        journal.maintain()
    for after in (disk.power_lost(), disk.killed()):
        with Journal.open(SLOT, config, files=after) as recovered:
            frames = dict(recovered.read_from(recovered.acked_fsn + 1))
            assert {fsn: b"%04d" % fsn * 256 for fsn in range(700, 900)}.items() <= frames.items()
            assert recovered.next_fsn == 900
            assert recovered.problems == ()


def test_a_file_system_without_holes_is_told_and_changes_nothing_else() -> None:
    """The counter says why; every frame is still there, also after a restart."""
    disk = ForgetfulDisk()
    disk.broken["punch"] = OSError(errno.EOPNOTSUPP, "operation not supported")
    with Journal.open(SLOT, configured(), files=disk) as journal:
        half_acked(journal)
        assert journal.stats().holes.startswith("not possible: ")
        assert journal.stats().reclaimed_bytes == 0
        assert [fsn for fsn, _ in journal.read_from(700)] == list(range(700, 900))
    assert inspect(SLOT, files=disk).problems == ()


@pytest.mark.parametrize(
    ("kind", "asked", "holes"),
    [
        (SlotKind.LWP, None, "on"),
        (SlotKind.QWP, None, "off"),
        (SlotKind.QWP, True, "on"),
        (SlotKind.LWP, False, "off"),
    ],
)
def test_holes_are_the_default_only_where_no_other_client_reads(
    kind: SlotKind, asked: bool | None, holes: str
) -> None:
    """A client that ignores the watermark would send the frame of zeros."""
    config = configured(kind=kind, punch_holes=asked)
    with Journal.open(SLOT, config, files=ForgetfulDisk()) as journal:
        assert journal.stats().holes == holes


def test_punching_what_is_no_file_says_why() -> None:
    """The wrapper around fallocate(2) reports the system's own reason."""
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="hole punching: "):
            punch(writing, 0, 4096)
    finally:
        os.close(reading)
        os.close(writing)
