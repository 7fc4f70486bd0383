"""``lwp pipeline``: archive, compact, replay, audit, reindex, report and migrate whole logs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lance_sdk.cli import _types
from lance_sdk.cli._sections import SectionedGroup
from lance_sdk.cli._settings import common_options, current_settings
from lance_sdk.cli.console import number_format, streams
from lance_sdk.cli.console.error_messages import describe
from lance_sdk.cli.console.exit_codes import Failure, printable, require_command
from lance_sdk.cli.console.output import print_json, print_line, print_table
from lance_sdk.cli.journal.progress import frames_bar
from lance_sdk.errors import ConfigError, TopicNotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lance_sdk.spark.pipelines import Audited

Options = dict[str, str]
_PROCESSES: Final = "processes"
_SMALL: Final = 4 << 30
"""Bytes that processes on this machine read in the time that Spark needs to start."""
_SIDECARS: Final = 0
"""Bytes of what is read of any log when only its sidecars are: too few to count."""
_BRIEF: Final = 128 << 20
"""Bytes below which Java is done before it gains from compiling its code well."""
_SPARKS_PLACE: Final = ("SPARK_MASTER", "PYSPARK_GATEWAY_PORT")
"""Environment variables of somebody who wants Spark, and of ``spark-submit``."""

_SEGMENTS: Final = "segments"
"""The folder that a server makes in its data directory."""
_FILES_ONLY: Final = "This command reads files: name a data directory, and not a topic of a server"

_EXAMPLES: Final = """\b
Examples:
  lwp pipeline audit /var/lib/lance
  lwp pipeline archive orders --url lance://localhost:1992 --to /archive/orders
  lwp pipeline replay /archive/orders --url lance://test:1992 --create-topic
"""


@click.group(
    cls=SectionedGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    epilog=_EXAMPLES,
)
@common_options
@click.pass_context
def pipeline(ctx: click.Context) -> None:
    """Work on whole logs with Spark: archive, compact, replay, audit, reindex, report, migrate.

    Spark runs on this machine, or on the cluster that SPARK_MASTER names. spark-submit runs the
    same commands, see the documentation. Spark needs Java 17 and pip install 'lance-sdk[spark]'.
    """
    require_command(ctx)


_option = click.option(
    "-o",
    "--option",
    "more",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the format lwp, such as minPartitions=8; may be repeated.",
)
_engine = click.option(
    "--engine",
    type=click.Choice(["auto", "spark", _PROCESSES]),
    default="auto",
    show_default=True,
    help="What does the work: Spark, or processes on this machine; auto uses processes up "
    "to 4 GiB.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
_source = click.argument("source", metavar="PATH|TOPIC[,TOPIC...]")
_create = click.option("--create-topic", is_flag=True, help="Create topics that do not exist.")


@pipeline.command("archive")
@_source
@click.option("--to", "target", required=True, metavar="DIR", help="Folder of the Parquet files.")
@click.option(
    "--partition-by",
    type=click.Choice(["topic", "date", "hour"]),
    multiple=True,
    default=["topic"],
    show_default=True,
    help="Folders by topic, date or hour (UTC); may be repeated.",
)
@_option
@_dry_run
@common_options
def archive_(
    source: str, target: str, *, partition_by: tuple[str, ...], more: tuple[str, ...], dry_run: bool
) -> None:
    """Append the records of a log that DIR does not have yet to its Parquet files.

    The log is topics on the server of --url, or files at a PATH. Another run goes on where the last
    run stopped.
    """
    options = _reading(source, more)
    from lance_sdk.spark.pipelines import archive  # noqa: PLC0415 - heavy, and an extra
    from lance_sdk.spark.pipelines.archive import (  # noqa: PLC0415 - likewise
        check_archive,
        check_target,
    )

    check_target(target)
    with _understood(source):
        size = check_archive(options)
    if dry_run:
        found = archive(None, options, target, partition_by=partition_by, dry_run=True)
    else:
        with _spark(size) as spark, frames_bar("archiving", "bytes") as tell:
            found = archive(spark, options, target, partition_by=partition_by, tell=tell)
    if current_settings().json:
        print_json(asdict(found) | {"dry_run": dry_run})
        return
    told = number_format.size(found.bytes)
    if found.records is None:
        print_line(
            f"would read {told} at most of {number_format.count(len(found.topics), 'topic')}"
        )
    else:
        print_line(f"archived {number_format.count(found.records, 'record')} ({told}) in {target}")
        _tell_null_times(found.null_times, "ts_ns is null there, timestamp has microseconds")


@pipeline.command("compact")
@click.argument("target", metavar="DIR")
@click.option(
    "--file-size",
    type=_types.size,
    default="128MiB",
    show_default=True,
    metavar="SIZE",
    help="Largest size of the new files; files of half that size or more stay.",
)
@_dry_run
@common_options
def compact_(target: str, *, file_size: int, dry_run: bool) -> None:
    """Join the small Parquet files of an archive in DIR into large ones; needs no Spark.

    Do not run it while a program reads the archive. Spark summarizes its list of files in every
    tenth run of archive; the files of later runs are joined after the next summary.
    """
    from lance_sdk.spark.pipelines import compact  # noqa: PLC0415 - heavy, and an extra

    with frames_bar("compacting", "bytes") as tell:
        found = compact(target, file_bytes=file_size, dry_run=dry_run, tell=tell)
    if current_settings().json:
        print_json(asdict(found) | {"dry_run": dry_run})
        return
    verb = "would join" if dry_run else "joined"
    files, size = number_format.count(found.files, "file"), number_format.size(found.bytes)
    print_line(f"{verb} {files} ({size}) into {found.joined:,}")


@pipeline.command("replay")
@click.argument("source", metavar="DIR")
@click.option(
    "--topic", help="Write all records to this topic, not to the topics that they came from."
)
@click.option("--where", metavar="SQL", help="Which records, such as 'offset >= 1000'.")
@_create
@_engine
@_option
@_dry_run
@common_options
def replay_(
    source: str,
    *,
    topic: str | None,
    where: str | None,
    create_topic: bool,
    engine: str,
    more: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Write the records of an archive in DIR to the server of --url, each topic in its order."""
    options = _writing(more, topic, create_topic=create_topic)
    from lance_sdk.spark.pipelines import replay  # noqa: PLC0415 - heavy, and an extra
    from lance_sdk.spark.pipelines.archive_files import committed_bytes  # noqa: PLC0415 - likewise
    from lance_sdk.spark.pipelines.replay import (  # noqa: PLC0415 - likewise
        check_archived,
        check_replay,
        needs_spark,
    )

    check_replay(options)
    check_archived(source)
    size = committed_bytes(source)
    if engine == "auto" and (size > _SMALL or needs_spark(source, where)):
        engine = "spark"
    workers = _engine_for(engine, size)
    with workers as spark, frames_bar("replaying", "records") as tell:
        found = replay(spark, source, options, condition=where, dry_run=dry_run, tell=tell)
    if current_settings().json:
        print_json(asdict(found) | {"records": found.records, "dry_run": dry_run})
        return
    verb = "would replay" if dry_run else "replayed"
    topics = number_format.count(len(found.topics), "topic")
    print_line(f"{verb} {number_format.count(found.records, 'record')} of {topics}")


@pipeline.command("audit")
@click.argument("path")
@_engine
@_dry_run
@common_options
def audit_(path: str, *, engine: str, dry_run: bool) -> None:
    """Compare every segment and slot at PATH with its checksums and structure.

    The command changes nothing. The exit code is 1 when something is wrong.
    """
    from lance_sdk.spark.pipelines import audit  # noqa: PLC0415 - heavy, and an extra

    with _understood(path, takes_topics=False):
        size = audit(None, path, dry_run=True).totals["bytes"]
    workers = _engine_for(_PROCESSES if dry_run else engine, size)
    with workers as spark, frames_bar("auditing", "files") as tell:
        found = audit(spark, path, tell, dry_run=dry_run)
    if current_settings().json:
        files = [asdict(report) | {"clean": report.clean} for report in found.files]
        body = {"clean": found.clean, **found.totals, "dry_run": dry_run, "reports": files}
        print_json(body)
    else:
        _tell_audit(found, dry_run=dry_run)
    if not found.clean and not dry_run:
        raise Failure(f"{number_format.count(found.totals['findings'], 'finding')} at {path}")


def _tell_audit(found: "Audited", *, dry_run: bool) -> None:
    totals = found.totals
    files, size = number_format.count(totals["files"], "file"), number_format.size(totals["bytes"])
    if dry_run:
        print_line(f"would read {files}, {size}")
        return
    for report in found.files:
        for finding in report.findings:
            print_line(printable(f"{report.path}: {finding}"))
    if current_settings().quiet:
        return
    batches, records = (
        f"{totals['batches']:,} batches",
        number_format.count(totals["records"], "record"),
    )
    verdict = number_format.count(totals["findings"], "finding") if totals["findings"] else "clean"
    print_line(f"{files}, {batches}, {records}, {size}; {verdict}")


@pipeline.command("reindex")
@click.argument("path")
@_engine
@_dry_run
@common_options
def reindex_(path: str, *, engine: str, dry_run: bool) -> None:
    """Write missing and outdated sparse indexes of closed segments at PATH again."""
    from lance_sdk.spark.pipelines import reindex  # noqa: PLC0415 - heavy, and an extra

    with _engine_for(engine, _SIDECARS) as spark, frames_bar("indexing", "segments") as tell:
        found = reindex(spark, path, dry_run=dry_run, tell=tell)
    if current_settings().json:
        print_json(asdict(found) | {"dry_run": dry_run})
        return
    verb = "would write" if dry_run else "wrote"
    indexes = f"{len(found.changed):,} {'index' if len(found.changed) == 1 else 'indexes'}"
    print_line(f"{verb} {indexes} of {number_format.count(found.segments, 'closed segment')}")


@pipeline.command("report")
@_source
@click.option("--plot", "picture", metavar="FILE", help="Draw a picture: FILE.svg, .png or .pdf.")
@click.option("--page", metavar="FILE", help="Write one HTML page with the picture.")
@_engine
@_option
@_dry_run
@common_options
def report_(
    source: str,
    *,
    picture: str | None,
    page: str | None,
    engine: str,
    more: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Show how many records and bytes there are by topic, hour and type."""
    options = _reading(source, more)
    from lance_sdk.spark.pipelines import (  # noqa: PLC0415 - heavy, and an extra
        plot,
        report,
        write_page,
    )

    with _understood(source):
        planned = sum(report(None, options, dry_run=True).planned.values())
    workers = _engine_for(_PROCESSES if dry_run else engine, planned)
    with workers as spark, frames_bar("counting", "splits") as tell:
        found = report(spark, options, tell, dry_run=dry_run)
    if picture is not None and not dry_run:
        plot(found, picture)
    if page is not None and not dry_run:
        write_page(found, page)
    if current_settings().json:
        print_json(asdict(found) | {"dry_run": dry_run})
        return
    if dry_run:
        size = number_format.size(sum(found.planned.values()))
        print_line(f"would read {size} of {number_format.count(len(found.planned), 'topic')}")
        return
    rows = [
        [each.topic, each.hour_text, f"{each.type:#04x}", f"{each.records:,}", f"{each.bytes:,}"]
        for each in found.volumes
    ]
    print_table(["topic", "hour (UTC)", "type", "records", "bytes"], rows, right="<<>>>")
    _tell_null_times(found.null_times, "they are counted under the hour -")


def _tell_null_times(count: int, what: str) -> None:
    if count and not current_settings().quiet:
        streams.tell(f"times after the year 2262: {count:,}; {what}")


@pipeline.command("migrate")
@click.argument("path")
@click.option("--topics", metavar="A,B", help="Only these topics.")
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    help=r"Regular expression and name: 'rust-(.*)=\1'; may be repeated.",
)
@_create
@_engine
@_option
@_dry_run
@common_options
def migrate_(
    path: str,
    *,
    topics: str | None,
    rename: tuple[str, ...],
    create_topic: bool,
    engine: str,
    more: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Copy the topics in files at PATH to the server of --url.

    PATH is a data directory, a topic's folder, or slots, with records of any protocol. Every topic
    keeps its order. -o sets options of the writing side.
    """
    source = {"path": path} | ({"topics": topics} if topics else {})
    options = _writing(more, None, create_topic=create_topic)
    pairs = [_pair("rename", text) for text in rename]
    from lance_sdk.spark.pipelines import migrate  # noqa: PLC0415 - heavy, and an extra

    with _understood(path, takes_topics=False):
        found = migrate(None, source, options, rename=pairs, dry_run=True)
    if not dry_run:
        with _engine_for(engine, found.bytes) as spark, frames_bar("copying", "topics") as tell:
            found = migrate(spark, source, options, rename=pairs, tell=tell)
    if current_settings().json:
        print_json(asdict(found) | {"dry_run": dry_run})
        return
    rows = [[name, "-" if n is None else f"{n:,}"] for name, n in sorted(found.topics.items())]
    print_table(["topic", "records"], rows, right="<>")


def _reading(source: str, more: tuple[str, ...]) -> Options:
    """Return the options for reading: a path where it looks like one, else topics."""
    options = dict(_pair("option", text) for text in more)
    if _is_path(source):
        return {"path": source, **options}
    try:
        return {"topics": source, **_server(), **options}
    except click.UsageError as error:
        raise click.UsageError(f"{error.message}. {_other_reading(source)}") from None


def _is_path(source: str) -> bool:
    """Whether a source is read as a path; a topic's name has no slash (AMB-24)."""
    return "/" in source or source in {".", ".."}


def _other_reading(source: str) -> str:
    """Say what a source was taken for, and how to say the other thing that it could be."""
    if _is_path(source):
        return f"{source!r} was taken for a path, because of its slash: a topic's name has none"
    if _is_data_directory(source):
        return f"{source!r} was taken for a topic; for the data directory here say './{source}'"
    return f"{source!r} was taken for a topic; a path has a slash, such as './{source}'"


def _is_data_directory(source: str) -> bool:
    return Path(source, _SEGMENTS).is_dir()


@contextmanager
def _understood(source: str, *, takes_topics: bool = True) -> Iterator[None]:
    """Say what a source was taken for, where nothing of that name is found, or two things are.

    Args:
        source: what was typed.
        takes_topics: whether the command reads topics, too, or only files.
    """
    is_topic = takes_topics and not _is_path(source)
    try:
        yield
    except (ConfigError, TopicNotFound) as error:
        is_unknown = isinstance(error, TopicNotFound) == is_topic
        if not is_unknown or (not is_topic and ("://" in source or Path(source).exists())):
            raise
        message, code = describe(error)
        hint = _other_reading(source) if takes_topics else _FILES_ONLY
        raise Failure(f"{message.removesuffix('.')}. {hint}", code) from error
    if is_topic and _is_data_directory(source) and not current_settings().quiet:
        streams.tell(_other_reading(source))


def _writing(more: tuple[str, ...], topic: str | None, *, create_topic: bool) -> Options:
    options = _server() | ({} if topic is None else {"topic": topic})
    if create_topic:
        options["createTopic"] = "true"
    return options | dict(_pair("option", text) for text in more)


def _server() -> Options:
    """Return how to reach the server, by the options that every command takes."""
    settings = current_settings()
    said = {
        "servers": settings.named_url("a pipeline"),
        "dialect": settings.dialect,
        "requestTimeout": None if settings.timeout is None else f"{settings.timeout}s",
        "token": settings.token,
        "tlsCa": settings.tls_ca,
        "tlsCert": settings.tls_cert,
        "tlsKey": settings.tls_key,
        "tlsServerName": settings.tls_server_name,
    }
    return {name: value for name, value in said.items() if value is not None}


def _pair(name: str, text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not (key and mark):
        raise click.UsageError(f"--{name} {printable(text)}: expected NAME=VALUE")
    return key, value


@contextmanager
def _engine_for(engine: str, size: int) -> Iterator["SparkSession | None"]:
    """Yield Spark where it was asked for or pays, else None.

    Args:
        engine: what was asked for.
        size: bytes to read.
    """
    is_elsewhere = any(name in os.environ for name in _SPARKS_PLACE)
    if engine == _PROCESSES or (engine == "auto" and size <= _SMALL and not is_elsewhere):
        yield None
        return
    with _spark() as spark:
        yield spark


@contextmanager
def _spark(size: int = _SMALL) -> Iterator["SparkSession"]:
    """Yield Spark, which starts sooner for what is no more than some bytes."""
    from lance_sdk.spark.failures import own_errors  # noqa: PLC0415 - as above
    from lance_sdk.spark.pipelines.session import local_session  # noqa: PLC0415 - likewise

    with local_session(brief=size <= _BRIEF, stop=False) as spark, own_errors():
        yield spark
