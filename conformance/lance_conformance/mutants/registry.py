"""The list of mutants, filled by the modules of this package."""

from lance_conformance.golden.server import GOLDEN
from lance_conformance.golden.specified import Specified
from lance_conformance.protocols.mutation import Mutant, Mutants, golden

__all__ = ["Mutant", "all_mutants", "golden", "mutant"]

_MUTANTS: Mutants[Specified] = Mutants(GOLDEN)
mutant = _MUTANTS.mutant
all_mutants = _MUTANTS.registered
