"""Appending, reading, acknowledging: the ring in memory and on disk."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.errors import ClosedError, RemoteProtocolError
from lance_sdk.journal import (
    AckOutOfRange,
    FrameDamaged,
    FrameTooLarge,
    Journal,
    JournalConfig,
    JournalFull,
    NotRetained,
)
from lance_sdk.journal.testing import ForgetfulDisk
from lance_sdk.testing import ManualClock

SMALL = JournalConfig(segment_bytes=256, max_total_bytes=1024)
"""Seven frames of 24 bytes fit in a segment, and four segments in the ring."""
FRAME = bytes(24)

Opener = Callable[..., Journal]


@pytest.fixture(params=["memory", "disk", "disk, no threads"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Open a journal of each sort; every test holds for all."""
    journals: list[Journal] = []

    def opener(**changes: object) -> Journal:
        settings = {"segment_bytes": 256, "max_total_bytes": 1024} | changes
        settings["background"] = request.param == "disk"
        config = JournalConfig(**settings)  # type: ignore[arg-type]  # test values fit
        path = None if request.param == "memory" else tmp_path / "slot"
        journals.append(Journal.open(path, config))
        return journals[-1]

    yield opener
    for each in journals:
        each.close()


def acked_through(journal: Journal, fsn: int) -> None:
    """Send everything and acknowledge up to ``fsn``."""
    for _ in journal.read_from(journal.acked_fsn + 1):
        pass
    journal.ack(fsn)


def test_numbers_start_at_zero_and_count_on(opened: Opener) -> None:
    """The first frame of a new slot is 0."""
    journal = opened()
    assert [journal.append(FRAME) for _ in range(20)] == list(range(20))
    assert journal.next_fsn == 20


def test_frames_come_back_in_order(opened: Opener) -> None:
    """Across segments, each frame under its number and byte for byte."""
    journal = opened()
    frames = [b"%d" % number * (1 + number % 50) for number in range(20)]
    for each in frames:
        journal.append(each)
    assert list(journal.read_from(0)) == list(enumerate(frames))


@given(sizes=st.lists(st.integers(1, 224), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_frames_of_any_size_come_back(sizes: list[int]) -> None:
    """Whatever fits in a segment is returned as it was given."""
    config = JournalConfig(segment_bytes=256, max_total_bytes=256 * 50)
    with Journal.open(None, config) as journal:
        frames = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
        for each in frames:
            journal.append(each)
        assert [payload for _, payload in journal.read_from(0)] == frames


def test_any_buffer_is_taken(opened: Opener) -> None:
    """Bytes, bytearray, memoryview, and a view of wider items."""
    journal = opened()
    journal.append(b"abcd")
    journal.append(bytearray(b"abcd"))
    journal.append(memoryview(b"abcd"))
    journal.append(memoryview(b"abcd").cast("I"))
    assert [payload for _, payload in journal.read_from(0)] == [b"abcd"] * 4


def test_a_frame_is_copied(opened: Opener) -> None:
    """What the caller does with its buffer later does not matter."""
    journal, buffer = opened(), bytearray(b"before")
    journal.append(buffer)
    buffer[:] = b"behind"
    assert list(journal.read_from(0)) == [(0, b"before")]


@pytest.mark.parametrize("size", [0, 225])
def test_an_empty_or_too_large_frame_is_refused(opened: Opener, size: int) -> None:
    """SF-21, SF-33: the error names both sizes, and nothing was stored."""
    journal = opened()
    with pytest.raises(FrameTooLarge, match=rf"frame of {size} bytes.*1 to 224"):
        journal.append(bytes(size))
    assert journal.next_fsn == 0


def test_the_largest_frame_fits(opened: Opener) -> None:
    """A segment holds header, frame header and payload exactly."""
    journal = opened()
    journal.append(bytes(224))
    journal.append(bytes(224))
    assert [len(payload) for _, payload in journal.read_from(0)] == [224, 224]


def test_reading_ends_at_the_last_frame_and_goes_on_later(opened: Opener) -> None:
    """An iterator ends when it has caught up; the next one starts there."""
    journal = opened()
    journal.append(b"a")
    assert [fsn for fsn, _ in journal.read_from(0)] == [0]
    assert list(journal.read_from(1)) == []
    journal.append(b"b")
    assert list(journal.read_from(1)) == [(1, b"b")]


def test_reading_takes_in_what_is_appended_meanwhile(opened: Opener) -> None:
    """Frames that arrive during iteration are part of it."""
    journal = opened()
    journal.append(b"a")
    seen = []
    for fsn, _ in journal.read_from(0):
        seen.append(fsn)
        if fsn < 9:
            journal.append(FRAME)
    assert seen == list(range(10))


@pytest.mark.parametrize("fsn", [-1, 3, 11])
def test_reading_what_is_not_there_is_refused(opened: Opener, fsn: int) -> None:
    """Below the acknowledged frame, and beyond the next number."""
    journal = opened()
    for _ in range(10):
        journal.append(FRAME)
    acked_through(journal, 3)
    with pytest.raises(NotRetained, match=rf"frame {fsn} .*holds 4 to 9"):
        journal.read_from(fsn)


def test_an_acknowledged_frame_is_not_sent_again(opened: Opener) -> None:
    """Reading goes on after the watermark."""
    journal = opened()
    for _ in range(10):
        journal.append(FRAME)
    acked_through(journal, 6)
    assert journal.acked_fsn == 6
    assert [fsn for fsn, _ in journal.read_from(7)] == [7, 8, 9]


@pytest.mark.parametrize("fsn", [-1, -(2**63), 5, 1_000_000])
def test_an_acknowledgement_outside_of_what_was_sent_is_refused(opened: Opener, fsn: int) -> None:
    """SF-35: -1 is not everything, and far ahead is not what was sent."""
    journal = opened()
    for _ in range(10):
        journal.append(FRAME)
    frames = journal.read_from(0)
    for _ in range(5):
        next(frames)
    with pytest.raises(AckOutOfRange, match=rf"frame {fsn}, but only 0 to 4 were sent") as caught:
        journal.ack(fsn)
    assert isinstance(caught.value, RemoteProtocolError)
    assert journal.acked_fsn == -1


def test_an_older_acknowledgement_changes_nothing(opened: Opener) -> None:
    """Cumulative acknowledgements may arrive late."""
    journal = opened()
    for _ in range(10):
        journal.append(FRAME)
    acked_through(journal, 6)
    journal.ack(2)
    assert journal.acked_fsn == 6


def test_a_full_ring_says_that_acknowledgements_are_awaited(opened: Opener) -> None:
    """The cap is the reason, the error gives it and the backlog, and nothing was accepted."""
    journal = opened()
    for _ in range(28):
        journal.append(FRAME)
    with pytest.raises(JournalFull, match="max_total_bytes=1024: 672 bytes wait") as caught:
        journal.append(FRAME, timeout=0)
    assert caught.value.reason == "backlog"
    assert caught.value.retryable
    assert journal.next_fsn == 28
    assert journal.stats().backpressure_stalls >= 1


def test_an_acknowledgement_makes_room(opened: Opener) -> None:
    """Segments that are acknowledged as a whole are given back, and the next append passes."""
    journal = opened()
    for _ in range(28):
        journal.append(FRAME)
    acked_through(journal, 13)
    assert journal.append(FRAME) == 28


def test_a_waiting_producer_goes_on_when_room_comes(opened: Opener) -> None:
    """An append that waits returns as soon as an acknowledgement frees a segment."""
    journal = opened()
    for _ in range(28):
        journal.append(FRAME)
    stored: list[int] = []
    producer = threading.Thread(target=lambda: stored.append(journal.append(FRAME, timeout=30)))
    producer.start()
    acked_through(journal, 27)
    while producer.is_alive() and journal.path is not None:
        journal.maintain()
        producer.join(0.01)
    producer.join(30)
    assert stored == [28]


def test_the_ring_never_takes_more_than_its_cap(opened: Opener) -> None:
    """Resident bytes, a prepared spare included, stay below max_total_bytes."""
    journal = opened()
    for number in range(200):
        journal.append(FRAME)
        assert journal.stats().resident_bytes <= 1024
        if number % 7 == 6:
            acked_through(journal, number)


def test_the_backlog_counts_what_is_not_acknowledged(opened: Opener) -> None:
    """Frames and payload bytes, also with the watermark inside a segment."""
    journal = opened()
    for number in range(20):
        journal.append(bytes(1 + number))
    acked_through(journal, 9)
    stats = journal.stats()
    assert stats.backlog_frames == 10
    assert stats.backlog_bytes == journal.backlog_bytes == sum(range(11, 21))


def test_counters_stay_readable_after_close(opened: Opener) -> None:
    """The last state can be looked at for as long as the object lives."""
    journal = opened()
    for _ in range(10):
        journal.append(FRAME)
    acked_through(journal, 3)
    last = journal.close()
    assert journal.stats() == last
    assert (journal.next_fsn, journal.acked_fsn, journal.backlog_bytes) == (10, 3, 6 * 24)
    assert journal.close() == last


@pytest.mark.parametrize(
    "call",
    [
        lambda journal: journal.append(b"x"),
        lambda journal: journal.read_from(0),
        lambda journal: journal.ack(0),
        lambda journal: journal.sync(),
        lambda journal: journal.wait(5, 0),
    ],
)
def test_a_closed_journal_refuses_work(opened: Opener, call: Callable[[Journal], object]) -> None:
    """Every verb says that the journal was closed."""
    journal = opened()
    journal.close()
    with pytest.raises(ClosedError, match="closed"):
        call(journal)


def test_closing_lets_a_waiting_producer_go(opened: Opener) -> None:
    """An append that waits for room ends with the close."""
    journal = opened()
    for _ in range(28):
        journal.append(FRAME)
    outcome: list[Exception] = []

    def produce() -> None:
        try:
            journal.append(FRAME, timeout=60)
        except ClosedError as error:
            outcome.append(error)

    producer = threading.Thread(target=produce)
    producer.start()
    while journal.stats().backpressure_stalls == 0:
        producer.join(0.01)
    journal.close()
    producer.join(30)
    assert len(outcome) == 1


def test_waiting_ends_when_the_frame_comes(opened: Opener) -> None:
    """A sender sleeps until there is something to send."""
    journal = opened()
    assert not journal.wait(0, 0.01)
    results: list[bool] = []
    sender = threading.Thread(target=lambda: results.append(journal.wait(2, 30)))
    sender.start()
    for _ in range(3):
        journal.append(b"x")
    sender.join(30)
    assert results == [True]


def test_many_producers_share_the_ring(opened: Opener) -> None:
    """Each frame gets a number of its own, and none is lost or mixed up."""
    journal = opened(segment_bytes=4096, max_total_bytes=1 << 20)

    def produce(name: int) -> None:
        for number in range(50):
            journal.append(b"%d-%d" % (name, number))

    producers = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
    for each in producers:
        each.start()
    for each in producers:
        each.join()
    payloads = [payload for _, payload in journal.read_from(0)]
    assert sorted(payloads) == sorted(b"%d-%d" % (a, b) for a in range(4) for b in range(50))


def test_the_age_is_that_of_the_oldest_frame_not_acknowledged() -> None:
    """By the given clock, and never younger than the frame is."""
    clock = ManualClock()
    with Journal.open(None, SMALL, clock=clock) as journal:
        assert journal.backlog_age == 0.0
        journal.append(b"old")
        clock.advance(10)
        journal.append(b"young")
        clock.advance(5)
        assert journal.backlog_age == 15.0
        acked_through(journal, 0)
        assert journal.backlog_age == 5.0
        acked_through(journal, 1)
        assert journal.backlog_age == 0.0


def test_the_age_of_frames_found_on_disk_is_that_of_their_segment(tmp_path: Path) -> None:
    """They carry no time; the segment says when it was begun."""
    config = JournalConfig(segment_bytes=4096)
    with Journal.open(tmp_path / "slot", config, wall_clock=lambda: 1000.0) as journal:
        journal.append(b"x")
    with Journal.open(tmp_path / "slot", config, wall_clock=lambda: 1060.0) as journal:
        assert journal.backlog_age == 60.0


def test_a_frame_that_changed_since_the_start_is_not_delivered(tmp_path: Path) -> None:
    """The checksum is looked at again when a frame is read; the next one is still there."""
    with Journal.open(tmp_path / "slot", JournalConfig(segment_bytes=4096)) as journal:
        for _ in range(3):
            journal.append(b"frame")
        path = tmp_path / "slot" / "sf-0000000000000000.sfl"
        with path.open("r+b") as file:
            file.seek(24 + 13 + 8)
            file.write(b"F")
        frames = journal.read_from(0)
        assert next(frames) == (0, b"frame")
        with pytest.raises(FrameDamaged, match=r"sf-0+\.sfl at byte 37: frame 1 "):
            next(frames)
        assert list(journal.read_from(2)) == [(2, b"frame")]


def test_repr_shows_the_state(opened: Opener) -> None:
    """Where it is, how far it came, and whether it ended."""
    journal = opened()
    journal.append(b"x")
    assert "acked -1, next 1" in repr(journal)
    journal.close()
    assert "ClosedError" in repr(journal)


def test_an_acknowledgement_costs_one_write_of_16_bytes() -> None:
    """The watermark is stored and not synced, however many acknowledgements there are."""
    disk, slot = ForgetfulDisk(), Path("/disk/slot")
    config = JournalConfig(segment_bytes=1 << 16, background=False)
    with Journal.open(slot, config, files=disk) as journal:
        for _ in range(100):
            journal.append(FRAME)
        list(journal.read_from(0))
        before = disk.done.copy()
        for fsn in range(100):
            journal.ack(fsn)
        assert disk.done - before == {"write": 100}
        assert len(disk.content(slot / ".ack-watermark")) == 16


def test_another_segment_size_holds_for_new_segments(tmp_path: Path) -> None:
    """Those that exist keep theirs, no spare of the old size is left, the cap counts bytes."""
    slot = tmp_path / "slot"
    with Journal.open(slot, JournalConfig(segment_bytes=4096)) as journal:
        for _ in range(10):
            journal.append(bytes(900))
    larger = JournalConfig(segment_bytes=16384, max_total_bytes=1 << 16)
    with Journal.open(slot, larger) as journal:
        for _ in range(40):
            journal.append(bytes(900))
        stats = journal.stats()
    sizes = [each.stat().st_size for each in sorted(slot.glob("*.sfl"))]
    assert sizes == sorted(sizes)
    assert set(sizes) == {4096, 16384}
    assert sum(sizes) <= stats.resident_bytes <= 1 << 16


def test_two_threads_may_close_at_the_same_time(tmp_path: Path) -> None:
    """Both return, and the slot is free afterwards."""
    for _ in range(20):
        journal = Journal.open(tmp_path / "slot", SMALL)
        together = threading.Barrier(2)

        def close(journal: Journal = journal, together: threading.Barrier = together) -> None:
            together.wait(10.0)
            journal.close()

        other = threading.Thread(target=close)
        other.start()
        close()
        other.join(10.0)
        assert not other.is_alive()


def test_a_clock_before_1970_stops_no_append(tmp_path: Path) -> None:
    """A segment then has the least time that its header can hold."""
    config = JournalConfig(segment_bytes=256, background=False)
    with Journal.open(tmp_path / "slot", config, wall_clock=lambda: -5.0) as journal:
        for _ in range(9):
            journal.append(bytes(50))
        assert journal.next_fsn == 9
