"""What options are made of."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from lance_server.config.settings import Address, parse_names, parse_size
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
