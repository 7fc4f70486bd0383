"""The golden server's answers to the same cases: what good looks like."""

import asyncio
import io
from collections.abc import Collection
from dataclasses import replace

from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.report.formats.jsonl import RunFile
from lance_conformance.engine.report.reading import Told, read_lines
from lance_conformance.engine.report.run import Run
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.select import NothingSelectedError
from lance_conformance.engine.run.verdict import exit_code
from lance_conformance.engine.suite import PreflightResult, Suite


def golden_run(suite: Suite, dialect: str, only: Collection[str], seed: int) -> Told:
    """Put cases to the golden server of a dialect, in this process.

    Args:
        suite: what the cases are of.
        dialect: one of the suite's presets.
        only: ids of the cases; ids of cases that there are no more are passed.
        seed: the same that the target was asked with.
    """
    return asyncio.run(_golden_run(suite, dialect, only, seed), debug=False)


async def _golden_run(suite: Suite, dialect: str, only: Collection[str], seed: int) -> Told:
    cases = [case for case in suite.cases if case.id in only]
    stream = io.StringIO()
    writing = RunFile(stream)
    run = None
    results = []
    for setting, chosen in suite.by_setting(cases).items():
        async with suite.proof().golden(dialect, setting)() as port:
            conditions, axes = await _conditions(suite, dialect, setting, port, seed)
            if run is None:
                run = Run(conditions, axes, "full", dialect, len(cases), protocol=suite.name)
                writing.header(run)
            needs = frozenset(need for case in chosen for need in case.needs)
            conditions = replace(conditions, capabilities=needs)
            results += await ask_all(chosen, conditions, jobs=4, on_result=writing.case)
    if run is None:
        raise NothingSelectedError("none of these cases is a case of the kit any more")
    writing.footer(run, results, exit_code(results, strict=False), 0.0)
    return read_lines(stream.getvalue().splitlines(), "the golden server's run")


async def _conditions(
    suite: Suite, dialect: str, setting: str, port: int, seed: int
) -> tuple[Conditions, PreflightResult]:
    preset = suite.presets[dialect]
    base = Conditions(Target("127.0.0.1", port), preset, preset, seed=seed)
    found, axes = await suite.preflight(suite.proof().equipped(base, setting))
    return replace(found, demanded=preset), axes
