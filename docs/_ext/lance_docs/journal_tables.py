"""Tables of the edge: connect keys, QWP policies, weaknesses of clients, the document's rules."""

import tomllib
from pathlib import Path
from typing import Any, ClassVar

from sphinx.application import Sphinx

from lance_docs._base import Generated, escape, list_table, literal, prose
from lance_docs.project.tests import words
from lance_sdk.journal import connect_keys
from lance_sdk.journal.qwp._connection import policies

_TESTS = Path(__file__).parents[3] / "tests" / "journal"
_FAMILIES = {"ws": "QWP", "lance": "LWP"}


class ConnectKeys(Generated):
    """Every key of a connect string, from the table that the parser reads."""

    sources = (connect_keys,)

    def text(self) -> str:
        """Return the table."""
        rows = []
        for name, key in connect_keys.KEYS.items():
            shown = literal(name) + (f", once {literal(key.replaces)}" if key.replaces else "")
            families = ", ".join(_FAMILIES[each] for each in key.schemes)
            rows.append([shown, literal(key.default), families, escape(key.doc)])
        return list_table(["Key", "Default", "For", "What it does"], rows, "26 14 10 50")


class QwpPolicies(Generated):
    """What a host does and what the sender does then, from the table that the sender obeys."""

    sources = (policies,)

    def text(self) -> str:
        """Return the table."""
        rows = [[escape(rule.signal), _follows(rule), _remarks(rule)] for rule in policies.RULES]
        return list_table(["Host", "Sender", "Document and other clients"], rows, "34 33 33")


def _follows(rule: policies.Rule) -> str:
    option = f"\n\n{literal(rule.option)} chooses" if rule.option else ""
    return f"{escape(rule.follows.value)}{option}"


def _remarks(rule: policies.Rule) -> str:
    return "\n\n".join(escape(each) for each in (rule.differs, rule.published) if each)


class Weaknesses(Generated):
    """What was found in other clients, and the tests that show its absence here."""

    columns: ClassVar[tuple[str, ...]] = ("", "Found in today's clients", "Here")

    def text(self) -> str:
        """Return the table."""
        rows = [
            [each["id"], escape(each["found"]), f"{escape(each['here'])}\n\n{_tests(each)}"]
            for each in _rows(self, "weakness")
        ]
        return list_table(self.columns, rows, "6 37 57")


class DocumentRules(Generated):
    """Where clients and the document on store and forward differ, and the tests of what is here."""

    columns: ClassVar[tuple[str, ...]] = ("Section", "The document", "Here")

    def text(self) -> str:
        """Return the table."""
        rows = []
        for each in _rows(self, "rule"):
            reasons = ", ".join(each.get("register", ()))
            here = prose(each["here"]) + (f" ({reasons})" if reasons else "")
            rows.append([each["section"], prose(each["document"]), f"{here}\n\n{_tests(each)}"])
        return list_table(self.columns, rows, "9 34 57")


def _rows(directive: Generated, kind: str) -> list[dict[str, Any]]:
    """Return the rows of the table of weaknesses or of rules."""
    path = _TESTS / {"weakness": "weaknesses.toml", "rule": "document.toml"}[kind]
    directive.env.note_dependency(str(path))
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))[kind]
    return rows


def _tests(row: dict[str, Any]) -> str:
    return "\n".join(map(_test, row["tests"]))


def _test(name: str) -> str:
    """Return an item that tells a test as words."""
    file, _, test = name.partition("::")
    return f"- *{words(test)}* ({literal(file.removeprefix('../'))})"


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-connect-keys", ConnectKeys)
    app.add_directive("lance-qwp-policies", QwpPolicies)
    app.add_directive("lance-weaknesses", Weaknesses)
    app.add_directive("lance-document-rules", DocumentRules)
