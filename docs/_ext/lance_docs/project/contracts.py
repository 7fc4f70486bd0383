"""``lance-contracts``: which package may import which, from the project's own settings."""

import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from lance_docs._base import Generated, list_table, literal

_SETTINGS = Path(__file__).parents[4] / "pyproject.toml"


class Contracts(Generated):
    """The import contracts that every change is checked against."""

    def text(self) -> str:
        """Return a table with one row for each contract."""
        self.env.note_dependency(str(_SETTINGS))
        settings = tomllib.loads(_SETTINGS.read_text())
        contracts = settings["tool"]["importlinter"]["contracts"]
        return list_table(("Contract", "These", "never import"), map(_row, contracts))


def _row(contract: dict[str, Any]) -> tuple[str, str, str]:
    if contract["type"] == "independence":
        return contract["name"], ", ".join(map(literal, contract["modules"])), "each other"
    return (
        contract["name"],
        ", ".join(map(literal, contract["source_modules"])),
        ", ".join(map(literal, contract["forbidden_modules"])),
    )


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("lance-contracts", Contracts)
