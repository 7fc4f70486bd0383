"""``lwp group``: coordinate consumer groups, and look at them."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from lance_sdk._api.interruptible import wait_for_end
from lance_sdk.cli import _types
from lance_sdk.cli._sections import SectionedGroup
from lance_sdk.cli._settings import Settings, common_options, current_settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import require_command
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.console.streams import tell

if TYPE_CHECKING:
    import ssl

    from lance_spec.messages.groups import DescribedGroup

_DEFAULT: Final = "127.0.0.1:19920"

_EXAMPLES: Final = """\b
Examples:
  lwp group serve --store file:/var/lib/groups
  lwp group status --coordinator lance://localhost:19920
  lwp group status billing
"""


@click.group(
    cls=SectionedGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    epilog=_EXAMPLES,
)
@common_options
@click.pass_context
def group(ctx: click.Context) -> None:
    """Coordinate consumer groups, and show them."""
    require_command(ctx)


@group.command("serve")
@click.option("--listen", default=_DEFAULT, show_default=True, metavar="HOST:PORT")
@click.option(
    "--store",
    required=True,
    metavar="STORE",
    help="Store of the offsets: file:FOLDER, sqlite:FILE, redis://…, postgresql://… or memory:",
)
@click.option(
    "--heartbeat",
    type=_types.time,
    default="3s",
    show_default=True,
    metavar="TIME",
    help="Interval at which members send heartbeats.",
)
@click.option("--text-group", metavar="NAME", help="Group whose workers speak the text protocol.")
@click.option(
    "--text-topic",
    "text_topics",
    type=click.IntRange(0, 2**32 - 1),
    multiple=True,
    metavar="ID",
    help="Number of a topic that these workers share; may be repeated.",
)
@common_options
def serve(
    listen: str,
    store: str,
    heartbeat: float,
    text_group: str | None,
    text_topics: Sequence[int],
) -> None:
    """Run a coordinator of consumer groups until SIGINT or SIGTERM.

    With --token or LANCE_TOKEN every member must send that token. With --tls-cert and --tls-key the
    coordinator listens with TLS. Offsets survive a restart, and members join again by themselves.
    """
    from lance_sdk.groups import Coordinator  # noqa: PLC0415 - the network, when it is needed

    settings = current_settings()
    coordinator = Coordinator(
        listen,
        store=store,
        heartbeat_interval=heartbeat,
        text_group=text_group,
        text_topics=text_topics,
        token=settings.token or os.environ.get("LANCE_TOKEN"),
        tls=_tls(settings),
    )
    with coordinator:
        if settings.json:
            print_json({"url": coordinator.url})
        else:
            print_line(f"coordinator listens at {coordinator.url}")
        wait_for_end(lambda: coordinator.failure is None)
    if coordinator.failure is not None:
        raise coordinator.failure


def _tls(settings: Settings) -> "ssl.SSLContext | None":
    if settings.tls_cert is None and settings.tls_key is None:
        return None
    if settings.tls_cert is None:
        raise click.UsageError("--tls-key needs --tls-cert")
    import ssl  # noqa: PLC0415 - the help of lwp loads this module, and TLS is slow to load

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return context


@group.command("status")
@click.argument("name", required=False, metavar="[GROUP]")
@click.option(
    "--coordinator",
    metavar="URL",
    help=f"The coordinator  [env: LANCE_COORDINATOR; default: lance://{_DEFAULT}]",
)
@common_options
def status(name: str | None, coordinator: str | None) -> None:
    """Show the groups of a coordinator, or the members and topics of one."""
    from lance_sdk.groups._coordinator.request import describe_groups  # noqa: PLC0415 - as above

    settings = current_settings()
    url = coordinator or os.environ.get("LANCE_COORDINATOR") or f"lance://{_DEFAULT}"
    found = describe_groups(url, name or "", **client_options(settings, url))
    if settings.json:
        print_json([_fields(each) for each in found])
    elif name:
        _show(found[0])
    elif found:
        rows = [[each.group, _state(each), str(each.generation), each.strategy] for each in found]
        print_table(["group", "state", "generation", "strategy"], rows, right="<<><")
    elif not settings.quiet:
        tell("no groups yet; a group begins when its first member joins")


def _show(found: "DescribedGroup") -> None:
    rows = [["state", _state(found)], ["generation", str(found.generation)]]
    rows.append(["strategy", found.strategy])
    if found.deadline_ms:
        rows.append(["topics change hands within", number_format.seconds(found.deadline_ms / 1000)])
    print_table([found.group, ""], rows)
    names = {each.topic.topic_id: each.topic.name for each in found.topics}
    if found.members:
        print_line("")
        head = ["member", "client", "heard of", "reads", "will read"]
        print_table(head, [_member(each, names) for each in found.members], right="<<><<")
    if found.topics:
        print_line("")
        head = ["topic", "id", "offset", "committed (UTC)", "generation"]
        print_table(head, [_topic(each) for each in found.topics], right="<>><>")


def _member(member: Any, names: dict[int, str]) -> list[str]:
    heard = f"{number_format.seconds(member.idle_ms / 1000)} ago"
    topics = [" ".join(names.get(each, f"#{each}") for each in ids) or "-" for ids in _ids(member)]
    return [member.member, member.client, heard, *topics]


def _ids(member: Any) -> tuple[list[int], list[int]]:
    return member.owned, member.pending


def _topic(carried: Any) -> list[str]:
    position, topic = carried.position, carried.topic
    if position is None:
        return [topic.name, str(topic.topic_id), "-", "-", "-"]
    moment = (
        number_format.moment(position.committed_at_ns / 1e9) if position.committed_at_ns else "-"
    )
    return [
        topic.name,
        str(topic.topic_id),
        f"{position.offset:,}",
        moment,
        str(position.generation),
    ]


def _state(found: "DescribedGroup") -> str:
    return found.state.name.lower()


def _fields(found: "DescribedGroup") -> dict[str, Any]:
    return {
        "group": found.group,
        "state": _state(found),
        "generation": found.generation,
        "deadline_ms": found.deadline_ms,
        "strategy": found.strategy,
        "members": [
            {
                "member": each.member,
                "client": each.client,
                "session_timeout_ms": each.session_timeout_ms,
                "idle_ms": each.idle_ms,
                "owned": each.owned,
                "pending": each.pending,
            }
            for each in found.members
        ],
        "topics": [
            {
                "id": each.topic.topic_id,
                "name": each.topic.name,
                "offset": None if each.position is None else each.position.offset,
            }
            for each in found.topics
        ],
    }
