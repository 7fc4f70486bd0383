"""``lwp consume``: records on stdout, one a line."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from lance_sdk.cli import _types
from lance_sdk.cli._complete import topic_argument
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options, topic_url
from lance_sdk.cli.console.output import Output
from lance_sdk.cli.console.progress import Meter, progress
from lance_sdk.cli.console.streams import tell
from lance_sdk.cli.records import batch_reader
from lance_sdk.cli.records.batch_reader import Skipping, first, to_the_end
from lance_sdk.cli.records.partitioned import open_consumer, partition_option, partition_url
from lance_sdk.cli.records.record_format import as_json, as_lines
from lance_sdk.errors import LanceError
from lance_spec.limits import RECORD_HEADER_SIZE

if TYPE_CHECKING:
    from lance_sdk import Consumer
    from lance_sdk.cli.records.partitioned import WholeTopic
    from lance_sdk.types import RecordBatch

_COMMIT_EVERY: Final = 1.0  # seconds

_EXAMPLES: Final = """\b
Examples:
  lwp consume lance://localhost:1992/orders | grep refund
  lwp consume logs --url lance://localhost:1992 --follow --from end
  lwp consume orders --consumer billing --offsets file:offsets --from -1h
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@topic_argument
@click.option(
    "--from",
    "start",
    type=_types.start,
    default="beginning",
    show_default=True,
    metavar="PLACE",
    help="beginning, end, the offset of a record, or a time: -15m, 2026-01-31T12:00:00Z.",
)
@click.option(
    "--consumer",
    metavar="NAME",
    help="Go on where the consumer NAME stopped, and commit the printed records; needs --offsets.",
)
@click.option(
    "--offsets",
    metavar="STORE",
    help="Where positions are committed: server, file:DIR, sqlite:FILE, redis://…, postgresql://…",
)
@click.option("-f", "--follow", is_flag=True, help="Wait for new records at the end.")
@click.option(
    "-n", "--max-records", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    "-K", "--key-separator", metavar="TEXT", help="Print each record's key, and TEXT after it."
)
@click.option(
    "--on-damage",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do at bytes that the server's disk has lost, or that are not records.",
)
@partition_option
@click.option("-0", "--null", is_flag=True, help="End records with a zero byte, not a newline.")
@common_options
def consume(
    target: str | None,
    *,
    start: str | int | datetime,
    consumer: str | None,
    offsets: str | None,
    follow: bool,
    max_records: int | None,
    key_separator: str | None,
    on_damage: str,
    partition: int | None,
    null: bool,
) -> None:
    """Print the records of a topic, one per line, up to its present end.

    With --json every line is an object with topic, offset, type, encoding and value, and, if the
    record has them, key_encoding, key and timestamp_ns. The encoding is "utf-8" if the value is
    text, and "base64" if its bytes are not UTF-8.
    """
    if (consumer is None) != (offsets is None):
        raise click.UsageError("--consumer and --offsets go together; give both or neither")
    settings = current_settings()
    url = topic_url(target, settings)
    url = partition_url(url, partition, client_options(settings, url))
    options = client_options(
        settings, url, start=start, stop_at_end=not follow, **_committing(consumer, offsets)
    )
    output = Output()
    render = as_json if settings.json else _lines(key_separator, null=null)
    meter = Meter()
    bar = progress("consuming", meter, shown=_may_draw(settings))
    with bar, ExitStack() as stack:
        source = open_consumer(stack, url, options, max_records)
        read = Skipping(source) if on_damage == "skip" else source
        batches = batch_reader.follow(read, output) if follow else to_the_end(read, settings)
        with _kept(source if consumer else None) as position:
            for batch in first(batches, max_records):
                output.write(render(batch))
                meter.add(batch.count, len(batch.data) - batch.count * RECORD_HEADER_SIZE)
                position.reached(batch.next_offset)
    if not (settings.quiet or settings.json):
        tell(f"read {meter.summary()}")


def _lines(key_separator: str | None, *, null: bool) -> Callable[["RecordBatch"], bytes]:
    between = None if key_separator is None else os.fsencode(key_separator)
    return partial(as_lines, separator=b"\0" if null else b"\n", key_separator=between)


def _committing(consumer: str | None, offsets: str | None) -> dict[str, str]:
    """Return the settings for committing what was printed, and not before."""
    if consumer is None or offsets is None:
        return {}
    return {"consumer": consumer, "offsets": offsets, "auto_commit": "off"}


class _Position:
    """Commits how far the printing is, once a second and when it is told to.

    Args:
        consumer: whose position it is; None commits nothing.
    """

    def __init__(self, consumer: "Consumer | WholeTopic | None") -> None:
        self._consumer = consumer
        self._offset: int | None = None
        self._committed = monotonic()

    def reached(self, offset: int) -> None:
        """Note that everything before an offset was printed."""
        self._offset = offset
        if monotonic() - self._committed >= _COMMIT_EVERY:
            self.commit()

    def commit(self) -> None:
        """Commit what was noted."""
        if self._consumer is not None and self._offset is not None:
            self._consumer.commit(self._offset)
        self._committed = monotonic()


@contextmanager
def _kept(consumer: "Consumer | WholeTopic | None") -> Iterator[_Position]:
    """Commit at the end of a ``with`` block, however that comes."""
    position = _Position(consumer)
    try:
        yield position
    except BaseException:
        with suppress(LanceError):  # the first error is the one to tell
            position.commit()
        raise
    position.commit()


def _may_draw(settings: Settings) -> bool:
    """A bar must not run through the records on the same terminal."""
    return not (settings.quiet or sys.stdout.isatty())
