"""How much memory a process has, as Linux counts it."""

import re
from dataclasses import dataclass
from pathlib import Path

_FIGURE = re.compile(r"^Rss(Anon|File|Shmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Resident:
    """Resident memory of a process, in bytes.

    Attributes:
        private: its own (``RssAnon`` and ``RssShmem``); this is what a leak makes larger.
        mapped: pages of files that it has mapped (``RssFile``): programs, libraries, data. They
            belong to the page cache, which the system can take back.
    """

    private: int
    mapped: int

    @property
    def total(self) -> int:
        """All of it: what tools show as RSS."""
        return self.private + self.mapped


def parse_status(text: str) -> Resident:
    """Return what the text of ``/proc/PID/status`` says.

    Raises:
        ValueError: a figure is missing, as it is once a process has ended.
    """
    figures = {name: int(size) * 1024 for name, size in _FIGURE.findall(text)}
    if len(figures) != 3:
        raise ValueError("no resident memory in the status of the process: has it ended?")
    return Resident(private=figures["Anon"] + figures["Shmem"], mapped=figures["File"])


def resident(pid: int) -> Resident:
    """Return a process's resident memory.

    Raises:
        OSError: there is no such process.
        ValueError: it has just ended.
    """
    return parse_status(Path(f"/proc/{pid}/status").read_text())
