"""What verdicts add up to."""

import itertools

import pytest

from lance_conformance.engine.run.verdict import (
    PRECEDENCE,
    Exit,
    Result,
    Verdict,
    broken,
    exit_code,
    totals,
)
from lance_conformance.server.cases import Case, all_cases
from lance_conformance.spec.clauses import Level


def case(level: Level) -> Case:
    """Any case of this level."""
    return next(case for case in all_cases() if case.level is level)


def must(verdict: Verdict) -> Result:
    """A MUST that ended so."""
    return Result(case(Level.MUST), verdict)


def should(verdict: Verdict) -> Result:
    """A SHOULD that ended so."""
    return Result(case(Level.SHOULD), verdict)


@pytest.mark.parametrize(
    ("level", "verdict"),
    [(Level.MUST, Verdict.FAIL), (Level.SHOULD, Verdict.WARN), (Level.MAY, Verdict.INFO)],
)
def test_a_broken_rule_weighs_by_its_level(level: Level, verdict: Verdict) -> None:
    """A MUST fails, a SHOULD warns, a MAY is noted."""
    assert broken(level) is verdict


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([must(Verdict.PASS)], 0),
        ([must(Verdict.PASS), should(Verdict.WARN)], 0),
        ([must(Verdict.PASS), should(Verdict.BLOCKED)], 0),
        ([must(Verdict.PASS), must(Verdict.SKIP)], 0),
        ([must(Verdict.PASS), must(Verdict.FAIL)], 1),
        ([must(Verdict.FAIL), must(Verdict.BLOCKED)], 1),
        ([must(Verdict.BLOCKED)], 4),
        ([must(Verdict.INCONCLUSIVE), must(Verdict.PASS)], 4),
        ([must(Verdict.FLAKY), must(Verdict.PASS)], 4),
        ([must(Verdict.SKIP)], 5),
        ([], 5),
        ([must(Verdict.ERROR), must(Verdict.FAIL)], 70),
        ([should(Verdict.ERROR)], 70),
    ],
)
def test_exit_codes(results: list[Result], code: int) -> None:
    """Each mix of verdicts has one exit code."""
    assert exit_code(results) == code


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([should(Verdict.WARN)], 1),
        ([must(Verdict.FLAKY)], 1),
        ([should(Verdict.BLOCKED)], 4),
        ([should(Verdict.PASS)], 0),
    ],
)
def test_exit_codes_when_strict(results: list[Result], code: int) -> None:
    """With --strict a SHOULD counts like a MUST, and a flaky case like a failure."""
    assert exit_code(results, strict=True) == code


def test_the_worst_reason_wins_whatever_the_order() -> None:
    """The exit code does not depend on the order of the results."""
    results = [must(v) for v in (Verdict.PASS, Verdict.BLOCKED, Verdict.FAIL, Verdict.ERROR)]
    codes = {exit_code(order) for order in itertools.permutations(results)}
    assert codes == {Exit.KIT_ERROR}


def test_the_precedence_of_exit_codes() -> None:
    """Nothing proven outweighs a failure, which outweighs a stale baseline and the unproven."""
    assert list(PRECEDENCE) == [70, 2, 3, 7, 5, 1, 6, 4, 0]


def test_totals_count_every_result_once() -> None:
    """Only verdicts that occur are counted."""
    assert totals([must(Verdict.PASS), must(Verdict.PASS), should(Verdict.WARN)]) == {
        "PASS": 2,
        "WARN": 1,
    }
