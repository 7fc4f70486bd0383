"""All planted faults."""

from typing import Final

from tests.simulation.store.planted_sequences import SEQUENCES
from tests.simulation.store.planted_steps import STEPS

MUTANTS: Final = SEQUENCES + STEPS
