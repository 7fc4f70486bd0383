"""The gates of the self-test, on the real servers and on findings made to break them."""

import asyncio

import pytest

from lance_conformance.cases import all_cases
from lance_conformance.mutants.hostile import hostile
from lance_conformance.selftest import gates
from lance_conformance.selftest.attacks import attacked
from lance_conformance.selftest.matrix import committed, differences, kills
from lance_conformance.selftest.selftest import second_opinions
from lance_conformance.selftest.subjects import (
    Finding,
    Subject,
    golden_subjects,
    mutant_subjects,
    null_subjects,
    try_again,
    try_subjects,
)

GOLDEN = Subject("golden", "golden", "specified")
MUTANT = Subject("mutant", "serves-version-2", "specified")
NULL = Subject("null", "echoes", "specified")
PASSES = {case.id: Finding("PASS", "", timing=False) for case in all_cases()}
LATE = Finding("FAIL", "timeout", timing=True)
SAMPLE = [s for s in mutant_subjects(seed=5)[::20] if s.name != "acks-nothing"]


def run(subjects: list[Subject]) -> dict[Subject, dict[str, Finding]]:
    """Trials of these subjects, with the second opinions that the self-test would ask for."""
    trials = dict(zip(subjects, map(dict, try_subjects(subjects)), strict=True))
    corrected = second_opinions(trials, committed())
    return trials | {subject: dict(findings) for subject, findings in corrected.items()}


def test_the_golden_servers_pass_in_any_order() -> None:
    """Gates 1 and 7: everything passes, in order, shuffled, and side by side."""
    trials = run([*golden_subjects(), *golden_subjects(seed=3, jobs=8)])
    assert gates.golden_passes(trials).faults == ()
    assert gates.order_does_not_matter(trials).faults == ()


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_a_sample_of_mutants_is_killed_for_the_recorded_reasons(dialect: str) -> None:
    """Gates 2 to 4 on every twentieth mutant, asked in a shuffled order."""
    trials = run([subject for subject in SAMPLE if subject.dialect == dialect])
    found = {dialect: {subject.name: kills(trials[subject]) for subject in trials}}
    before = {dialect: {name: committed()[dialect][name] for name in found[dialect]}}
    assert differences(found, before) == []
    assert gates.every_mutant_is_killed(found).faults == ()


def test_null_servers_pass_nothing() -> None:
    """Gate 5: not one case passes against a server that speaks no LWP."""
    subjects = [subject for subject in null_subjects() if subject.dialect == "specified"]
    assert gates.nulls_pass_nothing(dict(zip(subjects, try_subjects(subjects), strict=True))).passed


@pytest.mark.parametrize("name", hostile("specified"))
def test_hostile_servers_cannot_stop_the_kit(name: str) -> None:
    """Gate 8: a whole run against each of them ends in time, with the verdict it deserves."""
    assert asyncio.run(attacked(name, hostile("specified")[name])) == []


def test_gate_1_notices_a_case_that_does_not_pass() -> None:
    """A golden server that fails a case is a fault."""
    gate = gates.golden_passes({GOLDEN: {**PASSES, "kal/answered": LATE}})
    assert gate.faults == ("golden (specified): kal/answered is FAIL (timeout), not PASS",)


def test_gate_2_notices_a_case_that_nobody_fails() -> None:
    """A case without a mutant is a fault, in each dialect."""
    matrix = {d: {m: {c: r for c, r in k.items() if c != "ing/one-ack"} for m, k in rows.items()}
              for d, rows in committed().items()}  # fmt: skip
    faults = gates.every_case_can_fail(matrix).faults
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
        "gone (specified) is in the committed matrix but is no mutant any more",
        "new (specified) is not in the committed matrix",
    )


def test_gate_5_notices_a_null_server_that_passes() -> None:
    """One pass of a server that speaks no LWP is a fault."""
    late = dict.fromkeys(PASSES, LATE)
    passed = Finding("PASS", "", timing=False)
    gate = gates.nulls_pass_nothing({NULL: {**late, "kal/answered": passed}})
    assert gate.faults == ("echoes (specified) passes kal/answered",)


def test_gate_7_notices_another_verdict_in_another_order() -> None:
    """Two golden runs that differ are a fault."""
    other = Subject("golden", "golden", "specified", seed=4)
    gate = gates.order_does_not_matter({GOLDEN: PASSES, other: {**PASSES, "kal/answered": LATE}})
    assert gate.faults == ("kal/answered (specified) is PASS in one order, FAIL in another",)


def test_only_news_about_time_is_doubted() -> None:
    """A late golden server is asked again; what the matrix knows, and other reasons, stand."""
    asked = []

    def again(doubted: dict[Subject, set[str]]) -> list[dict[str, Finding]]:
        asked.append(doubted)
        return [dict.fromkeys(cases, PASSES["kal/answered"]) for cases in doubted.values()]

    wrong = Finding("FAIL", "data", timing=False)
    trials = {
        GOLDEN: {**PASSES, "kal/answered": LATE, "fet/walk": wrong},
        MUTANT: {**PASSES, "kal/answered": LATE, "ing/one-ack": LATE},
        NULL: dict.fromkeys(PASSES, LATE),
    }
    before = {"specified": {"serves-version-2": {"kal/answered": "timeout"}}}
    corrected = second_opinions(trials, before, again)  # type: ignore[arg-type]  # a fake
    assert asked == [{GOLDEN: {"kal/answered"}, MUTANT: {"ing/one-ack"}}]
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
