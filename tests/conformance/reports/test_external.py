"""The page about servers of others: each failure has a judgement, or there is no page."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from lance_conformance.fluvio.clauses import clauses as fluvio_clauses
from lance_conformance.spec.clauses import clauses

sys.path.insert(0, str(Path(__file__).parents[3] / "conformance"))  # the folder is not a package
from external import JUDGEMENTS, External, judged

CASE = {"id": "top/create", "clause": "5.3/answer", "message": "no answer"}
CLAUSES = {*clauses(), *fluvio_clauses()}
LINES = tomllib.loads(JUDGEMENTS.read_text())["judgement"]


def test_a_failure_without_a_judgement_makes_no_page() -> None:
    """Whoever adds a run says what its failures are."""
    with pytest.raises(LookupError, match=r"top/create \[5.3/answer\] failed \(no answer\)"):
        list(judged([CASE], []))


def test_a_failure_comes_with_the_judgement_on_its_clause() -> None:
    """The line is found by the clause."""
    line = {"clause": "5.3/answer", "says": "deviates", "why": "It is mute."}
    assert list(judged([CASE], [line])) == [(CASE, line)]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["clause"])
def test_each_judgement_is_about_a_clause(line: dict[str, str]) -> None:
    """A line names a clause there is, what is said of it, and why."""
    assert line["clause"] in CLAUSES
    assert re.fullmatch(r"deviates|known \(FLV-\d+\)|AMB-\d+", line["says"])
    assert line["why"].endswith(".")


def test_a_server_is_named_with_options_of_the_kit() -> None:
    """The first word is the target."""
    found = External.read("mine=127.0.0.1:1992 --dialect deployed")
    assert found == External("mine", "127.0.0.1:1992", ("--dialect", "deployed"))


@pytest.mark.parametrize("text", ["mine", "mine=", "=127.0.0.1:1992", "mine=nowhere"])
def test_what_names_no_server_is_refused(text: str) -> None:
    """Without a name or a place nothing is asked."""
    with pytest.raises(SystemExit, match="must be NAME=HOST:PORT"):
        External.read(text)
