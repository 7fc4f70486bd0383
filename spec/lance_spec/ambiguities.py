"""The ambiguity register: where the documents disagree, and what this project does there."""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """One row of the register.

    Attributes:
        id: its name, for example ``AMB-05``; code, vectors and cases cite it.
        question: what the documents leave open.
        readings: the answers that the documents allow.
        known: what known programs do.
        choice: what this project does.
        sections: where the question arises.
    """

    id: str
    question: str
    readings: tuple[str, ...]
    known: str
    choice: str
    sections: tuple[str, ...]


class RegisterError(ValueError):
    """The register is malformed; the text names the row and the field."""


@cache
def load() -> tuple[Ambiguity, ...]:
    """Return every row, in the register's order.

    Raises:
        RegisterError: the register that is installed is malformed.
    """
    return parse(files("lance_spec").joinpath("ambiguities.toml").read_text(encoding="utf-8"))


def find(row_id: str) -> Ambiguity:
    """Return the row with an id.

    Raises:
        KeyError: the register has no such row.
    """
    for each in load():
        if each.id == row_id:
            return each
    raise KeyError(f"the ambiguity register has no row {row_id!r}")


def parse(text: str) -> tuple[Ambiguity, ...]:
    """Read a register.

    Args:
        text: TOML with one ``[[row]]`` for each question.

    Raises:
        RegisterError: naming the row and the field that is missing, unknown or of the wrong
            kind, or the id that two rows share.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RegisterError(f"the register is not valid TOML: {error}") from None
    rows = tuple(_row(number, row) for number, row in enumerate(document.get("row", []), 1))
    ids = [row.id for row in rows]
    for row_id in ids:
        if ids.count(row_id) > 1:
            raise RegisterError(f"two rows have the id {row_id}; give the later one a new number")
    return rows


def _row(number: int, row: dict[str, Any]) -> Ambiguity:
    place = f"row {number} ({row.get('id', 'without id')})"
    names = [each.name for each in fields(Ambiguity)]
    for name in [*names, *row]:
        if name not in row or name not in names:
            raise RegisterError(f"{place}: {name} is {'unknown' if name in row else 'missing'}")
    return Ambiguity(**{name: _value(place, name, row[name]) for name in names})


def _value(place: str, name: str, value: Any) -> Any:
    if name in {"readings", "sections"}:
        if isinstance(value, list) and value and all(map(_is_text, value)):
            return tuple(value)
        raise RegisterError(f"{place}: {name} must be a list of texts")
    if not _is_text(value):
        raise RegisterError(f"{place}: {name} must be a text")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value == value.strip()
