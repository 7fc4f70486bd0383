"""Known differences of a program from the vectors: a list that must stay true."""

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Self


class KnownError(ValueError):
    """A file of known differences that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """One known difference.

    Attributes:
        tests: the ids of the tests, as a pattern of the shell.
        why: what the program does instead, in a sentence.
    """

    tests: str
    why: str

    def covers(self, test_id: str) -> bool:
        """Whether the difference is expected in a test."""
        return fnmatchcase(test_id, self.tests)

    @classmethod
    def of(cls, entry: object) -> Self:
        """Return an entry of the file.

        Raises:
            KnownError: it is not an object with the two texts.
        """
        if isinstance(entry, dict) and set(entry) == {"tests", "why"}:
            tests, why = entry["tests"], entry["why"]
            if isinstance(tests, str) and isinstance(why, str) and why:
                return cls(tests, why)
        raise KnownError(f'expected {{"tests": "pattern", "why": "sentence"}}, got {entry!r:.80}')


def load_known(path: Path) -> list[KnownDifference]:
    """Return the differences that a file lists.

    Raises:
        KnownError: the file cannot be read, or is not a list of differences.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise KnownError(f"{path}: {error}") from None
    if not isinstance(entries, list):
        raise KnownError(f"{path}: expected a list of differences")
    return [KnownDifference.of(each) for each in entries]
