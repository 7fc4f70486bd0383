"""Tables of named values: enumerations, constants, dialects."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from lance_docs._base import Generated, list_table, literal
from lance_spec import dialect, schemas
from lance_spec.checksum import Checksum
from lance_spec.dialect import DIALECTS, Dialect

_ENTRY = re.compile(r"^    (\w+): (.*(?:\n     .*|\n(?=\n     ))*)", re.MULTILINE)


class Enumeration(Generated):
    """The members of an enumeration; the argument is its full name."""

    required_arguments = 1

    def text(self) -> str:
        """Return a table with one row for each member."""
        module, _, name = self.arguments[0].rpartition(".")
        try:
            kind = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise self.refuse(f"no enumeration {self.arguments[0]}: {error}") from error
        return members(kind)


class Schema(Generated):
    """The members of a JSON schema; the argument is its name."""

    required_arguments = 1
    sources = (schemas,)

    def text(self) -> str:
        """Return a table with one row for each member, those inside by their path."""
        try:
            schema = schemas.load(self.arguments[0])
        except ValueError as error:
            raise self.refuse(str(error)) from error
        header = ("Member", "Kind", "Required", "Meaning")
        return f"{schema['title']}.\n\n" + list_table(
            header, _members(schema), widths="25 20 10 45"
        )


def _members(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for name, told in schema.get("properties", {}).items():
        kind = str(told.get("const", told.get("type", told.get("$ref", "any"))))
        needed = "yes" if name in required else "no"
        yield (literal(f"{path}{name}"), kind, needed, told.get("description", ""))
        yield from _members(told, f"{path}{name}.")


def members(kind: type[Enum]) -> str:
    """Return a table with one row for each member of an enumeration."""
    docs = attribute_docs(kind.__module__)
    rows = [
        (_written(each.value), literal(each.name), docs.get((kind.__name__, each.name), ""))
        for each in kind.__members__.values()
    ]
    return list_table(("Value", "Name", "Meaning"), rows, widths="12 33 55")


def _written(value: int) -> str:
    return literal(str(value) if value < 0 or value > 0xFF else f"0x{value:02X}")


class Constants(Generated):
    """The documented constants of a module; the argument is its name."""

    required_arguments = 1

    def text(self) -> str:
        """Return a table with one row for each constant."""
        module = import_module(self.arguments[0])
        docs = attribute_docs(module.__name__)
        rows = [
            (literal(name), literal(str(getattr(module, name))), meaning)
            for (scope, name), meaning in docs.items()
            if not scope and not name.startswith("_")
        ]
        return list_table(("Name", "Value", "Meaning"), rows, widths="25 25 50")


class Settings(Generated):
    """The fields of a settings class with their defaults; the argument is its full name."""

    required_arguments = 1

    def text(self) -> str:
        """Return a table with one row for each setting."""
        module, _, name = self.arguments[0].rpartition(".")
        kind = getattr(import_module(module), name)
        told = described_attributes(kind)
        rows = [
            (literal(each.name), literal(repr(each.default)), told[each.name])
            for each in dataclasses.fields(kind)
            if each.name in told
        ]
        return list_table(("Setting", "Default", "Meaning"), rows, widths="22 18 60")


class Dialects(Generated):
    """The axes on which peers differ, and where the named dialects stand on each."""

    sources = (dialect,)

    def text(self) -> str:
        """Return a table with one row for each axis."""
        header = ("Axis", "What it decides", *DIALECTS)
        return list_table(header, _axes(), widths="20 50 15 15")


def attribute_docs(module: str) -> dict[tuple[str, str], str]:
    """Return the docstrings under attributes, by class and name, on one line each."""
    analyzer = ModuleAnalyzer.for_module(module)
    found = analyzer.find_attr_docs()
    return {place: " ".join(lines).strip() for place, lines in found.items()}


def _axes() -> Iterator[tuple[str, ...]]:
    told = described_attributes(Dialect)
    for axis in dataclasses.fields(Dialect):
        if axis.name != "name":
            values = (getattr(each, axis.name) for each in DIALECTS.values())
            yield (literal(axis.name), told[axis.name], *map(_value, values))


def described_attributes(kind: type) -> dict[str, str]:
    """Return the ``Attributes`` section of a class's docstring, by attribute."""
    _, _, section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    entries = _ENTRY.findall(section)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


def _value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Checksum(name=name):
            return literal(name)
        case int() if value > 1000:
            return f"{value:,}"
        case _:
            return str(value)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-enum", Enumeration)
    app.add_directive("lance-schema", Schema)
    app.add_directive("lance-constants", Constants)
    app.add_directive("lance-settings", Settings)
    app.add_directive("lance-dialects", Dialects)
