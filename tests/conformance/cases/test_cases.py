"""The list of cases and the clauses they rest on."""

import re
from pathlib import Path

import pytest

import lance_conformance
from lance_conformance.server.cases import Case, all_cases
from lance_conformance.spec.clauses import Basis, Clause, Level, clauses

PACKAGE = Path(lance_conformance.__file__).parent
AMBIGUITY = re.compile(r"AMB-\d\d")


def by_id(value: Case | Clause) -> str:
    """How a case or a clause is named in a test report."""
    return value.id if isinstance(value, Case) else value.key


ASKED = {case.clause.key for case in all_cases()}
every_case = pytest.mark.parametrize("case", all_cases(), ids=by_id)
every_clause = pytest.mark.parametrize("clause", clauses().values(), ids=by_id)


def test_a_clause_without_a_case_is_cited_by_an_expectation() -> None:
    """What no case asks about decides a case all the same."""
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    idle = [key for key in clauses() if key not in ASKED and f'"{key}"' not in sources]
    assert idle == []


@every_clause
def test_a_clause_without_support_in_the_document_is_no_must(clause: Clause) -> None:
    """Where only the register decides, a target is advised, not failed."""
    if clause.basis is Basis.REGISTER:
        assert clause.level is not Level.MUST
        assert clause.register
    else:
        assert clause.level is Level.MUST


@every_clause
def test_a_clause_names_its_section_and_its_ambiguities(clause: Clause) -> None:
    """A key begins with the section, and the register is cited by id."""
    assert re.fullmatch(r"\d+(\.\d+)*", clause.section)
    assert all(AMBIGUITY.fullmatch(name) for name in clause.register)


def test_every_expectation_cites_a_clause_or_an_ambiguity() -> None:
    """Whatever looks like a citation in the sources is one."""
    looks = re.compile(r'"(\d+\.\d+/[a-z0-9-]+|AMB-[^"]*)"')
    cited = {
        name
        for path in (PACKAGE / "server" / "cases").rglob("*.py")
        for name in looks.findall(path.read_text())
    }
    unknown = {n for n in cited if n not in clauses() and not AMBIGUITY.fullmatch(n)}
    assert cited
    assert not unknown


def test_nobody_sleeps() -> None:
    """Cases wait for events; the only pause is a turn of the event loop.

    The server of client mode may be told to be slow, and a golden client waits between attempts:
    that is what they are there for. A target that ended gets time to come back. Cases about peers
    that are idle or slow are idle or slow. A Fluvio cluster tells the ends of partitions late, and
    nothing announces it, so they are looked at again.
    """
    allowed = {
        "admin.py": {"0.01"},
        "case_context.py": {"0", "_LOOK", 'op.arguments["part"] * self._timeouts.operation'},
        "server.py": {"0", "self._server.pause", "item"},
        "target_watch.py": {"BETWEEN"},
        "waiting.py": {"seconds * ctx.conditions.pace", "left"},
    }
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "time.sleep" not in text, path
        pauses = set(re.findall(r"asyncio\.sleep\(([^)]*)\)", text))
        golden_client = path.is_relative_to(PACKAGE / "client" / "golden")
        assert golden_client or pauses <= allowed.get(path.name, {"0"}), path
