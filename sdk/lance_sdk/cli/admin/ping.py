"""``lwp ping``: is a LANCE server there, and how far away."""

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lance_sdk._api.interruptible import pause
from lance_sdk.cli import _types
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.output import print_json, print_line

if TYPE_CHECKING:
    from lance_sdk import Client


@click.command(cls=Command)
@click.option("-c", "--count", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--interval",
    type=_types.time,
    default="200ms",
    show_default=True,
    help="Pause between two round trips.",
)
@common_options
def ping(count: int, interval: float) -> None:
    """Measure round trips of Keepalive frames."""
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    settings = current_settings()
    url = settings.require_url()
    aloud = not (settings.json or settings.quiet)
    times: list[float] = []
    with Client(url, **client_options(settings, url)) as client:
        for number, rtt in enumerate(_round_trips(client, count, interval), start=1):
            times.append(rtt)
            if aloud:
                print_line(f"answer {number} of {count} after {number_format.seconds(rtt)}")
    low, middle, high = min(times), statistics.median(times), max(times)
    if settings.json:
        print_json({"count": count, "min_s": low, "median_s": middle, "max_s": high})
        return
    figures = " / ".join(number_format.seconds(each) for each in (low, middle, high))
    print_line(f"{count} answers, min / median / max: {figures}")


def _round_trips(client: "Client", count: int, interval: float) -> Iterator[float]:
    for number in range(count):
        if number:
            pause(interval)
        yield client.ping()
