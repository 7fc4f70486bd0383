"""The limit: a server of the same design in C, and the load that both servers are given.

Compiled when the scenarios run; without a compiler they are left out, and that is said.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from bench.peers import READY, data_directory
from lance_spec.limits import RECORD_HEADER_SIZE

_HERE = Path(__file__).parent


@cache
def compiler() -> str | None:
    """Return the C compiler, or None when there is none for this processor's instructions."""
    if os.uname().machine != "x86_64":
        return None
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


@contextmanager
def tools() -> Iterator[Path]:
    """Compile both programs and yield the folder that holds them."""
    with tempfile.TemporaryDirectory(prefix="lance-limit-") as name:
        for program in ("server", "load"):
            source, target = _HERE / f"{program}.c", Path(name, program)
            subprocess.run(
                [str(compiler()), "-O2", "-msse4.2", "-pthread", str(source), "-o", str(target)],
                check=True,
            )
        yield Path(name)


@contextmanager
def limit_process(folder: Path) -> Iterator[str]:
    """Run the server in C over files that grow, as ours do, and yield its ``host:port``."""
    with data_directory() as data:
        files = [str(data / "data"), str(data / "sidecar")]
        process = subprocess.Popen(
            [str(folder / "server"), *files], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not (found := READY.search(line)):
                raise RuntimeError(f"the limit server did not say where it listens: {line!r}")
            yield found.group()
        finally:
            process.kill()
            process.wait(30)


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent.

    Attributes:
        frames: how many Ingest frames.
        records: records in each frame.
        size: bytes of each record's value.
        window: frames in flight.
    """

    frames: int
    records: int
    size: int
    window: int

    @property
    def total(self) -> int:
        """Payload bytes of all frames."""
        return self.frames * self.records * (self.size + RECORD_HEADER_SIZE)


def run_load(folder: Path, address: str, load: Load) -> float:
    """Send frames to the default topic until all are acked; return payload bytes a second.

    Args:
        folder: where the compiled programs are.
        address: ``host:port``.
        load: what to send.

    Raises:
        RuntimeError: it failed; the message is what it wrote.
    """
    nonce = int.from_bytes(os.urandom(3), "big") << 40 | 1
    port = re.sub(r".*:", "", address)
    numbers = map(str, (port, *astuple(load), nonce))
    done = subprocess.run(
        [str(folder / "load"), *numbers], check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(
            f"the load on {address} failed with exit code {done.returncode}: {done.stderr.strip()}"
        )
    return load.total / float(done.stdout)
