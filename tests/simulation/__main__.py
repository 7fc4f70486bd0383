"""``python -m tests.simulation``: search seeds, or replay one."""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants import STORE, Mutant, Search, write_matrix
from tests.simulation.report import describe, describe_ring, describe_server, describe_slot
from tests.simulation.ring.planted import RING, RING_MUTANTS
from tests.simulation.server.planted import SERVER, SERVER_MUTANTS
from tests.simulation.slot.planted import SLOT, SLOT_MUTANTS
from tests.simulation.store.planted import MUTANTS

_EVERY: Final = 200
"""Runs after which a long search writes down what it has done."""


class Searched:
    """What a search has covered.

    Args:
        first: its first seed.
        path: where to write it down, or None.

    Attributes:
        runs: how many plans were carried out.
        violations: how many of them broke a promise.
    """

    def __init__(self, first: int, path: Path | None) -> None:
        self.runs = 0
        self.violations = 0
        self._first = first
        self._path = path
        self._sums: Counter[str] = Counter()
        self._fired: Counter[str] = Counter()

    def add(self, result: Any) -> None:
        """Count the result of a run, whichever world it was of."""
        self.runs += 1
        self.violations += result.violation is not None
        for name in ("operations", "acknowledged", "crashes", "starts", "answers", "floods"):
            self._sums[name] += getattr(result, name, 0)
        self._fired += Counter(result.fired)
        if self.runs % _EVERY == 0:
            self.write()

    def write(self) -> None:
        """Write it down as JSON, if that is wanted."""
        if self._path is None:
            return
        found = {
            "first_seed": self._first,
            "runs": self.runs,
            "violations": self.violations,
            **{name: count for name, count in self._sums.items() if count},
            "faults": dict(self._fired.most_common()),
        }
        self._path.write_text(json.dumps(found, indent=2) + "\n")


def read_arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    world = parser.add_mutually_exclusive_group()
    world.add_argument("--ring", action="store_true", help="the store-and-forward ring")
    world.add_argument("--slot", action="store_true", help="a slot that clients hand over")
    world.add_argument("--server", action="store_true", help="the whole server and its peers")
    parser.add_argument("--seed", type=int, help="replay this one, and shrink it if it fails")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed of a search")
    parser.add_argument("--count", type=int, default=200, help="how many seeds to search")
    parser.add_argument("--seconds", type=float, default=inf, help="search no longer than this")
    parser.add_argument("--all", action="store_true", help="go on after the first find")
    parser.add_argument("--record", type=Path, help="write down here what was searched")
    parser.add_argument("--matrix", action="store_true", help="write down how mutants are found")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        arguments.first, arguments.count = arguments.seed, 1
    return arguments


def choose(
    arguments: argparse.Namespace,
) -> tuple[Search, tuple[Mutant, ...], Callable[[Any], str]]:
    """Return a world, its planted faults, and how a failure in it is told."""
    if arguments.ring:
        return RING, RING_MUTANTS, describe_ring
    if arguments.slot:
        return SLOT, SLOT_MUTANTS, describe_slot
    if arguments.server:
        return SERVER, SERVER_MUTANTS, describe_server
    return STORE, MUTANTS, describe


def main() -> int:
    """Search or replay; return 1 when something was found."""
    arguments = read_arguments()
    search, mutants, tell = choose(arguments)
    if arguments.matrix:
        return int(write_matrix(mutants, search) > 0)
    begun, searched = time.perf_counter(), Searched(arguments.first, arguments.record)
    for seed in range(arguments.first, arguments.first + arguments.count):
        if time.perf_counter() - begun > arguments.seconds:
            break
        plan = search.make_plan(seed)
        result = search.carry_out(plan)
        searched.add(result)
        if arguments.seed is not None:
            print(f"seed {seed}: {result}")
        if result.violation is not None:
            where = f"{plan.template}, {plan.settings.mode}"
            print(f"seed {seed} ({where}): {result.violation}", flush=True)
            if not arguments.all:
                print(tell(plan))
                break
    searched.write()
    took = time.perf_counter() - begun
    print(f"{searched.violations} found in {searched.runs} runs, {took:.1f} s")
    return int(searched.violations > 0)


if __name__ == "__main__":
    sys.exit(main())
