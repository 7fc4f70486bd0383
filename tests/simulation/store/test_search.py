"""The search: no plan breaks a promise of the store."""

import os
import sys

import pytest
from tests.simulation.report import describe
from tests.simulation.store.plan import plans
from tests.simulation.store.run import Result, carry_out

RUNS = int(os.environ.get("LANCE_SIM_RUNS", "700"))
"""Plans that each Python carries out; the long profile sets many more."""
BLOCK = 50
FIRST = int(os.environ.get("LANCE_SIM_FIRST", RUNS * (sys.version_info.minor - 11)))
"""The first seed; each Python that the tests run on takes others."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, BLOCK))
def test_no_sequence_of_faults_breaks_a_promise(first: int) -> None:
    """Acknowledged records stay, refused ones stay away, and the store recovers."""
    total = Result()
    for plan in plans(first, BLOCK):
        result = carry_out(plan)
        assert result.violation is None, describe(plan)
        total.acknowledged += result.acknowledged
        total.crashes += result.crashes
        total.fired += result.fired
    assert total.acknowledged > BLOCK, "too little was stored for the search to mean anything"
    assert total.crashes > BLOCK, "too little was stopped"
    assert len(total.fired) > 5, "too few faults happened"
