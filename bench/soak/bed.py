"""The three processes of a soak, while they run."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import READY, data_directory
from bench.soak.memory import Resident, resident
from lance_sdk import Client

Process = subprocess.Popen[str]

_ROOT = Path(__file__).parents[2]
_EVERY = 1.0
"""Seconds between two looks."""
_TOPIC = "soak"
_KEPT = 1 << 30
_SEGMENT = 128 << 20
_STOPPED = 120
"""Seconds within which a process must stop."""
DISK_LIMIT = 2 << 30
"""Bytes on the disk that a soak may take."""
_ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}
"""One heap for all threads: the C library gives the free end of no other one back to the system,
and a free end of some MiB is what differs from rest to rest then."""
WINDOW_ENTRIES = 1024
"""Batches in the duplicate window: few enough that it is full before the processes are settled."""


class Bed:
    """The three processes.

    Args:
        folder: where the server's data is.
        server: the server's process.
        producer: the process that sends.
        consumer: the process that reads.

    Attributes:
        disk: the most bytes that were seen on the disk.
    """

    def __init__(
        self, folder: Path, *, server: Process, producer: Process, consumer: Process
    ) -> None:
        self._folder = folder
        self._processes = {"server": server, "producer": producer, "consumer": consumer}
        self.disk = 0

    def watch(self, seconds: float) -> dict[str, list[Resident]]:
        """Look at the processes for so many seconds.

        Raises:
            RuntimeError: a process ended before its time, or the disk was not kept bounded.
        """
        looks: dict[str, list[Resident]] = {name: [] for name in self._processes}
        end = time.monotonic() + seconds
        while True:
            self._check()
            for name, process in self._processes.items():
                looks[name].append(resident(process.pid))
            if (left := end - time.monotonic()) <= 0:
                return looks
            time.sleep(min(_EVERY, left))

    def _check(self) -> None:
        self.disk = max(self.disk, _taken(self._folder))
        if self.disk > DISK_LIMIT:
            raise RuntimeError(f"{self.disk} bytes are on the disk, more than {DISK_LIMIT}")
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise RuntimeError(f"the {name} ended before its time, see above")

    def rest(self, seconds: float) -> dict[str, list[Resident]]:
        """Have all come to rest, look at them for so many seconds, and go on.

        What was on its way is given twice as long to arrive.

        Raises:
            RuntimeError: a process ended instead.
        """
        self._order("producer")
        self.watch(2 * seconds)
        self._order("consumer")
        self._order("server")
        looks = self.watch(seconds)
        for process in self._processes.values():
            print("go", file=process.stdin, flush=True)
        return looks

    def _order(self, name: str) -> None:
        process = self._processes[name]
        print("rest", file=process.stdin, flush=True)
        assert process.stdout is not None
        if process.stdout.readline() != "resting\n":
            raise RuntimeError(f"the {name} does not rest, see above")

    def stop(self) -> tuple[int, int]:
        """Have both clients stop; return how many records were sent and read.

        Raises:
            RuntimeError: a client failed.
        """
        read = self._count("consumer")  # it stops when it reads more, so it comes first
        return self._count("producer"), read

    def _count(self, name: str) -> int:
        output, _ = self._processes[name].communicate(timeout=_STOPPED)
        if self._processes[name].returncode:
            raise RuntimeError(f"the {name} failed, see above")
        return int(output)


@contextmanager
def made() -> Iterator[Bed]:
    """Start the three processes; they are ended, and their data removed, at the end."""
    options = (
        *("--listen", "127.0.0.1:0", "--log-level", "warning"),
        *("--segment-size", str(_SEGMENT), "--upkeep-interval", "1"),
        *("--dedup-entries", str(WINDOW_ENTRIES)),
    )
    with (
        data_directory() as folder,
        _process("serving", "--data-dir", str(folder), *options) as server,
    ):
        address = _address(server)
        with Client(f"lance://{address}") as client:
            client.create_topic(_TOPIC, max_bytes=_KEPT)
        url = f"lance://{address}/{_TOPIC}"
        with (
            _process("clients", "produce", url) as producer,
            _process("clients", "consume", url) as consumer,
        ):
            yield Bed(folder, server=server, producer=producer, consumer=consumer)


def _address(server: Process) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    if not (found := READY.search(line)):
        raise RuntimeError(f"lance-server did not say where it listens: {line!r}")
    return found.group()


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[Process]:
    command = [sys.executable, "-m", f"bench.soak.{module}", *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
        env=os.environ | _ONE_HEAP,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(_STOPPED)


def _taken(folder: Path) -> int:
    """Return the bytes of all files below a folder; some may vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total
