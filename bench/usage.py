"""What a process costs: processor time and memory, as Linux counts them."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.02
"""Seconds between two looks at a process's memory."""


def cpu_seconds(pid: int) -> float:
    """Return the processor time that all threads of a process have used.

    Raises:
        OSError: there is no such process.
    """
    return time.clock_gettime(
        (~pid << 3) | 2
    )  # the process's clock, as clock_getcpuclockid makes it


def cpu_of_all() -> float:
    """Return the processor time that this process and the children that run have used, in seconds.

    The children of children do not count.
    """
    own = time.process_time()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = entry.read_text().rpartition(")")
            if int(rest.split()[1]) == os.getpid():
                own += cpu_seconds(int(entry.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    return own


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory, in bytes.

    Attributes:
        private: the process's own (``RssAnon``).
        mapped: pages of files that it has mapped (``RssFile``), which the system can take back.
    """

    private: int
    mapped: int


def memory(pid: int) -> Memory:
    """Return a process's resident memory.

    Raises:
        OSError: there is no such process.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    figures = dict(line.split(":", 1) for line in lines)
    return Memory(*(int(figures[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile")))


@dataclass(slots=True)
class Use:
    """What a process used meanwhile.

    Attributes:
        seconds: on the clock on the wall.
        cpu: processor time, in seconds.
        memory: the most private memory that was seen, in bytes.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0


@contextmanager
def used(pid: int) -> Iterator[Use]:
    """Watch a process; the figures are there at the end of the block.

    Memory is looked at from a thread, every 20 ms, and at the end.
    """
    use, over = Use(), threading.Event()

    def look() -> None:
        while not over.wait(_EVERY):
            use.memory = max(use.memory, memory(pid).private)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    start, cpu = time.perf_counter(), cpu_seconds(pid)
    try:
        yield use
    finally:
        use.seconds, use.cpu = time.perf_counter() - start, cpu_seconds(pid) - cpu
        over.set()
        watcher.join()
        use.memory = max(use.memory, memory(pid).private)
