"""Who is put on trial, and how one trial goes."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lance_conformance.cases import all_cases
from lance_conformance.dialect import PRESETS
from lance_conformance.golden.server import GOLDEN, Connections, serving, sessions
from lance_conformance.mutants import all_mutants
from lance_conformance.mutants.null import connections, nulls
from lance_conformance.peer.conditions import Conditions, Target
from lance_conformance.run.preflight import PreflightError, preflight
from lance_conformance.run.schedule import ask_all
from lance_conformance.run.select import shuffled

Kind = Literal["golden", "mutant", "null"]


class Finding(NamedTuple):
    """What one case found out about one subject.

    Attributes:
        verdict: How it ended.
        reason: The reason code.
        timing: A busy machine could have caused it.
    """

    verdict: str
    reason: str
    timing: bool


Findings = Mapping[str, Finding]
"""What each case found out."""

BUDGET = 0.5
"""Seconds that a case gets; the subjects live in this process and answer in a few ms."""
PATIENCE = 2.0
SIDE_BY_SIDE = 8
"""Subjects on trial at a time in one process. Mostly one of them waits for a deadline."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One server on trial.

    Attributes:
        kind: What sort of server.
        name: Which one; `golden` for the golden ones.
        dialect: The dialect it is held to.
        seed: Order of the cases; 0 for their own order.
        jobs: Cases asked at a time. One for mutants: some are wrong only in a certain state.
    """

    kind: Kind
    name: str
    dialect: str
    seed: int = 0
    jobs: int = 1

    def __str__(self) -> str:
        return f"{self.name} ({self.dialect})"

    def connections(self) -> Connections:
        """A fresh server of this sort."""
        if self.kind == "null":
            return connections(self.name, self.dialect)
        if self.kind == "mutant":
            return sessions(all_mutants()[self.name].rules(self.dialect))
        return sessions(GOLDEN[self.dialect]())


def golden_subjects(seed: int = 0, jobs: int = 1) -> list[Subject]:
    """The golden server in every dialect."""
    return [Subject("golden", "golden", dialect, seed, jobs) for dialect in GOLDEN]


def mutant_subjects(seed: int = 0) -> list[Subject]:
    """Every mutant in every dialect in which it is wrong."""
    return [
        Subject("mutant", mutant.id, dialect, seed)
        for mutant in all_mutants().values()
        for dialect in mutant.dialects
    ]


def null_subjects() -> list[Subject]:
    """Every null server in every dialect. They have no state, so cases run side by side."""
    return [Subject("null", name, dialect, jobs=16) for name in nulls() for dialect in GOLDEN]


async def try_subject(
    subject: Subject, *, only: Collection[str] | None = None, budget: float = BUDGET
) -> Findings:
    """Ask one subject.

    The preflight runs as it does for users. Null servers, and whoever does not pass it, are tried
    all the same, under the preset of their dialect.

    Args:
        subject: Who.
        only: The cases to ask; all of them by default.
        budget: Seconds that a case gets.
    """
    cases = [case for case in all_cases() if only is None or case.id in only]
    if subject.seed:
        cases = shuffled(cases, subject.seed)
    async with serving(subject.connections()) as port:
        conditions = await _conditions(subject, port)
        conditions = replace(conditions, budget=budget, seed=subject.seed)
        results = await ask_all(cases, conditions, jobs=subject.jobs, retry=False)
    return {r.case.id: Finding(r.verdict.value, r.reason, r.timing) for r in results}


async def _conditions(subject: Subject, port: int) -> Conditions:
    preset = PRESETS[subject.dialect]
    base = Conditions(Target("127.0.0.1", port), preset, preset)
    if subject.kind == "null":
        return base
    try:
        found, _ = await preflight(base, patience=PATIENCE)
    except PreflightError:
        return base
    return found


async def _side_by_side(trials: Iterable[Awaitable[Findings]], limit: int) -> list[Findings]:
    gate = asyncio.Semaphore(limit)

    async def one(trial: Awaitable[Findings]) -> Findings:
        async with gate:
            return await trial

    return list(await asyncio.gather(*(one(trial) for trial in trials)))


def try_subjects(subjects: Sequence[Subject]) -> list[Findings]:
    """Put some subjects on trial in an event loop of their own; for worker processes."""
    trials = (try_subject(subject) for subject in subjects)
    return asyncio.run(_side_by_side(trials, SIDE_BY_SIDE), debug=False)


def try_again(doubted: Mapping[Subject, Collection[str]]) -> list[Findings]:
    """Ask some subjects some cases once more, few at a time and with much more time."""
    trials = (try_subject(s, only=cases, budget=BUDGET * 10) for s, cases in doubted.items())
    return asyncio.run(_side_by_side(trials, 4), debug=False)
