"""Planted faults are found: the search is worth something."""

import os

import pytest
from tests.simulation.mutants import Mutant, is_found
from tests.simulation.store.planted import MUTANTS

WHOLE = "LANCE_SIM_MUTANTS" in os.environ
"""Whether each mutant is hunted from the first seed on; else only its known seed is tried."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_is_found(mutant: Mutant) -> None:
    """A promise is broken that the store without the fault keeps."""
    assert is_found(mutant, whole=WHOLE), f"it survives: {mutant.name}"


def test_there_are_enough_mutants() -> None:
    """At least forty, each with a name of its own."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40
