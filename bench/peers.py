"""What the scenarios run against: our server in its own process, and raw limits."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 60.0
READY = re.compile(r"(127\.0\.0\.1):(\d+)")


@contextmanager
def data_directory() -> Iterator[Path]:
    """Yield a fresh directory on the disk that the working directory is on."""
    with tempfile.TemporaryDirectory(prefix="lance-bench-", dir=Path.cwd()) as name:
        yield Path(name)


@dataclass(frozen=True, slots=True)
class Server:
    """A server in its own process.

    Attributes:
        address: ``host:port``.
        pid: the process.
    """

    address: str
    pid: int


@contextmanager
def server_process(*options: str) -> Iterator[str]:
    """Run ``lance-server`` in its own process and yield its ``host:port``."""
    with served(*options) as server:
        yield server.address


@contextmanager
def served(
    *options: str, data: Path | None = None, pure: bool = False, kill: bool = False
) -> Iterator[Server]:
    """Run ``lance-server`` in its own process.

    Args:
        options: further options of its.
        data: its data directory; a fresh one by default.
        pure: without the compiled loops.
        kill: end it as a crash would, so that the next one recovers.
    """
    with ExitStack() as stack:
        folder = data or stack.enter_context(data_directory())
        command = [sys.executable, "-m", "lance_server", "--data-dir", str(folder)]
        listen = ("--listen", "127.0.0.1:0", "--log-level", "warning")
        process = subprocess.Popen(
            [*command, *listen, *options],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(pure=pure),
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not (found := READY.search(line)):
                raise RuntimeError(f"lance-server did not say where it listens: {line!r}")
            yield Server(found.group(), process.pid)
        finally:
            _end(process, kill=kill)
            if process.stdout is not None:
                process.stdout.close()


def _end(process: subprocess.Popen[str], *, kill: bool) -> None:
    """End a server, and do not leave one after that takes too long."""
    (process.kill if kill else process.terminate)()
    try:
        process.wait(_PATIENCE)
    finally:
        process.kill()
        process.wait(_PATIENCE)


def environment(*, pure: bool) -> dict[str, str]:
    """Return the environment for a process with the compiled loops, or without them."""
    kept = {name: value for name, value in os.environ.items() if name != "LANCE_PURE_PYTHON"}
    return kept | {"LANCE_PURE_PYTHON": "1"} if pure else kept


def group_commit(directory: Path, total: int, group: int = 4 << 20) -> None:
    """Append ``total`` bytes to a new file in groups, each made durable: the disk's own limit."""
    block = bytes(group)
    path = directory / f"raw-{os.urandom(4).hex()}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        for _ in range(total // group):
            os.write(handle, block)
            os.fdatasync(handle)
    finally:
        os.close(handle)
        path.unlink()
