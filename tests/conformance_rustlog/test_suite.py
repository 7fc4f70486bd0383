"""The cases, their clauses and ids, and the servers that are wrong in one way each."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

import lance_conformance.rustlog as profile
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.selftest.test_selection import witnesses
from lance_conformance.engine.suites import case_by_id, suite_named
from lance_conformance.rustlog.golden.rules import GOLDEN, Rules
from lance_conformance.rustlog.mutants import MUTANTS
from lance_conformance.spec.clauses import Basis, Level

SUITE = suite_named("rustlog")
PACKAGE = Path(profile.__file__).parent
HOOKS = {
    name
    for cls in Rules.__mro__[:-1]
    for name, value in vars(cls).items()
    if callable(value) and not name.startswith("_")
}
EVERYBODY = MUTANTS.registered()


def test_a_case_is_found_by_its_id_alone() -> None:
    """Whatever protocol it is of."""
    assert case_by_id("kal/answered") is not None
    found = case_by_id("rl-topic/ping")
    assert found is not None
    assert found[0] is SUITE
    assert case_by_id("rl-topic/nobody-asks") is None


def test_a_clause_that_only_the_register_supports_is_no_must() -> None:
    """And whatever programs alone decide says so by RL-01."""
    for clause in SUITE.clauses().values():
        if clause.basis is Basis.REGISTER:
            assert clause.level is Level.SHOULD, clause.key
        if clause.basis in (Basis.REGISTER, Basis.PROGRAMS):
            assert clause.register == ("RL-01",), clause.key


def test_every_expectation_cites_a_clause() -> None:
    """Whatever looks like a citation in the cases is one."""
    sections = {clause.section for clause in SUITE.clauses().values()}
    looks = re.compile(rf'"((?:{"|".join(sections)})/[^"]*)"')
    cited = {
        name
        for path in [*(PACKAGE / "cases").glob("*.py"), PACKAGE / "case_context.py"]
        for name in looks.findall(path.read_text(encoding="utf-8"))
    }
    assert cited
    assert cited <= set(SUITE.clauses())


def test_a_mutant_replaces_exactly_one_hook() -> None:
    """In every dialect it differs from the golden server in one method, and only there."""
    for mutant in EVERYBODY.values():
        for dialect in mutant.dialects:
            cls = type(mutant.rules(dialect))
            assert cls.__mro__[1] is GOLDEN[dialect]
            own = {n for n in vars(cls) if n not in ("__module__", "__doc__")}
            assert own == {mutant.hook}
            assert mutant.hook in HOOKS


def test_every_hook_is_broken_by_somebody() -> None:
    """A rule of the golden server that no mutant breaks would be untested."""
    assert {mutant.hook for mutant in EVERYBODY.values()} == HOOKS


def test_every_case_is_proven_by_the_committed_matrix() -> None:
    """In every dialect in which it has a meaning, some mutant fails it."""
    matrix = committed(SUITE)
    proven = {(c, d) for d, rows in matrix.items() for kills in rows.values() for c in kills}
    assert {(case.id, d) for case in SUITE.cases for d in case.dialects} == proven


def test_no_two_cases_of_a_clause_are_failed_by_the_same_mutants() -> None:
    """The second one would only make the count larger."""
    columns: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = defaultdict(list)
    matrix = committed(SUITE)
    for case in SUITE.cases:
        column = frozenset(
            (dialect, name)
            for dialect, rows in matrix.items()
            for name, kills in rows.items()
            if case.id in kills
        )
        columns[case.clause.key, column].append(case.id)
    assert [twins for twins in columns.values() if len(twins) > 1] == []


def test_every_case_and_every_mutant_has_a_witness() -> None:
    """Nothing is left out of the usual self-test."""
    for dialect, rows in committed(SUITE).items():
        chosen = witnesses(rows)
        assert all(chosen.values())
        asked = {case.id for case in SUITE.cases if dialect in case.dialects}
        assert set.union(*chosen.values()) == asked


@pytest.mark.parametrize("folder", ["golden", "mutants"])
def test_the_oracle_has_a_codec_of_its_own(folder: str) -> None:
    """Golden and broken servers never touch the kit's codec."""
    for path in (PACKAGE / folder).glob("*.py"):
        assert "rustlog.wire" not in path.read_text(encoding="utf-8"), path
