"""``lwp offsets``: look at what consumers have committed, and change it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import reduce
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from lance_sdk.cli import _types
from lance_sdk.cli._sections import SectionedGroup
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._target import client_options, topic_name
from lance_sdk.cli.admin.consumer_names import consumer_names_option
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure, printable, require_command
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.console.streams import tell

if TYPE_CHECKING:
    from lance_sdk import Client
    from lance_sdk.cli.admin.server_offsets import ServerCommits
    from lance_sdk.offsets import Commit, OffsetStore, TopicIdentity
    from lance_spec.bodies import TopicInfo

_Where: TypeAlias = str | int | datetime
"""A place in a topic, as `_types.start` returns it."""

_EXAMPLES: Final = """\b
Examples:
  lwp offsets show --store file:/var/lib/billing
  lwp offsets set billing orders end --store sqlite:offsets.db --url lance://localhost:1992
  lwp offsets reset 42 orders --store server:127.0.0.1:9090
  lwp offsets export --store redis://localhost --to file:/var/lib/rust-client
"""

_store_option = click.option(
    "--store",
    required=True,
    envvar="LANCE_OFFSETS",
    metavar="STORE",
    help="file:FOLDER, sqlite:FILE, redis://…, postgresql://… or server:HOST:PORT, the HTTP "
    "port of a server that keeps commits itself  [env: LANCE_OFFSETS]",
)


@click.group(
    cls=SectionedGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    epilog=_EXAMPLES,
)
@common_options
@click.pass_context
def offsets(ctx: click.Context) -> None:
    """Show and change the commits of consumers and groups."""
    require_command(ctx)


@contextmanager
def _opened(url: str) -> Iterator["OffsetStore | ServerCommits"]:
    from lance_sdk.cli.admin.server_offsets import (  # noqa: PLC0415 - loaded when it is needed
        PREFIX,
        ServerCommits,
    )
    from lance_sdk.offsets.urls import (  # noqa: PLC0415 - likewise
        DURABLE_FORMS,
        is_store,
        no_store,
        open_store,
    )

    is_server = url.startswith(PREFIX)
    if not (is_server or is_store(url)):
        raise click.UsageError(no_store(url, f"{PREFIX}HOST:PORT, {DURABLE_FORMS}"))
    store = ServerCommits(url) if is_server else open_store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _opened_to_read(url: str) -> Iterator["OffsetStore | ServerCommits"]:
    """Open a store whose commits are read or removed, where it is there."""
    _check_is_there(url)
    with _opened(url) as store:
        yield store


def _check_is_there(url: str) -> None:
    """Refuse to read files that nobody has written; opening them would make them."""
    from lance_sdk.offsets.urls import local_path  # noqa: PLC0415 - loaded when it is needed

    path = local_path(url)
    if path is not None and not Path(path).exists():
        raise Failure(f"there is no offset store {printable(path)}; nothing was committed there")


@offsets.command("show")
@click.argument("consumer", required=False, metavar="[CONSUMER]")
@_store_option
@consumer_names_option
@common_options
def show(consumer: str | None, store: str) -> None:
    """Show the commits of CONSUMER, or of all consumers."""
    with _opened_to_read(store) as opened:
        found = opened.commits(consumer)
    if current_settings().json:
        print_json([_fields(commit) for commit in found])
    elif found:
        head = ["consumer", "topic", "id", "offset", "committed (UTC)", "generation"]
        print_table(head, [_row(commit) for commit in found], right="<<>><>")
    elif not current_settings().quiet:
        tell("nothing is committed there")


@offsets.command("set")
@click.argument("consumer")
@click.argument("topic")
@click.argument("where", type=_types.start, metavar="beginning|end|OFFSET|TIME")
@_store_option
@common_options
def set_(consumer: str, topic: str, where: _Where, store: str) -> None:
    """Let CONSUMER go on at another place in TOPIC.

    With --url or LANCE_URL the command looks the topic up on that server; "beginning", "end" and a
    time such as 2026-01-31T12:00:00Z need this. No consumer of that name may be running.
    """
    with _opened(store) as opened:
        identity, offset = _place(opened, consumer, topic_name(topic), where)
        _save(opened, consumer, identity, offset)
    if not current_settings().quiet:
        print_line(f"{consumer} goes on at {offset:,} in {identity.label}")


@offsets.command("reset")
@click.argument("consumer")
@click.argument("topic", required=False, metavar="[TOPIC]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_store_option
@common_options
def reset(consumer: str, topic: str | None, *, yes: bool, store: str) -> None:
    """Remove the commits of CONSUMER in TOPIC, or in all topics, so that it begins again.

    On a terminal the command asks first.
    """
    with _opened_to_read(store) as opened:
        found = [each for each in opened.commits(consumer) if topic in {None, each.topic.label}]
        if not found:
            raise Failure(f"{consumer} has committed nothing there")
        names = ", ".join(printable(each.topic.label) for each in found)
        question = f"remove what {consumer} committed in {names}?"
        if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
            raise Failure("nothing was removed")
        for each in found:
            opened.forget(consumer, each.topic)
    if not current_settings().quiet:
        print_line(f"removed what {consumer} committed in {names}")


@offsets.command("export")
@click.argument("consumer", required=False, metavar="[CONSUMER]")
@click.option(
    "--to",
    "target",
    metavar="STORE",
    help="Copy the commits to this store instead of printing them.",
)
@_store_option
@consumer_names_option
@common_options
def export(consumer: str | None, target: str | None, store: str) -> None:
    """Print the commits of CONSUMER, or of all consumers, as lines of JSON, or copy them.

    --to file:FOLDER writes the files that the published Rust client reads.
    """
    with _opened_to_read(store) as opened:
        found = opened.commits(consumer)
    if target is None:
        for commit in found:
            print_json(_fields(commit))
        return
    with _opened(target) as other:
        for commit in found:
            other.save(commit)
    if not current_settings().quiet:
        tell(f"copied {number_format.count(len(found), 'commit')} to {target.partition(':')[0]}")


def _place(
    store: "OffsetStore | ServerCommits", consumer: str, topic: str, where: _Where
) -> tuple["TopicIdentity", int]:
    """Return which topic is meant and the offset in it."""
    settings = current_settings()
    if isinstance(where, int) and settings.url is None:
        known = [each.topic for each in store.commits(consumer) if each.topic.label == topic]
        if known:
            return reduce(_later, known), where
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed
    from lance_sdk.offsets import TopicIdentity  # noqa: PLC0415 - likewise

    url = settings.named_url("setting an offset of a topic that is looked up")
    with Client(url, **client_options(settings, url)) as client:
        info = client.get_topic(topic)
        return TopicIdentity.of(info), _offset(client, info, where)


def _later(one: "TopicIdentity", other: "TopicIdentity") -> "TopicIdentity":
    """Return the later one of two topics of a name."""
    return other if one.older_than(other) else one


def _offset(client: "Client", topic: "TopicInfo", where: _Where) -> int:
    """Return the offset of a place in a topic."""
    if isinstance(where, int):
        return where
    if isinstance(where, datetime):
        return client.offset_for_time(topic.id, where)
    offset = topic.end_offset if where == "end" else (topic.start_offset or 0)
    if offset is None:
        raise Failure("this server does not report where a topic ends; give an offset")
    return offset


def _save(
    store: "OffsetStore | ServerCommits", consumer: str, topic: "TopicIdentity", offset: int
) -> None:
    from lance_sdk.offsets import Commit, StaleGeneration  # noqa: PLC0415 - as above

    generation = 0
    try:
        store.claim(consumer, topic)
    except StaleGeneration as stale:  # the name is a group's: nobody works in it now
        generation = stale.current
        store.claim(consumer, topic, generation)
    store.save(
        Commit(
            consumer=consumer,
            topic=topic,
            offset=offset,
            generation=generation,
            committed_at_ns=time_ns(),
        )
    )
    store.release(consumer, topic)


def _row(commit: "Commit") -> list[str]:
    moment = number_format.moment(commit.committed_at_ns / 1e9) if commit.committed_at_ns else "-"
    topic, generation = commit.topic, str(commit.generation or "-")
    return [
        commit.consumer,
        topic.label,
        str(topic.id),
        f"{commit.offset:,}",
        moment,
        generation,
    ]


def _fields(commit: "Commit") -> dict[str, Any]:
    return asdict(commit)
