"""``lwp top``: topics, rates, lag, consumers, connections and sync latency, as they change."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from lance_sdk._api.interruptible import pause
from lance_sdk.cli import _types
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.admin.consumer_names import consumer_names_option
from lance_sdk.cli.admin.http_port import chosen_token
from lance_sdk.cli.console.exit_codes import Failure, printable
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.top.figures import Look, gather, look_at
from lance_sdk.cli.top.tables import tables

if TYPE_CHECKING:
    from rich.console import Group

_DEFAULT: Final = "127.0.0.1:9090"
_TIMEOUT: Final = 5.0
"""Seconds that a picture waits for a server."""


@click.command(cls=Command)
@click.argument("addresses", metavar="[HOST:PORT]...", nargs=-1)
@click.option("--once", is_flag=True, help="Show the figures once, and end.")
@click.option(
    "--interval",
    type=_types.time,
    default="1s",
    show_default=True,
    help="Time between two updates.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Show at most this number of topics, consumers and connections.",
)
@consumer_names_option
@common_options
def top(addresses: tuple[str, ...], once: bool, interval: float, rows: int) -> None:
    """Show topics, rates, lag and connections of servers, and update them until Ctrl-C.

    HOST:PORT is the HTTP port of a server (lance-server --http); the default is 127.0.0.1:9090. For
    a cluster, give the ports of all nodes. If the output is not a terminal, the figures are shown
    once. With --json each update is one line.
    """
    asked = tuple(dict.fromkeys(addresses or (_DEFAULT,)))
    settings = current_settings()
    moments = _moments(asked, settings.timeout or _TIMEOUT, interval)
    if once or not (settings.json or sys.stdout.isatty()):
        _show_once(next(moments), rows)
        return
    try:
        if settings.json:
            for looks in moments:
                print_json(gather(looks))
        else:
            _show_live(moments, rows)
    except KeyboardInterrupt:
        return  # the usual way to end it


def _moments(addresses: Sequence[str], timeout: float, interval: float) -> Iterator[list[Look]]:
    """Yield looks at all servers for ever.

    Raises:
        Failure: when none answers the first one: later ones may, as while they start again.
    """
    token = chosen_token()
    looks = look_at(addresses, token, timeout)
    if (failure := _failure_of_all(looks)) is not None:
        raise failure
    while True:
        yield looks
        pause(interval)
        looks = look_at(addresses, token, timeout)


def _failure_of_all(looks: Sequence[Look]) -> Failure | None:
    failures = [each.failure for each in looks if each.failure is not None]
    return failures[0] if len(failures) == len(looks) else None


def _show_once(looks: Sequence[Look], rows: int) -> None:
    """Print one moment.

    Raises:
        Failure: when a server did not answer, after what the others told.
    """
    figures = gather(looks)
    if current_settings().json:
        print_json(figures)
    else:
        for number, table in enumerate(tables(figures, rows)):
            print_line(f"{'' if number == 0 else chr(10)}{table.heading}")
            if table.rows:
                print_table(table.columns, table.rows, table.align)
    for each in looks:
        if each.failure is not None:
            raise each.failure


def _show_live(moments: Iterator[list[Look]], rows: int) -> None:
    from rich.console import Console  # noqa: PLC0415 - costs 100 ms, only tables need it
    from rich.live import Live  # noqa: PLC0415

    first = gather(next(moments))
    with Live(_picture(first, rows), console=Console(), screen=True, auto_refresh=False) as live:
        live.refresh()
        for looks in moments:
            live.update(_picture(gather(looks), rows), refresh=True)


def _picture(figures: dict[str, Any], rows: int) -> "Group":
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table as Drawn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - cells are text, never markup

    parts: list[Drawn | Text] = [Text(f"lwp top · {figures['time']} · Ctrl-C ends", "dim")]
    for table in tables(figures, rows):
        parts.append(Text(table.heading, "bold"))
        drawn = Drawn(box=SIMPLE_HEAD, header_style="dim", pad_edge=False)
        for name, side in zip(table.columns, table.align, strict=True):
            drawn.add_column(name, justify="right" if side == ">" else "left")
        for row in table.rows:
            drawn.add_row(*(Text(printable(cell)) for cell in row))
        if table.rows:
            parts.append(drawn)
    return Group(*parts)
