"""A broker's server as a child process."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import IO

from bench.brokers.broker import located


@contextmanager
def running(command: Sequence[str], ready: str) -> Iterator[int]:
    """Run a server until the block ends, and yield its process id.

    Args:
        command: program, by its name, and arguments.
        ready: part of the line that it logs once it accepts connections.

    Raises:
        OSError: it is not there, or cannot be started.
        RuntimeError: it ended before it was ready; the message is what it logged.
    """
    program, *arguments = command
    with subprocess.Popen(
        [located(program) or program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        # Takes away what it logs once it runs, so that it never waits for a full pipe.
        rest = Thread(target=process.stdout.read)
        try:
            _await(process.stdout, ready, program)
            rest.start()
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)
            if rest.is_alive():
                rest.join()


def _await(log: IO[str], ready: str, program: str) -> None:
    logged = []
    for line in log:
        if ready in line:
            return
        logged.append(line)
    raise RuntimeError(f"{program} did not start: {''.join(logged)}")
