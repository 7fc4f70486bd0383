"""One run from the first connection to the last line of the report."""

import asyncio
import datetime as dt
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from lance_conformance.engine.access import Access
from lance_conformance.engine.conditions import USUAL_SEED, Conditions, Target
from lance_conformance.engine.registry import Case
from lance_conformance.engine.report.formats.jsonl import RunFile
from lance_conformance.engine.report.formats.junit import junit
from lance_conformance.engine.report.progress import Progress
from lance_conformance.engine.report.run import Run
from lance_conformance.engine.restarting import by_command
from lance_conformance.engine.run.baseline import Baseline, KnownFailure
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Exit, Result, exit_code
from lance_conformance.engine.suites import PROTOCOLS, suite_named


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line.

    Attributes:
        target: Where the server listens.
        cases: The cases, in the order in which to ask them.
        protocol: The name of the suite that the cases are of.
        dialect: ``auto`` or a preset.
        profile: ``quick``, ``full`` or ``thorough``, for the report.
        timeout_scale: Stretches every budget.
        jobs: Cases asked at a time.
        seed: Source of record values and order.
        prefix: Beginning of the names of the kit's topics.
        strict: SHOULD and FLAKY count as failures.
        jsonl: Where to write the run file.
        junit: Where to write JUnit XML.
        baseline: What is known to be wrong.
        access: How the kit gets in.
        read_only: Nothing may be sent that could change something.
        capabilities: What the target is held to, whatever it was found to do.
        without: What is left out.
        restart_cmd: The command that restarts the target.
        failover_cmd: The same, where the second target is asked afterwards.
        second_target: Another node of its cluster.
        third_target: One more.
        coordinator: Where consumer groups are coordinated.
    """

    target: Target
    cases: Sequence[Case]
    protocol: str = PROTOCOLS[0]
    dialect: str = "auto"
    profile: str = "full"
    timeout_scale: float = 1.0
    jobs: int = 6
    seed: int = USUAL_SEED
    prefix: str = "lance-conformance"
    strict: bool = False
    jsonl: Path | None = None
    junit: Path | None = None
    baseline: Mapping[str, KnownFailure] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    read_only: bool = False
    capabilities: Collection[str] = ()
    without: Collection[str] = ()
    restart_cmd: str | None = None
    failover_cmd: str | None = None
    second_target: Target | None = None
    third_target: Target | None = None
    coordinator: Target | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over.

    Attributes:
        run: What it was about.
        results: What the cases found, in their order; all there are, if it was interrupted.
        code: How it ends.
        seconds: How long it took.
        stale: What is wrong with the baseline, in words.
    """

    run: Run
    results: Sequence[Result]
    code: Exit
    seconds: float
    stale: Sequence[str] = ()


def run_session(options: Options) -> Ended:
    """Probe the target, ask it all cases, and write the files that were asked for.

    Raises:
        PreflightError: Nothing can be proven about this target.
        OSError: A file that was asked for cannot be written.
    """
    with ExitStack() as files:
        run_file = None
        if options.jsonl is not None:
            stream = files.enter_context(options.jsonl.open("w", encoding="utf-8"))
            run_file = RunFile(stream)
        if options.junit is not None:
            options.junit.touch()
        ended = asyncio.run(_session(options, run_file), debug=False)
        if run_file is not None:
            run_file.footer(ended.run, ended.results, ended.code, ended.seconds)
        if options.junit is not None:
            text = junit(ended.results, strict=options.strict)
            options.junit.write_text(text, encoding="utf-8")
    return ended


async def _session(options: Options, run_file: RunFile | None) -> Ended:
    try:
        return await _asked(options, run_file)
    finally:
        await suite_named(options.protocol).leave(options.target)


async def _asked(options: Options, run_file: RunFile | None) -> Ended:
    began = monotonic()
    stop_on_signals()
    run = await _begin(options)
    if run_file is not None:
        run_file.header(run)
    told: list[Result] = []
    baseline = Baseline(options.baseline, dt.datetime.now(dt.UTC).date())
    progress = Progress("asking")

    def on_result(found: Result) -> None:
        result = baseline.apply(found)
        told.append(result)
        if run_file is not None:
            run_file.case(result)
        progress.update(len(told), len(options.cases), result.case.id)

    suite, code = suite_named(options.protocol), Exit.INTERRUPTED
    with suppress(asyncio.CancelledError):
        await suite.start(run.conditions)
        await ask_all(options.cases, run.conditions, jobs=options.jobs, on_result=on_result)
        code = exit_code(told, strict=options.strict, stale=bool(baseline.stale))
    with suppress(asyncio.CancelledError):  # of a second signal
        await suite.finish(run.conditions)
    progress.clear()
    order = {case.id: place for place, case in enumerate(options.cases)}
    results = sorted(told, key=lambda result: order[result.case.id])
    return Ended(run, results, code, monotonic() - began, baseline.stale)


def _capabilities(options: Options) -> Iterator[str]:
    yield from options.capabilities
    if options.restart_cmd or options.failover_cmd:
        yield "restart"
    if options.second_target is not None:
        yield "second-target"
    if options.coordinator is not None:
        yield "groups"


async def _begin(options: Options) -> Run:
    suite = suite_named(options.protocol)
    pinned = options.dialect in suite.presets
    command = options.failover_cmd or options.restart_cmd
    demanded = suite.presets[options.dialect] if pinned else next(iter(suite.presets.values()))
    base = Conditions(
        options.target,
        demanded,
        demanded,
        pinned=pinned,
        prefix=options.prefix,
        seed=options.seed,
        access=options.access,
        read_only=options.read_only,
        capabilities=frozenset(_capabilities(options)),
        without=frozenset(options.without),
        restart=by_command(command) if command else None,
        fails_over=options.failover_cmd is not None,
        second=options.second_target,
        third=options.third_target,
        coordinator=options.coordinator,
    )
    conditions, axes = await suite.preflight(base, options.timeout_scale)
    return Run(
        conditions=replace(conditions, demanded=demanded),
        axes=axes,
        profile=options.profile,
        dialect_asked=options.dialect,
        selected=len(options.cases),
        strict=options.strict,
        protocol=suite.name,
    )


def stop_on_signals() -> None:
    """End the run in order on the first SIGINT or SIGTERM: topics removed, footer written."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(RuntimeError, ValueError):  # not on the main thread
                loop.add_signal_handler(number, task.cancel)
