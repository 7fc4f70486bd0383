"""Which cases a command line asks for."""

import pytest

from lance_conformance.cases import AREAS, all_cases
from lance_conformance.run.select import NothingSelectedError, select, shuffled
from lance_conformance.spec.clauses import Level

CASES = all_cases()


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
    assert ids(patterns=["§11.2"]) == ["hdr/version-0-closes", "hdr/version-2-closes"]


def test_a_clause_names_its_cases() -> None:
    """The rule that a report names can be asked again as it is."""
    assert ids(patterns=["11.2/version"]) == ids(patterns=["§11.2"])


def test_skip_leaves_out() -> None:
    """--skip takes the same patterns."""
    left = ids(patterns=["kal"], skip=["kal/answered"])
    assert left == ["kal/answer-all-zero", "kal/one-answer-each"]


def test_levels() -> None:
    """Only the levels that were asked for."""
    assert {case.level for case in select(CASES, levels=[Level.MUST])} == {Level.MUST}


def test_the_quick_profile_is_smaller() -> None:
    """Quick is a part of full and holds every area."""
    quick = ids(quick=True)
    assert set(quick) < set(ids())
    assert {name.partition("/")[0] for name in quick} == set(AREAS)


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
