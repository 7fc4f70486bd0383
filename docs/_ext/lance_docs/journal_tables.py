"""Tables of the edge: ``lance-connect-keys``, ``lance-qwp-policies``, ``lance-weaknesses``."""

import tomllib
from pathlib import Path
from typing import ClassVar

from sphinx.application import Sphinx

from lance_docs._base import Generated, escape, list_table, literal
from lance_docs.tests import words
from lance_sdk.journal import connect_keys
from lance_sdk.journal.qwp._connection import policies

_TABLE = Path(__file__).parents[3] / "tests" / "journal" / "weaknesses.toml"
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
        self.env.note_dependency(str(_TABLE))
        rows = []
        for each in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["weakness"]:
            tests = "\n".join(_test(name) for name in each["tests"])
            rows.append([each["id"], escape(each["found"]), f"{escape(each['here'])}\n\n{tests}"])
        return list_table(self.columns, rows, "6 37 57")


def _test(name: str) -> str:
    """Return an item that tells a test as words."""
    file, _, test = name.partition("::")
    return f"- *{words(test)}* ({literal(file)})"


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-connect-keys", ConnectKeys)
    app.add_directive("lance-qwp-policies", QwpPolicies)
    app.add_directive("lance-weaknesses", Weaknesses)
