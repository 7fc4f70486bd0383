"""Tables of the test vectors, from their files."""

import json
from collections import Counter

from sphinx.application import Sphinx

from lance_docs._base import Generated, block, heading, list_table, literal, prose
from lance_spec import vectors
from lance_spec.vectors import Vectors


class Families(Generated):
    """How many vectors of which result each family has."""

    sources = (vectors,)

    def text(self) -> str:
        """Return a table with one row for each family."""
        header = ("File", "What it holds", "valid", "invalid", "either")
        rows = (_count(vectors.load(family)) for family in vectors.FAMILIES)
        return list_table(header, rows, widths="25 45 10 10 10")


class Notes(Generated):
    """Why the vectors with a flag exist, family by family."""

    sources = (vectors,)

    def text(self) -> str:
        """Return one section for each family."""
        return "".join(_notes(vectors.load(family)) for family in vectors.FAMILIES)


class Example(Generated):
    """One vector as its file has it; the argument is its id."""

    required_arguments = 1

    def text(self) -> str:
        """Return the JSON."""
        for family in vectors.FAMILIES:
            for each in vectors.load(family):
                if each.id == self.arguments[0]:
                    return block("code-block", json.dumps(each.test, indent=2), "json")
        raise self.refuse(f"no vector {self.arguments[0]!r}")


def _count(family: Vectors) -> tuple[str, ...]:
    results = Counter(each.result for each in family)
    counts = (str(results[result]) for result in ("valid", "invalid", "either"))
    return literal(f"{family.family}.json"), prose(family.document["header"][0]), *counts


def _notes(family: Vectors) -> str:
    rows = [
        (literal(flag), prose(f"{note['description']} {note['effect']}"))
        for flag, note in family.document["notes"].items()
    ]
    table = list_table(("Flag", "What it is, and what goes wrong without it"), rows, "30 70")
    return heading(f"{family.family}.json", "~") + table


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-vector-families", Families)
    app.add_directive("lance-vector-notes", Notes)
    app.add_directive("lance-vector", Example)
