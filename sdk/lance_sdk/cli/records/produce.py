"""``lwp produce``: lines of stdin become records."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, cast

import click

from lance_sdk.cli import _types
from lance_sdk.cli._complete import topic_argument
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options, topic_url
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.console.output import print_json
from lance_sdk.cli.console.progress import Meter, progress
from lance_sdk.cli.console.streams import tell
from lance_sdk.cli.records.json_lines import checked
from lance_sdk.cli.records.keyed import keyed, keyed_type
from lance_sdk.cli.records.line_splitter import read_records
from lance_sdk.cli.records.partitioned import open_producer
from lance_sdk.url import URL
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_sdk import Producer
    from lance_sdk.partitions import PartitionedProducer
    from lance_sdk.stats import ProducerStats

_TYPES: Final = {"raw": RecordType.RAW_DATA, "json": RecordType.JSON}

_FOREVER: Final = 86_400.0
"""Seconds to wait for room in the buffer: deliveries expire long before, and say why."""


_EXAMPLES: Final = """\b
Examples:
  lwp produce lance://localhost:1992/orders --create-topic < orders.jsonl
  tail -F app.log | lwp produce logs --url lance://localhost:1992
  lwp produce readings --key sensor-7 < today.csv
  lwp produce prices --key-separator , --compression auto < prices.csv
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@topic_argument
@click.option("--create-topic", is_flag=True, help="Create the topic if it does not exist.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(list(_TYPES)),
    default="raw",
    show_default=True,
    help="Record type; json also checks that every line is JSON.",
)
@click.option(
    "--batch",
    type=_types.size,
    metavar="SIZE",
    help="Size at which a batch is full  [default: 64KiB]",
)
@click.option(
    "--linger",
    type=_types.time,
    metavar="TIME",
    help="How long a batch waits for more records  [default: 5ms]",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "lz4", "auto"]),
    help="auto: if the server can decompress it and the batch gets smaller  [default: none]",
)
@click.option(
    "-K",
    "--key-separator",
    metavar="TEXT",
    help="The part of a line before TEXT is the record's key.",
)
@click.option("--key", metavar="TEXT", help="The key of every record.")
@click.option("--stamp", is_flag=True, help="Store with each record the time at which it was read.")
@click.option("-0", "--null", is_flag=True, help="Records end with a zero byte, not a newline.")
@common_options
def produce(
    target: str | None,
    *,
    create_topic: bool,
    kind: str,
    batch: int | None,
    linger: float | None,
    compression: str | None,
    key_separator: str | None,
    key: str | None,
    stamp: bool,
    null: bool,
) -> None:
    """Store every line of stdin as one record.

    A record has the bytes of the line, without the newline. The command ends when all records are
    acknowledged, which means that they are durable on the server. With --key-separator, --key or
    --stamp the record's type says that it has a key or a time, and no longer that the rest is JSON.
    """
    settings = current_settings()
    url = topic_url(target, settings)
    more = {"batch_bytes": batch, "linger": linger, "compression": compression}
    options = _options(settings, url, **more)
    stdin = _stdin()
    records = read_records(stdin.read1, separator=b"\0" if null else b"\n", limit=MAX_RECORD_VALUE)
    if kind == "json":
        records = checked(records)
    has_key = _has_key(key_separator, key)
    record_type = keyed_type(key=has_key, time=stamp) if has_key or stamp else _TYPES[kind]
    if has_key or stamp:
        records = keyed(records, key_separator, time_ns if stamp else None, key)
    meter = Meter()
    # A bar must not run through the lines that somebody is typing.
    bar = progress("producing", meter, shown=not (settings.quiet or stdin.isatty()))
    opened: list[Producer[Any] | PartitionedProducer] = []
    try:
        with bar, ExitStack() as stack:
            more = {"create_topic": create_topic}
            opened.append(open_producer(stack, url, {**options, **more}))
            _send(opened[0], records, record_type, meter)
    finally:
        if opened:
            _summarize(meter, sum(each.acked_records for each in _stats(opened[0])), settings)


def _has_key(separator: str | None, key: str | None) -> bool:
    if separator is not None and key is not None:
        raise click.UsageError(
            "--key and --key-separator exclude each other; give only one of them"
        )
    if separator is not None and not separator:
        raise click.UsageError("--key-separator is empty: say what stands between key and value")
    return separator is not None or key is not None


def _stats(producer: "Producer[Any] | PartitionedProducer") -> "Sequence[ProducerStats]":
    found = producer.stats()
    return found if isinstance(found, tuple) else [found]


def _options(settings: Settings, url: URL, **more: Any) -> dict[str, Any]:
    options = client_options(settings, url, delivery_timeout=settings.timeout, **more)
    return {"block_timeout": _FOREVER, **options}


def _send(
    producer: "Producer[Any] | PartitionedProducer",
    batches: Iterator[list[bytes]],
    record_type: int,
    meter: Meter,
) -> None:
    for records in batches:
        producer.send_many_raw(records, record_type)
        meter.add(len(records), sum(map(len, records)))
        if any(each.failed_records for each in _stats(producer)):
            return  # closing tells what was lost, and why


def _stdin() -> BufferedReader:
    if sys.stdin is None:
        raise Failure("stdin is closed; give the records on stdin, as in: lwp produce … < file")
    return cast("BufferedReader", sys.stdin.buffer)


def _summarize(meter: Meter, stored: int, settings: Settings) -> None:
    """Tell what became durable, whatever ended the command."""
    if settings.json:
        print_json({"records": meter.records, "stored": stored, "seconds": meter.elapsed})
    elif stored < meter.records:
        tell(f"stored {stored:,} of {number_format.count(meter.records, 'record')}")
    elif not settings.quiet:
        tell(f"stored {meter.summary()}")
