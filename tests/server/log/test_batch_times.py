"""When batches were stored (AMB-61)."""

from struct import iter_unpack

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.log.segments import batch_times
from lance_server.testing import LogDriver, ManualClock, MemoryStorage
from lance_spec.limits import END_OFFSET

START = 1_700_000_000_000_000_000


class Log:
    """A topic of small segments, with a batch of eight bytes every second."""

    def __init__(self, batches: int) -> None:
        options = LogOptions(segment_size=16, compaction=None)
        self.clock = ManualClock(START)
        self.log = LogDriver(MemoryStorage(), options=options, clock=self.clock)
        for number in range(1, batches + 1):
            self.clock.now_ns = START + number * 10**9
            self.log.store([b"one"], batch_id=number)

    def told(self, start: int, end: int) -> tuple[dict[int, int], int]:
        """Return the second of each batch, by its offset, and the next offset."""
        found = self.log.engine.batch_times(self.log.engine.topic(0), start, end)
        self.log.scheduler.run_all()
        next_offset, times = found.result()
        pairs = iter_unpack("<QQ", times)
        return {offset: (at - START) // 10**9 for offset, at in pairs}, next_offset


def test_each_batch_of_each_segment_has_its_time() -> None:
    """Also one that only ends in the range, and one that only begins there."""
    assert Log(5).told(9, 33) == ({8: 2, 16: 3, 24: 4, 32: 5}, 33)


def test_a_batch_before_or_after_the_range_is_not_told() -> None:
    """The range begins at its first byte, and ends before its last."""
    assert Log(5).told(8, 16) == ({8: 2}, 16)


def test_what_comes_after_the_end_has_no_time_yet() -> None:
    """The next offset is the topic's end."""
    assert Log(2).told(0, END_OFFSET) == ({0: 1, 8: 2}, 16)


@pytest.mark.parametrize(("start", "end"), [(8, 8), (16, 8), (16, 99), (99, 200)])
def test_a_range_without_bytes_has_no_batch(start: int, end: int) -> None:
    """Wherever it lies."""
    times, next_offset = Log(2).told(start, end)
    assert (times, next_offset) == ({}, min(end, 16))


def test_one_answer_tells_of_so_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next offset leads to the rest, until all is told."""
    monkeypatch.setattr(batch_times, "_MOST", 2)
    log = Log(5)
    assert log.told(0, 40) == ({0: 1, 8: 2}, 16)
    assert log.told(16, 40) == ({16: 3, 24: 4}, 32)
    assert log.told(32, 40) == ({32: 5}, 40)
