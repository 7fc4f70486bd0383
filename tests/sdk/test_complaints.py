"""Every complaint about other clients has an answer here that a test holds."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPLAINTS = tomllib.loads((Path(__file__).parent / "complaints.toml").read_text())["complaint"]
CITED = sorted({test for row in COMPLAINTS for test in row["tests"]})


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("test", CITED)
def test_the_tests_that_are_cited_exist(test: str) -> None:
    """A test that is renamed takes its row along."""
    path, _, name = test.partition("::")
    assert name in names_in(path)


@pytest.mark.parametrize("row", COMPLAINTS, ids=lambda row: row["id"])
def test_every_row_is_complete(row: dict[str, str]) -> None:
    """Whose complaint, what it is, what happens here, and at least one test."""
    assert row.keys() == {"id", "of", "complaint", "here", "tests"}
    assert all(row.values())


def test_ids_are_unique() -> None:
    """Pages refer to them."""
    ids = [row["id"] for row in COMPLAINTS]
    assert len(set(ids)) == len(ids)
