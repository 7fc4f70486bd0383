"""Commands about runs that are over: report, diff, coverage, replay, baseline."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from lance_conformance.engine import axes
from lance_conformance.engine.report.comparing import compare
from lance_conformance.engine.report.coverage import coverage as covered
from lance_conformance.engine.report.coverage import in_words, killers
from lance_conformance.engine.report.formats import matrix as table
from lance_conformance.engine.report.formats.badge import badge
from lance_conformance.engine.report.formats.html import html
from lance_conformance.engine.report.formats.markdown import markdown
from lance_conformance.engine.report.formats.matrix import Column
from lance_conformance.engine.report.formats.pcapng import capture
from lance_conformance.engine.report.reading import Told, read_run, transcript
from lance_conformance.engine.run.baseline import write_baseline
from lance_conformance.engine.run.reference import golden_run
from lance_conformance.engine.run.select import NothingSelectedError
from lance_conformance.engine.run.verdict import Exit, Verdict
from lance_conformance.engine.suites import suite_named
from lance_conformance.options import TARGET, protocol_option
from lance_conformance.session import Ended, Options, run_session

_RUN = click.argument("run_file", metavar="RUN", type=click.Path(dir_okay=False, path_type=Path))
_FILE = click.Path(dir_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


def written_reports(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name files to write a run to."""
    options = (
        click.option("--html", "html_file", type=_FILE, metavar="FILE", help="Write an HTML page."),
        click.option("--md", "md_file", type=_FILE, metavar="FILE", help="Write Markdown."),
        click.option("--badge", "badge_file", type=_FILE, metavar="FILE",
                     help="Write a badge as JSON for shields.io."),
        click.option("--pcap", "pcap_dir", type=click.Path(file_okay=False, path_type=Path),
                     metavar="DIR", help="Write a capture (pcapng) for each case."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def write_reports(
    run: Told,
    html_file: Path | None = None,
    md_file: Path | None = None,
    badge_file: Path | None = None,
    pcap_dir: Path | None = None,
) -> list[Path]:
    """Write a run to the files that were asked for; return them.

    Raises:
        OSError: one cannot be written.
    """
    written: list[Path] = []
    if html_file is not None:
        header = run.header
        golden = golden_run(run.suite, header["dialect"], run.cases.keys(), header["seed"])
        written.append(_write(html_file, html(run, golden, killers(run.suite))))
    if md_file is not None:
        written.append(_write(md_file, markdown(run)))
    if badge_file is not None:
        written.append(_write(badge_file, badge(run) + "\n"))
    if pcap_dir is not None:
        pcap_dir.mkdir(parents=True, exist_ok=True)
        written.append(pcap_dir)
        for case_id, case in run.cases.items():
            if chunks := transcript(case):
                comment = f"{case_id}: {case['verdict']} {case['message']}".strip()
                path = pcap_dir / f"{case_id.replace('/', '-')}.pcapng"
                path.write_bytes(capture(chunks, comment, run.suite.port))
    return written


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@click.command()
@_RUN
@written_reports
def report(run_file: Path, **wanted: Path | None) -> int:
    """Write a run (a file that --jsonl wrote) as HTML, Markdown, badge or captures."""
    written = write_reports(read_run(run_file), **wanted)
    if not written:
        raise click.UsageError("name a file to write: --html, --md, --badge or --pcap")
    for path in written:
        click.echo(f"written: {path}", err=True)
    return Exit.OK


@click.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@_JSON
def diff(before: Path, after: Path, *, as_json: bool) -> int:
    """Show the changes from one run to another; exit 1 when a case got worse."""
    changes = list(compare(read_run(before), read_run(after)))
    if as_json:
        rows = [
            {"id": c.case_id, "before": c.before, "after": c.after, "worse": c.worse}
            for c in changes
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        for change in changes:
            click.echo(str(change))
        worse = sum(change.worse for change in changes)
        better = sum(change.better for change in changes)
        click.echo(f"{len(changes)} cases changed: {worse} worse, {better} better")
    return Exit.NONCONFORMING if any(change.worse for change in changes) else Exit.OK


def _columns(arguments: Sequence[str]) -> list[Column]:
    columns = []
    for argument in arguments:
        name, _, file = argument.rpartition("=")
        run = read_run(Path(file))
        columns.append(Column(name or run.title, run))
    if len({column.run.suite.name for column in columns}) > 1:
        raise click.UsageError("these runs asked different protocols; one table cannot hold them")
    return columns


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="[NAME=]RUN...")
@click.option(
    "--rst",
    is_flag=True,
    help="As a part of a documentation page, with the rules that were not kept.",
)
@_JSON
def matrix(runs: tuple[str, ...], *, rst: bool, as_json: bool) -> int:
    """Show runs side by side, areas by target. A run file may have a name, as NAME=FILE."""
    columns = _columns(runs)
    if as_json:
        click.echo(json.dumps(table.as_json(columns), indent=2))
    else:
        click.echo("\n".join(table.as_rst(columns) if rst else table.as_text(columns)))
    return Exit.OK


@click.command()
@protocol_option
@click.option(
    "--axes",
    "by_axis",
    is_flag=True,
    help="List how many usual cases check each rule along each axis.",
)
@_JSON
def coverage(protocol: str, *, by_axis: bool, as_json: bool) -> int:
    """List every clause with the cases that check it, and how they are proven."""
    suite = suite_named(protocol)
    if by_axis:
        found = {rule: {axis: asdict(cell) for axis, cell in row.items()}
                 for rule, row in axes.cells(suite).items()}  # fmt: skip
        click.echo(json.dumps(found, indent=2) if as_json else "\n".join(axes.in_words(suite)))
        return Exit.OK
    rows = covered(suite)
    click.echo(json.dumps(rows, indent=2) if as_json else "\n".join(in_words(rows)))
    return Exit.OK


@click.command()
@_RUN
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--target", type=TARGET, help="Check this server instead of the run's.")
def replay(run_file: Path, ids: tuple[str, ...], target: Any) -> Ended:
    """Run cases of a run again with its options: all that did not pass, or the named ones."""
    run = read_run(run_file)
    wanted = set(ids) or {
        case_id
        for case_id, case in run.cases.items()
        if case["verdict"] not in (Verdict.PASS.value, Verdict.SKIP.value)
    }
    if missing := sorted(wanted.difference(run.cases)):
        raise NothingSelectedError(f"the run did not ask {missing[0]!r}")
    cases = [case for case in run.suite.cases if case.id in wanted]
    if not cases:
        raise NothingSelectedError("every case of the run passed or was skipped; name one")
    header = run.header
    told = header["target"]
    asked = target or run.suite.target(told) or TARGET.convert(told, None, None)
    return run_session(
        Options(
            target=replace(asked, port=asked.port or run.suite.port),
            cases=cases,
            protocol=run.suite.name,
            dialect=header["dialect_asked"],
            profile=header["profile"],
            seed=header["seed"],
        )
    )


@click.command()
@_RUN
@click.option("-o", "--output", type=_FILE, required=True, help="The file to write.")
def baseline(run_file: Path, output: Path) -> int:
    """Write a baseline of the failures of a run; write the reasons into it before you use it."""
    if output.exists():
        raise click.UsageError(f"'{output}' is there already; its reasons would be lost")
    _write(output, write_baseline(read_run(run_file)))
    click.echo(f"written: {output}; fill in why", err=True)
    return Exit.OK
