"""Every weakness that was found in today's clients has a test here that it is absent."""

import ast
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "weaknesses.toml").read_text(encoding="utf-8"))["weakness"]


def test_there_are_nineteen() -> None:
    """Numbered from W1 to W19, each with what was found and what is done here."""
    assert [each["id"] for each in TABLE] == [f"W{number}" for number in range(1, 20)]
    assert all(each["found"].endswith(".") and each["here"].endswith(".") for each in TABLE)


@pytest.mark.parametrize("weakness", TABLE, ids=lambda each: each["id"])
def test_its_tests_exist(weakness: dict[str, list[str]]) -> None:
    """By file and name, so that none can be renamed away."""
    assert weakness["tests"]
    for test in weakness["tests"]:
        file, _, name = test.partition("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert name in {each.name for each in tree.body if isinstance(each, functions)}, test
