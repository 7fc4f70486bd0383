"""Rejected frames that are kept for people: one line of JSON each."""

import base64
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lance_sdk._io import platform
from lance_sdk.errors import ConfigError
from lance_sdk.journal.files import named
from lance_sdk.journal.rejections import Category, Rejection

NAME: Final = "dead-letters.jsonl"
_LONGEST_LINE: Final = 64 << 20
"""More than the largest frame takes in base64."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A frame that was given up.

    Attributes:
        rejection: why.
        payload: the frame, as it was stored.
    """

    rejection: Rejection
    payload: bytes


class DeadLetterFile:
    """Appends dead letters; each is on disk before its frame counts as dealt with.

    Args:
        folder: where the file stands; it must exist.
        limit: most bytes the file may have.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = folder / NAME
        self._limit = limit

    def __repr__(self) -> str:
        return f"<DeadLetterFile {self.path}>"

    def write(self, rejection: Rejection, payload: bytes) -> None:
        """Append one frame and wait for the disk.

        Raises:
            OSError: the file is at its limit, or the disk refuses.
        """
        line = json.dumps(_as_json(rejection, payload)).encode() + b"\n"
        fd = platform.open_file(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(fd).st_size
            if size + len(line) > self._limit:
                raise OSError(
                    f"{self.path} has reached dead_letter_bytes={self._limit}; move it away"
                )
            torn = size and platform.read_at(fd, 1, size - 1) != b"\n"
            self._append(fd, size, b"\n" + line if torn else line)
        finally:
            os.close(fd)

    def _append(self, fd: int, size: int, data: bytes) -> None:
        try:
            _write_all(fd, data)
            platform.sync(fd)
        except OSError as error:
            with suppress(OSError):  # a torn line that stays is known as such
                os.ftruncate(fd, size)
            raise named(error, self.path) from None


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _as_json(rejection: Rejection, payload: bytes) -> dict[str, Any]:
    return {
        "fsn": rejection.first_fsn,
        "category": rejection.category.value,
        "status": rejection.status,
        "message": rejection.message,
        "table": rejection.table,
        "at": rejection.at,
        "maybe_stored": rejection.maybe_stored,
        "payload": base64.b64encode(payload).decode(),
    }


def read_dead_letters(path: str | os.PathLike[str]) -> Iterator[DeadLetter]:
    """Yield the frames of a dead-letter file; a line that a crash cut short is left out.

    Args:
        path: the file, or the folder that it stands in.

    Raises:
        ConfigError: a line is not a dead letter; it names the line.
        OSError: the file cannot be read.
    """
    file = Path(path)
    if file.is_dir():
        file = file / NAME
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_LONGEST_LINE):
            number += 1
            letter = _parse(line, f"{file}, line {number}")
            if letter is not None:
                yield letter


def _parse(line: bytes, where: str) -> DeadLetter | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None  # its write did not finish, so its frame was not given up
    try:
        rejection = Rejection(
            category=Category(said["category"]),
            message=said["message"],
            maybe_stored=bool(said.get("maybe_stored", False)),
            first_fsn=said["fsn"],
            last_fsn=said["fsn"],
            status=said["status"],
            table=said["table"],
            at=said["at"],
        )
        return DeadLetter(rejection, base64.b64decode(said["payload"], validate=True))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: not a dead letter: {error!r}") from None
