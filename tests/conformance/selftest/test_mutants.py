"""Mutants are wrong in exactly one way, and null servers in every way."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import lance_conformance
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.suites import suite_named
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.server import GOLDEN
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants import Mutant, all_mutants

PACKAGE = Path(lance_conformance.__file__).parent
HOOKS = {
    name
    for cls in Specified.__mro__[:-1]
    for name, value in vars(cls).items()
    if callable(value) and not name.startswith("_")
}
each = pytest.mark.parametrize("mutant", all_mutants().values(), ids=lambda m: m.id)


@each
def test_a_mutant_replaces_exactly_one_hook(mutant: Mutant) -> None:
    """In every dialect it differs from the golden server in one method, and only there."""
    for dialect in mutant.dialects:
        cls = type(mutant.rules(dialect))
        assert cls.__mro__[1] is GOLDEN[dialect]
        assert {n for n in vars(cls) if n not in ("__module__", "__doc__")} == {mutant.hook}
        assert mutant.hook in HOOKS


def test_every_hook_is_broken_by_somebody() -> None:
    """A rule of the golden server that no mutant breaks would be untested."""
    assert {mutant.hook for mutant in all_mutants().values()} == HOOKS


def test_every_scored_case_is_proven_by_the_committed_matrix() -> None:
    """In every dialect in which a case has a meaning, some mutant fails it.

    A case of thorough runs asks what a usual case asks, with a larger number.
    """
    matrix = committed(suite_named("lwp"))
    for case in all_cases():
        for dialect in case.dialects if case.scored and not case.thorough else ():
            assert any(case.id in kills for kills in matrix[dialect].values()), (case.id, dialect)


@pytest.mark.parametrize("folder", ["golden", "mutants"])
def test_the_oracle_has_a_codec_of_its_own(folder: str) -> None:
    """Golden and broken servers never touch the kit's codec."""
    for path in (PACKAGE / "server" / folder).glob("*.py"):
        assert "lance_conformance.wire" not in path.read_text(), path


def test_a_case_of_thorough_runs_asks_what_a_usual_one_asks() -> None:
    """It is the twin of a case that is proven, so that it needs no mutant of its own."""
    cases = {case.id: case for case in all_cases()}
    for case in cases.values():
        if case.thorough and case.scored:
            assert case.twin_of is not None, case.id
            assert not cases[case.twin_of].thorough, case.id
            assert cases[case.twin_of].clause is case.clause, case.id


def test_operators_make_many_mutants() -> None:
    """At least a quarter are one wrongness, applied to one more place, count, size or width."""
    mutants = all_mutants().values()
    assert sum(bool(mutant.asked) for mutant in mutants) >= len(mutants) / 4


def test_a_mutant_that_names_its_cases_names_some() -> None:
    """Each of its globs fits a case."""
    ids = [case.id for case in all_cases()]
    for mutant in all_mutants().values():
        for glob in mutant.asked:
            assert any(fnmatchcase(name, glob) for name in ids), (mutant.id, glob)
