"""``python -m tests.simulation.groups``: search seeds, or replay one."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.simulation.groups.plan import make_plan
from tests.simulation.groups.shrink import describe
from tests.simulation.groups.world import carry_out


def main(
    make: Callable[[int], Any], run: Callable[[Any], str | None], search: str = "groups"
) -> int:
    """Search or replay; return 1 when something was found.

    Args:
        make: returns the plan of a seed.
        run: carries a plan out.
        search: the folder of the search.
    """
    program = f"python -m tests.simulation.{search}"
    parser = argparse.ArgumentParser(prog=program, description="Search seeds, or replay one.")
    parser.add_argument("--seed", type=int, help="replay this one, and shrink it if it fails")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed of a search")
    parser.add_argument("--count", type=int, default=200, help="how many seeds to search")
    parser.add_argument("--all", action="store_true", help="go on after the first find")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        plan = make(arguments.seed)
        violation = run(plan)
        print(f"seed {plan.seed} holds" if violation is None else describe(plan, run, search))
        return int(violation is not None)
    begun, found, seed = time.perf_counter(), 0, arguments.first
    for seed in range(arguments.first, arguments.first + arguments.count):
        plan = make(seed)
        if (violation := run(plan)) is not None:
            found += 1
            print(f"seed {seed}: {violation}", flush=True)
            if not arguments.all:
                print(describe(plan, run, search))
                break
    count, took = seed - arguments.first + 1, time.perf_counter() - begun
    print(f"{found} found in {count} runs, {took:.1f} s")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(make_plan, carry_out))
