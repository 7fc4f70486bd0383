"""What goes wrong at a disk: which call, how, and whether before or after its effect."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

CHANGING: Final = (
    "create", "write", "commit", "sync", "truncate", "rename", "remove", "sync_dir", "make_dir",
)  # fmt: skip
"""Calls that change something, or make it durable."""
READING: Final = ("open", "read_into", "list_dir", "size")
ERRORS: Final = (
    "EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "EFBIG", "EOPNOTSUPP",
)  # fmt: skip
STOPS: Final = ("kill", "power")
"""Instead of an error: the process ends there, or the machine."""
_SUFFIXES: Final = (
    (".tmp", "draft"), (".bak", "backup"), (".lnc", "data"), (".batches", "sidecar"),
    (".window", "window"), (".idx", "index"), (".wal", "wal"),
)  # fmt: skip
_NAMES: Final = {
    "metadata.json": "metadata",
    "catalog.json": "catalog",
    "consumers.json": "consumers",
    "consumers.log": "consumers",
    "clean.json": "clean",
}


def class_of(path: Path) -> str:
    """Return the class of a path: what kind of file it is."""
    name = path.name
    if name in _NAMES:
        return _NAMES[name]
    return next((kind for suffix, kind in _SUFFIXES if name.endswith(suffix)), "folder")


class Echo(NamedTuple):
    """A fault that follows another one.

    What undoes a step is carried out right after the step failed; this is what hits it there.

    Attributes:
        gap: how many calls that change something pass before it.
        error: name of an error number, or one of `STOPS`.
        after: whether the call does its work first.
    """

    gap: int
    error: str
    after: bool = False


@dataclass(slots=True)
class Fault:
    """A fault that is waiting for its call.

    Attributes:
        method: of the storage backend; ``*`` for any that changes something.
        place: class of the path; ``*`` for any.
        nth: how many such calls pass before it.
        error: name of an error number, or one of `STOPS`.
        after: whether the call does its work first and fails then.
        times: how many such calls in a row it hits.
        echoes: faults that follow when it has hit all of them, one after the other.
        fired: how many it hit.
        paths: of the calls that it hit.
    """

    method: str
    place: str
    nth: int
    error: str
    after: bool = False
    times: int = 1
    echoes: tuple[Echo, ...] = ()
    fired: int = 0
    paths: list[Path] = field(default_factory=list)
    struck: bool = False
    """Whether a call failed by it; the end of the process does not count."""

    def meets(self, method: str, path: Path) -> bool:
        """Whether it strikes this call; counts the call."""
        if self.fired >= self.times and self.echoes:
            echo, self.echoes = self.echoes[0], self.echoes[1:]
            self.method = self.place = "*"
            self.nth, self.error, self.after = echo
            self.times = self.fired + 1
        if self.fired >= self.times or not self._is_meant(method, path):
            return False
        if self.nth:
            self.nth -= 1
            return False
        self.fired += 1
        self.paths.append(path)
        self.struck |= self.error not in STOPS
        return True

    def _is_meant(self, method: str, path: Path) -> bool:
        if self.method == "*":
            if method not in CHANGING:
                return False
        elif self.method != method:
            return False
        return self.place in {"*", class_of(path)}

    def as_error(self, path: Path) -> OSError:
        """Return what the call raises."""
        number = getattr(errno, self.error)
        return OSError(number, os.strerror(number), str(path))
