"""The clauses that cases rest on, read from ``clauses.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Level(StrEnum):
    """How much depends on a clause."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Basis(StrEnum):
    """What makes a clause binding, so that nobody takes our reading for the document's word."""

    KEYWORD = "keyword"
    TABLE = "table"
    FIGURE = "figure"
    PROSE = "prose"
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule.

    Attributes:
        key: Its name in the kit, section and slug.
        section: The section of the LWP document.
        level: How much depends on it.
        basis: What in the document makes it so.
        text: The rule as a sentence.
        register: The ambiguities whose choice it depends on.
    """

    key: str
    section: str
    level: Level
    basis: Basis
    text: str
    register: tuple[str, ...]


def _clause(key: str, row: Mapping[str, object]) -> Clause:
    register = row.get("register", [])
    assert isinstance(register, list)
    return Clause(
        key=key,
        section=key.partition("/")[0],
        level=Level(str(row["level"])),
        basis=Basis(str(row["basis"])),
        text=str(row["text"]),
        register=tuple(register),
    )


@cache
def clauses() -> Mapping[str, Clause]:
    """All clauses by key."""
    source = files(__package__).joinpath("clauses.toml").read_text(encoding="utf-8")
    return {key: _clause(key, row) for key, row in tomllib.loads(source).items()}
