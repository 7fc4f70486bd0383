"""Mutants: the golden server with exactly one hook replaced."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

Hook = Callable[Concatenate[Any, P], R]


@dataclass(frozen=True, slots=True)
class Mutant(Generic[S]):
    """One way to be wrong.

    Attributes:
        id: Its name, a verb phrase.
        title: How it is wrong, as a sentence.
        hook: The one rule it replaces.
        replacement: What stands in its place.
        golden: The rules of the golden server by dialect.
        dialects: Where it is wrong; elsewhere it may be right.
        asked: Globs of the cases that it is put to; every case without any.
    """

    id: str
    title: str
    hook: str
    replacement: Callable[..., object]
    golden: Mapping[str, type[S]]
    dialects: tuple[str, ...]
    asked: tuple[str, ...] = ()

    def rules(self, dialect: str) -> S:
        """Fresh rules of a server of this dialect, with the one hook replaced."""
        base = self.golden[dialect]
        broken = type(f"{base.__name__}-{self.id}", (base,), {self.hook: self.replacement})
        return cast("S", broken())


class Mutants(Generic[S]):
    """The mutants of one suite, filled by its modules.

    Args:
        golden: The rules of the golden server by dialect.
    """

    def __init__(self, golden: Mapping[str, type[S]]) -> None:
        self._golden = golden
        self._all: dict[str, Mutant[S]] = {}

    def __repr__(self) -> str:
        return f"<Mutants {len(self._all)}>"

    def mutant(
        self,
        hook: Hook[P, R],
        *,
        only: str | tuple[str, ...] | None = None,
        asked: tuple[str, ...] = (),
    ) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
        """Register a function as the replacement of one hook.

        Args:
            hook: The hook, a method of the rules; the function must have its signature.
            only: The dialects in which this is wrong; all of them by default.
            asked: Globs of the cases that it is put to, where others have nothing to do with it.
        """

        def register(
            replacement: Callable[Concatenate[S, P], R],
        ) -> Callable[Concatenate[S, P], R]:
            mutant_id = replacement.__name__.replace("_", "-")
            assert mutant_id not in self._all, f"two mutants are called {mutant_id}"
            where = (only,) if isinstance(only, str) else only
            self._all[mutant_id] = Mutant(
                id=mutant_id,
                title=getdoc(replacement) or "",
                hook=hook.__name__,
                replacement=replacement,
                golden=self._golden,
                dialects=where or tuple(self._golden),
                asked=asked,
            )
            return replacement

        return register

    def registered(self) -> Mapping[str, Mutant[S]]:
        """Every mutant by its id."""
        return self._all


def golden(server: S) -> S:
    """The server as it would be without the mutation, for hooks that change little."""
    return cast("S", super(type(server), server))
