"""The tables of the edge name tests and rows of the register that exist.

``weaknesses.toml`` has what was found in today's clients, ``document.toml`` what differs from the
document of store and forward.
"""

import ast
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lance_spec import ambiguities

HERE = Path(__file__).parent
WEAKNESSES = tomllib.loads((HERE / "weaknesses.toml").read_text(encoding="utf-8"))["weakness"]
RULES = tomllib.loads((HERE / "document.toml").read_text(encoding="utf-8"))["rule"]


def test_there_are_nineteen_weaknesses() -> None:
    """Numbered from W1 to W19, each with what was found and what is done here."""
    assert [each["id"] for each in WEAKNESSES] == [f"W{number}" for number in range(1, 20)]
    assert all(each["found"].endswith(".") and each["here"].endswith(".") for each in WEAKNESSES)


def test_each_rule_of_the_document_says_what_is_done_here() -> None:
    """With the row of the register that gives the reason, where there is one."""
    known = {row.id for row in ambiguities.load()}
    for each in RULES:
        assert each["document"].endswith("."), each
        assert each["here"].endswith("."), each
        assert set(each.get("register", ())) <= known, each


@pytest.mark.parametrize(
    "row", [*WEAKNESSES, *RULES], ids=lambda row: str(row.get("id", row["here"][:40]))
)
def test_the_tests_of_a_row_exist(row: dict[str, Any]) -> None:
    """By file and name, so that none can be renamed away."""
    assert row["tests"]
    for test in row["tests"]:
        file, _, name = test.partition("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {each.name for each in tree.body if isinstance(each, functions)}, test
