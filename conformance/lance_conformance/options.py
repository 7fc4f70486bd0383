"""How values on the command line are read."""

import re
from typing import TYPE_CHECKING, Any

import click

from lance_conformance.engine.conditions import Target
from lance_conformance.engine.suites import PROTOCOLS
from lance_conformance.spec.clauses import Level

LONGEST_PREFIX = 64


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # has no parameters before click 8.4


class _TargetType(_ParamType):
    """``HOST``, ``HOST:PORT``, ``[::1]:PORT``, with or without ``lance://`` in front.

    Without a port, that of the protocol is filled in where the protocol is known.
    """

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a target."""
        text = str(value).removeprefix("lance://").rstrip("/")
        found = re.fullmatch(
            r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:/\[\]\s]+))(?::(?P<port>\d+))?", text
        )
        if found is None:
            self.fail(f"{value!r} is not HOST:PORT; write for example 127.0.0.1:1992", param, ctx)
        port = int(found["port"] or 0)
        if found["port"] and not 0 < port < 65536:
            self.fail(f"port {port} of {value!r} is not between 1 and 65535", param, ctx)
        return Target(found["v6"] or found["host"], port)


class _LevelsType(_ParamType):
    """Levels with commas between them."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read levels."""
        names = [name.strip().upper() for name in str(value).split(",") if name.strip()]
        unknown = [name for name in names if name not in Level.__members__]
        if unknown or not names:
            self.fail(f"{value!r}: levels are must, should and may", param, ctx)
        return tuple(Level(name) for name in names)


class _PrefixType(_ParamType):
    """The beginning of a topic name that every server accepts."""

    name = "prefix"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a prefix."""
        if not re.fullmatch(rf"[A-Za-z0-9-]{{1,{LONGEST_PREFIX}}}", str(value)):
            self.fail(
                f"{value!r}: a prefix is 1 to {LONGEST_PREFIX} letters, digits and dashes, so that "
                "every server accepts it",
                param,
                ctx,
            )
        return str(value)


TARGET = _TargetType()
protocol_option = click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default=PROTOCOLS[0],
    show_default=True,
    help="Protocol to check.",
)
LEVELS = _LevelsType()
PREFIX = _PrefixType()
