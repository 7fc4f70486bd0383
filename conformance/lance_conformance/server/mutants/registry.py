"""The list of mutants, filled by the modules of this package."""

from lance_conformance.engine.selftest.mutation import Mutant, Mutants, golden
from lance_conformance.server.golden.server import GOLDEN
from lance_conformance.server.golden.specified import Specified

__all__ = ["Mutant", "all_mutants", "golden", "mutant"]

_MUTANTS: Mutants[Specified] = Mutants(GOLDEN)
mutant = _MUTANTS.mutant
all_mutants = _MUTANTS.registered
