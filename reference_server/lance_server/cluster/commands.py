"""``lwp cluster``: creates a cluster, shows it, and changes which nodes it has.

What the commands do is imported when they run: `lwp --help` loads this module.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--engine-unsafe/--engine-safe",
            default=False,
            help="Accept a log whose settings can lose acknowledged records; for trials.",
        ),
        click.option(
            "--cluster-config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File with lines SETTING=VALUE for the client of the log.",
        ),
        click.argument("url"),
    ):
        command = option(command)
    return command


@contextmanager
def _failing() -> Iterator[None]:
    """Print an error and end with its exit code."""
    from lance_server.errors import LanceServerError  # noqa: PLC0415 - see above

    try:
        yield
    except LanceServerError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


@click.group()
def cluster() -> None:
    """Create a cluster, show it, and change its nodes.

    URL names the topic that is the cluster's log: kafka://BROKER,BROKER,BROKER/TOPIC.
    """


@cluster.command()
@_options
@click.option("--cluster-id", help="A name for the cluster; by default a random one.")
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Brokers that keep each record, if the topic is created.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Partitions of the log: each topic belongs to one, and each is written at its own pace.",
)
@click.option(
    "--segment-size",
    default="1GiB",
    show_default=True,
    help="Close segments of this size, on all nodes.",
)
@click.option(
    "--dedup-entries",
    type=click.IntRange(min=0),
    default=1_000_000,
    show_default=True,
    help="Batches per topic that are recognised when they are sent again; 0: none.",
)
@click.option(
    "--dedup-max-age-secs",
    type=click.IntRange(min=0),
    default=7 * 24 * 3600,
    show_default=True,
    help="Seconds for which they are recognised.",
)
@click.option(
    "--max-topics",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Largest number of topics.",
)
@click.option(
    "--from-data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Begin with the data of a single server that is stopped, or of a stopped node whose log "
    "is lost or to be left; the first node starts in DIR.",
)
def init(
    url: str,
    cluster_config: Path | None,
    *,
    from_data_dir: Path | None,
    segment_size: str,
    dedup_entries: int,
    dedup_max_age_secs: int,
    engine_unsafe: bool,
    **chosen: Any,
) -> None:
    """Create a cluster whose log is in a topic; the topic is created if it does not exist.

    These choices hold for every node, and cannot be changed later. If the topic has records
    already, it is refused, unless they are those of a cluster: then nothing changes, and the
    cluster's id is printed.

    With --from-data-dir the cluster begins with all topics, records, offsets and commits of a
    single server, or of a node of another cluster. From then on a server's segments, limits and
    windows follow the choices made here; those of a node stay as they were. The command may be
    repeated with the same directory, also after it was interrupted.
    """
    from lance_server.cluster.administration import create  # noqa: PLC0415 - see above
    from lance_server.config.settings import parse_size  # noqa: PLC0415 - see above

    with _failing():
        done = create(
            url,
            cluster_config,
            unsafe=engine_unsafe,
            data_dir=from_data_dir,
            segment_size=parse_size(segment_size),
            window_entries=dedup_entries,
            window_age_secs=dedup_max_age_secs,
            **chosen,
        )
        for line in done:
            click.echo(line)


@cluster.command()
@_options
def status(url: str, cluster_config: Path | None, *, engine_unsafe: bool) -> None:
    """Show the log and the nodes that reported lately; no node needs to run."""
    from lance_server.cluster.administration import show  # noqa: PLC0415 - see above

    del engine_unsafe  # looking is always safe
    with _failing():
        for line in show(url, cluster_config):
            click.echo(line)


@cluster.command("apply-version")
@_options
@click.argument("version", type=click.IntRange(1, 65_535))
def apply_version(
    url: str, version: int, cluster_config: Path | None, *, engine_unsafe: bool
) -> None:
    """Let all nodes apply records by a newer version of the rules, once all of them can."""
    from lance_server.cluster.administration import raise_version  # noqa: PLC0415 - see above

    with _failing():
        raise_version(url, cluster_config, version, unsafe=engine_unsafe)
        click.echo(f"the cluster applies by version {version} from now on")


@cluster.command()
@_options
@click.argument("node_id", type=click.IntRange(0, 65_535))
@click.option("--force", is_flag=True, help="Remove the node although it reported lately.")
def remove(
    url: str, node_id: int, cluster_config: Path | None, *, force: bool, engine_unsafe: bool
) -> None:
    """Remove a node that is gone for good, so that the log keeps nothing for it any more."""
    from lance_server.cluster.administration import remove_node  # noqa: PLC0415 - see above

    with _failing():
        click.echo(remove_node(url, cluster_config, node_id, force=force, unsafe=engine_unsafe))
