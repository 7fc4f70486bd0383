"""The whole self-test."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from lance_conformance.engine.selftest import gates
from lance_conformance.engine.selftest.attacks import kit_survives
from lance_conformance.engine.selftest.matrix import Matrix, committed, kills, merged
from lance_conformance.engine.selftest.runs import OnProgress, Trials, try_everybody
from lance_conformance.engine.selftest.targets import (
    Asked,
    Findings,
    SelftestTarget,
    golden_subjects,
    mutant_subjects,
    null_subjects,
    try_again,
)
from lance_conformance.engine.selftest.test_selection import asked_of, restricted, sampled
from lance_conformance.engine.suite import Suite

Again = Callable[[Mapping[SelftestTarget, Collection[str]]], list[Findings]]


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """What the self-test found.

    Attributes:
        gates: The gates, in their order.
        matrix: The kill matrix as it is now.
        asked: How many mutants were asked, each once in every dialect in which it is wrong.
        mutants: How many there are, counted alike.
    """

    gates: tuple[gates.Gate, ...]
    matrix: Matrix
    asked: int
    mutants: int

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(gate.passed for gate in self.gates)


def everybody(suite: Suite, seed: int) -> list[SelftestTarget]:
    """All subjects: golden in order, golden shuffled side by side, mutants shuffled, nulls."""
    return [
        *golden_subjects(suite),
        *golden_subjects(suite, seed, jobs=8),
        *null_subjects(suite),
        *mutant_subjects(suite, seed),
    ]


def selftest(
    suites: Sequence[Suite],
    seed: int,
    on_progress: OnProgress,
    *,
    update: bool = False,
    whole: bool = False,
    again: Collection[str] = (),
    sample: int = 1,
) -> list[SelfTestResult]:
    """Put everybody of some suites on trial together, and look at all gates of each suite.

    Args:
        suites: What it is about.
        seed: The order in which the cases are asked, and the part of the mutants that is asked.
        on_progress: Told how many subjects are done, of how many.
        update: The matrix of now is to become the committed one, so it is right by definition.
        whole: Ask every mutant every case, not only those that it is a witness for.
        again: Globs of mutants to ask everything, and of cases to ask everybody.
        sample: Ask one of so many parts of the mutants.

    Returns:
        What was found, suite by suite.
    """
    asked: list[tuple[Suite, Matrix, Asked]] = []
    for suite in suites:
        before = committed(suite)
        some = asked_of(suite, everybody(suite, seed), before, whole=whole, again=again)
        asked.append((suite, before, sampled(some, before, sample, seed)))
    together = {each: cases for _, _, some in asked for each, cases in some.items()}
    trials = try_everybody(together, on_progress)
    return [
        _judged(suite, before, some, {each: trials[each] for each in some}, update=update)
        for suite, before, some in asked
    ]


def _judged(
    suite: Suite, before: Matrix, asked: Asked, trials: Trials, *, update: bool
) -> SelfTestResult:
    """Look at all gates of one suite."""
    trials = trials | second_opinions(trials, before)
    matrix = merged(before, trials, asked, suite.by_id)
    known = matrix if update else before
    return SelfTestResult(
        (
            gates.golden_passes(suite, trials),
            gates.every_case_can_fail(suite, matrix),
            gates.every_mutant_is_killed(matrix),
            gates.matrix_is_committed(restricted(matrix, asked), restricted(known, asked)),
            gates.nulls_pass_nothing(suite, trials),
            gates.no_case_repeats_another(suite, matrix),
            gates.order_does_not_matter(suite, trials),
            kit_survives(suite),
        ),
        matrix,
        asked=sum(bool(cases) for each, cases in asked.items() if each.kind == "mutant"),
        mutants=sum(each.kind == "mutant" for each in asked),
    )


def second_opinions(trials: Trials, before: Matrix, again: Again = try_again) -> Trials:
    """Ask again what a busy machine may have spoiled: golden servers that were late, and news.

    Args:
        trials: What was found so far.
        before: The committed matrix; what it knows is not news.
        again: Asks.

    Returns:
        The trials of the subjects in doubt, corrected.
    """
    doubted = {subject: _news(subject, findings, before) for subject, findings in trials.items()}
    doubted = {subject: cases for subject, cases in doubted.items() if cases}
    corrections = zip(doubted, again(doubted), strict=True)
    return {subject: {**trials[subject], **corrected} for subject, corrected in corrections}


def _news(subject: SelftestTarget, findings: Findings, before: Matrix) -> set[str]:
    """The cases in doubt.

    Golden servers must pass: every case is in doubt that a busy machine could have failed. Of a
    mutant in the committed matrix every case is that ended otherwise than there: by being late, a
    mutant can miss a kill, or be killed in another part of the case. Of a mutant that is not
    there, again what a busy machine could have failed.
    """
    late = {case for case, found in findings.items() if found.timing}
    if subject.kind != "mutant":
        return late if subject.kind == "golden" else set()
    known = before.get(subject.dialect, {}).get(subject.name)
    if known is None:
        return late
    now = kills(findings)
    return {case for case in findings if now.get(case) != known.get(case)}
