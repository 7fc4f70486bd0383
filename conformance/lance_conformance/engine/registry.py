"""Cases, and the list of them that the modules of a suite fill."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Generic, TypeVar

from lance_conformance.engine.base_context import BaseContext
from lance_conformance.engine.conditions import Conditions
from lance_conformance.spec.clauses import Clause, Level

D = TypeVar("D", bound=BaseContext)
CaseFunction = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One question to the target.

    Attributes:
        id: ``area/slug``, never reused for another question.
        title: What must hold, as one sentence.
        details: What else there is to know.
        clause: The clause it asks about, which also gives its level.
        function: Asks it; returns when all is well and raises otherwise.
        among: The questions it is one of.
        dialects: Where it has a meaning.
        pinned_only: It would punish a target that serves several dialects on purpose.
        quick: It belongs to the quick profile.
        needs: What the target must be able to do, else there is nothing to ask.
        weight: How many times the usual deadline it gets, because it moves so much data.
        twin_of: Id of the case that asks the same of another answer or value, on purpose; what
            fails one fails the other.
        thorough: It is asked only in a thorough run, or when chosen by the seed.
        seconds: How long it waits on purpose, beyond its deadline.
        alone: No other case may be asked at the same time; it comes after the others.
    """

    id: str
    title: str
    details: str
    clause: Clause
    function: CaseFunction
    among: "CaseRegistry[Any]"
    dialects: tuple[str, ...]
    pinned_only: bool = False
    quick: bool = True
    needs: frozenset[str] = frozenset()
    weight: int = 1
    twin_of: str | None = None
    thorough: bool = False
    seconds: float = 0.0
    alone: bool = False

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def heading(self) -> str:
        """The title of its area."""
        return self.among.areas[self.area]

    @property
    def level(self) -> Level:
        """How much depends on it."""
        return self.clause.level

    @property
    def restarts(self) -> bool:
        """Whether it restarts the target."""
        return "restart" in self.needs

    @property
    def scored(self) -> bool:
        """Whether it can fail; a MAY is observed only."""
        return self.level is not Level.MAY


class CaseRegistry(Generic[D]):
    """The cases of one suite; its question functions take a `D`.

    Args:
        converse: Begins the conversation of a case under some conditions, with its id and budget.
        areas: The title of each area, in the order of reports. No two suites share an area.
        clauses: Returns the clauses by key.
        dialects: Where a case has a meaning that does not say otherwise.
    """

    def __init__(
        self,
        converse: Callable[[Conditions, str, float], D],
        areas: Mapping[str, str],
        clauses: Callable[[], Mapping[str, Clause]],
        dialects: tuple[str, ...],
    ) -> None:
        self.converse = converse
        self.areas = areas
        self._clauses = clauses
        self._dialects = dialects
        self._cases: dict[str, Case] = {}

    def __repr__(self) -> str:
        return f"<CaseRegistry {len(self._cases)} in {len(self.areas)} areas>"

    def case(
        self,
        case_id: str,
        clause: str,
        *,
        dialects: tuple[str, ...] | None = None,
        pinned_only: bool = False,
        quick: bool = True,
        needs: Collection[str] = (),
        weight: int = 1,
        twin_of: str | None = None,
        thorough: bool = False,
        seconds: float = 0.0,
        alone: bool = False,
    ) -> Callable[[Callable[[D], Awaitable[None]]], Callable[[D], Awaitable[None]]]:
        """Register a question; its docstring's first line is the rule in one sentence.

        Args:
            case_id: ``area/slug``.
            clause: Key into the clauses.
            dialects: Where the question has a meaning.
            pinned_only: Ask only a target that is held to one dialect by name.
            quick: Whether it belongs to the quick profile.
            needs: Capabilities without which the target is not asked.
            weight: How many times the usual deadline it gets.
            twin_of: Id of the case that it repeats for another answer or value, on purpose; a
                family may name its first member for all of them.
            thorough: Whether only a thorough run asks it.
            seconds: How long it waits on purpose.
            alone: Whether no other case may be asked at the same time.
        """

        def register(function: Callable[[D], Awaitable[None]]) -> Callable[[D], Awaitable[None]]:
            title, _, details = cleandoc(function.__doc__ or "").partition("\n")
            assert case_id not in self._cases, f"two cases are called {case_id}"
            assert case_id.partition("/")[0] in self.areas, f"{case_id} is in no area"
            self._cases[case_id] = Case(
                id=case_id,
                title=title,
                details=details.strip(),
                clause=self._clauses()[clause],
                function=function,
                among=self,
                dialects=dialects or self._dialects,
                pinned_only=pinned_only,
                quick=quick,
                needs=frozenset(needs),
                weight=weight,
                twin_of=None if twin_of == case_id else twin_of,
                thorough=thorough,
                seconds=seconds,
                alone=alone or "restart" in needs,
            )
            return function

        return register

    def registered(self) -> Mapping[str, Case]:
        """What has been registered so far."""
        return self._cases

    def in_order(self) -> tuple[Case, ...]:
        """Every case, area by area."""
        order = list(self.areas)
        return tuple(sorted(self._cases.values(), key=lambda case: order.index(case.area)))
