"""Restarting the target with a command of its operator's."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from tempfile import TemporaryFile

from lance_conformance.engine.conditions import Restart, Target

SHOWN = 300
"""Characters of what a failed command printed that are told."""


async def pause(seconds: float) -> None:
    """Wait, for a target that is coming up to come up."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


def by_command(command: str) -> Restart:
    """How to restart a target: with a command of the shell.

    The command ends the target, however roughly, and starts it again on the same data and the same
    port. It may return before the target serves; the target must be gone by then.

    Args:
        command: What to run. ``TARGET_HOST`` and ``TARGET_PORT`` in its environment say which.
    """

    async def restart(target: Target) -> None:
        with TemporaryFile() as said:  # no pipe: the target may keep it open for ever
            process = await asyncio.create_subprocess_shell(
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, "TARGET_HOST": target.host, "TARGET_PORT": str(target.port)},
                start_new_session=True,
            )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                _kill(process)
                await process.wait()
                raise
            if code:
                said.seek(0)
                words = said.read().decode(errors="replace").strip()[-SHOWN:]
                raise OSError(f"{command!r} ended with {code}: {words}")

    return restart


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the command and what it has started."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
