"""The command line of the kit."""

import asyncio
import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from lance_conformance import __version__
from lance_conformance.cases import AREAS, Case, all_cases
from lance_conformance.options import LEVELS, PREFIX, TARGET
from lance_conformance.peer.conditions import Target
from lance_conformance.report import console
from lance_conformance.report.explain import entry, explain
from lance_conformance.report.progress import Progress
from lance_conformance.report.style import style_for
from lance_conformance.run.preflight import PreflightError
from lance_conformance.run.select import NothingSelectedError, select, shuffled
from lance_conformance.run.verdict import Exit
from lance_conformance.session import Ended, Options, run_session
from lance_conformance.spec.clauses import Level

Command = Callable[..., Any]


class _Group(click.Group):
    """A group whose command `run` need not be named.

    The first argument decides: the name of a command is that command, anything else belongs to
    `run`. No area of cases has the name of a command, so a pattern cannot be mistaken for one.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front unless a command, or help for all of them, is asked for."""
        first = args[0] if args else ""
        if first not in self.commands and first not in ("--help", "-h", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lance-conformance")
def app() -> None:
    """Prove what a LANCE server does with the bytes of LWP.

    lance-conformance --target HOST:PORT [PATTERN...] asks a server; PATTERN is an area (hdr), an id
    (hdr/magic-closes), a glob (fet/*) or a section (§5.8). The other commands need no server.

    \b
    Exit codes: 0 every MUST kept · 1 not conforming · 2 wrong usage · 3 no such server ·
    4 not everything could be proven · 5 no case selected · 70 the kit failed · 130 interrupted
    """  # noqa: D301 - \b is how click is told to keep the lines


def _selection(command: Command) -> Command:
    """The options that choose cases."""
    options = (
        click.argument("patterns", nargs=-1, metavar="[PATTERN]..."),
        click.option("--skip", multiple=True, metavar="PATTERN", help="Leave these cases out."),
        click.option(
            "--level",
            "levels",
            type=LEVELS,
            default=",".join(Level),
            help="Levels to ask, such as must,should.",
        ),
        click.option(
            "--profile",
            type=click.Choice(["quick", "full"]),
            default="full",
            show_default=True,
            help="How much to ask.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _chosen(
    patterns: Sequence[str], skip: Sequence[str], levels: Sequence[Level], profile: str
) -> list[Case]:
    return select(
        all_cases(), patterns=patterns, skip=skip, levels=levels, quick=profile == "quick"
    )


@app.command()
@_selection
@click.option("--target", type=TARGET, required=True, help="The server: HOST:PORT.")
@click.option(
    "--dialect",
    type=click.Choice(["auto", "specified", "deployed"]),
    default="auto",
    show_default=True,
    help="Hold the server to one dialect, or find out which one it speaks.",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=4, show_default=True,
              help="Cases asked at a time.")  # fmt: skip
@click.option("--timeout-scale", type=click.FloatRange(0.01, 1000), default=1.0,
              help="Stretch the deadline of every case.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Source of record values and of the order of --shuffle.")  # fmt: skip
@click.option("--shuffle", is_flag=True, help="Ask in another order.")
@click.option("--topic-prefix", "prefix", type=PREFIX, default="lance-conformance",
              show_default=True, help="How the names of the kit's topics begin.")  # fmt: skip
@click.option("--strict", is_flag=True, help="SHOULD and flaky cases count as failures.")
@click.option("--jsonl", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write everything to this run file.")  # fmt: skip
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write JUnit XML to this file.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write a JSON summary instead of the report.")
@click.option("-v", "--verbose", is_flag=True, help="Show every case.")
@click.option("-q", "--quiet", is_flag=True, help="Show problems, one line each, and the verdict.")
def run(
    *,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    levels: tuple[Level, ...],
    as_json: bool,
    verbose: bool,
    quiet: bool,
    shuffle: bool,
    target: Target,
    **rest: Any,
) -> int:
    """Ask a server (the word run may be left out)."""
    cases = _chosen(patterns, skip, levels, rest["profile"])
    if shuffle:
        cases = shuffled(cases, rest["seed"])
    ended = run_session(Options(target=target, cases=cases, **rest))
    if as_json:
        summary = ended.run.summary(ended.results, ended.code, ended.seconds)
        click.echo(json.dumps(summary, indent=2, ensure_ascii=True))
    else:
        _report(ended, verbose=verbose, quiet=quiet)
    return ended.code


def _report(ended: Ended, *, verbose: bool, quiet: bool) -> None:
    style = style_for()
    results = sorted(ended.results, key=lambda result: list(AREAS).index(result.case.area))
    lines: list[str] = []
    if not quiet:
        lines += ["", *console.head(ended.run, style), ""]
        lines += console.sections(results, style, verbose=verbose)
    lines += console.problems(ended.run, results, style, verbose=verbose, quiet=quiet)
    if not quiet:
        lines.append("")
    lines += console.tail(ended.run, results, ended.code, ended.seconds, style)
    click.echo("\n".join(lines), color=True)


@app.command("list")
@_selection
@click.option("--json", "as_json", is_flag=True, help="With all details, as JSON.")
def list_cases(
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    levels: tuple[Level, ...],
    profile: str,
    *,
    as_json: bool,
) -> int:
    """List cases, one id a line."""
    cases = _chosen(patterns, skip, levels, profile)
    if as_json:
        rows = [entry(case) for case in cases]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=True))
    else:
        click.echo("\n".join(case.id for case in cases))
    return Exit.OK


@app.command("explain")
@click.argument("case_id", metavar="ID")
def explain_case(case_id: str) -> int:
    """Say what a case asks, on which clause it rests, and which broken servers fail it."""
    case = next((case for case in all_cases() if case.id == case_id), None)
    if case is None:
        raise NothingSelectedError(
            f"there is no case {case_id!r}; 'lance-conformance list' shows all of them"
        )
    click.echo("\n".join(explain(case, style_for())), color=True)
    return Exit.OK


@app.command("selftest")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Order in which the cases are asked; 0 for their own.")  # fmt: skip
@click.option(
    "--update",
    is_flag=True,
    help="Make the kill matrix of now the committed one, if all other gates hold.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every fault.")
def selftest_command(seed: int, *, update: bool, verbose: bool) -> int:
    """Prove the kit: golden servers pass, broken ones fail, null ones pass nothing."""
    from lance_conformance.selftest import gates, matrix, selftest  # noqa: PLC0415 - slow to load

    progress = Progress("on trial")
    outcome = selftest.selftest(seed, progress.update, update=update)
    progress.clear()
    click.echo(gates.report(outcome.gates, verbose=verbose))
    if update and outcome.passed:
        click.echo(f"written: {matrix.write(outcome.matrix)}")
    click.echo("the kit can be trusted" if outcome.passed else "the kit must not be trusted")
    return Exit.OK if outcome.passed else Exit.NONCONFORMING


def run_app(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        return int(app(list(arguments), standalone_mode=False) or 0)
    except click.ClickException as problem:
        problem.show()
        return Exit.USAGE
    except (click.Abort, asyncio.CancelledError):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except (NothingSelectedError, PreflightError, OSError) as problem:
        click.echo(f"lance-conformance: {problem}", err=True)
        return _code_of(problem)
    except Exception:  # noqa: BLE001 - whatever it is, it is the kit's fault and must say so
        traceback.print_exc()
        click.echo("lance-conformance: the kit itself failed; please report this", err=True)
        return Exit.KIT_ERROR


def _code_of(problem: Exception) -> Exit:
    if isinstance(problem, NothingSelectedError):
        return Exit.NOTHING_SELECTED
    return Exit.UNREACHABLE if isinstance(problem, PreflightError) else Exit.USAGE


def _nobody_reads() -> int:
    """The reader of our output went away; end like any other filter."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
