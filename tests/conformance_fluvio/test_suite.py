"""The cases, their clauses and ids, and the servers that are wrong in one way each."""

from pathlib import Path

import pytest

import lance_conformance.fluvio as profile
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.selftest.test_selection import witnesses
from lance_conformance.engine.suites import suite_named
from lance_conformance.fluvio.cases import all_cases
from lance_conformance.fluvio.clauses import clauses
from lance_conformance.fluvio.golden.server import DIALECT, Rules
from lance_conformance.fluvio.mutants import all_mutants
from lance_conformance.spec.clauses import Basis, Level

SUITE = suite_named("fluvio")
PACKAGE = Path(profile.__file__).parent
HOOKS = {
    name
    for cls in Rules.__mro__[:-1]
    for name, value in vars(cls).items()
    if callable(value) and not name.startswith("_")
}


def test_an_id_fits_in_the_name_of_a_topic() -> None:
    """Names of topics in Fluvio are short."""
    assert [case.id for case in all_cases() if len(case.id) > 34] == []


def test_a_clause_that_only_the_register_supports_is_no_must() -> None:
    """Where published programs do not look, a target is advised, not failed."""
    for clause in clauses().values():
        assert set(clause.register) <= {"FLV-01", "FLV-02"}, clause.key
        assert clause.register, clause.key
        must = clause.level is Level.MUST
        assert must == (clause.basis is not Basis.REGISTER), clause.key


def test_a_mutant_replaces_exactly_one_hook() -> None:
    """It differs from the golden servers in one method."""
    for mutant in all_mutants().values():
        cls = type(mutant.rules(DIALECT))
        assert cls.__mro__[1] is Rules
        assert {n for n in vars(cls) if n not in ("__module__", "__doc__")} == {mutant.hook}


def test_every_hook_is_broken_by_somebody() -> None:
    """A rule of the golden servers that no mutant breaks would be untested."""
    assert {mutant.hook for mutant in all_mutants().values()} == HOOKS


def test_every_case_is_proven_by_the_committed_matrix() -> None:
    """Some mutant fails it."""
    proven = {case for kills in committed(SUITE)[DIALECT].values() for case in kills}
    assert proven == set(SUITE.by_id)


def test_every_case_and_every_mutant_has_a_witness() -> None:
    """Nothing is left out of the usual self-test."""
    chosen = witnesses(committed(SUITE)[DIALECT])
    assert all(chosen.values())
    assert set.union(*chosen.values()) == set(SUITE.by_id)


@pytest.mark.parametrize("folder", ["golden", "mutants"])
def test_the_oracle_has_a_codec_of_its_own(folder: str) -> None:
    """Golden and broken servers never touch the kit's codec."""
    for path in (PACKAGE / folder).glob("*.py"):
        assert "fluvio.wire" not in path.read_text(encoding="utf-8"), path


def test_the_kit_has_a_codec_of_its_own() -> None:
    """Neither does the profile use that of LWP, but for its checksum, or the grammar's."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8").replace("lance_conformance.wire.crc", "")
        assert "lance_conformance.wire" not in text, path
        assert "lance_spec" not in text, path
