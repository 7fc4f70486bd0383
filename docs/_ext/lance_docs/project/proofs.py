"""``lance-proof``, ``lance-complaints``: the tests that hold what a page says, by their names."""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from lance_docs._base import Generated, escape, literal
from lance_docs.project.tests import words

_ROOT = Path(__file__).parents[4]
_COMPLAINTS = _ROOT / "tests" / "sdk" / "complaints.toml"


class Proof(Generated):
    """A list of tests and what each states; one ``file::test`` a line in the content."""

    has_content = True

    def text(self) -> str:
        """Return a list with one item for each test."""
        return self.listed([name.strip() for name in self.content])

    def listed(self, names: list[str]) -> str:
        """Return a list of tests, each once."""
        return "\n".join(["*Tests:*", "", *map(self._item, dict.fromkeys(names))])

    def _item(self, name: str) -> str:
        file, _, test = name.partition("::")
        path = _ROOT / file
        if not path.is_file():
            raise self.refuse(f"no file of tests {file}")
        self.env.note_dependency(str(path))
        told = statements(path)
        if test not in told:
            raise self.refuse(f"no test {test} in {file}")
        return f"- *{words(test)}*: {escape(told[test])} {literal(file)}"


class Complaints(Proof):
    """What users of other clients complain about, what is so here, and the tests.

    The arguments are ids of ``tests/sdk/complaints.toml``; the content names further tests.
    """

    required_arguments = 1
    optional_arguments = 9

    def text(self) -> str:
        """Return a list of the complaints, and one of the tests."""
        self.env.note_dependency(str(_COMPLAINTS))
        rows = [self._row(each) for each in self.arguments]
        told = [f"- *Elsewhere:* {escape(row['complaint'])}. *Here:* {row['here']}" for row in rows]
        cited = [test for row in rows for test in row["tests"]]
        return "\n".join([*told, "", self.listed([*cited, *map(str.strip, self.content)])])

    def _row(self, name: str) -> dict[str, Any]:
        found = complaints().get(name)
        if found is None:
            raise self.refuse(f"no complaint {name} in {_COMPLAINTS.name}")
        return found


def complaints() -> dict[str, dict[str, Any]]:
    """Return the rows of the table, by their ids."""
    rows = tomllib.loads(_COMPLAINTS.read_text())["complaint"]
    return {row["id"]: row for row in rows}


@cache
def statements(path: Path) -> dict[str, str]:
    """Return what each test of a file states: the first line of its docstring, by its name."""
    module = ast.parse(path.read_text())
    functions = [
        each
        for each in ast.walk(module)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and each.name.startswith("test_")
    ]
    return {each.name: (ast.get_docstring(each) or "").splitlines()[0] for each in functions}


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-proof", Proof)
    app.add_directive("lance-complaints", Complaints)
