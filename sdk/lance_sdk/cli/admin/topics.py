"""``lwp topics``: create, list, show, limit and delete topics."""

import dataclasses
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from lance_sdk.cli import _types
from lance_sdk.cli._complete import topic_names
from lance_sdk.cli._sections import SectionedGroup
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._target import client_options, topic_name
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure, printable, require_command
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.console.streams import tell
from lance_sdk.types import PartitionedTopic

if TYPE_CHECKING:
    from lance_sdk import Client
    from lance_spec.bodies import TopicInfo

_UNKNOWN = "-"


@click.group(
    cls=SectionedGroup, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]..."
)
@common_options
@click.pass_context
def topics(ctx: click.Context) -> None:
    """Create, list, show, limit and delete topics."""
    require_command(ctx)


@contextmanager
def _client() -> Iterator["Client"]:
    settings = current_settings()
    url = settings.require_url()
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    with Client(url, **client_options(settings, url)) as client:
        yield client


@topics.command("create")
@click.argument("name")
@click.option(
    "--max-age",
    type=_types.time,
    metavar="TIME",
    default="0",
    help="Keep records this long, e.g. 7d  [default: no limit]",
)
@click.option(
    "--max-bytes",
    type=_types.size,
    metavar="SIZE",
    default="0",
    help="Keep at most this size, e.g. 10GiB  [default: no limit]",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Create a topic with N partitions, NAME-0, NAME-1 and so on  [default: no partitions]",
)
@click.option(
    "--partitioner",
    type=click.Choice(["murmur2", "siphash"]),
    default="murmur2",
    show_default=True,
    help="How a key finds its partition: as in Kafka's clients, or as in Fluvio's.",
)
@common_options
def create(
    name: str, max_age: float, max_bytes: int, partitions: int | None, partitioner: Any
) -> None:
    """Create the topic NAME."""
    checked = topic_name(name)
    age = math.ceil(max_age)  # LWP section 5.11 counts whole seconds
    limits: Any = {"max_age_secs": age, "max_bytes": max_bytes}
    topic: TopicInfo | PartitionedTopic
    with _client() as client:
        if partitions is None:
            topic = client.create_topic(checked, **limits)
        else:
            topic = client.create_topic(
                checked, partitions=partitions, partitioner=partitioner, **limits
            )
    _confirm("created", topic)


@topics.command("add-partitions")
@click.argument("name", shell_complete=topic_names)
@click.argument("partitions", type=click.IntRange(1, 4096))
@common_options
def add_partitions(name: str, partitions: int) -> None:
    """Raise the number of partitions of the topic NAME to PARTITIONS.

    Stored records stay where they are, but keys move to other partitions: new records of a key are
    then no longer read after its old ones.
    """
    with _client() as client:
        _confirm("extended", client.add_partitions(topic_name(name), partitions))


@topics.command("list")
@common_options
def list_() -> None:
    """List all topics."""
    with _client() as client:
        found = [*_described_anew(client, client.list_topics())]
    if current_settings().json:
        print_json([_fields(topic) for topic in found])
    elif found:
        rows = [_row(topic) for topic in found]
        print_table(["id", "name", "records", "bytes", "created (UTC)"], rows, right="><>><")
    elif not current_settings().quiet:
        tell("no topics yet; create one with: lwp topics create NAME")


@topics.command("show")
@click.argument("name", shell_complete=topic_names)
@common_options
def show(name: str) -> None:
    """Show everything that the server reports about the topic NAME."""
    checked = topic_name(name)
    with _client() as client:
        topic = _find(client, checked)
        parts = list(topic.topics) if isinstance(topic, PartitionedTopic) else []
        parts = [*_described_anew(client, parts)]
    if current_settings().json:
        print_json(_fields(topic))
    elif isinstance(topic, PartitionedTopic):
        print_table(["field", "value"], [list(pair) for pair in _whole(topic, parts)])
    else:
        print_table(["field", "value"], [list(pair) for pair in _described(topic)])


@topics.command("retention")
@click.argument("name", shell_complete=topic_names)
@click.option(
    "--max-age",
    type=_types.time,
    metavar="TIME",
    help="Keep records this long, e.g. 7d; 0 means no limit  [default: as it is]",
)
@click.option(
    "--max-bytes",
    type=_types.size,
    metavar="SIZE",
    help="Keep at most this size, e.g. 10GiB; 0 means no limit  [default: as it is]",
)
@common_options
def retention(name: str, max_age: float | None, max_bytes: int | None) -> None:
    """Set how long, and up to which size, the topic NAME keeps its records."""
    checked = topic_name(name)
    if max_age is None and max_bytes is None:
        raise click.UsageError("nothing to set: give --max-age or --max-bytes")
    with _client() as client:
        found = _find(client, checked)
        topic = client.get_topic(_one_of(found).id)
        age = _unless_said(max_age, topic.max_age_secs, "--max-age")
        size = _unless_said(max_bytes, topic.max_bytes, "--max-bytes")
        client.set_retention(topic.id, max_age_secs=math.ceil(age), max_bytes=math.ceil(size))
        changed = client.get_topic(topic.id)
    _confirm("limited", found if isinstance(found, PartitionedTopic) else changed)


def _unless_said(said: float | None, present: int | None, option: str) -> float:
    """Return what an option says, else what the server tells: setting one sets both."""
    found = present if said is None else said
    if found is None:
        raise Failure(
            f"the server does not report the topic's present limits; give {option} as well"
        )
    return found


@topics.command("delete")
@click.argument("name", shell_complete=topic_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
def delete(name: str, yes: bool) -> None:
    """Delete the topic NAME and all its records.

    On a terminal the command asks first, and names the server. Without asking, it deletes only on a
    server that --url or LANCE_URL names.
    """
    checked = topic_name(name)
    settings = current_settings()
    from lance_sdk.errors import TopicNotFound  # noqa: PLC0415 - as for Client
    from lance_sdk.url import parse_url  # noqa: PLC0415 - as for Client

    asks = not yes and _somebody_is_there()
    url = settings.require_url() if asks else settings.named_url("deleting without asking")
    if asks and not click.confirm(_question(checked, parse_url(url).server_url()), err=True):
        raise Failure("nothing was deleted")
    with _client() as client:
        try:
            topic = _find(client, checked)
        except TopicNotFound:
            client.delete_topic(checked)  # refuses in the words of who wants it gone
            raise
        client.delete_topic(topic.name if isinstance(topic, PartitionedTopic) else topic.id)
    _confirm("deleted", topic)


def _somebody_is_there() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _question(name: str, server: str) -> str:
    return f"delete topic {printable(name)} and all its records at {server}?"


def _described_anew(client: "Client", topics: list["TopicInfo"]) -> Iterator["TopicInfo"]:
    """Ask for each topic by itself: only those answers tell records and offsets (AMB-29)."""
    from lance_sdk.errors import TopicDeleted, TopicNotFound  # noqa: PLC0415 - as for Client

    for topic in topics:
        with suppress(TopicNotFound, TopicDeleted):  # somebody deleted it in the meantime
            yield client.get_topic(topic.id)


def _find(client: "Client", name: str) -> "TopicInfo | PartitionedTopic":
    """Return a topic, or a partitioned one."""
    from lance_sdk.errors import TopicNotFound  # noqa: PLC0415 - as for Client

    try:
        return client.get_topic(name)
    except TopicNotFound:
        with suppress(TopicNotFound):
            return client.get_partitioned_topic(name)
        raise


def _one_of(topic: "TopicInfo | PartitionedTopic") -> "TopicInfo":
    """Return the topic, or a partition of it: they have one retention."""
    return topic.topics[0] if isinstance(topic, PartitionedTopic) else topic


def _confirm(done: str, topic: "TopicInfo | PartitionedTopic") -> None:
    if current_settings().json:
        print_json(_fields(topic))
    elif not current_settings().quiet and isinstance(topic, PartitionedTopic):
        print_line(f"{done} topic {topic.name} ({topic.partitions} partitions)")
    elif not current_settings().quiet:
        print_line(f"{done} topic {topic.name} (id {_one_of(topic).id})")


def _fields(topic: "TopicInfo | PartitionedTopic") -> dict[str, Any]:
    return dataclasses.asdict(topic)


def _whole(topic: PartitionedTopic, parts: Sequence["TopicInfo"]) -> Iterator[tuple[str, str]]:
    yield "name", topic.name
    yield "partitions", str(topic.partitions)
    yield "partitioner", topic.partitioner
    for part in parts:
        yield part.name, f"id {part.id}, {_number(part.record_count)} records"
    yield "kept for", _limit(parts[0].max_age_secs, "s")
    yield "kept bytes", _limit(parts[0].max_bytes, "bytes")


def _row(topic: "TopicInfo") -> list[str]:
    return [
        str(topic.id),
        topic.name,
        _number(topic.record_count),
        _number(_extent(topic)),
        number_format.moment(topic.created_at),
    ]


def _described(topic: "TopicInfo") -> Iterator[tuple[str, str]]:
    yield "name", topic.name
    yield "id", str(topic.id)
    yield "created (UTC)", number_format.moment(topic.created_at)
    yield "epoch", str(topic.topic_epoch)
    yield "records", _number(topic.record_count)
    yield "start offset", _number(topic.start_offset)
    yield "end offset", _number(topic.end_offset)
    yield "kept for", _limit(topic.max_age_secs, "s")
    yield "kept bytes", _limit(topic.max_bytes, "bytes")


def _extent(topic: "TopicInfo") -> int | None:
    if topic.start_offset is None or topic.end_offset is None:
        return None
    return topic.end_offset - topic.start_offset


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _limit(value: int | None, unit: str) -> str:
    if value is None:
        return _UNKNOWN
    return f"{value:,} {unit}" if value else "no limit"
