"""Which mutant is asked what, so that little proves everything."""

from lance_conformance.engine.selftest.matrix import committed, merged
from lance_conformance.engine.selftest.targets import Finding, SelftestTarget
from lance_conformance.engine.selftest.test_selection import asked_of, restricted, witnesses
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.cases import all_ids

LWP = suite_named("lwp")
ROWS = {
    "quick": {"kal/answered": "data"},
    "slow": {"kal/answered": "timeout", "fet/walk": "timeout"},
    "broad": {"kal/answered": "data", "ing/one-ack": "data"},
}
QUICK, SLOW = (SelftestTarget("lwp", "mutant", name, "specified") for name in ("quick", "slow"))
GOLDEN = SelftestTarget("lwp", "golden", "golden", "specified")


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
    asked = asked_of(LWP, [GOLDEN, QUICK, new], {"specified": ROWS}, whole=False)
    assert asked[GOLDEN] == asked[new] == all_ids()
    assert "hdr/magic-closes" in asked[QUICK]
    assert "fet/walk" not in asked[QUICK]


def test_the_whole_matrix_can_be_asked_for() -> None:
    """Then every mutant gets every case."""
    assert asked_of(LWP, [QUICK], committed(LWP), whole=True) == {QUICK: all_ids()}


def test_mutants_and_cases_can_be_asked_again_by_name() -> None:
    """A glob of mutants means every case, a glob of cases means every mutant."""
    asked = asked_of(
        LWP, [QUICK, SLOW], {"specified": ROWS}, whole=False, again=("qui*", "fet/walk")
    )
    assert asked[QUICK] == all_ids()
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
