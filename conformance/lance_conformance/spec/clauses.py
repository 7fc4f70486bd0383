"""The clauses that cases rest on, read from the files of ``clauses/``."""

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
    PROGRAMS = "programs"
    """No document says so, or a wrong thing: published programs do it and rely on it."""
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule.

    Attributes:
        key: Its name in the kit, section and slug.
        section: The section of the document.
        level: How much depends on it.
        basis: What in the document makes it so.
        text: The rule as a sentence.
        register: The ambiguities whose choice it depends on.
        untested: Why no case asks about it; empty where one does.
    """

    key: str
    section: str
    level: Level
    basis: Basis
    text: str
    register: tuple[str, ...]
    untested: str = ""


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
        untested=str(row.get("untested", "")),
    )


def read_clauses(package: str) -> Mapping[str, Clause]:
    """The clauses of the files in a package's folder ``clauses/``, by key.

    Args:
        package: the package, which may hold the clauses of another protocol than LWP.
    """
    found: dict[str, Clause] = {}
    sources = files(package).joinpath("clauses").iterdir()
    for source in sorted(sources, key=lambda source: source.name):
        rows = tomllib.loads(source.read_text(encoding="utf-8"))
        assert not found.keys() & rows.keys(), f"{source.name} has a clause of another file"
        found |= {key: _clause(key, row) for key, row in rows.items()}
    return found


@cache
def clauses() -> Mapping[str, Clause]:
    """All clauses of the LWP document, by key."""
    assert __package__
    return read_clauses(__package__)
