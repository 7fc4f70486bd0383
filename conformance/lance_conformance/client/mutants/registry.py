"""The list of mutants, filled by the modules of this package."""

from lance_conformance.client.golden.client import GOLDEN
from lance_conformance.client.golden.specified import Specified
from lance_conformance.engine.selftest.mutation import Mutants, golden

__all__ = ["MUTANTS", "all_mutants", "golden", "mutant"]

MUTANTS: Mutants[Specified] = Mutants(GOLDEN)
mutant = MUTANTS.mutant
all_mutants = MUTANTS.registered
