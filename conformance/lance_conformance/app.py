"""The command line of the kit."""

import asyncio
import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lance_conformance import __version__
from lance_conformance.access_options import access_from, getting_in
from lance_conformance.client.app import client
from lance_conformance.engine.conditions import Target
from lance_conformance.engine.registry import Case
from lance_conformance.engine.report.dry import dry
from lance_conformance.engine.report.explain import entry, explain
from lance_conformance.engine.report.progress import Progress
from lance_conformance.engine.report.reading import RunFileError
from lance_conformance.engine.report.style import style_for
from lance_conformance.engine.run.baseline import BaselineError, read_baseline
from lance_conformance.engine.run.reference import golden_run
from lance_conformance.engine.run.select import NothingSelectedError, select, shuffled
from lance_conformance.engine.run.verdict import Exit
from lance_conformance.engine.suite import Suite
from lance_conformance.engine.suites import SUITES, case_by_id, suite_named
from lance_conformance.init_app import init
from lance_conformance.options import PREFIX, TARGET, protocol_option
from lance_conformance.other_options import GROUPS, beside_the_target, judge_failover
from lance_conformance.output import asking, perform, reporting, selecting, tell
from lance_conformance.report_app import (
    baseline,
    coverage,
    diff,
    matrix,
    replay,
    report,
)
from lance_conformance.server.preflight import PreflightError
from lance_conformance.session import Ended, Options
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
    """Check whether a server or a client keeps the rules of LWP, Fluvio or RustLog.

    lance-conformance --target HOST:PORT [PATTERN...] checks a server. PATTERN is an area (hdr), an
    id (hdr/magic-closes), a glob (fet/*), a section (§5.8), or @FILE. The file has one of these per
    line, or is a run file, of which the cases that did not pass are chosen. Most other commands
    need no server.

    \b
    Exit codes: 0 every MUST kept · 1 not conforming · 2 wrong usage · 3 no such server ·
    4 not everything could be proven · 5 no case selected · 6 the baseline is stale ·
    7 the target ended or stopped · 70 the kit failed · 130 interrupted
    """  # noqa: D301 - \b is how click is told to keep the lines


def _selection(command: Command) -> Command:
    """The options that choose cases among those of a protocol."""
    return protocol_option(selecting(command))


def _chosen(  # noqa: PLR0917 - what the command line says, passed on
    suite: Suite,
    patterns: Sequence[str],
    skip: Sequence[str],
    levels: Sequence[Level],
    profile: str,
    seed: int,
) -> list[Case]:
    return select(
        suite.cases,
        patterns=patterns,
        skip=skip,
        levels=levels,
        quick=profile == "quick",
        thorough=profile == "thorough",
        seed=seed,
    )


@app.command()
@_selection
@click.option("--target", type=TARGET, help="The server: HOST:PORT; only --dry-run needs none.")
@click.option("--dialect", default="auto", show_default=True, metavar="NAME",
              help="Dialect that the server must speak; auto finds out.")  # fmt: skip
@asking
@click.option("--topic-prefix", "prefix", type=PREFIX, default="lance-conformance",
              show_default=True, help="Beginning of the names of the kit's topics.")  # fmt: skip
@getting_in
@beside_the_target
@click.option(
    "--dry-run", is_flag=True, help="Show the bytes that would be sent, and send nothing."
)
@reporting
def run(
    *,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    levels: tuple[Level, ...],
    as_json: bool,
    verbose: bool,
    quiet: bool,
    shuffle: bool,
    target: Target | None,
    protocol: str,
    dialect: str,
    baseline_file: Path | None,
    html_file: Path | None,
    md_file: Path | None,
    badge_file: Path | None,
    pcap_dir: Path | None,
    dry_run: bool,
    **rest: Any,
) -> int:
    """Check a server (the word run may be left out)."""
    suite = suite_named(protocol)
    second: Target | None = rest.pop("second_target")
    third: Target | None = rest.pop("third_target")
    coordinator: Target | None = rest.pop("coordinator")
    if target is None and not dry_run:
        raise _no_target(patterns)
    if third is not None and second is None:
        raise click.UsageError("--third-target needs --second-target")
    judge_failover(protocol, rest, second)
    cases = _chosen(suite, patterns, skip, levels, rest["profile"], rest["seed"])
    if target is None or dry_run:
        return _dry_run(suite, cases, _known_dialect(suite, dialect), rest["seed"])
    if shuffle:
        cases = shuffled(cases, rest["seed"])
    excuses = read_baseline(baseline_file, suite) if baseline_file is not None else {}
    reports = {"html_file": html_file, "md_file": md_file, "badge_file": badge_file}
    reports["pcap_dir"] = pcap_dir
    options = Options(
        target=replace(target, port=target.port or suite.port),
        second_target=second and replace(second, port=second.port or suite.port),
        third_target=third and replace(third, port=third.port or suite.port),
        coordinator=coordinator and replace(coordinator, port=coordinator.port or GROUPS),
        cases=cases,
        access=access_from(target.host, rest),
        protocol=protocol,
        dialect=_known_dialect(suite, dialect),
        baseline=excuses,
        **rest,
    )
    return perform(options, as_json=as_json, verbose=verbose, quiet=quiet, **reports)


def _no_target(patterns: Sequence[str]) -> click.UsageError:
    """Say how the server is named; many a user gives its address without the option."""
    address = next((each for each in patterns if re.fullmatch(r"\S+:\d+", each)), None)
    if address is None:
        return click.UsageError("Missing option '--target': name the server as HOST:PORT.")
    return click.UsageError(
        f"Missing option '--target', and {address!r} is not a case: write --target {address}"
    )


def _dry_run(suite: Suite, cases: Sequence[Case], dialect: str, seed: int) -> int:
    preset = next(iter(suite.presets)) if dialect == "auto" else dialect
    told = golden_run(suite, preset, [case.id for case in cases], seed)
    click.echo("\n".join(dry(told, style_for())), color=True)
    return Exit.OK


def _known_dialect(suite: Suite, dialect: str) -> str:
    names = ("auto", *suite.presets)
    if dialect not in names:
        known = ", ".join(names)
        raise click.BadOptionUsage(
            "dialect", f"{suite.title} has no dialect {dialect!r}; there are {known}"
        )
    return dialect


@app.command("list")
@_selection
@click.option("--json", "as_json", is_flag=True, help="With all details, as JSON.")
def list_cases(
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    levels: tuple[Level, ...],
    profile: str,
    protocol: str,
    *,
    as_json: bool,
) -> int:
    """List cases, one id per line."""
    suite = suite_named(protocol)
    everything = "thorough" if profile == "full" else profile
    cases = _chosen(suite, patterns, skip, levels, everything, 0)
    if as_json:
        rows = [entry(case) for case in cases]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=True))
    else:
        click.echo("\n".join(case.id for case in cases))
    return Exit.OK


@app.command("explain")
@click.argument("case_id", metavar="ID")
def explain_case(case_id: str) -> int:
    """Show what a case checks, the clause it is based on, and the broken servers that fail it."""
    found = case_by_id(case_id)
    if found is None:
        raise NothingSelectedError(
            f"there is no case {case_id!r}; 'lance-conformance list' shows all of them"
        )
    click.echo("\n".join(explain(*found, style_for())), color=True)
    return Exit.OK


@app.command("selftest")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Order in which the cases run (0: their own); chooses the sample.")  # fmt: skip
@click.option("--sample", type=click.IntRange(1), default=1, metavar="N",
              help="Run one of N parts of the mutants; N seeds in a row run all of "
                   "them.")  # fmt: skip
@click.option(
    "--update",
    is_flag=True,
    help="Replace the committed kill matrix by the present one, if all other checks pass.",
)
@click.option("--whole", is_flag=True, help="Run every mutant with every case.")
@click.option("--again", multiple=True, metavar="GLOB",
              help="Run mutants and cases with these names as if they were new.")  # fmt: skip
@click.option("--protocol", "protocols", type=click.Choice(SUITES), multiple=True,
              help="Test only this suite; the default is all of them.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show every fault.")
def selftest_command(
    seed: int, protocols: tuple[str, ...], *, update: bool, verbose: bool, **scope: Any
) -> int:
    """Test the kit: golden servers pass, broken ones fail, and null servers pass nothing."""
    from lance_conformance.engine.selftest import gates, matrix, selftest  # noqa: PLC0415 - slow to load

    if scope["sample"] > 1 and (update or scope["whole"] or scope["again"]):
        raise click.UsageError("--sample goes with none of --update, --whole and --again")
    suites = [suite_named(name) for name in protocols or SUITES]
    progress = Progress("on trial")
    outcomes = selftest.selftest(suites, seed, progress.update, update=update, **scope)
    progress.clear()
    for suite, outcome in zip(suites, outcomes, strict=True):
        click.echo(f"{suite.title}\n{gates.report(outcome.gates, verbose=verbose)}")
        if scope["sample"] > 1:
            click.echo(
                f"a sample: {outcome.asked} of {outcome.mutants} mutants were asked, the others "
                "count as committed; again: lance-conformance selftest "
                f"--protocol {suite.name} --sample {scope['sample']} --seed {seed}"
            )
        if update and outcome.passed:
            click.echo(f"written: {matrix.write(suite, outcome.matrix)}")
    passed = all(outcome.passed for outcome in outcomes)
    click.echo("the kit can be trusted" if passed else "the kit must not be trusted")
    return Exit.OK if passed else Exit.NONCONFORMING


app.add_command(client)
app.add_command(init)
app.add_command(report)
app.add_command(diff)
app.add_command(coverage)
app.add_command(matrix)
app.add_command(baseline)


@app.command("replay", params=replay.params, help=replay.help)
@click.pass_context
def replay_command(context: click.Context, /, **options: Any) -> int:
    """Run cases again and report as usual."""
    ended: Ended = context.invoke(replay, **options)
    tell(ended, verbose=True, quiet=False)
    return ended.code


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
    except (NothingSelectedError, PreflightError, RunFileError, BaselineError, OSError) as problem:
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
