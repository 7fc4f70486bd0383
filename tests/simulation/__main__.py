"""``python -m tests.simulation``: search seeds, or replay one."""

import argparse
import json
import sys
import time

from tests.simulation.mutants import MATRIX, MUTANTS, hunt
from tests.simulation.plan import make_plan
from tests.simulation.report import describe
from tests.simulation.run import Result, carry_out


def main() -> int:
    """Search or replay; return 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one, and shrink it if it fails")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed of a search")
    parser.add_argument("--count", type=int, default=200, help="how many seeds to search")
    parser.add_argument("--all", action="store_true", help="go on after the first find")
    parser.add_argument("--matrix", action="store_true", help="write down how mutants are found")
    arguments = parser.parse_args()
    if arguments.matrix:
        return _write_matrix()
    if arguments.seed is not None:
        return _replay(arguments.seed)
    return _search(arguments.first, arguments.count, everything=arguments.all)


def _replay(seed: int) -> int:
    plan = make_plan(seed)
    result = carry_out(plan)
    if result.violation is None:
        print(f"seed {seed} holds: {result}")
        return 0
    print(describe(plan))
    return 1


def _write_matrix() -> int:
    matrix, survivors = {}, 0
    for mutant in MUTANTS:
        find = hunt(mutant)
        survivors += find is None
        matrix[mutant.name] = {} if find is None else find._asdict()
        print(f"{mutant.name}: {find}")
    MATRIX.write_text(json.dumps(matrix, indent=1) + "\n")
    return int(survivors > 0)


def _search(first: int, count: int, *, everything: bool) -> int:
    begun, found, total = time.perf_counter(), 0, Result()
    for seed in range(first, first + count):
        plan = make_plan(seed)
        result = carry_out(plan)
        total.operations += result.operations
        total.acknowledged += result.acknowledged
        total.crashes += result.crashes
        total.starts += result.starts
        if result.violation is not None:
            found += 1
            print(f"seed {seed} ({plan.template}, {plan.settings.mode}): {result.violation}")
            if not everything:
                print(describe(plan))
                break
    took = time.perf_counter() - begun
    print(f"{found} found in {seed - first + 1} runs, {took:.1f} s; {total}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
