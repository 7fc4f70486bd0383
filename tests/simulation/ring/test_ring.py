"""The ring in the simulated world: no plan breaks a promise, and planted faults are found."""

import os
from collections import Counter

import pytest
from tests.simulation.mutants import Mutant, is_found
from tests.simulation.report import describe_ring
from tests.simulation.ring.plan import make_plan
from tests.simulation.ring.planted import RING, RING_MUTANTS
from tests.simulation.ring.run import RingRun, carry_out

RUNS = int(os.environ.get("LANCE_RING_RUNS", "1000"))
"""Plans that are carried out; the long profile sets many more."""
BLOCK = 100
WHOLE = "LANCE_SIM_MUTANTS" in os.environ


@pytest.mark.parametrize("first", range(0, RUNS, BLOCK))
def test_what_was_promised_is_delivered(first: int) -> None:
    """Frames survive what their durability promises, under their number, once and in order."""
    appended, opened, crashes, fired = 0, 0, 0, Counter[str]()
    for seed in range(first, first + BLOCK):
        result = carry_out(make_plan(seed))
        assert result.violation is None, describe_ring(make_plan(seed))
        appended += result.appended
        opened += result.opened
        crashes += result.crashes
        fired += result.fired
    assert appended > 10 * BLOCK, "too little was stored for the search to mean anything"
    assert min(opened, crashes) > BLOCK, "too little was stopped"
    assert len(fired) > 5, "too few faults happened"


@pytest.mark.parametrize("mutant", RING_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_of_the_ring_is_found(mutant: Mutant) -> None:
    """A promise is broken that the ring without the fault keeps."""
    assert is_found(mutant, RING, whole=WHOLE), f"it survives: {mutant.name}"


@pytest.mark.parametrize("seed", range(6))
def test_a_seed_gives_the_same_run_of_a_ring_each_time(seed: int) -> None:
    """The same frames, at the same time, and the same bytes on the disk."""

    def trace() -> tuple[object, ...]:
        run = RingRun(make_plan(seed))
        result = run.carry_out()
        files = run.disk.files(run.slot)
        return str(result), run.world.now, [(str(p), bytes(f.content)) for p, f in files]

    first = trace()
    assert first == trace()
