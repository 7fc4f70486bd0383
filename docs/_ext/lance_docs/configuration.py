"""What can be set, from the code that reads it.

``lance-options``, ``lance-environment``, ``lance-spark-options``.
"""

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx

import lance_sdk.config
from lance_docs._base import Generated, escape, heading, list_table, literal, prose
from lance_docs.formats.values import described_attributes
from lance_sdk import url
from lance_sdk.spark import options as spark_options

_VARIABLE = re.compile(r"\[env: (LANCE_\w+)\]")


class Options(Generated):
    """The settings of a kind of client; the argument is the name of its class in `config`.

    ``options.toml`` says what belongs together, and when to change each.
    """

    required_arguments = 1
    sources = (lance_sdk.config, url)

    def text(self) -> str:
        """Return a table for each subject, with a row for each setting of the class's own."""
        kind = getattr(lance_sdk.config, self.arguments[0], None)
        if not dataclasses.is_dataclass(kind) or not isinstance(kind, type):
            raise self.refuse(f"no settings {self.arguments[0]} in lance_sdk.config")
        path = Path(self.env.srcdir, "options.toml")
        self.env.note_dependency(str(path))
        subjects = tomllib.loads(path.read_text(encoding="utf-8"))[self.arguments[0]]
        inherited = {field.name for base in kind.__bases__ for field in _fields(base)}
        own = {field.name: field for field in _fields(kind) if field.name not in inherited}
        told = described_attributes(kind)
        named = [name for subject in subjects for name in subject["when"]]
        if wrong := {*own} ^ {*named} or {*own} - {*told}:
            raise self.refuse(
                f"{self.arguments[0]}: {', '.join(sorted(wrong))} in code or page only"
            )
        return "".join(
            heading(subject["subject"], "~")
            + list_table(
                ("Setting", "Default", "Meaning", "Change it when"),
                [
                    (literal(name), literal(_default(own[name])), _meaning(name, told[name]), when)
                    for name, when in subject["when"].items()
                ],
                widths="20 12 38 30",
            )
            for subject in subjects
        )


def _fields(kind: Any) -> tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def _default(setting: "dataclasses.Field[Any]") -> str:
    value = setting.default
    if isinstance(value, int) and "bytes" in setting.name:
        return f"{value // 2**20} MiB" if value % 2**20 == 0 else f"{value // 2**10} KiB"
    if isinstance(value, float):
        return f"{value:g} s" if value >= 1 or not value else f"{1000 * value:g} ms"
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}()"
    return repr(value)


def _meaning(name: str, told: str) -> str:
    """Return what a setting is, and how a URL names it where that is not by its name."""
    read = url._URL_KEYS.get(name)  # noqa: SLF001 - the one table of what a URL takes
    if read is None:
        return f"{prose(told)} Not in a URL."
    short = [alias for alias, meant in url._ALIASES.items() if meant == name]  # noqa: SLF001
    others = " or ".join(literal(alias) for alias in short)
    return f"{prose(told)} In a URL also {others}." if others else prose(told)


class Environment(Generated):
    """The environment variables that a command reads; the argument is where it lives."""

    required_arguments = 1

    def text(self) -> str:
        """Return a table with one row for each variable."""
        module, _, name = self.arguments[0].partition(":")
        command = getattr(import_module(module), name)
        found = dict(_variables(command))
        if not found:
            raise self.refuse(f"{self.arguments[0]} reads no environment variable")
        rows = [(literal(name), literal(option), text) for name, (option, text) in found.items()]
        return list_table(("Variable", "Like the option", "Meaning"), rows, widths="25 25 50")


def _variables(command: click.Command) -> Iterator[tuple[str, tuple[str, str]]]:
    for option in command.params:
        told = getattr(option, "help", None) or ""
        if found := _VARIABLE.search(told):
            yield found[1], (option.opts[0], escape(_VARIABLE.sub("", told).strip()))


_SCOPES = {
    "read": "reading",
    "stream": "reading a stream",
    "write": "writing",
    "all": "reading and writing",
}


class SparkOptions(Generated):
    """The options of Spark's format ``lwp``."""

    sources = (spark_options,)

    def text(self) -> str:
        """Return a table with one row for each option."""
        fields = {each.name: each for each in dataclasses.fields(spark_options.Options)}
        rows = []
        for name, told in spark_options.OPTIONS.items():
            shown = told.shown if told.shown is not None else _plain(fields[name])
            said = literal(spark_options.NAMES[name])
            rows.append((said, literal(shown), _SCOPES[told.scope], prose(told.help)))
        return list_table(("Option", "Default", "For", "Meaning"), rows, widths="22 16 12 50")


def _plain(setting: "dataclasses.Field[Any]") -> str:
    """Return a default as it would be said."""
    value = setting.default
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool | str) else _default(setting)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-options", Options)
    app.add_directive("lance-environment", Environment)
    app.add_directive("lance-spark-options", SparkOptions)
