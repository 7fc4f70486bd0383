"""The cases, their clauses and ids, and the servers that are wrong in one way each."""

import re
from pathlib import Path

import pytest

import lance_conformance.fluvio as profile
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.selftest.test_selection import witnesses
from lance_conformance.engine.suites import PROTOCOLS, suite_named
from lance_conformance.fluvio.cases import all_cases
from lance_conformance.fluvio.clauses import clauses
from lance_conformance.fluvio.golden.server import DIALECT, Rules
from lance_conformance.fluvio.mutants import all_mutants
from lance_conformance.fluvio.mutants.null import NULLS
from lance_conformance.spec.clauses import Basis, Level
from lance_conformance.spec.ids import locked_ids

SUITE = suite_named("fluvio")
PACKAGE = Path(profile.__file__).parent
HOOKS = {
    name
    for cls in Rules.__mro__[:-1]
    for name, value in vars(cls).items()
    if callable(value) and not name.startswith("_")
}


def test_there_are_enough() -> None:
    """At least 60 cases, most of them about what published programs rely on, and more mutants."""
    assert len(all_cases()) >= 60
    assert sum(case.level is Level.MUST for case in all_cases()) >= 60
    assert len(all_mutants()) > len(all_cases())
    assert len(NULLS) == 11


def test_an_id_is_an_area_and_a_slug() -> None:
    """Ids are readable, tell the protocol, and are short enough for a topic's name."""
    for case in all_cases():
        assert re.fullmatch(r"fl-[a-z]+/[a-z0-9-]+", case.id)
        assert case.area in SUITE.areas, case.id
        assert len(case.id) <= 34, case.id


def test_a_title_is_one_sentence() -> None:
    """What must hold stands in the first line of the docstring."""
    assert [case.id for case in all_cases() if not case.title.endswith(".")] == []
    assert [case.id for case in all_cases() if len(case.title) > 100] == []


def test_every_id_is_locked_and_every_locked_id_is_asked() -> None:
    """Ids are never given to another question."""
    locked = {row.case_id for row in locked_ids(SUITE.ids) if not row.retired}
    assert locked == {case.id for case in all_cases()}
    assert len(locked_ids(SUITE.ids)) == len({row.case_id for row in locked_ids(SUITE.ids)})


def test_no_area_belongs_to_two_protocols() -> None:
    """A case is known by its id alone, whatever is spoken."""
    areas = [area for name in PROTOCOLS for area in suite_named(name).areas]
    assert len(areas) == len(set(areas))


def test_every_clause_is_asked_about() -> None:
    """No rule without a question."""
    assert set(clauses()) == {case.clause.key for case in all_cases()}
    assert [key for key, clause in clauses().items() if not clause.text.endswith(".")] == []


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


def test_a_mutant_says_how_it_is_wrong() -> None:
    """One sentence."""
    for mutant in all_mutants().values():
        assert mutant.title.endswith("."), mutant.id
        assert "\n" not in mutant.title, mutant.id


def test_every_hook_is_broken_by_somebody() -> None:
    """A rule of the golden servers that no mutant breaks would be untested."""
    assert {mutant.hook for mutant in all_mutants().values()} == HOOKS


def test_the_committed_matrix_is_about_these_mutants_and_cases() -> None:
    """Nothing in it is stale, every mutant fails something, and each kill has a reason."""
    (rows,) = committed(SUITE).values()
    assert set(rows) == set(all_mutants())
    for name, kills in rows.items():
        assert kills, name
        assert set(kills) <= set(SUITE.by_id)
        assert all(kills.values())


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
