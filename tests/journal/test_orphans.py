"""Slots that nobody drains, and the settings of a journal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.journal import (
    Journal,
    JournalConfig,
    SlotKind,
    SlotLocked,
    SlotUnreadable,
    adopt,
    inspect,
    orphans,
)


def leave(slot: Path, *payloads: bytes, kind: SlotKind = SlotKind.LWP) -> Path:
    """Leave a slot with frames behind."""
    with Journal.open(slot, JournalConfig(kind=kind, segment_bytes=4096)) as journal:
        for each in payloads:
            journal.append(each)
    return slot


def test_slots_with_segments_are_found(tmp_path: Path) -> None:
    """In order of their names, and nothing else that lies there."""
    found = [leave(tmp_path / name, b"x") for name in ("a", "b", "c")]
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no slot")
    assert list(orphans(tmp_path)) == found
    assert list(orphans(tmp_path, exclude=frozenset({"b"}))) == [found[0], found[2]]


@pytest.mark.parametrize("mark", ["failed", "set aside", "other protocol", "hidden"])
def test_some_slots_are_left_alone(tmp_path: Path, mark: str) -> None:
    """SF-30, SF-31: given up, set aside, of another protocol, or not a slot's name."""
    names = {"set aside": "slot.unreplayable-0", "hidden": ".slot-locks"}
    kind = SlotKind.QWP if mark == "other protocol" else SlotKind.LWP
    slot = leave(tmp_path / names.get(mark, "slot"), b"x", kind=kind)
    if mark == "failed":
        (slot / ".failed").write_text("gave up")
    assert list(orphans(tmp_path)) == []


def test_an_orphan_is_adopted_and_drained(tmp_path: Path) -> None:
    """Its frames come in order, and after the acknowledgement it is empty."""
    slot = leave(tmp_path / "slot", b"a", b"b")
    with adopt(slot) as journal:
        assert list(journal.read_from(journal.acked_fsn + 1)) == [(0, b"a"), (1, b"b")]
        journal.ack(1)
    assert inspect(slot).frames == 0


def test_a_slot_in_use_is_not_adopted(tmp_path: Path) -> None:
    """The scan does not ask for locks; the attempt finds out."""
    leave(tmp_path / "slot", b"x")
    with Journal.open(tmp_path / "slot"):
        assert list(orphans(tmp_path)) == [tmp_path / "slot"]
        with pytest.raises(SlotLocked):
            adopt(tmp_path / "slot")


def test_a_slot_that_failed_is_not_adopted_until_somebody_cleared_it(tmp_path: Path) -> None:
    """The reason is kept for people, and the file's presence is what counts."""
    slot = leave(tmp_path / "slot", b"x")
    with adopt(slot) as journal:
        journal.mark_failed("server refused frame 0: schema mismatch")
    assert inspect(slot).failed == "server refused frame 0: schema mismatch"
    assert list(orphans(tmp_path)) == []
    with pytest.raises(SlotUnreadable, match=r"\.failed"):
        adopt(slot)
    (slot / ".failed").unlink()
    with adopt(slot) as journal:
        assert list(journal.read_from(0)) == [(0, b"x")]


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_adopting_does_not_make_a_slot(tmp_path: Path, what: str) -> None:
    """A mistyped path is an error, and nothing is created there."""
    if what == "empty":
        (tmp_path / what).mkdir()
    with pytest.raises(SlotUnreadable, match="not a slot that may be adopted"):
        adopt(tmp_path / what)
    assert not list(tmp_path.glob(f"{what}/*"))


def test_a_report_tells_what_a_slot_holds(tmp_path: Path) -> None:
    """Frames that wait, their numbers, the files they are in."""
    with Journal.open(tmp_path / "slot", JournalConfig(segment_bytes=4096)) as journal:
        for _ in range(6):
            journal.append(bytes(1000))
        list(journal.read_from(0))
        journal.ack(1)
        report = inspect(tmp_path / "slot")
        assert (report.frames, report.first_fsn, report.last_fsn, report.acked_fsn) == (4, 2, 5, 1)
        assert report.segments == ("sf-0000000000000000.sfl", "sf-0000000000000001.sfl")
        assert (report.problems, report.failed) == ((), None)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: JournalConfig(segment_bytes=63), "segment_bytes=63: expected 64 to"),
        (lambda: JournalConfig(segment_bytes=2**31), "segment_bytes=2147483648"),
        (
            lambda: JournalConfig(segment_bytes=4096, max_total_bytes=8191),
            "max_total_bytes=8191: expected at least two segments, 8192 bytes",
        ),
        (
            lambda: JournalConfig(segment_bytes=4096, max_frame_bytes=4065),
            r"max_frame_bytes=4065: expected 1 to 4064 bytes; raise segment_bytes \(SF-33\)",
        ),
        (lambda: JournalConfig(sync_interval=0.0), "sync_interval=0.0: expected more than 0"),
        (lambda: JournalConfig(append_timeout=-1.0), "append_timeout=-1.0: expected at least 0"),
        (lambda: JournalConfig(append_timeout=float("nan")), "append_timeout=nan"),
        (lambda: JournalConfig(quarantine_bytes=-1), "quarantine_bytes=-1"),
    ],
)
def test_a_setting_that_cannot_work_is_named(make: Callable[[], object], told: str) -> None:
    """Before anything is opened: option, value, and what would do."""
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_smaller_frame_limit_is_kept(tmp_path: Path) -> None:
    """`max_frame_bytes` is the transport's promise to its server, and appends keep it."""
    config = JournalConfig(segment_bytes=4096, max_frame_bytes=10)
    with Journal.open(tmp_path / "slot", config) as journal:
        journal.append(bytes(10))
        with pytest.raises(ValueError, match="1 to 10"):
            journal.append(bytes(11))


def test_segments_of_another_size_are_used_as_they_are(tmp_path: Path) -> None:
    """A slot made with other settings is read and continued; new segments have the new size."""
    slot = leave(tmp_path / "slot", *[bytes(1000)] * 5)
    config = JournalConfig(segment_bytes=1 << 16)
    with Journal.open(slot, config) as journal:
        for _ in range(5):
            journal.append(bytes(3000))
        assert len(list(journal.read_from(0))) == 10
        assert journal.stats().resident_bytes == 2 * 4096 + (1 << 16)
