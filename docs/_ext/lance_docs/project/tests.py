"""``lance-tests``: what a file of tests states, in the words of the tests themselves."""

import ast
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from lance_docs._base import Generated, literal

_ROOT = Path(__file__).parents[4]


class Tests(Generated):
    """The facts that the tests of a file check; the argument is its path in the project."""

    required_arguments = 1

    def text(self) -> str:
        """Return the file's subject and a list with one item for each test."""
        path = _ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        try:
            module = ast.parse(path.read_text())
        except OSError as error:
            raise self.refuse(f"no tests in {self.arguments[0]}: {error.strerror}") from error
        subject = f"{literal(self.arguments[0])}: {ast.get_docstring(module)}"
        return "\n".join([subject, "", *map("- {}".format, facts(module))])


def facts(module: ast.Module) -> Iterator[str]:
    """Yield each test's name as words, and the first line of its docstring."""
    for each in ast.walk(module):
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if each.name.startswith("test_") and (said := ast.get_docstring(each)):
            yield f"*{words(each.name)}*: {said.splitlines()[0]}"


def words(name: str) -> str:
    """Return a test's name as the beginning of a sentence."""
    text = name.removeprefix("test_").replace("_", " ")
    return f"{text[:1].upper()}{text[1:]}"


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-tests", Tests)
