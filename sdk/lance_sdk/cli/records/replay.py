"""``lwp replay``: the records of a topic, or of a file, once more into a topic."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lance_sdk._io.state_files import held
from lance_sdk.cli import _types
from lance_sdk.cli._complete import topic_names
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options, topic_url
from lance_sdk.cli.console.exit_codes import printable
from lance_sdk.cli.console.output import print_json
from lance_sdk.cli.console.progress import Meter, progress
from lance_sdk.cli.console.streams import tell
from lance_sdk.cli.records.partitioned import (
    at_partition,
    open_producer,
    partition_option,
    partition_url,
    partitions_of,
)
from lance_sdk.cli.records.rate_limiter import RateLimiter
from lance_sdk.cli.records.replay_source import (
    ReplayedRecord,
    ReplayPosition,
    from_file,
    from_topic,
    identity_of,
)
from lance_sdk.cli.records.replay_state import ReplayState
from lance_sdk.errors import LanceError
from lance_sdk.url import URL

if TYPE_CHECKING:
    from datetime import datetime

    from lance_sdk import Producer
    from lance_sdk.partitions import PartitionedProducer

_SAVE_EVERY: Final = 1.0
"""Seconds of sending between two notes of how far it is."""
_HURRY: Final = 2.0  # seconds that Ctrl-C leaves for acknowledgements
_PATIENT: Final = 86_400.0  # deliveries expire long before, and say why

_EXAMPLES: Final = """\b
Examples:
  lwp replay lance://localhost:1992/orders lance://test:1992/orders --create-topic
  lwp consume orders --json > orders.jsonl; lwp replay orders.jsonl orders-again
  lwp replay ticks ticks-again --speed 10 --state ticks.state
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("source", metavar="[lance://HOST:PORT/]TOPIC|FILE.jsonl|-")
@click.argument("target", metavar="[lance://HOST:PORT/]TOPIC", shell_complete=topic_names)
@click.option(
    "--from",
    "start",
    type=_types.start,
    default="beginning",
    show_default=True,
    metavar="PLACE",
    help="Where to begin: as for lwp consume, or, for a file, the number of lines to leave out.",
)
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Records per second.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Keep the pace that the records' own times have, multiplied by this number; 1 is "
    "the original pace.",
)
@click.option(
    "-n", "--max-records", type=click.IntRange(min=1), help="Stop after this number of records."
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the position in this file, and go on there the next time.",
)
@partition_option
@click.option("--create-topic", is_flag=True, help="Create TARGET if it does not exist.")
@common_options
def replay(  # noqa: PLR0917 - click passes them by name
    source: str,
    target: str,
    start: "str | int | datetime",
    rate: float | None,
    speed: float | None,
    max_records: int | None,
    state: Path | None,
    partition: int | None,
    create_topic: bool,
) -> None:
    """Store the records of SOURCE once more, in TARGET.

    SOURCE is a topic, which is read up to its present end, or a file with the output of lwp consume
    --json. Types, keys, times and bytes do not change; offsets are those of TARGET. If SOURCE is a
    partitioned topic, all its partitions are read; with --state, --speed or an offset in --from,
    name one of them with --partition. If TARGET has partitions, keys choose them.

    With --state a run that was interrupted goes on where its acknowledged records end. Records that
    were acknowledged after the position was last written are then stored twice: at most the records
    that are sent in one second.
    """
    if rate is not None and speed is not None:
        raise click.UsageError("--rate and --speed both set the pace; leave out one")
    settings = current_settings()
    url = topic_url(target, settings)
    with nullcontext() if state is None else held(state, "lwp replay"):
        noted = ReplayState.load(state, source, str(url))
        place = start if noted.place is None else noted.place
        records = _records(source, url, place, noted, partition, in_order=speed is not None)
        options = {"block_timeout": _PATIENT, **client_options(settings, url)}
        limiter = RateLimiter(rate=rate, speed=speed)
        meter = Meter()
        bar = progress("replaying", meter, total=max_records, shown=not settings.quiet)
        with bar, ExitStack() as stack:
            producer = open_producer(stack, url, {**options, "create_topic": create_topic})
            _send(producer, _limited(records, max_records), limiter, noted, meter)
        _summarize(meter, noted, settings)


def _records(
    source: str,
    target: URL,
    start: "ReplayPosition | datetime",
    noted: ReplayState,
    partition: int | None,
    *,
    in_order: bool,
) -> Iterator[list[ReplayedRecord]]:
    """Return the records of a topic, or of the file where there is one of that name."""
    if source == "-" or ("://" not in source and Path(source).is_file()):
        if partition is not None:
            raise click.UsageError("--partition is for topics; a file has none")
        if start == "beginning":
            return from_file(source, 0)
        if isinstance(start, int):
            return from_file(source, start)
        raise click.UsageError(f"--from {start} is for topics; a file takes a number of lines")
    if "://" not in source and "/" in source:
        raise click.UsageError(f"there is no file {printable(source)}")
    settings = current_settings()
    url = topic_url(source, settings)
    options = client_options(settings, url)
    whole = None if url == target else partitions_of(url, options)
    partitions = () if whole is None else whole.names
    if target in [url, *(at_partition(url, name) for name in partitions)]:
        raise click.UsageError("source and target are the same topic; it would be doubled")
    if partition is not None:
        url = partition_url(url, partition, options)
    elif partitions and (noted.path is not None or in_order or isinstance(start, int)):
        raise click.UsageError(
            f"{url.topic} has {len(partitions)} partitions: --state, --speed and an offset in "
            f"--from are for one of them; name it with --partition"
        )
    if noted.path is not None:
        noted.check_topic(identity_of(url, settings))
    return from_topic(url, start, settings)


def _limited(
    batches: Iterator[list[ReplayedRecord]], limit: int | None
) -> Iterator[list[ReplayedRecord]]:
    left = limit
    for batch in batches:
        yield batch[:left]
        if left is not None and (left := left - len(batch)) <= 0:
            return


def _send(
    producer: "Producer[Any] | PartitionedProducer",
    batches: Iterator[list[ReplayedRecord]],
    limiter: RateLimiter,
    state: ReplayState,
    meter: Meter,
) -> None:
    note = _Note(producer, state)
    try:
        for batch in batches:
            for some in limiter.split(batch):
                _hand_over(producer, some, meter)
                note.reached(some[-1].following)
    except (KeyboardInterrupt, SystemExit):
        with suppress(LanceError):  # what is not acknowledged by then is sent again next time
            note.save(_HURRY)
        raise
    note.save()


class _Note:
    """Notes how far it is, once a second and at the end."""

    def __init__(self, producer: "Producer[Any] | PartitionedProducer", state: ReplayState) -> None:
        self._producer = producer
        self._state = state
        self._place: int | None = None
        self._saved = time.monotonic()

    def reached(self, place: int) -> None:
        """Remember that everything before a place was handed over."""
        self._place = place
        if time.monotonic() - self._saved > _SAVE_EVERY:
            self.save()

    def save(self, timeout: float | None = None) -> None:
        """Note the place, once everything before it is acknowledged."""
        self._producer.flush(timeout)
        if self._place is not None:
            self._state.save(self._place)
        self._saved = time.monotonic()


def _hand_over(
    producer: "Producer[Any] | PartitionedProducer", records: list[ReplayedRecord], meter: Meter
) -> None:
    for kind, group in groupby(records, key=lambda record: record.kind):
        values = [record.value for record in group]
        producer.send_many_raw(values, kind)
        meter.add(len(values), sum(map(len, values)))


def _summarize(meter: Meter, state: ReplayState, settings: Settings) -> None:
    if settings.json:
        fields = {"records": meter.records, "seconds": meter.elapsed, "place": state.place}
        print_json(fields)
    elif not settings.quiet:
        tell(f"replayed {meter.summary()}")
