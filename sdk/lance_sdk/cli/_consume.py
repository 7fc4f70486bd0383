"""``lwp consume``: records on stdout, one a line."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from lance_sdk.cli import _types
from lance_sdk.cli._output import Output
from lance_sdk.cli._progress import Meter, progress
from lance_sdk.cli._reading import to_the_end
from lance_sdk.cli._records import as_json, as_lines
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._streams import tell
from lance_sdk.cli._target import client_options, topic_url
from lance_spec.limits import RECORD_HEADER_SIZE

if TYPE_CHECKING:
    from lance_sdk import Consumer
    from lance_sdk.types import RecordBatch

_GLANCE: Final = 1.0
"""Seconds between two looks whether anybody still reads what a quiet topic will bring."""


_EXAMPLES: Final = """\b
Examples:
  lwp consume lance://localhost:1992/orders | grep refund
  lwp consume logs --url lance://localhost:1992 --follow --from end
"""


@click.command(epilog=_EXAMPLES)
@click.argument("target", required=False, metavar="[lance://HOST:PORT/]TOPIC")
@click.option(
    "--from",
    "start",
    type=_types.start,
    default="beginning",
    show_default=True,
    metavar="PLACE",
    help="beginning, end, or the offset of a record.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on when the end is reached.")
@click.option("-n", "--max-records", type=click.IntRange(min=1), help="Stop after so many.")
@click.option("-0", "--null", is_flag=True, help="End records with a zero byte, not a newline.")
@common_options
def consume(
    target: str | None,
    *,
    start: str | int,
    follow: bool,
    max_records: int | None,
    null: bool,
) -> None:
    """Print the records of a topic, one a line, to its current end.

    With --json every line is an object: topic, offset, type, encoding, value. The encoding is
    "utf-8" where value is the record's text, and "base64" where its bytes are not UTF-8.
    """
    settings = current_settings()
    url = topic_url(target, settings)
    options = client_options(settings, start=start, stop_at_end=not follow)
    from lance_sdk import Consumer  # noqa: PLC0415 - the network is loaded when it is needed

    output = Output()
    render = as_json if settings.json else partial(as_lines, separator=b"\0" if null else b"\n")
    meter = Meter()
    bar = progress("consuming", meter, shown=_may_draw(settings))
    with bar, Consumer(url, **options) as consumer:
        batches = _follow(consumer, output) if follow else to_the_end(consumer, settings)
        _print(_first(batches, max_records), output, render, meter)
    if not (settings.quiet or settings.json):
        tell(f"read {meter.summary()}")


def _print(
    batches: Iterator["RecordBatch"],
    output: Output,
    render: Callable[["RecordBatch"], bytes],
    meter: Meter,
) -> None:
    for batch in batches:
        output.write(render(batch))
        meter.add(batch.count, len(batch.data) - batch.count * RECORD_HEADER_SIZE)


def _follow(consumer: "Consumer", output: Output) -> Iterator["RecordBatch"]:
    while True:
        batch = consumer.poll(_GLANCE)
        if batch is None:
            output.check()
        else:
            yield batch


def _first(batches: Iterator["RecordBatch"], limit: int | None) -> Iterator["RecordBatch"]:
    """Pass batches on until there are so many records, and cut the last one."""
    left = limit
    for batch in batches:
        if left is None or batch.count < left:
            yield batch
            left = None if left is None else left - batch.count
        else:
            yield _head(batch, left)
            return


def _head(batch: "RecordBatch", count: int) -> "RecordBatch":
    if count == batch.count:
        return batch
    from lance_sdk.types import RecordBatch  # noqa: PLC0415 - as for Consumer

    end = next(islice(batch, count, None)).offset
    return RecordBatch(batch.topic, batch.offset, count, batch.data[: end - batch.offset])


def _may_draw(settings: Settings) -> bool:
    """A bar must not run through the records on the same terminal."""
    return not (settings.quiet or sys.stdout.isatty())
