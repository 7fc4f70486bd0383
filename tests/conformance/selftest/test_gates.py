"""The gates of the self-test, on the real servers and on findings made to break them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from lance_conformance.engine.registry import Case
from lance_conformance.engine.selftest import gates
from lance_conformance.engine.selftest.attacks import attacked
from lance_conformance.engine.selftest.matrix import Matrix, committed, kills
from lance_conformance.engine.selftest.runs import Trials
from lance_conformance.engine.selftest.selftest import second_opinions
from lance_conformance.engine.selftest.targets import (
    Asked,
    Finding,
    SelftestTarget,
    golden_subjects,
    mutant_subjects,
    null_subjects,
    try_again,
    try_subjects,
)
from lance_conformance.engine.selftest.test_selection import asked_of, restricted
from lance_conformance.engine.suite import Suite
from lance_conformance.engine.suites import SUITES, suite_named
from lance_conformance.server.cases import all_cases
from lance_conformance.server.suite import Lwp

LWP = suite_named("lwp")
HOSTILE = LWP.proof().hostile("specified")
GOLDEN = SelftestTarget("lwp", "golden", "golden", "specified")
MUTANT = SelftestTarget("lwp", "mutant", "serves-version-2", "specified")
NULL = SelftestTarget("lwp", "null", "echoes", "specified")
PASSES = {
    case.id: Finding("PASS" if "specified" in case.dialects else "SKIP", "", timing=False)
    for case in all_cases()
}
LATE = Finding("FAIL", "timeout", timing=True)


class Sample(Lwp):
    """Every twelfth case; the self-test asks all of them."""

    def load_cases(self) -> Sequence[Case]:
        """Cases of every kind: about frames, restarts, tokens, TLS."""
        return all_cases()[::12]


SAMPLE = Sample()


def run(asked: Asked) -> Trials:
    """Trials with the second opinions that the self-test would ask for."""
    trials = dict(zip(asked, try_subjects(asked), strict=True))
    return trials | second_opinions(trials, committed(LWP))


def test_the_golden_servers_pass_in_any_order() -> None:
    """Gates 1 and 7: a sample passes, in order, shuffled, and side by side."""
    subjects = [*golden_subjects(LWP), *golden_subjects(LWP, seed=3, jobs=8)]
    trials = run(dict.fromkeys(subjects, frozenset(SAMPLE.by_id)))
    assert gates.golden_passes(SAMPLE, trials).faults == ()
    assert gates.order_does_not_matter(LWP, trials).faults == ()


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_a_sample_of_mutants_is_killed_for_the_recorded_reasons(dialect: str) -> None:
    """Gates 3 and 4 on every thirtieth mutant, asked what it is a witness for."""
    subjects = [each for each in mutant_subjects(LWP, seed=5) if each.dialect == dialect]
    before = committed(LWP)
    asked = asked_of(LWP, subjects[::30], before, whole=False)
    trials = run(asked)
    found = {dialect: {subject.name: kills(trials[subject]) for subject in trials}}
    assert gates.matrix_is_committed(found, restricted(before, asked)).faults == ()
    assert gates.every_mutant_is_killed(found).faults == ()


def test_null_servers_pass_nothing() -> None:
    """Gate 5: not one case of a sample passes against a server that speaks no LWP."""
    subjects = [subject for subject in null_subjects(LWP) if subject.dialect == "specified"]
    trials = run(dict.fromkeys(subjects, frozenset(SAMPLE.by_id)))
    assert gates.nulls_pass_nothing(LWP, trials).passed


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_servers_cannot_stop_the_kit(name: str) -> None:
    """Gate 8: a whole run against each of them ends in time, with the verdict it deserves."""
    assert asyncio.run(attacked(LWP, name, HOSTILE[name])) == []


def test_gate_1_notices_a_case_that_does_not_pass() -> None:
    """A golden server that fails a case is a fault."""
    gate = gates.golden_passes(LWP, {GOLDEN: {**PASSES, "kal/answered": LATE}})
    assert gate.faults == ("golden (specified): kal/answered is FAIL (timeout), not PASS",)


def test_gate_2_notices_a_case_that_nobody_fails() -> None:
    """A case without a mutant is a fault, in each dialect."""
    matrix = {d: {m: {c: r for c, r in k.items() if c != "ing/one-ack"} for m, k in rows.items()}
              for d, rows in committed(LWP).items()}  # fmt: skip
    faults = gates.every_case_can_fail(LWP, matrix).faults
    assert faults == tuple(
        f"ing/one-ack ({d}) is failed by no mutant" for d in ("specified", "deployed")
    )


def test_gate_3_notices_a_mutant_that_survives() -> None:
    """A mutant without a kill is a fault."""
    gate = gates.every_mutant_is_killed({"specified": {"is-harmless": {}}})
    assert gate.faults == ("is-harmless (specified) fails no case",)


def test_gate_4_notices_every_change() -> None:
    """A lost kill, a new one, another reason, a new mutant and a lost one are told."""
    before = {"specified": {"a": {"x/1": "data", "x/2": "data"}, "gone": {"x/1": "data"}}}
    now = {"specified": {"a": {"x/2": "timeout", "x/3": "data"}, "new": {"x/1": "data"}}}
    assert gates.matrix_is_committed(now, before).faults == (
        "a (specified): x/1 gives 'a pass', the committed matrix says 'data'",
        "a (specified): x/2 gives 'timeout', the committed matrix says 'data'",
        "a (specified): x/3 gives 'data', the committed matrix says 'a pass'",
        "gone (specified) is in the committed matrix but is not a mutant any more",
        "new (specified) is not in the committed matrix",
    )


def test_gate_5_notices_a_null_server_that_passes() -> None:
    """One pass of a server that speaks no LWP is a fault."""
    late = dict.fromkeys(PASSES, LATE)
    passed = Finding("PASS", "", timing=False)
    gate = gates.nulls_pass_nothing(LWP, {NULL: {**late, "kal/answered": passed}})
    assert gate.faults == ("echoes (specified) passes kal/answered",)


TWINS = ("kal/one-answer-each", "kal/answer-all-zero")
"""Two cases about one clause."""


def repeating(*, twin_of: str | None) -> Suite:
    """A suite of the two cases, the second with another twin or with none."""
    first, second = (LWP.by_id[each] for each in TWINS)

    class Repeating(Lwp):
        def load_cases(self) -> Sequence[Case]:
            return first, replace(second, clause=first.clause, twin_of=twin_of)

    return Repeating()


def matrix_of(*columns: dict[str, str]) -> Matrix:
    """A matrix of the two cases: reasons by mutant, for the one and the other."""
    rows: dict[str, dict[str, str]] = {}
    for case, column in zip(TWINS, columns, strict=True):
        for mutant, reason in column.items():
            rows.setdefault(mutant, {})[case] = reason
    return {"specified": rows}


def test_gate_6_notices_a_case_that_repeats_another() -> None:
    """Two cases about one clause that the same mutants fail for the same reasons are a fault."""
    gate = gates.no_case_repeats_another(
        repeating(twin_of=None), matrix_of({"a": "data"}, {"a": "data"})
    )
    assert gate.faults == (
        f"{TWINS[0]}, {TWINS[1]} ask about 4.3/one-each, and no mutant tells them apart",
    )


@pytest.mark.parametrize("other", [{"a": "data", "b": "data"}, {"a": "timeout"}, {"b": "data"}, {}])
def test_gate_6_is_satisfied_by_one_difference(other: dict[str, str]) -> None:
    """One mutant more, or another reason, tells two cases apart."""
    matrix = matrix_of({"a": "data"}, other)
    assert gates.no_case_repeats_another(repeating(twin_of=None), matrix).passed


def test_gate_6_leaves_twins_alone() -> None:
    """A case may repeat another when it says so."""
    matrix = matrix_of({"a": "data"}, {"a": "data"})
    gate = gates.no_case_repeats_another(repeating(twin_of=TWINS[0]), matrix)
    assert gate.passed
    assert gate.figure == "2 cases, 1 of them twins on purpose"


def test_gate_6_notices_a_twin_of_nobody() -> None:
    """The case that is named must be there."""
    matrix = matrix_of({"a": "data"}, {"b": "data"})
    gate = gates.no_case_repeats_another(repeating(twin_of="kal/none"), matrix)
    assert gate.faults == (f"{TWINS[1]} calls itself a twin of kal/none, which there is not",)


@pytest.mark.parametrize("protocol", SUITES)
def test_no_case_of_the_kit_repeats_another(protocol: str) -> None:
    """Gate 6 on the committed matrices."""
    suite = suite_named(protocol)
    assert gates.no_case_repeats_another(suite, committed(suite)).faults == ()


def test_gate_7_notices_another_verdict_in_another_order() -> None:
    """Two golden runs that differ are a fault."""
    other = SelftestTarget("lwp", "golden", "golden", "specified", seed=4)
    gate = gates.order_does_not_matter(
        LWP, {GOLDEN: PASSES, other: {**PASSES, "kal/answered": LATE}}
    )
    assert gate.faults == ("kal/answered (specified) is PASS in one order, FAIL in another",)


def test_only_news_is_doubted() -> None:
    """A late golden server is asked again, and a mutant what the matrix does not know."""
    asked = []

    def again(doubted: dict[SelftestTarget, set[str]]) -> list[dict[str, Finding]]:
        asked.append(doubted)
        return [dict.fromkeys(cases, PASSES["kal/answered"]) for cases in doubted.values()]

    wrong = Finding("FAIL", "data", timing=False)
    trials = {
        GOLDEN: {**PASSES, "kal/answered": LATE, "fet/walk": wrong},
        MUTANT: {**PASSES, "kal/answered": LATE, "ing/one-ack": LATE, "fet/walk": wrong},
        NULL: dict.fromkeys(PASSES, LATE),
    }
    before = {"specified": {"serves-version-2": {"kal/answered": "timeout"}}}
    corrected = second_opinions(trials, before, again)  # type: ignore[arg-type]  # a fake
    assert asked == [{GOLDEN: {"kal/answered"}, MUTANT: {"ing/one-ack", "fet/walk"}}]
    assert corrected[GOLDEN]["kal/answered"].verdict == "PASS"
    assert corrected[GOLDEN]["fet/walk"] == wrong
    assert NULL not in corrected


def test_asking_again_asks_only_what_is_in_doubt() -> None:
    """A second opinion takes few cases and much time."""
    (found,) = try_again({MUTANT: {"hdr/version-2-closes", "hdr/version-0-closes"}})
    assert {case: finding.verdict for case, finding in found.items()} == {
        "hdr/version-2-closes": "FAIL",
        "hdr/version-0-closes": "PASS",
    }


def test_a_report_shows_faults_below_their_gate() -> None:
    """The first faults are shown, the rest counted."""
    gate = gates.Gate("it holds", "9 things", tuple(f"fault {n}" for n in range(20)))
    text = gates.report([gate, gates.Gate("so does this", "1 thing", ())])
    assert text.startswith("FAIL  it holds: 9 things\n        fault 0\n")
    assert "... and 8 more" in text
    assert text.endswith("ok    so does this: 1 thing")
