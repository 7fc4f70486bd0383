"""What a mutant is: the golden server with exactly one hook replaced."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from lance_conformance.golden.server import GOLDEN
from lance_conformance.golden.specified import Specified

P = ParamSpec("P")
R = TypeVar("R")

BOTH = ("specified", "deployed")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One way to be wrong.

    Attributes:
        id: Its name, a verb phrase.
        title: How it is wrong, as a sentence.
        hook: The one rule it replaces.
        replacement: What stands in its place.
        dialects: Where it is wrong; elsewhere it may be what the published server does.
    """

    id: str
    title: str
    hook: str
    replacement: Callable[..., object]
    dialects: tuple[str, ...]

    def rules(self, dialect: str) -> Specified:
        """A fresh golden server of this dialect, with the one hook replaced."""
        base = GOLDEN[dialect]
        broken = type(f"{base.__name__}-{self.id}", (base,), {self.hook: self.replacement})
        return cast("Specified", broken())


_MUTANTS: dict[str, Mutant] = {}


Hook = Callable[Concatenate[Any, P], R]
Replacement = Callable[Concatenate[Specified, P], R]


def mutant(
    hook: Hook[P, R], *, only: str | None = None
) -> Callable[[Replacement[P, R]], Replacement[P, R]]:
    """Register a function as the replacement of one hook.

    Args:
        hook: The hook, a method of `Specified`; the function must have its signature.
        only: The one dialect in which this is wrong.
    """

    def register(replacement: Replacement[P, R]) -> Replacement[P, R]:
        mutant_id = replacement.__name__.replace("_", "-")
        assert mutant_id not in _MUTANTS, f"two mutants are called {mutant_id}"
        _MUTANTS[mutant_id] = Mutant(
            id=mutant_id,
            title=getdoc(replacement) or "",
            hook=hook.__name__,
            replacement=replacement,
            dialects=(only,) if only else BOTH,
        )
        return replacement

    return register


def golden(server: Specified) -> Specified:
    """The server as it would be without the mutation, for hooks that change little."""
    return cast("Specified", super(type(server), server))


def all_mutants() -> Mapping[str, Mutant]:
    """Every mutant by its id."""
    return _MUTANTS
