"""``lwp bench``: how fast a server takes records and hands them out."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from lance_sdk.cli import _types
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options, topic_url
from lance_sdk.cli.bench.latencies import PERCENTILES, Latencies
from lance_sdk.cli.bench.load import Consuming, Load, Producing
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.console.progress import Meter, progress
from lance_sdk.cli.console.streams import tell
from lance_sdk.errors import LanceError
from lance_sdk.url import URL, parse_url
from lance_spec.limits import MAX_RECORD_VALUE

if TYPE_CHECKING:
    from lance_sdk import Client

_EXAMPLES: Final = """\b
Examples:
  lwp bench --url lance://localhost:1992
  lwp bench --records 1000000 --size 100 --compression auto
  lwp bench --rate 5000 --records 50000         latency at a load it can bear
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("target", required=False, metavar="[[lance://HOST:PORT/]TOPIC]")
@click.option("--records", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option(
    "--size",
    type=_types.size,
    default="100",
    show_default=True,
    metavar="SIZE",
    help="Size of a record's value, at least 8 bytes.",
)
@click.option(
    "--rate", type=click.IntRange(min=1), help="Records per second  [default: as many as possible]"
)
@click.option("--batch", type=_types.size, metavar="SIZE", help="Size at which a batch is full.")
@click.option(
    "--linger", type=_types.time, metavar="TIME", help="How long a batch waits for more records."
)
@click.option("--compression", type=click.Choice(["none", "lz4", "auto"]))
@click.option("--no-consume", is_flag=True, help="Only produce.")
@common_options
def bench(  # noqa: PLR0917 - click passes them by name
    target: str | None,
    records: int,
    size: int,
    rate: int | None,
    batch: int | None,
    linger: float | None,
    compression: str | None,
    no_consume: bool,
) -> None:
    """Measure throughput and latency with records of one size.

    One producer sends, and one consumer reads at the same time. Both run in this process, so they
    share the processors with a server on this machine. Values are random bytes. Without TOPIC the
    records go to a new topic, which is deleted afterwards.

    "acknowledged" is the time from a batch's first record to its acknowledgement. It counts for
    each record of the batch, so most records took less. "end to end" is the time from the moment at
    which a record was due, also if the producer was late, until the consumer had it. Without --rate
    the producer is never idle, and the latencies are mostly times in its queue.
    """
    if not 8 <= size <= MAX_RECORD_VALUE:
        raise click.UsageError(f"--size must be 8 to {MAX_RECORD_VALUE} bytes")
    settings = current_settings()
    load = Load(records=records, size=size, rate=rate)
    more = {"batch_bytes": batch, "linger": linger, "compression": compression}
    with _topic(target, settings) as url:
        producing = Producing(load, url, client_options(settings, url, **more))
        consuming = None if no_consume else Consuming(load, url, client_options(settings, url))
        _run(producing, consuming, settings)
    _tell(load, producing, consuming, settings)


@contextmanager
def _topic(target: str | None, settings: Settings) -> Iterator[URL]:
    """Yield the topic to use: the one that is named, or one that is there for the while."""
    if target is not None or parse_url(settings.require_url()).topic is not None:
        url = topic_url(target, settings)
        yield url
        return
    name = f"bench-{secrets.token_hex(4)}"
    url = replace(parse_url(settings.require_url()), topic=name, topic_id=None)
    with _client(url, settings) as client:
        client.create_topic(name)
    try:
        yield url
    except BaseException:
        with suppress(LanceError):  # the first error is the one to tell
            _delete(url, settings)
        raise
    _delete(url, settings)


def _delete(url: URL, settings: Settings) -> None:
    with _client(url, settings) as client:
        client.delete_topic(url.label)


def _client(url: URL, settings: Settings) -> "Client":
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    return Client(url, **client_options(settings, url))


def _run(producing: Producing, consuming: Consuming | None, settings: Settings) -> None:
    meter = Meter()
    with progress("sending", meter, total=producing.load.records, shown=not settings.quiet):
        if consuming is None:
            producing.run(meter)
            return
        with consuming:
            producing.run(meter)
            consuming.finish(settings.timeout)


def _tell(
    load: Load, producing: Producing, consuming: Consuming | None, settings: Settings
) -> None:
    if settings.json:
        print_json(_fields(load, producing, consuming))
        return
    amount = f"{number_format.count(load.records, 'record')} of {number_format.size(load.size)}"
    print_line(f"{amount}, sent {'as fast as they go' if load.rate is None else load.pace()}")
    print_line(f"produced  {_speed(load, producing.elapsed)}")
    if consuming is not None:
        print_line(f"consumed  {_speed(load, consuming.elapsed)}")
    rows = [["acknowledged", *_cells(producing.latencies)]]
    if consuming is not None:
        rows.append(["end to end", *_cells(consuming.latencies)])
    print_table(["latency", *PERCENTILES, "max"], rows, right="<>>>>>")
    if load.rate is not None and producing.lateness > 0.01:
        tell(
            "the producer was up to "
            f"{number_format.seconds(producing.lateness)} behind its schedule"
        )


def _speed(load: Load, elapsed: float) -> str:
    speed = number_format.rates(load.records, load.records * load.size, elapsed)
    return f"{speed}, in {number_format.seconds(elapsed)}"


def _cells(latencies: Latencies) -> list[str]:
    return [number_format.seconds(each) for each in latencies.seconds().values()]


def _fields(load: Load, producing: Producing, consuming: Consuming | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "records": load.records,
        "size": load.size,
        "rate": load.rate,
        "produced_s": producing.elapsed,
        "produced_per_s": load.records / producing.elapsed,
        "late_s": producing.lateness,
        "acknowledged_s": producing.latencies.seconds(),
    }
    if consuming is not None:
        found["consumed_s"] = consuming.elapsed
        found["consumed_per_s"] = load.records / consuming.elapsed
        found["end_to_end_s"] = consuming.latencies.seconds()
    return found
