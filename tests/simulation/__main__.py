"""``python -m tests.simulation``: search seeds, or replay one."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.simulation.mutants import STORE, write_matrix
from tests.simulation.planted import MUTANTS
from tests.simulation.report import describe, describe_ring, describe_server
from tests.simulation.ring.planted import RING, RING_MUTANTS
from tests.simulation.server.planted import SERVER, SERVER_MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Search or replay; return 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    world = parser.add_mutually_exclusive_group()
    world.add_argument("--ring", action="store_true", help="the store-and-forward ring")
    world.add_argument("--server", action="store_true", help="the whole server and its peers")
    parser.add_argument("--seed", type=int, help="replay this one, and shrink it if it fails")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed of a search")
    parser.add_argument("--count", type=int, default=200, help="how many seeds to search")
    parser.add_argument("--all", action="store_true", help="go on after the first find")
    parser.add_argument("--matrix", action="store_true", help="write down how mutants are found")
    arguments = parser.parse_args()
    search, mutants = (RING, RING_MUTANTS) if arguments.ring else (STORE, MUTANTS)
    tell: Callable[[Any], str] = describe_ring if arguments.ring else describe
    if arguments.server:
        search, mutants, tell = SERVER, SERVER_MUTANTS, describe_server
    if arguments.matrix:
        return int(write_matrix(mutants, search) > 0)
    if arguments.seed is not None:
        arguments.first, arguments.count = arguments.seed, 1
    begun, found, seed = time.perf_counter(), 0, arguments.first
    for seed in range(arguments.first, arguments.first + arguments.count):
        plan = search.make_plan(seed)
        result = search.carry_out(plan)
        if arguments.seed is not None:
            print(f"seed {seed}: {result}")
        if result.violation is not None:
            found += 1
            print(f"seed {seed} ({plan.template}, {plan.settings.mode}): {result.violation}")
            if not arguments.all:
                print(tell(plan))
                break
    took = time.perf_counter() - begun
    print(f"{found} found in {seed - arguments.first + 1} runs, {took:.1f} s")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
