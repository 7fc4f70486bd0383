"""A slot with symbols passes between clients: no plan breaks a promise, planted faults are found.

``LANCE_SLOT_RUNS`` says how many plans are carried out.
"""

import os
from collections import Counter

import pytest
from tests.simulation.mutants import Mutant, is_found
from tests.simulation.report import describe_slot
from tests.simulation.slot.plan import make_plan
from tests.simulation.slot.planted import SLOT, SLOT_MUTANTS
from tests.simulation.slot.run import SlotRun

RUNS = int(os.environ.get("LANCE_SLOT_RUNS", "400"))
BLOCK = 100
WHOLE = "LANCE_SIM_MUTANTS" in os.environ


@pytest.mark.parametrize("first", range(0, RUNS, BLOCK))
def test_each_row_arrives_with_its_own_symbol(first: int) -> None:
    """Whoever had the slot in between, through kills, losses of power and errors of the disk."""
    appended, opened, turns = 0, 0, Counter[str]()
    for seed in range(first, first + BLOCK):
        run = SlotRun(make_plan(seed))
        result = run.carry_out()
        assert result.violation is None, describe_slot(make_plan(seed))
        appended += result.appended
        opened += result.opened
        turns += run.turns
    assert appended > 10 * BLOCK, "too little was stored for the search to mean anything"
    assert opened > BLOCK
    assert min(turns["go went well"], turns["python went well"]) > BLOCK // 10


@pytest.mark.parametrize("mutant", SLOT_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_of_a_slot_is_found(mutant: Mutant) -> None:
    """A promise is broken that is kept without the fault."""
    assert is_found(mutant, SLOT, whole=WHOLE), f"it survives: {mutant.name}"


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_same_run_of_a_slot_each_time(seed: int) -> None:
    """The same frames, at the same time, and the same bytes on the disk."""

    def trace() -> tuple[object, ...]:
        run = SlotRun(make_plan(seed))
        result = run.carry_out()
        files = run.disk.files(run.slot)
        return str(result), run.world.now, [(str(p), bytes(f.content)) for p, f in files]

    first = trace()
    assert first == trace()
