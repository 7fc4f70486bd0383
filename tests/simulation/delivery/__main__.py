"""``python -m tests.simulation.delivery``: search seeds, or replay one."""

import sys

from tests.simulation.delivery.plan import make_plan
from tests.simulation.delivery.world import carry_out
from tests.simulation.groups.__main__ import main

if __name__ == "__main__":
    sys.exit(main(make_plan, carry_out, "delivery"))
