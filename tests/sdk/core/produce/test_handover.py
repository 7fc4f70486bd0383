"""Batches reach the journal once, in order, and are accounted for (SF-32, SF-33)."""

import math
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.events import Event, OffloadedTask
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk._protocol.produce.journal_seam import SpilledBatch, SpillOutcome
from lance_sdk._protocol.produce.journal_spooler import JournalSpooler
from lance_sdk.errors import LanceError, RecordTooLarge


class FullError(LanceError):
    """No room at the moment."""

    retryable = True


class ScriptedSpill:
    """A journal that answers as it is told: ``stored``, ``full`` or ``refused``, in turn."""

    def __init__(self, *script: str) -> None:
        self.script = deque(script)
        self.stored: list[SpilledBatch] = []
        self.settled: list[SpillOutcome] = []
        self.drained = True

    def open(self) -> None:
        """Nothing to open."""

    def append(self, batch: SpilledBatch) -> int:
        """Do what the script says next; store when it is over."""
        word = self.script.popleft() if self.script else "stored"
        if word == "full":
            raise FullError("full")
        if word == "refused":
            raise RecordTooLarge("too large")
        self.stored.append(batch)
        self.drained = False
        return len(self.stored) - 1

    def take_settled(self) -> list[SpillOutcome]:
        """Take what was settled."""
        settled, self.settled = self.settled, []
        return settled

    def close(self, timeout: float) -> int:
        """Nothing to close."""
        del timeout
        return 0


class Rig:
    """A handover and a driver for its offloaded tasks."""

    def __init__(self, *script: str, always: bool = False) -> None:
        self.spill = ScriptedSpill(*script)
        self.events: list[Event] = []
        self.outcomes: list[tuple[bytes, LanceError | None]] = []
        self.values: dict[int, bytes] = {}
        self.now = 0.0
        self.spooler = JournalSpooler(
            self.spill, always=always, events=self.events, stored=self.stored, settled=self.settled
        )

    def stored(self, batch: Batch) -> None:
        """Let a batch's bytes go, as the sender does."""
        batch.let_go()

    def settled(self, batch: Batch, error: LanceError | None, now: float) -> None:
        """Take note of an outcome."""
        del now
        self.outcomes.append((self.values[id(batch)], error))

    def batch(self, value: bytes) -> Batch:
        """Return a sealed batch of one record."""
        batch = Batch(1, self.now, math.inf, None)
        batch.add(value, 1)
        batch.seal()
        self.values[id(batch)] = value
        return batch

    def run(self, turns: int = 50) -> None:
        """Step and run offloaded tasks while time passes."""
        for _ in range(turns):
            self.now = max(self.now + 0.01, min(self.spooler.next_deadline(), self.now + 1.0))
            self.spooler.step(self.now)
            offloaded_tasks = [event for event in self.events if isinstance(event, OffloadedTask)]
            self.events.clear()
            for offloaded in offloaded_tasks:
                offloaded.done(offloaded.work(), None, self.now)


@given(st.lists(st.sampled_from(["stored", "full", "refused"]), max_size=30))
def test_whatever_the_journal_says_the_order_stays(script: list[str]) -> None:
    """Each batch is stored once or refused once, and none overtakes another."""
    rig = Rig(*script)
    batches = [rig.batch(b"%d" % number) for number in range(10)]
    rig.spooler.begin(batches)
    rig.run(500)
    refused = [value for value, error in rig.outcomes if error is not None]
    stored = [batch.payload[5:] for batch in rig.spill.stored]
    assert sorted([*refused, *stored], key=int) == [b"%d" % number for number in range(10)]
    assert stored == sorted(stored, key=int)
    assert rig.spooler.idle


def test_the_outcomes_find_their_batches() -> None:
    """By ticket; those of an earlier process find none."""
    rig = Rig()
    rig.spooler.begin([rig.batch(b"a"), rig.batch(b"b")])
    rig.run(3)
    rig.spill.settled = [
        SpillOutcome(99, 7, 1),
        SpillOutcome(0, 0x701, 1),
        SpillOutcome(1, 0x702, 1, RecordTooLarge("no")),
    ]
    rig.run(10)
    assert [(value, type(error)) for value, error in rig.outcomes] == [
        (b"a", type(None)),
        (b"b", RecordTooLarge),
    ]


def test_an_outcome_is_not_looked_for_before_its_ticket_is_known() -> None:
    """A journal may deliver a batch while the offloaded task that stores it is still under way."""
    rig = Rig()
    rig.spooler.begin([rig.batch(b"a")])
    rig.spooler.step(0.0)
    (offloaded,) = (event for event in rig.events if isinstance(event, OffloadedTask))
    result = offloaded.work()
    rig.spill.settled = [SpillOutcome(0, 0x701, 1)]
    rig.spooler.step(10.0)
    offloaded.done(result, None, 10.0)
    rig.events.clear()
    rig.now = 10.0
    rig.run(3)
    assert rig.outcomes == [(b"a", None)]


def test_a_drained_journal_is_left() -> None:
    """Unless everything goes through it anyway."""
    for always in (False, True):
        rig = Rig(always=always)
        rig.spooler.begin([rig.batch(b"a")])
        rig.run(3)
        assert rig.spooler.active
        rig.spill.settled, rig.spill.drained = [SpillOutcome(0, 0x701, 1)], True
        rig.run(10)
        assert rig.spooler.active is always


def test_looking_gets_rarer_while_nothing_happens() -> None:
    """Half a second at most, so a long outage costs next to nothing."""
    rig = Rig()
    rig.spooler.begin([rig.batch(b"a")])
    rig.run(3)
    waits = []
    for _ in range(12):
        before, rig.now = rig.now, rig.spooler.next_deadline()
        waits.append(round(rig.now - before, 6))
        rig.spooler.step(rig.now)
    assert waits[-1] == pytest.approx(0.5)
    assert waits == sorted(waits)
