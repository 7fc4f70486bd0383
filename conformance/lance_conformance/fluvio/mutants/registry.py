"""The list of mutants, filled by the modules of this package."""

from lance_conformance.engine.selftest.mutation import Mutants, golden
from lance_conformance.fluvio.golden.server import DIALECT, Rules

__all__ = ["MUTANTS", "golden", "mutant"]

MUTANTS: Mutants[Rules] = Mutants({DIALECT: Rules})
mutant = MUTANTS.mutant
