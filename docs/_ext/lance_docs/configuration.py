"""What can be set, from the code that reads it.

``lance-options``, ``lance-environment``, ``lance-spark-options``.
"""

import dataclasses
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
from sphinx.application import Sphinx

import lance_sdk.config
from lance_docs._base import Generated, escape, list_table, literal, prose
from lance_docs.values import described_attributes
from lance_sdk import url
from lance_sdk.spark import options as spark_options

_VARIABLE = re.compile(r"\[env: (LANCE_\w+)\]")
_EXAMPLES = {"parse_duration": "500ms", "parse_size": "64KiB", "_parse_flag": "true"}
"""How values of a kind are written in a URL, by the function that reads them."""


class Options(Generated):
    """The settings of a kind of client; the argument is the name of its class in `config`."""

    required_arguments = 1
    sources = (lance_sdk.config, url)

    def text(self) -> str:
        """Return a table with one row for each setting that the base class does not have."""
        kind = getattr(lance_sdk.config, self.arguments[0], None)
        if not dataclasses.is_dataclass(kind) or not isinstance(kind, type):
            raise self.refuse(f"no settings {self.arguments[0]} in lance_sdk.config")
        inherited = {field.name for base in kind.__bases__ for field in _fields(base)}
        own = [field for field in _fields(kind) if field.name not in inherited]
        told = described_attributes(kind)
        if missing := [field.name for field in own if field.name not in told]:
            raise self.refuse(f"{self.arguments[0]}: nothing is told of {', '.join(missing)}")
        rows = [
            (
                literal(each.name),
                literal(_default(each)),
                _in_url(each.name),
                prose(told[each.name]),
            )
            for each in own
        ]
        return list_table(("Setting", "Default", "In a URL", "Meaning"), rows, widths="20 14 16 50")


def _fields(kind: Any) -> tuple["dataclasses.Field[Any]", ...]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def _default(setting: "dataclasses.Field[Any]") -> str:
    value = setting.default
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1024:
        return f"{value // 2**20} MiB" if value % 2**20 == 0 else _kib(value)
    if isinstance(value, float):
        return f"{value:g} s"
    return repr(value)


def _kib(value: int) -> str:
    return f"{value // 1024} KiB" if value % 1024 == 0 else str(value)


def _in_url(name: str) -> str:
    read = url._URL_KEYS.get(name)  # noqa: SLF001 - the one table of what a URL takes
    if read is None:
        return "only in code"
    short = [alias for alias, meant in url._ALIASES.items() if meant == name]  # noqa: SLF001
    example = _EXAMPLES.get(read.__name__, "...")
    return " or ".join(literal(f"{key}={example}") for key in [*short, name])


def _meaning(told: str) -> str:
    """Return what a docstring says, where code stands between one or two backticks."""
    return prose(told.replace("``", "`"))


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
