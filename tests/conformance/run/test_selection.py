"""Which cases a command line asks for."""

from pathlib import Path

import pytest

from lance_conformance.engine.run.capabilities import CAPABILITIES
from lance_conformance.engine.run.select import NothingSelectedError, select, shuffled
from lance_conformance.server.cases import AREAS, all_cases
from lance_conformance.spec.clauses import Level

CASES = all_cases()
GIVEN = {name for name, why in CAPABILITIES.items() if "(--" in why}
"""What a target can be asked about only if an option of the command gives it."""
VARIED = {"pos", "size", "width", "num", "rep", "mix", "wait", "vol", "any", "each"}


def ids(**how: object) -> list[str]:
    """The ids of the cases selected so."""
    return [case.id for case in select(CASES, **how)]  # type: ignore[arg-type]  # any option


def test_everything_without_a_pattern() -> None:
    """No pattern means all cases, in their order."""
    assert ids() == [case.id for case in CASES]


@pytest.mark.parametrize("area", AREAS)
def test_an_area_names_its_cases(area: str) -> None:
    """``hdr`` and ``hdr/*`` are the same."""
    assert ids(patterns=[area]) == ids(patterns=[f"{area}/*"])
    assert all(name.startswith(f"{area}/") for name in ids(patterns=[area]))


def test_an_id_names_one_case() -> None:
    """A whole id is exact."""
    assert ids(patterns=["ing/empty"]) == ["ing/empty"]


def test_a_section_names_the_cases_of_its_clauses() -> None:
    """``§11.2`` is about the version."""
    chosen = ids(patterns=["§11.2"])
    assert {"hdr/version-0-closes", "hdr/version-2-closes"} <= set(chosen)
    assert chosen == [case.id for case in CASES if case.clause.section == "11.2"]


def test_a_clause_names_its_cases() -> None:
    """The rule that a report names can be asked again as it is."""
    assert ids(patterns=["11.2/version"]) == ids(patterns=["§11.2"])


def test_skip_leaves_out() -> None:
    """--skip takes the same patterns."""
    left = ids(patterns=["kal"], skip=["kal/answered"])
    assert left == [name for name in ids(patterns=["kal"]) if name != "kal/answered"]


def test_levels() -> None:
    """Only the levels that were asked for."""
    assert {case.level for case in select(CASES, levels=[Level.MUST])} == {Level.MUST}


def test_the_quick_profile_is_smaller() -> None:
    """Quick is a part of full, and has every area that asks for nothing but an address.

    It leaves out the areas that ask a rule again at another place, size, width, number or order.
    """
    quick = ids(quick=True)
    assert set(quick) < set(ids())
    assert {name.partition("/")[0] for name in quick} == {
        case.area for case in CASES if not case.needs & GIVEN
    } - VARIED


THOROUGH = {case.id for case in CASES if case.thorough}


def test_a_usual_run_takes_few_cases_of_a_thorough_one() -> None:
    """The seed chooses them, and none that moves much or waits long."""
    usual = set(ids(thorough=False))
    chosen = usual & THOROUGH
    assert 0 < len(chosen) < len(THOROUGH)
    assert usual | THOROUGH == set(ids())
    assert all(case.weight <= 18 and not case.seconds for case in CASES if case.id in chosen)


def test_the_same_seed_chooses_the_same_cases() -> None:
    """Another seed chooses others, sooner or later."""
    assert ids(thorough=False, seed=7) == ids(thorough=False, seed=7)
    assert len({tuple(ids(thorough=False, seed=seed)) for seed in range(9)}) > 1


def test_a_case_of_a_thorough_run_is_asked_where_it_is_named_in_full() -> None:
    """A glob takes the usual ones only."""
    assert ids(patterns=["vol/64-mib"], thorough=False) == ["vol/64-mib"]
    assert "vol/64-mib" not in ids(patterns=["vol/*"], thorough=False)


def test_a_case_named_in_full_is_asked_in_any_profile() -> None:
    """An exact id outweighs the profile."""
    assert ids(patterns=["hdr/no-kind"], quick=True) == ["hdr/no-kind"]


@pytest.mark.parametrize("how", [{"patterns": ["hdr", "nothing/*"]}, {"skip": ["nothing/*"]}])
def test_a_pattern_that_names_nothing_is_an_error(how: dict[str, list[str]]) -> None:
    """A typing mistake must not silently ask less."""
    with pytest.raises(NothingSelectedError, match=r"'nothing/\*'.*list"):
        select(CASES, **how)


def test_no_case_left_is_an_error() -> None:
    """Conditions that contradict each other are told."""
    with pytest.raises(NothingSelectedError, match="leave no case"):
        select(CASES, patterns=["kal"], skip=["kal/*"])


def test_shuffling_depends_on_the_seed_only() -> None:
    """The same seed gives the same order, another one another."""
    assert shuffled(CASES, 3) == shuffled(CASES, 3) != shuffled(CASES, 4)
    assert sorted(case.id for case in shuffled(CASES, 3)) == sorted(case.id for case in CASES)


def test_patterns_may_stand_in_a_file(tmp_path: Path) -> None:
    """One a line, with comments and blank lines between them."""
    path = tmp_path / "cases.txt"
    path.write_text("# the basics\nhdr/magic-closes\n\nkal/*  # all of them\n")
    chosen = select(all_cases(), patterns=[f"@{path}"], skip=["kal/answered"])
    assert {case.area for case in chosen} == {"hdr", "kal"}
    assert "kal/answered" not in {case.id for case in chosen}


@pytest.mark.parametrize("content", [None, "", "# nothing\n", "\xff"])
def test_a_file_without_patterns_is_refused(tmp_path: Path, content: str | None) -> None:
    """Missing, empty or no text: an empty selection must not mean everything."""
    path = tmp_path / "cases.txt"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(NothingSelectedError, match=r"cases\.txt"):
        select(all_cases(), patterns=[f"@{path}"])
