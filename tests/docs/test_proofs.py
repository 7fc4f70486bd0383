"""The pages name tests that exist; checked without building the site."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    page.stem: page.read_text()
    for page in sorted((DOCS / "what-happens").glob("*.rst"))
    if page.stem != "index"
}
NAMED = re.compile(r"^   (tests/[\w/]+\.py)::(test_\w+)$", re.MULTILINE)
ANSWERED = re.compile(r"^\.\. lance-complaints:: (.+)$", re.MULTILINE)
COMPLAINTS = tomllib.loads((ROOT / "tests/sdk/complaints.toml").read_text())["complaint"]


def answered(text: str) -> list[str]:
    """The complaints that a page answers."""
    return [name for names in ANSWERED.findall(text) for name in names.split()]


def names_in(path: Path) -> set[str]:
    """The names of a file's tests."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {
        each.name for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, functions)
    }


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_promises_is_tested(page: str) -> None:
    """Each page names tests, by itself or through a complaint, and they are there."""
    named = NAMED.findall(PAGES[page])
    assert named or answered(PAGES[page])
    assert [name for file, name in named if name not in names_in(ROOT / file)] == []


def test_every_complaint_is_answered_on_one_page() -> None:
    """Those that users of other clients have; a new one wants a page."""
    found = [name for text in PAGES.values() for name in answered(text)]
    assert sorted(found) == sorted(row["id"] for row in COMPLAINTS)
