"""A driver in a process of its own: one JSON object a line in, one a line out."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from lance_conformance.client.driver import (
    Driver,
    DriverDiedError,
    Drivers,
    Maker,
    Request,
    Response,
)
from lance_conformance.client.target import ClientTarget

LONGEST_LINE = 64 * 1024 * 1024
PAUSE = 0.002
"""Seconds between the pieces of an answer that is cut, so that a process reads them apart."""
DROPPED = 1024 * 1024
"""Bytes of output that are read at a time when nobody needs them any more."""
KEPT_OF_STDERR = 20
"""Lines of what a driver says on stderr that are told when it dies."""
START = 30.0
"""Seconds until a driver must answer for the first time; it may have much to load."""
READY = "ready?"
"""An operation that does not exist: whatever a driver answers, it runs."""
FAREWELL = 1.0
"""Seconds that a process gets to end by itself when its input ends."""


class ProcessDriver:
    """One driver process.

    Args:
        process: It, with pipes.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last_id = 0
        self._said: deque[str] = deque(maxlen=KEPT_OF_STDERR)
        self._listener = asyncio.create_task(self._listen())

    def __repr__(self) -> str:
        return f"<ProcessDriver {self._process.pid} operations={self._last_id}>"

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            self._said.append(line.decode(errors="replace").rstrip()[:500])

    async def call(self, request: Request) -> Response:
        """Write one operation and read its answer."""
        self._last_id += 1
        line = json.dumps({"id": self._last_id, **request}).encode() + b"\n"
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(line)
            await stdin.drain()
            answer = await stdout.readline()
        except (OSError, ValueError) as problem:
            raise DriverDiedError(f"the driver cannot be used: {problem}") from problem
        if not answer:
            raise DriverDiedError(await self._last_words())
        return self._read(answer)

    def _read(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            raise DriverDiedError(f"the driver said {line[:200]!r}, which is not JSON") from None
        if not isinstance(answer, dict) or answer.get("id") != self._last_id:
            raise DriverDiedError(
                f"the driver said {line[:200]!r}; expected an object with id {self._last_id}"
            )
        return answer

    async def _last_words(self) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await self._process.wait()
                await self._listener
        code = self._process.returncode
        told = "; it said: " + " | ".join(self._said) if self._said else ""
        return f"the driver ended with exit code {code}{told}"

    async def end(self) -> None:
        """Close its input, and end it if it does not go by itself.

        What it still says is read and dropped: a pipe that nobody reads never ends.
        """
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        dropped = asyncio.create_task(self._drop_output())
        try:
            async with asyncio.timeout(FAREWELL):
                await self._process.wait()
        except TimeoutError:
            _kill(self._process)
            await self._process.wait()
        # A child of the driver may hold its pipe for longer.
        await asyncio.wait([dropped], timeout=FAREWELL)
        dropped.cancel()
        self._listener.cancel()

    async def _drop_output(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(DROPPED):
            pass


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process for good.

    Not by its own method where there is another way: that looks whether the process has ended, and
    takes the exit code away from whoever waits for it.
    """
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.kill(process.pid, signal.SIGKILL)


def client_started_by(command: str) -> ClientTarget:
    """Return the client that a command line starts a driver of."""
    return ClientTarget(line=command, drivers=Drivers(processes(command)), pause=PAUSE)


def processes(command: str) -> Maker:
    """Return what starts drivers.

    Args:
        command: A command line, without a shell.
    """
    words = shlex.split(command)

    async def make() -> Driver:
        return await _started(words)

    return make


async def _started(words: Sequence[str]) -> ProcessDriver:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_LINE
        )
    except OSError as problem:
        raise DriverDiedError(f"cannot start {words[0]!r}: {problem}") from problem
    driver = ProcessDriver(process)
    try:
        async with asyncio.timeout(START):
            await driver.call({"op": READY})
    except TimeoutError:
        await driver.end()
        raise DriverDiedError(f"the driver answered nothing within {START:.0f} s") from None
    except BaseException:  # whatever it was, the process is not left behind
        await driver.end()
        raise
    return driver
