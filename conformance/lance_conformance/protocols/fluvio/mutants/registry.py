"""The list of mutants, filled by the modules of this package."""

from lance_conformance.protocols.fluvio.golden.server import DIALECT, Rules
from lance_conformance.protocols.mutation import Mutants, golden

__all__ = ["MUTANTS", "golden", "mutant"]

MUTANTS: Mutants[Rules] = Mutants({DIALECT: Rules})
mutant = MUTANTS.mutant
