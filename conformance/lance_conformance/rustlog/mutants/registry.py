"""The list of mutants, filled by the modules of this package."""

from lance_conformance.engine.selftest.mutation import Mutants, golden
from lance_conformance.rustlog.golden.rules import GOLDEN, Rules

__all__ = ["BINARY", "BOTH", "JSON", "MUTANTS", "golden", "mutant"]

MUTANTS: Mutants[Rules] = Mutants(GOLDEN)
mutant = MUTANTS.mutant
BINARY = ("both", "binary")
JSON = ("both", "json")
BOTH = "both"
