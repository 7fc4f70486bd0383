"""``lwp tail``: the last records of a topic, and those that come."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import click

from lance_sdk.cli import _types
from lance_sdk.cli._complete import topic_argument
from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options, topic_url
from lance_sdk.cli.console.output import Output
from lance_sdk.cli.records.batch_reader import follow, last, to_the_end
from lance_sdk.cli.records.partitioned import (
    at_partition,
    partition_option,
    partition_url,
    partitions_of,
)
from lance_sdk.cli.records.record_format import as_json, as_lines

if TYPE_CHECKING:
    from datetime import datetime

    from lance_sdk.types import RecordBatch
    from lance_sdk.url import URL

_STEPS: Final = (1.0, 30.0, 900.0, 21_600.0, 604_800.0)
"""How many seconds back the last records are looked for, before the whole topic is read."""

_EXAMPLES: Final = """\b
Examples:
  lwp tail lance://localhost:1992/orders
  lwp tail orders -n 0 | grep refund
  lwp tail orders --since 15m --no-follow
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@topic_argument
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    help="Number of records to begin with, of each partition  [default: 10]",
)
@click.option(
    "--since",
    type=_types.time,
    metavar="TIME",
    help="Begin with all records that are younger, e.g. 15m.",
)
@click.option(
    "-f/-F", "--follow/--no-follow", "go_on", default=True, help="Wait for new records at the end."
)
@partition_option
@common_options
def tail(
    target: str | None,
    *,
    lines: int | None,
    since: float | None,
    go_on: bool,
    partition: int | None,
) -> None:
    """Print the last records of a topic, then new ones.

    The command finds the last records by their time: first those of the last second, then further
    back. If the server cannot find an offset by time, the whole topic is read. Of a partitioned
    topic the last records of each partition are printed, one partition after the other.
    """
    if lines is not None and since is not None:
        raise click.UsageError("--lines and --since both say where to begin; leave out one")
    settings = current_settings()
    url = topic_url(target, settings)
    url = partition_url(url, partition, client_options(settings, url))
    output = Output()
    show = as_json if settings.json else partial(as_lines, separator=b"\n")
    wanted = 10 if lines is None else lines
    log = _opened(url, settings)
    for each in log.partitions:
        for batch in each.last(wanted) if since is None else each.read(_types.ago(since)):
            output.write(show(batch))
    for batch in log.follow(output) if go_on else ():
        output.write(show(batch))


def _opened(url: "URL", settings: Settings) -> "_Log | _PartitionedLog":
    """Return the log of a topic, with or without partitions."""
    whole = partitions_of(url, client_options(settings, url))
    return _Log(url, settings) if whole is None else _PartitionedLog(url, settings, whole.names)


class _PartitionedLog:
    """All partitions of a topic.

    Attributes:
        partitions: the log of each.
    """

    def __init__(self, url: "URL", settings: Settings, names: Iterable[str]) -> None:
        self._url = url
        self._options = client_options(settings, url)
        self._logs = {name: _Log(at_partition(url, name), settings) for name in names}
        self.partitions = list(self._logs.values())

    def follow(self, output: Output) -> Iterator["RecordBatch"]:
        """Yield what comes after the positions, also in partitions that are added."""
        from lance_sdk import TopicsConsumer  # noqa: PLC0415 - as above

        with TopicsConsumer(self._url, **self._options) as consumer:
            for topic in consumer.assignment:
                if topic.label in self._logs:
                    consumer.seek(topic, self._logs[topic.label].position)
            yield from follow(consumer, output)


class _Log:
    """A topic that is read from several places.

    Attributes:
        position: where to go on.
        partitions: itself: it is the only one.
    """

    def __init__(self, url: "URL", settings: Settings) -> None:
        self._url = url
        self._settings = settings
        self._options = client_options(settings, url)
        self.position: Any = "end"
        self.partitions = [self]

    def read(self, start: "datetime | str") -> Iterator["RecordBatch"]:
        """Yield the records from a place to the present end."""
        from lance_sdk import Consumer  # noqa: PLC0415 - the network is loaded when it is needed

        options = {**self._options, "start": start, "stop_at_end": True}
        with Consumer(self._url, **options) as consumer:
            yield from to_the_end(consumer, self._settings)
            self.position = consumer.position

    def follow(self, output: Output) -> Iterator["RecordBatch"]:
        """Yield what comes after the position."""
        from lance_sdk import Consumer  # noqa: PLC0415 - as above

        with Consumer(self._url, **{**self._options, "start": self.position}) as consumer:
            yield from follow(consumer, output)

    def last(self, count: int) -> Iterable["RecordBatch"]:
        """Return the last so many records."""
        from lance_sdk.errors import Unsupported  # noqa: PLC0415 - as above

        if not count:
            return ()
        with suppress(Unsupported):  # then the whole topic is read, as the help says
            for step in _STEPS:
                found = _Last(count).fill(self.read(_types.ago(step)))
                if found.full:
                    return found.batches
        return _Last(count).fill(self.read("beginning")).batches


class _Last:
    """The last records of a topic that fit a number.

    Attributes:
        batches: they.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self.batches: deque[RecordBatch] = deque()

    def fill(self, batches: Iterable["RecordBatch"]) -> Self:
        """Take all batches, and keep what fits."""
        for batch in batches:
            self._add(batch)
        return self

    def _add(self, batch: "RecordBatch") -> None:
        self.batches.append(batch)
        self._count += batch.count
        while self._count - self.batches[0].count >= self._limit:
            self._count -= self.batches.popleft().count
        if (over := self._count - self._limit) > 0:
            oldest = self.batches.popleft()
            self.batches.appendleft(last(oldest, oldest.count - over))
            self._count = self._limit

    @property
    def full(self) -> bool:
        """Whether there are enough."""
        return self._count >= self._limit
