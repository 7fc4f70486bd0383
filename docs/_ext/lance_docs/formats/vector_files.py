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
        """Return a table with one row for each family, and the sum."""
        header = ("File", "What it holds", "valid", "invalid", "either")
        loaded = [vectors.load(family) for family in vectors.FAMILIES]
        everything = Counter(each.result for family in loaded for each in family)
        total = ("All", f"{everything.total()} vectors", *_results(everything))
        rows = [*(_count(each) for each in loaded), total]
        return list_table(header, rows, widths="25 45 10 10 10")


class Sources(Generated):
    """From which programs vectors were captured."""

    sources = (vectors,)

    def text(self) -> str:
        """Return a table with one row for each program and way of coming by its bytes."""
        counted: Counter[tuple[str, str, str]] = Counter()
        for family in vectors.FAMILIES:
            for each in vectors.load(family):
                source = each.group["source"]
                if "how" in source:
                    how = source["how"].removeprefix("captured: ")
                    counted[source["name"], source["version"], how] += 1
        rows = [
            (prose(f"{name} {version}"), prose(how), str(count))
            for (name, version, how), count in sorted(counted.items())
        ]
        return list_table(("Program", "What was captured", "vectors"), rows, widths="30 55 15")


class Notes(Generated):
    """Why the vectors with a flag exist, family by family."""

    sources = (vectors,)

    def text(self) -> str:
        """Return one section for each family that has notes."""
        loaded = (vectors.load(family) for family in vectors.FAMILIES)
        return "".join(_notes(each) for each in loaded if each.document["notes"])


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


class ServerCase(Generated):
    """One case for servers as its file has it; the argument is its id."""

    sources = (vectors,)
    required_arguments = 1

    def text(self) -> str:
        """Return the JSON."""
        document = json.loads((vectors.root() / "server_case.json").read_text(encoding="utf-8"))
        for group in document["testGroups"]:
            for case in group["tests"]:
                if case["id"] == self.arguments[0]:
                    return block("code-block", json.dumps(case, indent=2), "json")
        raise self.refuse(f"no case {self.arguments[0]!r}")


def _count(family: Vectors) -> tuple[str, ...]:
    first, _, _ = " ".join(family.document["header"]).partition(". ")
    what = prose(f"{first.removesuffix('.')}.")
    counts = _results(Counter(each.result for each in family))
    return literal(f"{family.family}.json"), what, *counts


def _results(counted: Counter[str]) -> tuple[str, ...]:
    return tuple(str(counted[result]) for result in ("valid", "invalid", "either"))


def _notes(family: Vectors) -> str:
    rows = [
        (literal(flag), prose(" ".join([note["description"], note["effect"], *note["seenIn"]])))
        for flag, note in family.document["notes"].items()
    ]
    table = list_table(("Flag", "What it is, and what goes wrong without it"), rows, "30 70")
    return heading(f"{family.family}.json", "~") + table


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-vector-families", Families)
    app.add_directive("lance-vector-notes", Notes)
    app.add_directive("lance-vector-sources", Sources)
    app.add_directive("lance-vector", Example)
    app.add_directive("lance-server-case", ServerCase)
