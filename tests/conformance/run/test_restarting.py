"""Restarting the target, and cases that nothing else may run beside."""

import asyncio
import os
import select
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.platforms.systems import needs_posix

from lance_conformance.dialect import SPECIFIED
from lance_conformance.engine.conditions import Conditions, Restart, Target
from lance_conformance.engine.restarting import by_command
from lance_conformance.engine.run.schedule import ask_all
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.server.cases import all_cases
from lance_conformance.server.golden.restartable import Restartable, restart
from lance_conformance.server.golden.server import serving
from lance_conformance.server.golden.specified import Specified

TARGET = Target("127.0.0.1", 1992)


def python(code: str, *arguments: object) -> str:
    """A command of the shell that runs Python."""
    return shlex.join([sys.executable, "-c", code, *map(str, arguments)])


def test_the_command_is_told_which_target(tmp_path: Path) -> None:
    """Host and port stand in the environment of the command."""
    told = tmp_path / "told"
    code = "import os, sys; open(sys.argv[1], 'w').write(os.environ['TARGET_PORT'])"
    asyncio.run(_restart(by_command(python(code, told))))
    assert told.read_text() == "1992"


def test_a_command_that_fails_is_quoted_with_what_it_said() -> None:
    """The exit code and the last words are in the error."""
    command = python("import sys; print('no such unit'); sys.exit(5)")
    with pytest.raises(OSError, match="ended with 5: no such unit"):
        asyncio.run(_restart(by_command(command)))


def test_a_command_may_leave_a_server_behind(tmp_path: Path) -> None:
    """It is over when it has ended, even if what it started keeps its output open."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = f"{python('import sys; open(sys.argv[1]).read()', fifo)} &"

    async def run() -> None:
        async with asyncio.timeout(10):
            await by_command(command)(TARGET)

    asyncio.run(run())
    fifo.write_text("end")  # blocks until the process left behind has it open, and lets it end


@needs_posix("only the command itself is ended there, not what it has started")
def test_a_command_that_hangs_is_ended_at_the_deadline(tmp_path: Path) -> None:
    """Whoever waits for it may give up, and nothing of it is left."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = python("import sys; open(sys.argv[1]).read()", fifo)

    async def run() -> int:
        task = asyncio.create_task(_restart(by_command(command)))
        its_end = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)  # once it reads, it hangs
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return its_end

    its_end = asyncio.run(run())
    try:
        nobody_reads = select.poll()
        nobody_reads.register(its_end, select.POLLERR)
        assert nobody_reads.poll(10_000), "what the command has started still has the pipe open"
    finally:
        os.close(its_end)


async def _restart(how: Restart) -> None:
    await how(TARGET)


def ask(conditions: Conditions, *ids: str) -> tuple[list[Result], list[str]]:
    """Ask a golden server some cases; return the results, and the ids as they were told."""
    told: list[str] = []

    async def run() -> list[Result]:
        async with serving(lambda: Restartable(RULES)) as port:
            there = Conditions(
                Target("127.0.0.1", port),
                SPECIFIED,
                SPECIFIED,
                restart=conditions.restart,
                capabilities=conditions.capabilities,
                restart_timeout=conditions.restart_timeout,
            )
            cases = [case for case in all_cases() if case.id in ids]
            cases.sort(key=lambda case: ids.index(case.id))
            return await ask_all(
                cases, there, jobs=4, on_result=lambda result: told.append(result.case.id)
            )

    return asyncio.run(run()), told


RULES = Specified()
KNOWN = Conditions(TARGET, SPECIFIED, SPECIFIED, restart=restart, restart_timeout=5.0)
IDS = ("log/restart-keeps-batches", "top/create", "log/restart-keeps-topics", "kal/answered")


def able(conditions: Conditions) -> Conditions:
    """The same, for a target that is known to be restartable."""
    return replace(conditions, capabilities=frozenset({"restart"}))


def test_restarts_come_last_and_results_keep_their_order() -> None:
    """What ends all connections is asked when nobody else has any."""
    results, told = ask(able(KNOWN), *IDS)
    assert [result.verdict for result in results] == [Verdict.PASS] * 4
    assert [result.case.id for result in results] == list(IDS)
    assert set(told[:2]) == {"top/create", "kal/answered"}
    assert told[2:] == [IDS[0], IDS[2]]


def test_without_a_command_the_cases_are_skipped_with_the_reason() -> None:
    """A target that cannot be restarted by the kit is asked everything else."""
    results, _ = ask(KNOWN, IDS[0])
    assert results[0].verdict is Verdict.SKIP
    assert "--restart-cmd" in results[0].message


def test_a_target_that_does_not_come_back_blocks_the_case() -> None:
    """A restart that fails proves nothing about what survives it."""

    async def fails(_target: Target) -> None:
        raise OSError("the unit is masked")

    conditions = able(Conditions(TARGET, SPECIFIED, SPECIFIED, restart=fails, restart_timeout=5.0))
    results, _ = ask(conditions, IDS[0])
    assert results[0].verdict is Verdict.BLOCKED
    assert "the unit is masked" in results[0].message
