"""``lance-server verify | repair | dump | snapshot | …``: work on data directories."""

import json
import os
import sys
from dataclasses import asdict
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from lance_server.cluster.copies.clone import clone as clone_node
from lance_server.cluster.copies.http_source import HttpSource
from lance_server.config.option_types import SIZE
from lance_server.errors import DataDirError, LanceServerError
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.recovery.recovery_report import Finding
from lance_server.log.retention.preview import retention_plan
from lance_server.log.segments.indexes import index_segment
from lance_server.offline.comparing import compare
from lance_server.offline.dumping import dump as dump_topic
from lance_server.offline.dumping import find_topic
from lance_server.offline.importing import (
    ImportedTopic,
    has_name,
    import_topic,
    published_topics,
)
from lance_server.offline.peer import ServerPeer
from lance_server.offline.sync_scheduler import existing, opened
from lance_server.offline.verifying import ReadOnlyStorage, data_files
from lance_server.offline.verifying import verify as verify_all
from lance_server.runtime.directory_lock import DataDirLock, administration_of
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal_replay import unrepeated
from lance_server.telemetry.logs import set_up_logging

_HTTP_TIMEOUT = 30.0
_FOLDER = click.Path(path_type=Path, file_okay=False)
_DATA_DIR = click.argument("data_dir", type=_FOLDER)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class _Group(click.Group):
    """Ends with the exit code of an error of ours."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except LanceServerError as error:
            click.echo(f"lance-server: {error}", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            raise  # whoever read has seen enough: click ends quietly
        except OSError as error:
            click.echo(f"lance-server: {error}", err=True)
            sys.exit(DataDirError.exit_code)


@click.group(cls=_Group)
def offline() -> None:
    """Work on a data directory that no server is using."""
    set_up_logging("error", as_json=False)


def _progress(label: str, length: int) -> Any:
    """Return a bar on a terminal's standard error; elsewhere nothing is shown."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


@offline.command()
@_DATA_DIR
@click.option(
    "--against",
    metavar="URL",
    help="Also compare with the bytes of a running server: lance://HOST:PORT, or lances:// "
    "for TLS.",
)
@click.option("--token", envvar="LANCE_TOKEN", help="Token for that server, if it asks for one.")
@click.option(
    "--tls-ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Authorities to trust for that server, instead of the system's.",
)
@_JSON
def verify(
    data_dir: Path, against: str | None, token: str | None, tls_ca: Path | None, as_json: bool
) -> None:
    """Compare every byte with its checksum; change nothing.

    With --against the command also compares the topics with those of another server, usually a node
    of the same cluster, as far as both have them. Data that only one of them has after the end of
    the other is reported, and is not a finding.

    Exit codes: 0 no findings; 1 findings; 3 the directory cannot be read; 4 the other server does
    not answer.
    """
    files = data_files(existing(data_dir))
    size = sum(path.stat().st_size for path in files)
    with _progress("verifying", size) as bar:
        found = verify_all(data_dir, bar.update)
    figures = {
        "topics": found.topics,
        "segments": found.segments,
        "batches": found.batches,
        "records": found.records,
        "bytes": found.size,
    }
    if against is not None:
        with ServerPeer(against, token, tls_ca) as peer, _progress("comparing", size) as bar:
            compared = compare(data_dir, peer, bar.update)
        found.findings += compared.findings
        figures |= {
            "bytes compared": compared.compared,
            "bytes only here": compared.only_here,
            "bytes only there": compared.only_there,
        }
    if as_json:
        figures = {name.replace(" ", "_"): count for name, count in figures.items()}
        click.echo(json.dumps({**figures, "findings": [_as_json(f) for f in found.findings]}))
    else:
        for finding in found.findings:
            click.echo(str(finding))
        counted = ", ".join(f"{count} {name}" for name, count in figures.items())
        click.echo(f"{counted}; {len(found.findings) or 'no'} findings")
    sys.exit(1 if found.findings else 0)


@offline.command()
@_DATA_DIR
@_JSON
def repair(data_dir: Path, as_json: bool) -> None:
    """Do what a server does at its start: cut torn tails, mark damage, keep copies.

    Copies of the bytes that are cut away are in the folder 'quarantine' of the data directory.
    """
    with opened(existing(data_dir)) as (engine, _):
        report = engine.report
    if as_json:
        findings = [_as_json(each) for each in report.findings]
        click.echo(json.dumps({"clean": report.clean, "findings": findings}))
        return
    for finding in report.findings:
        click.echo(str(finding))
    click.echo(f"done: {report}")


@offline.command()
@_DATA_DIR
@click.argument("topic")
@click.option("--from", "start", default=0, type=click.IntRange(min=0), help="Offset to begin at.")
def dump(data_dir: Path, topic: str, start: int) -> None:
    """Print a topic's records, one JSON object per line, and a line for each damage.

    A value that is not UTF-8 text is printed as base64. Exit codes: 0 everything was read; 1 some
    was not; 2 there is no such topic; 3 a crash left some records in the write-ahead log: repair
    first. If the reader of the output goes away (| head), the exit code is 0.
    """
    problems = 0
    waiting, _ = unrepeated(ReadOnlyStorage(), existing(data_dir))
    if waiting:
        raise DataDirError(
            f"{len(waiting)} writes are in the write-ahead log and not in their files; "
            f"run 'lance-server repair {data_dir}' first"
        )
    records = dump_topic(find_topic(existing(data_dir), topic), start)
    try:
        for each in records:
            problems += each.problem is not None
            click.echo(json.dumps(each.as_json(), ensure_ascii=False))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the rest is unwanted
        return
    sys.exit(1 if problems else 0)


@offline.command()
@_DATA_DIR
@click.option("--node", default=0, type=click.IntRange(0, 65_535), help="This server's number.")
def reindex(data_dir: Path, node: int) -> None:
    """Write the sparse indexes of all closed segments again."""
    storage = PwritevStorage()
    with opened(existing(data_dir)) as (engine, _):
        segments = [
            segment
            for topic in [engine.topic(0), *engine.topics()]
            for segment in topic.partition.segment_list
        ]
        with _progress("indexing", len(segments)) as bar:
            for segment in segments:
                index_segment(storage, segment, node)
                bar.update(1)
    click.echo(f"indexed {len(segments)} segments")


@offline.command()
@click.argument("data_dir", type=_FOLDER, required=False)
@click.option(
    "--http", "http_address", metavar="HOST:PORT", help="The --http address of a running server."
)
@click.option("--dry-run", is_flag=True, help="Only list what would be dropped.")
@click.option("--topic", help="Only look at this topic.")
@click.option("--max-age-secs", type=click.IntRange(min=0), help="List what this age would drop.")
@click.option("--max-bytes", type=SIZE, help="List what this limit would drop, e.g. 10GiB.")
@click.option("--token", envvar="LANCE_TOKEN", help="Token for the server, if it asks for one.")
@_JSON
def retention(
    data_dir: Path | None,
    *,
    http_address: str | None,
    dry_run: bool,
    topic: str | None,
    max_age_secs: int | None,
    max_bytes: int | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Drop what the topics' retention does not keep, or list it (--dry-run).

    The command drops whole segments. A running server drops them by itself; with --http and
    --dry-run the command lists what that server would drop. Use --dry-run to try limits before you
    set them: --dry-run --topic orders --max-age-secs 86400 lists what they would drop at once. A
    limit that is not given counts as no limit.
    """
    if (http_address is None) == (data_dir is None):
        raise click.UsageError("name the data directory, or a running server by --http")
    limits = {"max_age_secs": max_age_secs, "max_bytes": max_bytes}
    given = {name: value for name, value in limits.items() if value is not None}
    if not dry_run and (http_address is not None or topic is not None or given):
        raise click.UsageError("--http, --topic and limits only list segments: add --dry-run")
    if http_address is not None:
        query = urlencode(given | ({} if topic is None else {"topic": topic}))
        path = f"/retention.json?{query}"
        plan = json.loads(_ask(http_address, path, None, token, _HTTP_TIMEOUT))
    else:
        assert data_dir is not None, "one of the two is named"
        with opened(existing(data_dir)) as (engine, scheduler):
            plan = retention_plan(engine, topic, Retention(**given) if given else None)
            for topic_id in sorted({row["topic_id"] for row in plan["segments"]}):
                if not dry_run:
                    engine.upkeep.visit(engine.topic(topic_id))
                    scheduler.run_due()
    if plan["doubt"]:
        click.echo(f"{plan['doubt']}: nothing is dropped by age", err=True)
    _tell_dropped(plan["segments"], dry_run=dry_run, as_json=as_json)


def _tell_dropped(rows: list[dict[str, Any]], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "dropped": rows}))
        return
    for row in rows:
        click.echo("{topic}: {segment}, {bytes} bytes, {records} records".format(**row))
    total = sum(row["bytes"] for row in rows)
    verb = "would be dropped" if dry_run else "dropped"
    click.echo(f"{len(rows)} segments, {total} bytes {verb}")


@offline.command("confirm-clock")
@click.argument("http_address", metavar="HOST:PORT")
@click.option("--token", envvar="LANCE_TOKEN", help="Token for the server, if it asks for one.")
def confirm_clock(http_address: str, token: str | None) -> None:
    """Tell a running server that its machine's clock is right after a large step.

    HOST:PORT is the server's --http address; the server must run with --admin. Records that are old
    by the clock expire again.
    """
    _ask(http_address, "/admin/clock/confirm", {}, token, _HTTP_TIMEOUT)
    click.echo("confirmed: what is old by the clock expires again")


@offline.command()
@click.argument("target", type=_FOLDER)
@click.option("--http", "http_address", metavar="HOST:PORT", help="The server's --http address.")
@click.option("--data-dir", type=_FOLDER, help="The data directory, instead of the address.")
@click.option("--token", envvar="LANCE_TOKEN", help="Token for the server, if it asks for one.")
@_JSON
def snapshot(
    target: Path,
    http_address: str | None,
    data_dir: Path | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Let a running server copy its data directory to TARGET, a folder that must not exist yet.

    The server runs on this machine, with --http and --admin. The copy has everything that it had
    acknowledged. If the file system can do that, files that never change are shared with the data
    directory: copy TARGET elsewhere before you use or change it.

    Exit codes: 0 everything is in the copy; 1 some topics are not, or there is no copy; 3 no server
    uses the data directory.
    """
    if (http_address is None) == (data_dir is None):
        raise click.UsageError("name the server by --http or by --data-dir")
    if data_dir is not None:
        http_address = administration_of(data_dir)
        if http_address is None:
            raise click.ClickException(
                f"the server of {data_dir} takes no requests; start it with --http and --admin"
            )
    assert http_address is not None, "one of the two names it"
    body = {"target": str(target.absolute())}
    found = json.loads(_ask(http_address, "/admin/snapshot", body, token, None))
    if as_json:
        click.echo(json.dumps(found))
    else:
        for topic_id, reason in found["skipped"].items():
            click.echo(f"topic {topic_id} is not in it: {reason}")
        click.echo(
            f"{found['target']}: {found['topics']} topics, {found['linked_files']} files shared, "
            f"{found['copied_bytes']} bytes copied"
        )
    sys.exit(1 if found["skipped"] else 0)


@offline.command()
@_DATA_DIR
@click.option(
    "--from", "source", metavar="HOST:PORT", required=True, help="The --http address of a node."
)
@click.option("--token", envvar="LANCE_TOKEN", help="Token for that node, if it asks for one.")
@_JSON
def clone(data_dir: Path, source: str, token: str | None, as_json: bool) -> None:
    """Create or repair the directory DATA_DIR of a node, with the files of a running node.

    That node must run with --http and --offer-copies. DATA_DIR is empty, or belongs to a stopped
    node of the same cluster whose directory is damaged, or which was away for so long that the log
    no longer has the records that it needs. The command fetches only what differs. If it is
    interrupted, repeat it: it goes on. At the end it compares every byte with its checksum.

    Exit codes: 0 a node can start on DATA_DIR; 1 the other node's files are damaged; 3 DATA_DIR
    cannot be used; 4 the other node refuses or does not answer.
    """
    with (
        DataDirLock(data_dir),
        HttpSource(source, token) as peer,
        _progress("cloning", 0) as bar,
    ):

        def advance(done: int, total: int) -> None:
            bar.length = total
            bar.update(done)

        report = clone_node(PwritevStorage(), data_dir, peer, advance)
        findings = verify_all(data_dir).findings
    if as_json:
        found = [_as_json(each) for each in findings]
        click.echo(json.dumps({**asdict(report), "findings": found}))
    else:
        for finding in findings:
            click.echo(str(finding))
        click.echo(
            f"{data_dir}: {report.files} files, {report.fetched} bytes fetched, {report.kept} "
            f"were there, {report.removed} files removed; {len(findings) or 'no'} findings"
        )
    sys.exit(1 if findings else 0)


def _ask(
    address: str, path: str, body: dict[str, Any] | None, token: str | None, timeout: float | None
) -> str:
    """Ask a running server, by a body to change something; return its answer."""
    headers = {} if body is None else {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    connection = HTTPConnection(address, timeout=timeout)
    try:
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read().decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise click.ClickException(f"{address} does not answer: {error}") from error
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise click.ClickException(f"{address} refused: {answer.strip()}")
    return answer


@offline.command("import")
@click.argument("source", type=_FOLDER)
@_DATA_DIR
@click.option(
    "--unnamed",
    is_flag=True,
    help="Also import folders without metadata.json, as topics with the folder's name: the "
    "rest of deleted topics, and topic 0.",
)
@_JSON
def import_(source: Path, data_dir: Path, unnamed: bool, as_json: bool) -> None:
    """Import the data directory SOURCE of a published LANCE server; it is only read.

    Topics keep their names, records and retention; byte offsets begin again.
    """
    everything = published_topics(source)
    folders = [folder for folder in everything if unnamed or has_name(folder)]
    left_out = [folder.name for folder in everything if folder not in folders]
    total = sum(path.stat().st_size for folder in folders for path in folder.glob("*.lnc"))
    with opened(data_dir) as (engine, scheduler), _progress("importing", total) as bar:
        found = [import_topic(engine, scheduler, folder, bar.update) for folder in folders]
    if as_json:
        topics = [_topic_as_json(each) for each in found]
        click.echo(json.dumps({"topics": topics, "left_out": left_out}))
        return
    for topic in found:
        click.echo(_in_words(topic))
    click.echo(f"imported {len(found)} topics")
    if left_out:
        click.echo(f"left out, without metadata.json: {', '.join(left_out)}; see --unnamed")


def _in_words(topic: ImportedTopic) -> str:
    opaque = f", {topic.opaque} bytes that are not records" if topic.opaque else ""
    lines = [f"{topic.name}: {topic.records} records, {topic.size} bytes{opaque}"]
    return "\n".join([*lines, *(f"  {note}" for note in topic.notes)])


def _topic_as_json(topic: ImportedTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "segments": topic.segments,
        "records": topic.records,
        "bytes": topic.size,
        "opaque_bytes": topic.opaque,
        "notes": topic.notes,
    }


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "topic_id": finding.topic_id,
        "file": str(finding.path),
        "offset": finding.offset,
        "length": finding.length,
        "note": finding.note,
    }


NAMES: frozenset[str] = frozenset(offline.commands)
"""The words that ask for one of these instead of a server."""
