"""Targets of the self-test, and one trial of one of them."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.select import shuffled
from lance_conformance.engine.suite import StartServer, Suite
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.preflight import PreflightError

TargetKind = Literal["golden", "mutant", "null"]


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

PACE = 0.05
"""How many times their seconds cases wait that wait on purpose."""
MUCH = 10.0
"""How many times its budget a case gets that is asked again."""
SILENCE = 4
"""How many times its budget a case waits for one answer: servers in this process answer at once,
however much time the whole case gets."""
STEP_TIMEOUT = 2.0
SIDE_BY_SIDE = 16
"""Subjects on trial at a time in one process. Mostly one of them waits for a deadline."""
AGAIN_AT_ONCE = 8
"""Mutants that are asked again at a time, with much more time: nearly all of them only wait."""


@dataclass(frozen=True, slots=True)
class SelftestTarget:
    """One server on trial.

    Attributes:
        protocol: The name of the suite.
        kind: What sort of server.
        name: Which one; `golden` for the golden ones.
        dialect: The dialect it is held to.
        seed: Order of the cases; 0 for their own order. What they draw does not depend on it.
        jobs: Cases asked at a time. One for mutants: some are wrong only in a certain state.
    """

    protocol: str
    kind: TargetKind
    name: str
    dialect: str
    seed: int = 0
    jobs: int = 1

    def __str__(self) -> str:
        return f"{self.name} ({self.dialect})"

    @property
    def suite(self) -> Suite:
        """The suite that it is tried by."""
        return suite_named(self.protocol)

    def server(self, setting: str) -> StartServer:
        """Servers of this sort, in some setting."""
        proof = self.suite.proof()
        if self.kind == "null":
            return proof.null_servers(self.dialect)[self.name]
        if self.kind == "mutant":
            return proof.mutant(self.name, self.dialect, setting)
        return proof.golden(self.dialect, setting)


Asked = dict[SelftestTarget, frozenset[str]]
"""The ids of the cases put to each subject."""


def golden_subjects(suite: Suite, seed: int = 0, jobs: int = 1) -> list[SelftestTarget]:
    """The golden server in every dialect."""
    return [
        SelftestTarget(suite.name, "golden", "golden", each, seed, jobs) for each in suite.presets
    ]


def mutant_subjects(suite: Suite, seed: int = 0) -> list[SelftestTarget]:
    """Every mutant in every dialect in which it is wrong."""
    return [
        SelftestTarget(suite.name, "mutant", mutant.id, dialect, seed)
        for mutant in suite.proof().mutants().values()
        for dialect in mutant.dialects
    ]


def null_subjects(suite: Suite) -> list[SelftestTarget]:
    """Every null server in every dialect. They have no state, so cases run side by side."""
    proof = suite.proof()
    return [
        SelftestTarget(suite.name, "null", name, dialect, jobs=256)
        for dialect in suite.presets
        for name in proof.null_servers(dialect)
    ]


async def try_subject(
    subject: SelftestTarget, only: Collection[str], *, times: float = 1.0
) -> Findings:
    """Ask one subject.

    The preflight runs as it does for users. Null servers, and whoever does not pass it, are tried
    all the same, under the preset of their dialect.

    Args:
        subject: Who.
        only: The ids of the cases to ask.
        times: How many times its budget a case gets.
    """
    cases = [case for case in subject.suite.cases if case.id in only]
    if subject.seed:
        cases = shuffled(cases, subject.seed)
    if subject.kind == "null":  # it has no state that a case beside could spoil
        cases = [replace(case, alone=False) for case in cases]
    found: dict[str, Finding] = {}
    budget = subject.suite.proof().budget * times
    for setting, chosen in subject.suite.by_setting(cases).items():
        async with subject.server(setting)() as port:
            conditions = await _conditions(subject, port, setting)
            # Whatever a case needs is taken for granted: a mutant must not be excused.
            needs = frozenset(need for case in chosen for need in case.needs)
            conditions = replace(
                conditions,
                budget=budget,
                longest_silence=budget * SILENCE,
                capabilities=needs,
                missing=frozenset(),
                pace=PACE,
            )
            results = await ask_all(chosen, conditions, jobs=subject.jobs, retry=False)
        found |= {r.case.id: Finding(r.verdict.value, r.reason, r.timing) for r in results}
    return found


async def _conditions(subject: SelftestTarget, port: int, setting: str) -> Conditions:
    preset = subject.suite.presets[subject.dialect]
    base = Conditions(Target("127.0.0.1", port), preset, preset)
    base = subject.suite.proof().equipped(base, setting)
    if subject.kind == "null":
        return base
    try:
        found, _ = await subject.suite.preflight(base, step_timeout=STEP_TIMEOUT)
    except PreflightError:
        return base
    return found


async def _side_by_side(trials: Iterable[Awaitable[Findings]], limit: int) -> list[Findings]:
    gate = asyncio.Semaphore(limit)

    async def one(trial: Awaitable[Findings]) -> Findings:
        async with gate:
            return await trial

    return list(await asyncio.gather(*(one(trial) for trial in trials)))


def try_subjects(asked: Asked) -> list[Findings]:
    """Put some subjects on trial in an event loop of their own; for worker processes."""
    trials = (try_subject(subject, cases) for subject, cases in asked.items())
    return asyncio.run(_side_by_side(trials, SIDE_BY_SIDE), debug=False)


def try_again(doubted: Mapping[SelftestTarget, Collection[str]]) -> list[Findings]:
    """Ask some subjects some cases once more, with much more time.

    Golden servers come first and one by one: they must pass, and nothing else may slow them down.
    """
    return asyncio.run(_again(doubted), debug=False)


async def _again(doubted: Mapping[SelftestTarget, Collection[str]]) -> list[Findings]:
    found: dict[SelftestTarget, Findings] = {}
    for golden, limit in ((True, 1), (False, AGAIN_AT_ONCE)):
        some = [each for each in doubted if (each.kind == "golden") is golden]
        trials = [try_subject(each, doubted[each], times=MUCH) for each in some]
        found |= zip(some, await _side_by_side(trials, limit), strict=True)
    return [found[each] for each in doubted]
