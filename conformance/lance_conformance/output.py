"""Options that every command with a run in it has, and what such a command leaves behind."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lance_conformance.engine.conditions import USUAL_SEED
from lance_conformance.engine.report.formats import console
from lance_conformance.engine.report.reading import read_run
from lance_conformance.engine.report.style import style_for
from lance_conformance.options import LEVELS
from lance_conformance.report_app import write_reports, written_reports
from lance_conformance.session import Ended, Options, run_session
from lance_conformance.spec.clauses import Level

Command = Callable[..., Any]
_FILE = click.Path(dir_okay=False, path_type=Path)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def selecting(command: Command) -> Command:
    """Add the options that choose cases."""
    options = (
        click.argument("patterns", nargs=-1, metavar="[PATTERN]..."),
        click.option("--skip", multiple=True, metavar="PATTERN", help="Leave these cases out."),
        click.option("--level", "levels", type=LEVELS, default=",".join(Level),
                     help="Levels to run, such as must,should."),
        click.option("--profile", type=click.Choice(["quick", "full", "thorough"]), default="full",
                     show_default=True, help="How many cases to run."),
        click.option("--thorough", "profile", flag_value="thorough",
                     help="Run all cases: many of each, large logs, long waits."),
    )  # fmt: skip
    return _with(options, command)


def asking(command: Command) -> Command:
    """Add the options about how cases are asked."""
    options = (
        click.option("-j", "--jobs", type=click.IntRange(1, 64), default=6, show_default=True,
                     help="Cases that run at the same time."),
        click.option("--timeout-scale", type=click.FloatRange(0.01, 1000), default=1.0,
                     help="Multiply the deadline of every case by this."),
        click.option("--seed", type=click.IntRange(0), default=USUAL_SEED, show_default=True,
                     help="Seed of record values, of the order of --shuffle, and of the cases\n"
                          "of a thorough run that a usual run includes."),
        click.option("--shuffle", is_flag=True, help="Run the cases in another order."),
    )  # fmt: skip
    return _with(options, command)


def reporting(command: Command) -> Command:
    """Add the options about the verdict and the files that a run is written to."""
    options = (
        click.option("--strict", is_flag=True, help="SHOULD and flaky cases count as failures."),
        click.option("--jsonl", type=_FILE, metavar="FILE",
                     help="Write everything to this run file."),
        click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML to this file."),
        written_reports,
        click.option("--baseline", "baseline_file", type=_FILE, metavar="FILE",
                     help="Accept the failures that this file lists as known."),
        click.option("--json", "as_json", is_flag=True,
                     help="Write a JSON summary instead of the report."),
        click.option("-v", "--verbose", is_flag=True, help="Show every case."),
        click.option("-q", "--quiet", is_flag=True,
                     help="Show only problems, one line each, and the verdict."),
    )  # fmt: skip
    return _with(options, command)


def perform(
    options: Options, *, as_json: bool, verbose: bool, quiet: bool, **reports: Path | None
) -> int:
    """Run, write the files that were asked for, tell people, and return the exit code.

    Args:
        options: The run.
        as_json: Tell programs instead of people.
        verbose: Tell of every case.
        quiet: Tell of problems only.
        **reports: What `write_reports` takes.
    """
    with _run_file(options.jsonl, wanted=any(reports.values())) as path:
        ended = run_session(replace(options, jsonl=path))
        if path is not None:
            write_reports(read_run(path), **reports)
    if as_json:
        summary = ended.run.summary(ended.results, ended.code, ended.seconds)
        click.echo(json.dumps(summary, indent=2, ensure_ascii=True))
    else:
        tell(ended, verbose=verbose, quiet=quiet)
    return ended.code


@contextlib.contextmanager
def _run_file(path: Path | None, *, wanted: bool) -> Iterator[Path | None]:
    """Yield where to write the run file: the reports are made from it."""
    if path is not None or not wanted:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lance-conformance-") as folder:
        yield Path(folder, "run.jsonl")


def tell(ended: Ended, *, verbose: bool, quiet: bool) -> None:
    """Write the report for people."""
    style = style_for()
    areas = list(ended.run.suite.areas)
    results = sorted(ended.results, key=lambda result: areas.index(result.case.area))
    lines: list[str] = []
    if not quiet:
        lines += ["", *console.head(ended.run, style), ""]
        lines += console.sections(results, style, verbose=verbose)
    lines += console.problems(ended.run, results, style, verbose=verbose, quiet=quiet)
    if not quiet:
        lines.append("")
        lines += console.not_asked(results, style)
    lines += [f"stale baseline: {problem}" for problem in ended.stale]
    lines += console.tail(ended.run, results, ended.code, ended.seconds, style)
    click.echo("\n".join(lines), color=True)
