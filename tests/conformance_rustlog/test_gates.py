"""The gates of the self-test, on the real servers."""

import asyncio

import pytest

from lance_conformance.engine.selftest import gates
from lance_conformance.engine.selftest.attacks import attacked
from lance_conformance.engine.selftest.matrix import committed, differences, kills
from lance_conformance.engine.selftest.runs import Trials
from lance_conformance.engine.selftest.selftest import second_opinions
from lance_conformance.engine.selftest.targets import (
    Asked,
    golden_subjects,
    mutant_subjects,
    null_subjects,
    try_subjects,
)
from lance_conformance.engine.selftest.test_selection import asked_of, restricted
from lance_conformance.engine.suites import suite_named

SUITE = suite_named("rustlog")
EVERY = frozenset(SUITE.by_id)
SOME = frozenset(sorted(EVERY)[::12])
"""Cases for servers against which each takes a whole deadline."""
HOSTILE = SUITE.proof().hostile("both")
SAMPLE = mutant_subjects(SUITE, seed=5)[::15]
SILENT = ("is-silent", "stalls-in-the-length")


def run(asked: Asked) -> Trials:
    """Trials, with the second opinions that the self-test would ask for."""
    trials = dict(zip(asked, try_subjects(asked), strict=True))
    return trials | second_opinions(trials, committed(SUITE))


def test_the_golden_servers_pass_in_any_order() -> None:
    """Everything passes in every dialect, in order, shuffled, and side by side."""
    subjects = [*golden_subjects(SUITE), *golden_subjects(SUITE, seed=3, jobs=8)]
    trials = run(dict.fromkeys(subjects, EVERY))
    assert gates.golden_passes(SUITE, trials).faults == ()
    assert gates.order_does_not_matter(SUITE, trials).faults == ()


def test_a_sample_of_mutants_is_killed_for_the_recorded_reasons() -> None:
    """Every fifteenth mutant, asked what it is a witness for."""
    before = committed(SUITE)
    asked = asked_of(SUITE, SAMPLE, before, whole=False)
    trials = run(asked)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for subject in trials:
        found.setdefault(subject.dialect, {})[subject.name] = kills(trials[subject])
    assert differences(found, restricted(before, asked)) == []
    assert gates.every_mutant_is_killed(found).faults == ()


def test_null_servers_pass_nothing() -> None:
    """Not one case passes against a server that speaks no RustLog."""
    subjects = [each for each in null_subjects(SUITE) if each.dialect != "json"]
    asked = {each: SOME if each.name in SILENT else EVERY for each in subjects}
    trials = dict(zip(asked, try_subjects(asked), strict=True))
    assert gates.nulls_pass_nothing(SUITE, trials).faults == ()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_servers_cannot_stop_the_kit(name: str) -> None:
    """A whole run against each of them ends in time, with the verdict it deserves."""
    assert asyncio.run(attacked(SUITE, name, HOSTILE[name])) == []
