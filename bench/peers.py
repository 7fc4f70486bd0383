"""What the scenarios run against: our server in its own process, and raw limits."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY = re.compile(r"(127\.0\.0\.1):(\d+)")


@contextmanager
def data_directory() -> Iterator[Path]:
    """Yield a fresh directory on the disk that the working directory is on."""
    with tempfile.TemporaryDirectory(prefix="lance-bench-", dir=Path.cwd()) as name:
        yield Path(name)


@contextmanager
def server_process(*options: str) -> Iterator[str]:
    """Run ``lance-server`` in its own process and yield its ``host:port``."""
    with data_directory() as data:
        command = [sys.executable, "-m", "lance_server", "--data-dir", str(data)]
        process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not (found := READY.search(line)):
                raise RuntimeError(f"lance-server did not say where it listens: {line!r}")
            yield found.group()
        finally:
            process.terminate()
            process.wait(30)


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
