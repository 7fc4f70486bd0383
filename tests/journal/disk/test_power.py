"""What a loss of power may take, by durability: a disk that forgets whatever was not synced."""

import errno
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.journal import Durability, Journal, JournalConfig, JournalFull
from lance_sdk.journal._slot.side_files import SideFile
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_sdk.testing import ManualClock
from lance_spec.messages.store_forward import FsnFloorRecord

SLOT = Path("/disk/slot")
ALL = list(Durability)


def configured(durability: Durability, **changes: object) -> JournalConfig:
    """A journal of small segments that does everything in the calling thread."""
    settings = {"segment_bytes": 4096, "background": False, "durability": durability} | changes
    return JournalConfig(**settings)  # type: ignore[arg-type]  # test values fit


def payload(fsn: int) -> bytes:
    """The frame that a test appends under a number: long enough to span sectors."""
    return b"%06d" % fsn * (1 + fsn * 37 % 150)


def held(disk: ForgetfulDisk, config: JournalConfig) -> dict[int, bytes]:
    """Every frame that a recovered slot delivers."""
    with Journal.open(SLOT, config, files=disk) as journal:
        frames = dict(journal.read_from(journal.acked_fsn + 1))
        assert journal.next_fsn > max(frames, default=-1)
    return frames


def nothing_is_invented(frames: dict[int, bytes], durable: int = -1) -> None:
    """Each frame was appended, they come in order, and durable ones under their own number.

    Behind a hole whose frames cannot be counted, numbers may be higher than they were.
    """
    written = [int(each[:6]) for each in frames.values()]
    assert list(frames.values()) == [payload(each) for each in written]
    assert written == sorted(set(written))
    assert all(fsn >= each for fsn, each in zip(frames, written, strict=True))
    assert all(frames[fsn] == payload(fsn) for fsn in frames if fsn <= durable)


def test_append_durability_keeps_every_frame_that_was_appended() -> None:
    """Once `append` has returned, no loss of power takes the frame."""
    disk, config = ForgetfulDisk(), configured(Durability.APPEND)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(60):
        journal.append(payload(fsn))
        assert set(held(disk.power_lost(), config)) == set(range(fsn + 1))


def test_flush_durability_keeps_what_was_flushed() -> None:
    """Frames before a flush survive; without one the disk may forget them."""
    disk, config = ForgetfulDisk(), configured(Durability.FLUSH)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(30):
        journal.append(payload(fsn))
    journal.flush()
    journal.append(payload(30))
    assert set(held(disk.power_lost(), config)) == set(range(30))


def test_memory_durability_does_not_wait_for_the_disk_when_flushed() -> None:
    """A flush is not a promise there: nothing is synced, and the frame may be lost."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    journal.append(payload(0))
    before = disk.done["sync"]
    journal.flush()
    assert disk.done["sync"] == before
    assert held(disk.power_lost(), config) == {}


@pytest.mark.parametrize("durability", ALL)
def test_every_durability_survives_the_death_of_the_process(durability: Durability) -> None:
    """What `append` stored is in the page cache, which a kill does not touch."""
    disk, config = ForgetfulDisk(), configured(durability)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(60):
        journal.append(payload(fsn))
    assert held(disk.killed(), config) == {fsn: payload(fsn) for fsn in range(60)}


def test_sync_insists_in_any_durability() -> None:
    """`sync` makes durable what `memory` would not."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    journal.append(payload(0))
    assert journal.sync() == 0
    assert held(disk.power_lost(), config) == {0: payload(0)}


def test_periodic_durability_syncs_when_the_interval_is_over() -> None:
    """Before it nothing is synced, after it everything that was appended by then."""
    disk, clock = ForgetfulDisk(), ManualClock()
    config = configured(Durability.PERIODIC, sync_interval=5.0)
    journal = Journal.open(SLOT, config, files=disk, clock=clock)
    journal.append(payload(0))
    clock.advance(4.9)
    journal.maintain()
    assert journal.durable_fsn == -1
    assert held(disk.power_lost(), config) == {}
    clock.advance(0.1)
    journal.maintain()
    assert journal.durable_fsn == 0
    assert held(disk.power_lost(), config) == {0: payload(0)}


def test_close_syncs_whatever_the_durability() -> None:
    """After a clean stop a loss of power takes nothing."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    with Journal.open(SLOT, config, files=disk) as journal:
        for fsn in range(40):
            journal.append(payload(fsn))
    assert set(held(disk.power_lost(), config)) == set(range(40))


def test_an_acknowledgement_survives_the_death_of_the_process() -> None:
    """The watermark is stored with the call, so nothing acknowledged is sent again."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(10):
        journal.append(payload(fsn))
    list(journal.read_from(0))
    journal.ack(6)
    assert set(held(disk.killed(), config)) == {7, 8, 9}


def test_a_lost_watermark_means_sending_again_and_not_losing() -> None:
    """A loss of power may take the last acknowledgements; the frames are still there."""
    disk, config = ForgetfulDisk(), configured(Durability.APPEND)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(10):
        journal.append(payload(fsn))
    list(journal.read_from(0))
    journal.ack(6)
    assert set(held(disk.power_lost(), config)) == set(range(10))


def life(journal: Journal, rng: random.Random) -> Iterator[None]:
    """Append, send, acknowledge, flush and maintain, at random."""
    for _ in range(90):
        act = rng.random()
        if act < 0.7:
            journal.append(payload(journal.next_fsn), timeout=0)
        elif act < 0.8:
            for _ in journal.read_from(journal.acked_fsn + 1):
                pass
        elif act < 0.9 and journal.stats().sent_fsn > journal.acked_fsn:
            journal.ack(rng.randint(journal.acked_fsn + 1, journal.stats().sent_fsn))
        elif act < 0.95:
            journal.flush()
        else:
            journal.maintain()
        yield


@pytest.mark.parametrize("durability", ALL)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 250))
def test_power_may_go_at_any_moment(durability: Durability, seed: int, steps: int) -> None:
    """Cut anywhere, with any subset of unsynced sectors kept: what was durable is delivered.

    Delivered means: from the acknowledged frame on, intact, under its number, and nothing that
    was never appended. Numbers that may have been used are not used again.
    """
    rng, disk = random.Random(seed), ForgetfulDisk()
    config = configured(durability, punch_holes=bool(seed % 2))
    journal = Journal.open(SLOT, config, files=disk)
    disk.cut_power_after(steps)
    durable = acked = -1
    try:
        for _ in life(journal, rng):
            durable, acked = journal.durable_fsn, journal.acked_fsn
    except PowerCut:
        acked = journal.acked_fsn
    except JournalFull:
        pass
    frames = held(disk.power_lost(rng), config)
    nothing_is_invented(frames, durable)
    assert set(range(acked + 1, durable + 1)) <= set(frames)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 250))
def test_a_kill_may_come_at_any_moment(seed: int, steps: int) -> None:
    """Between any two operations, a kill loses no frame and acknowledges none."""
    rng, disk = random.Random(seed), ForgetfulDisk()
    config = configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    disk.cut_power_after(steps)
    stored = 0
    try:
        for _ in life(journal, rng):
            stored = journal.next_fsn
    except PowerCut:
        pass
    frames = held(disk.killed(), config)
    nothing_is_invented(frames)
    assert set(range(journal.acked_fsn + 1, stored)) <= set(frames)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_power_may_go_again_during_recovery(seed: int) -> None:
    """Recovery that is cut short, again and again, still ends with every durable frame."""
    rng, disk = random.Random(seed), ForgetfulDisk()
    config = configured(Durability.FLUSH)
    journal = Journal.open(SLOT, config, files=disk)
    for _ in life(journal, rng):
        pass
    durable, acked = journal.durable_fsn, journal.acked_fsn
    for steps in range(0, 40, 3):
        disk = disk.power_lost(rng)
        disk.cut_power_after(steps)
        try:
            Journal.open(SLOT, config, files=disk)
        except PowerCut:
            continue
    frames = held(disk.power_lost(rng), config)
    nothing_is_invented(frames, durable)
    assert set(range(acked + 1, durable + 1)) <= set(frames)


def test_numbers_are_not_used_twice_after_the_segments_are_gone() -> None:
    """A client that deletes a drained slot's files does not make numbering start again (SF-08)."""
    disk, config = ForgetfulDisk(), configured(Durability.FLUSH)
    with Journal.open(SLOT, config, files=disk) as journal:
        for fsn in range(20):
            journal.append(payload(fsn))
        list(journal.read_from(0))
        journal.ack(19)
    for name in disk.names(SLOT):
        if name.endswith(".sfl") or name in {"sf-manifest.bin", ".ack-watermark"}:
            disk.remove(SLOT / name)
    with Journal.open(SLOT, config, files=disk) as journal:
        assert journal.append(b"next") == 20


def test_numbers_are_not_used_twice_after_a_kill_and_a_foreign_drain() -> None:
    """The floor lies above every number that the last segment held (SF-08)."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(20):
        journal.append(payload(fsn))
    disk = disk.killed()
    for name in disk.names(SLOT):
        if name.endswith(".sfl") or name in {"sf-manifest.bin", ".ack-watermark"}:
            disk.remove(SLOT / name)
    with Journal.open(SLOT, config, files=disk) as journal:
        assert journal.append(b"next") >= 20


def test_numbers_are_not_used_twice_where_a_segment_was_reopened() -> None:
    """A clean stop left the exact number; what is appended after it counts too (SF-08)."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    with Journal.open(SLOT, config, files=disk) as journal:
        journal.append(payload(0))
    journal = Journal.open(SLOT, config, files=disk)
    for fsn in range(1, 4):
        assert journal.append(payload(fsn)) == fsn
    disk = disk.killed()
    for name in disk.names(SLOT):
        if name.endswith(".sfl") or name in {"sf-manifest.bin", ".ack-watermark"}:
            disk.remove(SLOT / name)
    with Journal.open(SLOT, config, files=disk) as journal:
        assert journal.append(b"next") >= 4


def test_frames_after_holes_have_the_same_numbers_at_each_opening() -> None:
    """What was acknowledged of them is not sent again, and what a frame is called stays true."""
    disk, config = ForgetfulDisk(), configured(Durability.MEMORY)
    journal = Journal.open(SLOT, config, files=disk)
    frames = [payload(fsn) for fsn in range(6)]
    for each in frames:
        journal.append(each)
    disk = disk.killed()
    (path,) = (SLOT / name for name in disk.names(SLOT) if name.endswith(".sfl"))
    content = disk.content(path)
    file = disk.open(path, writable=True)
    for lost in (slice(1, 3), slice(4, 5)):
        start = content.index(frames[lost.start]) - 8
        file.write(start, bytes(content.index(frames[lost.stop]) - 8 - start))
    file.close()
    with Journal.open(SLOT, config, files=disk) as journal:
        first = dict(journal.read_from(0))
        assert list(first.values()) == [frames[0], frames[3], frames[5]]
        journal.append(b"next")
    with Journal.open(SLOT, config, files=disk) as journal:
        assert first.items() <= dict(journal.read_from(0)).items()


@pytest.mark.parametrize("steps", range(9))
def test_a_slot_is_opened_of_which_the_only_segment_was_given_up(steps: int) -> None:
    """It takes no more frames after a hole, and goes before another begins: then none is missing.

    The floor is where a segment raised it that an earlier loss of power took.
    """
    disk, config = ForgetfulDisk(), configured(Durability.APPEND)
    frames = [payload(fsn) for fsn in range(6)]
    journal = Journal.open(SLOT, config, files=disk)
    for each in frames:
        journal.append(each)
    disk = disk.power_lost()
    path = SLOT / next(name for name in disk.names(SLOT) if name.endswith(".sfl"))
    content = disk.content(path)
    start, stop = (content.index(frames[fsn]) - 8 for fsn in (2, 5))
    disk.put(path, content[:start] + bytes(stop - start) + content[stop:])
    disk.put(SLOT / ".next-fsn", SideFile.fresh(FsnFloorRecord, 9, 4000))
    disk.broken["create"] = OSError(errno.ENOSPC, "no space left on device")
    journal = Journal.open(SLOT, config, files=disk)
    last = max(dict(journal.read_from(0)))
    journal.ack(last)
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        journal.maintain()
    with Journal.open(SLOT, config, files=disk.power_lost()) as journal:
        assert journal.append(b"next") > last
        assert [each for each in journal.problems if each.kind == "missing_frames"] == []
