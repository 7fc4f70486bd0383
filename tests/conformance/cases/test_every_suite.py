"""Facts about the cases, clauses, ids and mutants of every suite."""

import re

import pytest

from lance_conformance.app import app
from lance_conformance.engine.selftest.matrix import committed
from lance_conformance.engine.suite import Suite
from lance_conformance.engine.suites import PROTOCOLS, SUITES, every_suite, suite_named
from lance_conformance.spec.clauses import Level
from lance_conformance.spec.ids import locked_ids

PREFIXES = {"lwp": "", "lwp-client": "", "fluvio": "fl-", "rustlog": "rl-"}
LONGEST_TITLE = 100


@pytest.fixture(params=SUITES)
def suite(request: pytest.FixtureRequest) -> Suite:
    """Each suite in turn."""
    return suite_named(request.param)


def test_an_id_is_an_area_and_a_slug(suite: Suite) -> None:
    """Ids are safe in a shell, tell the protocol, and no area is empty."""
    wanted = re.compile(rf"{PREFIXES[suite.name]}[a-z][a-z0-9]*/[a-z0-9-]+")
    assert [case.id for case in suite.cases if not wanted.fullmatch(case.id)] == []
    assert {case.area for case in suite.cases} == set(suite.areas)


def test_no_two_suites_share_an_area() -> None:
    """An id says by itself which suite it is of, and no area has the name of a command."""
    areas = [area for suite in every_suite() for area in suite.areas]
    assert len(areas) == len(set(areas))
    assert not set(areas) & {*app.commands, *PROTOCOLS}


def test_every_id_is_locked(suite: Suite) -> None:
    """Every case is in the lock, once, and an id without a case is retired."""
    locked = locked_ids(suite.ids)
    assert len({row.case_id for row in locked}) == len(locked)
    assert {row.case_id for row in locked if not row.retired} == set(suite.by_id)


def test_titles_and_clauses_are_sentences(suite: Suite) -> None:
    """The title of a case, the text of a clause and the title of a mutant are one sentence each."""
    titles = {case.id: case.title for case in suite.cases}
    mutants = {mutant.id: mutant.title for mutant in suite.proof().mutants().values()}
    texts = titles | mutants | {key: clause.text for key, clause in suite.clauses().items()}
    assert [name for name, text in texts.items() if not text.strip().endswith(".")] == []
    assert [name for name, text in (titles | mutants).items() if "\n" in text] == []
    if suite.name in PROTOCOLS:
        assert [name for name, title in titles.items() if len(title) > LONGEST_TITLE] == []


def test_most_cases_are_about_demands(suite: Suite) -> None:
    """More than half of the cases are scored and check a MUST."""
    demands = [case for case in suite.cases if case.scored and case.level is Level.MUST]
    assert len(demands) > len(suite.cases) / 2


def test_every_clause_is_asked_about(suite: Suite) -> None:
    """A clause has a case, or a reason to have none."""
    asked = {case.clause.key for case in suite.cases}
    assert {key for key, clause in suite.clauses().items() if not clause.untested} == asked


def test_the_committed_matrix_is_about_these_mutants_and_cases(suite: Suite) -> None:
    """Nothing in it is stale, every mutant fails something, and each kill has a reason."""
    mutants = suite.proof().mutants().values()
    matrix = committed(suite)
    assert {dialect for mutant in mutants for dialect in mutant.dialects} == set(matrix)
    for dialect, rows in matrix.items():
        assert set(rows) == {mutant.id for mutant in mutants if dialect in mutant.dialects}
        for name, kills in rows.items():
            assert kills, name
            assert set(kills) <= set(suite.by_id), name
            assert all(kills.values()), name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_suite_about_servers_has_more_mutants_than_cases(name: str) -> None:
    """And eleven servers that do not speak the protocol, for each of its dialects."""
    suite = suite_named(name)
    assert len(suite.proof().mutants()) > len(suite.cases)
    counts = {len(suite.proof().null_servers(dialect)) for dialect in committed(suite)}
    assert min(counts) >= 11
