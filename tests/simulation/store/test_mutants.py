"""Planted faults are found: the search is worth something."""

import json
import os

import pytest
from tests.simulation.mutants import MATRIX, Mutant, is_found
from tests.simulation.store.planted import MUTANTS

WHOLE = "LANCE_SIM_MUTANTS" in os.environ
"""Whether each mutant is hunted from the first seed on; else only its known seed is tried."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_is_found(mutant: Mutant) -> None:
    """A promise is broken that the store without the fault keeps."""
    assert is_found(mutant, whole=WHOLE), f"it survives: {mutant.name}"


def test_each_mutant_has_a_name_of_its_own() -> None:
    """The matrix lists them by their names, all of them."""
    assert sorted(mutant.name for mutant in MUTANTS) == sorted(json.loads(MATRIX.read_text()))
