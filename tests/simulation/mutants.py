"""Planted faults: each puts one wrong behaviour into the store, and the search must find it.

A mutant is tried on the plans of rising seeds until one breaks a promise that the store without
it keeps. The seeds that it took stand in ``store/matrix.json``.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.simulation.store.plan import make_plan
from tests.simulation.store.run import carry_out

MATRIX: Final = Path(__file__).parent / "store" / "matrix.json"
MOST: Final = 1000
"""Plans that a mutant may survive."""


class Patch(NamedTuple):
    """One attribute that is another one while a mutant lives.

    Attributes:
        owner: a class or a module.
        name: of the attribute.
        make: returns the wrong behaviour; gets the right one.
    """

    owner: Any
    name: str
    make: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault.

    Attributes:
        name: what it is called.
        patches: what it changes.
        templates: those of the plans that it is tried on; empty for all.
        modes: words of which one must be in a plan's mode; empty for all.
    """

    name: str
    patches: tuple[Patch, ...]
    templates: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Change the store inside a ``with`` block."""
        before: list[tuple[Any, str, Any]] = []
        try:
            for owner, name, make in self.patches:
                right = vars(owner)[name]
                before.append((owner, name, right))
                plain = right.__func__ if isinstance(right, (classmethod, staticmethod)) else right
                wrong = make(plain)
                kind = type(right) if plain is not right else None
                setattr(owner, name, wrong if kind is None else kind(wrong))
            yield
        finally:
            for owner, name, right in reversed(before):
                setattr(owner, name, right)

    def meets(self, plan: Any) -> bool:
        """Whether it is tried on a plan."""
        return (not self.templates or plan.template in self.templates) and (
            not self.modes or any(word in plan.settings.mode for word in self.modes)
        )


class Find(NamedTuple):
    """How a mutant was found.

    Attributes:
        seed: of the plan.
        runs: plans that it took.
        violation: the promise that was broken.
    """

    seed: int
    runs: int
    violation: str


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched.

    Attributes:
        make_plan: returns the plan of a seed.
        carry_out: carries it out.
        matrix: the file that says how its mutants are found.
    """

    make_plan: Callable[[int], Any]
    carry_out: Callable[[Any], Any]
    matrix: Path


STORE: Final = Search(make_plan, carry_out, MATRIX)


def hunt(mutant: Mutant, most: int = MOST, search: Search = STORE) -> Find | None:
    """Return how a mutant is found; None when it survives.

    Args:
        mutant: the planted fault.
        most: plans that it is tried on, at most.
        search: whose plans.
    """
    runs = 0
    for seed in count():
        plan = search.make_plan(seed)
        if not mutant.meets(plan):
            continue
        runs += 1
        with mutant.planted():
            violation = search.carry_out(plan).violation
        if violation is not None and "has no attribute" in violation:
            raise AssertionError(f"{mutant.name} does not fit the code any more: {violation}")
        if violation is not None and search.carry_out(plan).violation is None:
            return Find(seed, runs, violation)
        if runs >= most:
            return None
    raise AssertionError("seeds have no end")


def find_at(mutant: Mutant, seed: int, search: Search = STORE) -> str | None:
    """Return the promise that a mutant breaks under a seed, and the code without it keeps."""
    plan = search.make_plan(seed)
    with mutant.planted():
        violation: str | None = search.carry_out(plan).violation
    return violation if search.carry_out(plan).violation is None else None


def load_matrix(search: Search = STORE) -> dict[str, dict[str, Any]]:
    """Return how each mutant was found when that was written down."""
    matrix: dict[str, dict[str, Any]] = json.loads(search.matrix.read_text())
    return matrix


def write_matrix(mutants: Iterable[Mutant], search: Search = STORE) -> int:
    """Write down how each mutant is found; return how many survive."""
    matrix, survivors = {}, 0
    for mutant in mutants:
        find = hunt(mutant, search=search)
        survivors += find is None
        matrix[mutant.name] = {} if find is None else find._asdict()
        print(f"{mutant.name}: {find}")  # noqa: T201 - it takes minutes
    search.matrix.write_text(json.dumps(matrix, indent=1) + "\n")
    return survivors


def is_found(mutant: Mutant, search: Search = STORE, *, whole: bool) -> bool:
    """Whether a mutant is found: at the seed that is known, or else by a hunt.

    Args:
        mutant: the planted fault.
        search: whose plans.
        whole: hunt it from the first seed on, whatever is known.
    """
    seed = load_matrix(search).get(mutant.name, {}).get("seed")
    known = seed is not None and find_at(mutant, seed, search) is not None
    # the plan of a seed changes with the simulation
    return (known and not whole) or hunt(mutant, search=search) is not None


def nothing(_: Any) -> Callable[..., None]:
    """Return a function that does nothing."""
    return lambda *_args, **_named: None


def always(value: object) -> Callable[[Any], Callable[..., Any]]:
    """Return a maker of functions that return a value."""
    return lambda _: lambda *_args, **_named: value
