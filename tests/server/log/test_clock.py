"""The hybrid clock: times never fall, whatever the machine's clock does (AMB-37, AMB-51)."""

import logging
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.log.clock import ClockHealth, ClockWatch, health_of
from lance_server.log.log_manager import LogOptions
from lance_server.log.segments.sidecar_scan import read_entries
from lance_server.testing import LogDriver, ManualClock, MemoryStorage
from lance_spec.messages.engine import SidecarEntry

START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
JUMPS = st.integers(-10 * SECOND, 10 * SECOND) | st.integers(-5000, 5000)


@dataclass
class Machine:
    """A log on a machine whose clock is set as a test likes.

    Attributes:
        arrived: what the clock showed when each batch came, with the batch's offset.
    """

    storage: MemoryStorage = field(default_factory=MemoryStorage)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    arrived: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Open the log; segments are small, so that there are many."""
        options = LogOptions(segment_size=40, compaction=None)
        self.log = LogDriver(self.storage, options=options, clock=self.clock)

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.log.close()
        self.start()

    def store(self, jump_ns: int) -> None:
        """Set the clock, and store a batch."""
        self.clock.now_ns = max(0, self.clock.now_ns + jump_ns)
        shown = self.clock.now_ns + 1000
        offset = self.log.store([b"one"], batch_id=len(self.arrived) + 1)
        self.arrived.append((shown, offset))

    def offset_at(self, time_ns: int) -> int:
        """Look a time up."""
        found = self.log.engine.offset_for_time(self.log.engine.topic(0), time_ns)
        self.log.scheduler.run_all()
        return found.result()

    def entries(self) -> list[SidecarEntry]:
        """Return the entries of every batch, in the order of the log."""
        found: list[SidecarEntry] = []
        for segment in self.log.engine.topic(0).partition.segment_list:
            sidecar = self.storage.open(segment.sidecar_path)
            found += [each for each in read_entries(self.storage, sidecar) if each is not None]
            self.storage.close(sidecar)
        return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(JUMPS, st.booleans()), min_size=1, max_size=12), st.data())
def test_a_lookup_is_exact_whatever_the_clock_does(
    steps: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """The first batch of that time or later, without a window; nothing that came then is missed."""
    machine = Machine()
    for jump, restarts in steps:
        machine.store(jump)
        if restarts:
            machine.restart()
    times = [entry.server_time_ns for entry in machine.entries()]
    assert times == sorted(times)
    wanted = data.draw(st.sampled_from(times)) + data.draw(st.integers(-2000, 2000))
    found = machine.offset_at(wanted)
    behind = [
        offset for time, (_, offset) in zip(times, machine.arrived, strict=True) if time >= wanted
    ]
    assert found == (behind[0] if behind else machine.log.end())
    assert all(found <= offset for shown, offset in machine.arrived if shown >= wanted)


def test_a_clock_that_is_set_back_keeps_the_last_time(caplog: pytest.LogCaptureFixture) -> None:
    """Batches get the last one's time until the clock has caught up; the log says so, once."""
    machine = Machine()
    with caplog.at_level(logging.INFO, "lance_server.log.clock"):
        for jump in (0, -5 * SECOND, 0, 10 * SECOND):
            machine.store(jump)
            health = health_of(machine.log.engine.clock_behind_ns)
            expected = ClockHealth.CRITICAL if 0 < len(machine.arrived) - 1 < 3 else None
            assert health is (expected or ClockHealth.HEALTHY)
    times = [entry.server_time_ns for entry in machine.entries()]
    assert times[0] == times[1] == times[2] < times[3]
    messages = [each.message for each in caplog.records if each.name == "lance_server.log.clock"]
    assert len(messages) == 2
    assert "5.0 s behind the last batch of topic" in messages[0]
    assert "caught up" in messages[1]


@pytest.mark.parametrize(
    ("behind_ns", "health"),
    [
        (0, ClockHealth.HEALTHY),
        (99_999_999, ClockHealth.HEALTHY),
        (100_000_000, ClockHealth.DEGRADED),
        (999_999_999, ClockHealth.DEGRADED),
        (1_000_000_000, ClockHealth.CRITICAL),
    ],
)
def test_the_limits_are_those_of_the_design(behind_ns: int, health: ClockHealth) -> None:
    """Design section 29.3: 100 ms and a second."""
    assert health_of(behind_ns) is health


def test_a_clock_that_gets_worse_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    """Once for each level."""
    watch = ClockWatch()
    with caplog.at_level(logging.WARNING, "lance_server.log.clock"):
        for behind in (1, SECOND // 5, SECOND // 4, 3 * SECOND, SECOND // 5, 4 * SECOND):
            watch.note(behind, "orders")
    assert [record.message[:27] for record in caplog.records] == [
        "the clock is 0.2 s behind t",
        "the clock is 3.0 s behind t",
    ]
