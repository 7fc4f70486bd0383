"""The list of cases about clients, the clauses they rest on, and their ids."""

import re
from collections import Counter

import pytest

from lance_conformance.client.cases.registry import AREAS, client_clauses
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.scripted.rules import rules
from lance_conformance.client.suite import LwpClients
from lance_conformance.engine.registry import Case
from lance_conformance.engine.suites import every_suite
from lance_conformance.spec.clauses import Basis, Level
from lance_conformance.spec.ids import locked_ids

CASES = LwpClients().cases
SURE = {"send", "flush", "fetch", "create_topic", "list_topics", "get_topic", "poll", "commit"}
SURE |= {"delete_topic", "set_retention"}
"""Operations whose success the server can vouch for."""


def played_case(case: Case) -> ClientCase:
    """What a case that is data consists of."""
    cells = case.function.__closure__ or ()  # type: ignore[attr-defined]  # it is a function
    (found,) = [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, ClientCase)]
    return found


def test_most_ask_what_the_document_demands() -> None:
    """Scored cases of its MUSTs are more than half."""
    assert sum(case.scored and case.level is Level.MUST for case in CASES) > len(CASES) / 2


def test_ids_are_an_area_and_a_slug() -> None:
    """Ids are readable and safe in a shell, and each area has cases."""
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9-]+", case.id) for case in CASES)
    assert {case.area for case in CASES} == set(AREAS)


def test_no_two_suites_share_an_area() -> None:
    """So an id says by itself which suite it is of."""
    areas = Counter(area for suite in every_suite() for area in suite.areas)
    assert [area for area, count in areas.items() if count > 1] == []


def test_titles_are_sentences() -> None:
    """What must hold stands in one sentence."""
    assert [case.id for case in CASES if not case.title.endswith(".")] == []


def test_ids_are_locked() -> None:
    """The lock file has every id, in the order of the cases' appearance, and no other."""
    locked = locked_ids(LwpClients.ids)
    assert {entry.case_id for entry in locked if not entry.retired} == {case.id for case in CASES}
    assert len({entry.case_id for entry in locked}) == len(locked)


def test_every_clause_is_asked_about() -> None:
    """No clause is there for show."""
    assert set(client_clauses()) == {case.clause.key for case in CASES}


def test_what_only_the_register_says_is_no_must() -> None:
    """Where the document does not decide, our choice does not demand."""
    ours = [c for c in client_clauses().values() if c.basis is Basis.REGISTER]
    assert [clause.key for clause in ours if clause.level is Level.MUST] == []
    assert [clause.key for clause in ours if not clause.register] == []


def test_every_rule_for_frames_has_a_case() -> None:
    """So a client that breaks it everywhere fails in one place."""
    assert {f"wire/{name}" for name in rules()} == {c.id for c in CASES if c.area == "wire"}


def test_no_case_can_pass_without_a_success() -> None:
    """A client that fails at everything must not pass: each case is paired, or wants a success."""
    vacuous = [
        case.id
        for case in CASES
        if not (played := played_case(case)).paired
        and not any(op.name in SURE and not op.want.error for op in played.ops)
    ]
    assert vacuous == []


def test_most_cases_are_data() -> None:
    """Operations, script and checks are values that can be looked at."""
    assert sum(isinstance(played_case(case), ClientCase) for case in CASES) >= 0.7 * len(CASES)


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
def test_each_dialect_has_its_cases(dialect: str) -> None:
    """Most cases have a meaning in either."""
    assert sum(dialect in case.dialects for case in CASES) > len(CASES) / 2
