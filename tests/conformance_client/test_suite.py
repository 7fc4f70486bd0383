"""The list of cases about clients, the clauses they rest on, and their ids."""

import pytest

from lance_conformance.client.cases.registry import client_clauses
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.scripted.rules import rules
from lance_conformance.client.suite import LwpClients
from lance_conformance.engine.registry import Case
from lance_conformance.spec.clauses import Basis, Level

CASES = LwpClients().cases
SURE = {"send", "flush", "fetch", "create_topic", "list_topics", "get_topic", "poll", "commit"}
SURE |= {"delete_topic", "set_retention"}
"""Operations whose success the server can vouch for."""


def played_case(case: Case) -> ClientCase:
    """What a case that is data consists of."""
    cells = case.function.__closure__ or ()  # type: ignore[attr-defined]  # it is a function
    (found,) = [cell.cell_contents for cell in cells if isinstance(cell.cell_contents, ClientCase)]
    return found


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
