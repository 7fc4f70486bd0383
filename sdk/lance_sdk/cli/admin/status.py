"""``lwp status``: what a server tells of itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lance_sdk.cli._sections import Command
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli._target import client_options
from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.output import print_json, print_table

if TYPE_CHECKING:
    from lance_spec.bodies import ClusterStatus


@click.command(cls=Command)
@common_options
def status() -> None:
    """Show the state of a server: its dialect, its role and its cluster.

    With --json the field "cluster" has everything that the server reports.
    """
    from lance_sdk import Client  # noqa: PLC0415 - the network is loaded when it is needed

    settings = current_settings()
    url = settings.require_url()
    with Client(url, **client_options(settings, url)) as client:
        rtt = client.ping()
        cluster = client.cluster_status()
        topics = len(client.list_topics())
        dialect = client.stats().peer_dialect
    if settings.json:
        body = dict(cluster.body)
        print_json({"dialect": dialect, "rtt_s": rtt, "topics": topics, "cluster": body})
        return
    rows = [("dialect", str(dialect)), ("answers within", number_format.seconds(rtt))]
    rows += [*_described(cluster), ("topics", f"{topics:,}")]
    print_table(["field", "value"], [list(row) for row in rows])


def _described(cluster: "ClusterStatus") -> Iterator[tuple[str, str]]:
    yield "role", "leader" if cluster.is_leader else f"follower of {_leader(cluster.body)}"
    yield "nodes", f"{cluster.healthy_nodes} of {cluster.node_count} healthy"
    window = cluster.dedup_window
    if window is None:
        yield "recognises duplicates", "not that it says"
    else:
        age = number_format.span(window.max_age_secs)
        yield "recognises duplicates", f"the last {window.entries:,} batches, for {age}"


def _leader(body: Any) -> str:
    found = body.get("leader_id")
    return "unknown" if found is None else f"node {found}"
