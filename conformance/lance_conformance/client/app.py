"""The command `client`."""

from pathlib import Path
from typing import Any

import click

from lance_conformance.client.process import client_started_by
from lance_conformance.dialect import PRESETS
from lance_conformance.engine.run.baseline import read_baseline
from lance_conformance.engine.run.select import select, shuffled
from lance_conformance.engine.run.verdict import Exit
from lance_conformance.engine.suites import suite_named
from lance_conformance.output import asking, perform, reporting, selecting
from lance_conformance.session import Options

SUITE = "lwp-client"


@click.command()
@click.option("--exec", "command", metavar="COMMAND",
              help="Command that starts a driver of the client, see the docs.")  # fmt: skip
@click.option("--list", "as_list", is_flag=True, help="List the cases, one id per line.")
@click.option("--dialect", type=click.Choice(["auto", *PRESETS]), default="auto",
              show_default=True, help="Dialect that the client must speak; auto finds out which "
                                      "one it speaks.")  # fmt: skip
@selecting
@asking
@reporting
def client(
    *,
    command: str | None,
    as_list: bool,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    levels: tuple[Any, ...],
    shuffle: bool,
    baseline_file: Path | None,
    **rest: Any,
) -> int:
    """Check a client: start its driver, and be the server to which it connects.

    COMMAND is a program that reads one JSON object per line and answers with one; it wraps the
    client under test in a page or two.
    """
    suite = suite_named(SUITE)
    quick = rest["profile"] == "quick"
    cases = select(
        suite.cases,
        patterns=patterns,
        skip=skip,
        levels=levels,
        quick=quick,
        thorough=rest["profile"] == "thorough",
        seed=rest["seed"],
    )
    if as_list:
        click.echo("\n".join(case.id for case in cases))
        return Exit.OK
    if command is None:
        raise click.UsageError("--exec COMMAND is missing: how is the client's driver started?")
    if shuffle:
        cases = shuffled(cases, rest["seed"])
    files = {name: rest.pop(name) for name in ("html_file", "md_file", "badge_file", "pcap_dir")}
    told = {name: rest.pop(name) for name in ("as_json", "verbose", "quiet")}
    options = Options(
        target=client_started_by(command),
        cases=cases,
        protocol=SUITE,
        baseline=read_baseline(baseline_file, suite) if baseline_file is not None else {},
        **rest,
    )
    return perform(options, **files, **told)
