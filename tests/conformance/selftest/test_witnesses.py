"""Which mutant is asked what, so that little proves everything."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lance_conformance.engine.selftest.matrix import committed, merged
from lance_conformance.engine.selftest.targets import (
    Finding,
    SelftestTarget,
    golden_subjects,
    mutant_subjects,
    null_subjects,
)
from lance_conformance.engine.selftest.test_selection import (
    asked_of,
    restricted,
    sampled,
    witnesses,
)
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.cases import all_cases, all_ids
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import Mutant, all_mutants
from lance_conformance.server.mutants.proof import LwpProof
from lance_conformance.server.suite import Lwp

LWP = suite_named("lwp")
USUAL = frozenset(case.id for case in all_cases() if not case.thorough)
ROWS = {
    "quick": {"kal/answered": "data"},
    "slow": {"kal/answered": "timeout", "fet/walk": "timeout"},
    "broad": {"kal/answered": "data", "ing/one-ack": "data"},
}
QUICK, SLOW = (SelftestTarget("lwp", "mutant", name, "specified") for name in ("quick", "slow"))
GOLDEN = SelftestTarget("lwp", "golden", "golden", "specified")
FETCHES = ("fet/*", "num/keepalives-1025")
"""What a mutant of the sample names as its cases."""


class Few(LwpProof):
    """Three mutants that are put to every case, and one that is put to some."""

    def mutants(self) -> Mapping[str, Mutant[Specified]]:
        """The mutants of the sample."""
        one = all_mutants()["serves-version-2"]
        found = {name: replace(one, id=name) for name in ("quick", "slow", "new")}
        return {**found, "particular": replace(one, id="particular", asked=FETCHES)}


class Sample(Lwp):
    """All cases, and few mutants."""

    def proof(self) -> LwpProof:
        """The few mutants."""
        return Few()


SAMPLE = Sample()


def _in(area: str, cases: frozenset[str]) -> set[str]:
    return {case for case in cases if case.startswith(f"{area}/")}


def test_the_most_particular_quick_mutant_is_the_witness() -> None:
    """Of three mutants that fail a case, the one that is quick and fails the fewest others."""
    assert witnesses(ROWS) == {
        "quick": {"kal/answered"},
        "slow": {"fet/walk"},
        "broad": {"ing/one-ack"},
    }


def test_a_mutant_that_is_nobodys_best_witness_is_asked_all_the_same() -> None:
    """It must be killed, so it is asked one of the cases that it fails."""
    rows = {"one": {"fet/walk": "data"}, "other": {"fet/walk": "data"}}
    assert witnesses(rows) == {"one": {"fet/walk"}, "other": {"fet/walk"}}


def test_every_case_and_every_mutant_of_the_kit_has_a_witness() -> None:
    """Nothing is left out of the usual self-test."""
    for rows in committed(LWP).values():
        chosen = witnesses(rows)
        assert all(chosen.values())
        assert set.union(*chosen.values()) == {case for row in rows.values() for case in row}


def test_what_is_new_is_asked_wholly() -> None:
    """A new mutant gets every case; a case that nobody fails yet is put to every mutant."""
    new = SelftestTarget("lwp", "mutant", "new", "specified")
    asked = asked_of(SAMPLE, [GOLDEN, QUICK, new], {"specified": ROWS}, whole=False)
    assert asked[GOLDEN] == asked[new] == USUAL | {"num/keepalives-1025"}
    assert "hdr/magic-closes" in asked[QUICK]
    assert "fet/walk" not in asked[QUICK]


def test_the_whole_matrix_can_be_asked_for() -> None:
    """Then every mutant gets every case, those of thorough runs, too."""
    assert asked_of(SAMPLE, [QUICK], committed(LWP), whole=True) == {QUICK: all_ids()}


def test_a_mutant_that_names_its_cases_is_put_to_no_other() -> None:
    """Globs take the usual cases; a case of thorough runs is asked where it is named."""
    particular = SelftestTarget("lwp", "mutant", "particular", "specified")
    asked = asked_of(SAMPLE, [particular], {"specified": ROWS}, whole=False)
    assert asked[particular] == _in("fet", USUAL) | {"num/keepalives-1025"}


def test_mutants_and_cases_can_be_asked_again_by_name() -> None:
    """A glob of mutants means every case, a glob of cases means every mutant."""
    asked = asked_of(
        SAMPLE, [QUICK, SLOW], {"specified": ROWS}, whole=False, again=("qui*", "fet/walk")
    )
    assert asked[QUICK] == USUAL | {"num/keepalives-1025"}
    assert {"fet/walk"} <= asked[SLOW] < all_ids()


def test_what_was_not_asked_stays_as_it_was() -> None:
    """The matrix of now is the one of before, with what was found written over it."""
    found = {"fet/walk": Finding("PASS", "", timing=False)}
    asked = {SLOW: frozenset(found)}
    now = merged({"specified": ROWS}, {SLOW: found}, asked, all_ids())
    assert now == {"specified": {"slow": {"kal/answered": "timeout"}}}
    assert restricted(now, asked) == {"specified": {"slow": {}}}
    assert restricted({"specified": ROWS}, asked) == {
        "specified": {"slow": {"fet/walk": "timeout"}}
    }


def _of_a_sample(parts: int, seed: int) -> set[SelftestTarget]:
    before = committed(LWP)
    asked = dict.fromkeys(mutant_subjects(LWP), frozenset({"kal/answered"}))
    found = sampled(asked, before, parts, seed)
    assert list(found) == list(asked)
    return {target for target, cases in found.items() if cases}


def test_a_sample_depends_on_its_seed_only() -> None:
    """The same seed asks the same mutants, and so does the seed that is N higher."""
    assert _of_a_sample(8, 3) == _of_a_sample(8, 3) == _of_a_sample(8, 11)
    assert not _of_a_sample(8, 3) & _of_a_sample(8, 4)


@pytest.mark.parametrize("parts", [1, 2, 7, 8])
def test_as_many_seeds_as_parts_ask_every_mutant(parts: int) -> None:
    """The parts are of equal size, and together they are all mutants."""
    samples = [_of_a_sample(parts, seed) for seed in range(5, 5 + parts)]
    assert set().union(*samples) == set(mutant_subjects(LWP))
    sizes = [len(sample) for sample in samples]
    assert max(sizes) - min(sizes) <= 1


def test_a_sample_leaves_out_nobody_else() -> None:
    """Golden servers, null servers and mutants that the matrix does not know are asked."""
    others = [*golden_subjects(LWP), *null_subjects(LWP)]
    new = [SelftestTarget("lwp", "mutant", "is-new", "specified")]
    asked = dict.fromkeys([*others, *new], frozenset({"kal/answered"}))
    assert sampled(asked, committed(LWP), 8, 1) == asked


def test_a_sample_keeps_what_the_matrix_has_of_the_others() -> None:
    """What was not asked stands in the matrix as before, and proves its cases."""
    before = committed(LWP)
    asked = sampled(dict.fromkeys(mutant_subjects(LWP), frozenset()), before, 8, 1)
    trials: dict[SelftestTarget, dict[str, Finding]] = {target: {} for target in asked}
    assert merged(before, trials, asked, all_ids()) == before
