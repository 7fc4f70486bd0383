"""``lance-features``: which client has which feature, and the tests that hold it."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from lance_docs._base import Generated, escape, heading, list_table
from lance_docs.project.tests import words

_ROOT = Path(__file__).parents[4]
_TABLE = _ROOT / "docs" / "features.toml"
_APIS = ("threads", "asyncio", "trio")


class Features(Generated):
    """One table for each group of features."""

    def text(self) -> str:
        """Return the tables."""
        self.env.note_dependency(str(_TABLE))
        groups = tomllib.loads(_TABLE.read_text())["group"]
        return "\n".join(part for group in groups for part in self._group(group))

    def _group(self, group: dict[str, Any]) -> Iterator[str]:
        yield heading(group["name"], "-")
        rows = (self._row(feature) for feature in group["feature"])
        yield ".. rst-class:: lance-features\n"
        yield list_table(("Feature", *_APIS, "Tests"), rows, widths="30 11 11 8 40")

    def _row(self, feature: dict[str, Any]) -> tuple[str, ...]:
        apis = feature.get("apis", ())
        tests = [test.partition("::") for test in feature["tests"]]
        for file, _, name in tests:
            arguments = parameters(_ROOT / file).get(name)
            if arguments is None:
                raise self.refuse(f"features.toml: no test {file}::{name}")
            if "api" in arguments:
                apis = _APIS
        if not apis:
            raise self.refuse(f"features.toml: on which clients is {feature['name']!r}?")
        marks = ("yes" if api in apis else "" for api in _APIS)
        shown = "\n\n".join(words(name) for _, _, name in tests)
        return (escape(feature["name"]), *marks, shown)


@cache
def parameters(path: Path) -> dict[str, set[str]]:
    """Return the parameters of each test of a file, by its name."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, functions))
    return {each.name: {argument.arg for argument in each.args.args} for each in found}


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-features", Features)
