"""Types of options, and helpers that declare them."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lance_server.config.settings import Address, ServerConfig, parse_names, parse_size
from lance_server.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # has no parameters before click 8.4


class Parsed(_ParamType):
    """A parameter that a function of ours reads."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value, or fail with our own words."""
        if isinstance(value, (Address, int, tuple)) and not isinstance(value, bool):
            return value
        try:
            return self._parse(str(value))
        except ConfigError as error:
            self.fail(str(error), param, ctx)


SIZE: Final = Parsed("size", parse_size)
NAMES: Final = Parsed("name,name", parse_names)
ADDRESS: Final = Parsed("host:port", Address.parse)
SECONDS: Final = click.FloatRange(min=0)
ABOVE_ZERO: Final = click.FloatRange(min=0, min_open=True)
COUNT: Final = click.IntRange(min=1)
FILE: Final = click.Path(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path)


def group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that gives a command several options, in the order they are written."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def setting(
    names: str, *, of: type = ServerConfig, field: str | None = None, **attributes: Any
) -> Callable[[F], F]:
    """Return an option that stands for a field of the settings, and has its default.

    Args:
        names: of the option, such as ``--admin/--no-admin``.
        of: the class of the settings.
        field: the field; by default the one of the option's name.
        **attributes: the others, as `click.option` takes them.
    """
    name = field or names.partition("/")[0].removeprefix("--").replace("-", "_")
    default = next(each.default for each in fields(of) if each.name == name)
    text = None if default is None else _TEXTS.get(attributes.get("type"))
    return click.option(names, default=default if text is None else text(default), **attributes)


def _size_text(size: int) -> str:
    """Return a number of bytes as an option is written."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


_TEXTS: Final[dict[Any, Callable[[Any], str]]] = {SIZE: _size_text, NAMES: ",".join}
"""How defaults are written that are no text, by what reads them."""
