"""The library that fails, delays and records the calls of a server process, and its rules."""

import errno
import mmap
import os
import shlex
import shutil
import struct
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_SOURCE: Final = Path(__file__).with_name("faults.c")
_HEAD: Final = struct.Struct("<QQ")
_RULE: Final = struct.Struct("<8L96s")
MOST_RULES: Final = 16
ALWAYS: Final = 2**31


class Call(IntEnum):
    """A call of the operating system, by what it does to files."""

    OPEN = 0
    CREATE = 1
    WRITE = 2
    DURABLE_WRITE = 3
    SYNC = 4
    TRUNCATE = 5
    RENAME = 6
    REMOVE = 7
    MKDIR = 8
    SYNC_DIR = 9


CHANGES: Final = tuple(each for each in Call if each is not Call.OPEN)


class When(IntEnum):
    """Whether a call that fails has its effect before."""

    BEFORE = 1
    AFTER = 2
    SHORT = 3


class Rule(NamedTuple):
    """Which calls fail, or are late, and how.

    Attributes:
        calls: the calls.
        path: what the path of the file has in it.
        error: what they fail with; 0: they are only late.
        when: before or after their effect, or after half of it.
        skip: so many of them pass first.
        count: so many are hit then.
        delay: seconds before each of those.
    """

    calls: tuple[Call, ...]
    path: str = ""
    error: int = errno.EIO
    when: When = When.BEFORE
    skip: int = 0
    count: int = ALWAYS
    delay: float = 0.0


class Control:
    """What a process with the library is told, and what it counts.

    Args:
        path: a file that does not exist yet.
        root: the folder whose files it is about.
        trace: the file to which changes are recorded; it exists, or None.
    """

    def __init__(self, path: Path, root: Path, trace: Path | None = None) -> None:
        size = _HEAD.size + MOST_RULES * _RULE.size
        path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size)
        self.path, self.root, self.trace = path, root, trace

    @property
    def events(self) -> int:
        """How many changes were recorded."""
        return int(_HEAD.unpack_from(self._memory)[0])

    def set_rules(self, *rules: Rule) -> None:
        """Replace all rules, and forget what became of them."""
        for number in range(MOST_RULES):  # off before it changes
            struct.pack_into("<L", self._memory, _HEAD.size + number * _RULE.size, 0)
        for number, rule in enumerate(rules):
            place = _HEAD.size + number * _RULE.size
            calls = sum(1 << call for call in rule.calls)
            delay = int(rule.delay * 1e6)
            facts = (calls, rule.error, rule.skip, rule.count, delay, 0, 0, rule.path.encode())
            _RULE.pack_into(self._memory, place, 0, *facts)
            struct.pack_into("<L", self._memory, place, rule.when)

    def hits(self) -> list[int]:
        """Return how many calls each rule hit."""
        places = range(_HEAD.size, _HEAD.size + MOST_RULES * _RULE.size, _RULE.size)
        return [_RULE.unpack_from(self._memory, place)[7] for place in places]

    def environment(self, library: Path) -> dict[str, str]:
        """Return the environment of a process that is to be subject to the rules."""
        told = {
            "LD_PRELOAD": str(library),
            "LANCE_FAULT_ROOT": str(self.root),
            "LANCE_FAULT_CONTROL": str(self.path),
        }
        if self.trace is not None:
            told["LANCE_FAULT_TRACE"] = str(self.trace)
        return {**os.environ, **told}


def build_library(folder: Path) -> Path:
    """Compile the library; skips the test where there is no compiler or another system."""
    if os.uname().sysname != "Linux":
        pytest.skip("the library stands between a process and the C library of Linux")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"there is no C compiler here ({compiler[0]})")
    target = folder / "faults.so"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    libraries = ["-ldl", "-lpthread"]
    command = [*compiler, *flags, str(_SOURCE), "-o", str(target), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@contextmanager
def in_memory(size: int, folder: Path) -> Iterator[Path]:
    """Mount a file system of so many bytes in a mount namespace of its own.

    Nobody else sees it, and it goes with the process that holds the namespace.

    Args:
        size: its bytes.
        folder: where, in that namespace.

    Yields:
        The path by which this process reaches it.
    """
    private = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    script = f"mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(folder))} && echo ok && cat"
    with subprocess.Popen(
        [*private, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None, "it was asked for"
        if holder.stdout.readline() != "ok\n":
            _, problem = holder.communicate()
            pytest.skip(f"no file system can be mounted here: {problem.strip()}")
        try:
            yield Path(f"/proc/{holder.pid}/root{folder}")
        finally:
            holder.communicate("")
