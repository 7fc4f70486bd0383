"""All planted faults."""

from typing import Final

from tests.simulation.planted_sequences import SEQUENCES
from tests.simulation.planted_steps import STEPS

MUTANTS: Final = SEQUENCES + STEPS
