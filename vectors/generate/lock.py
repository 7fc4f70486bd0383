"""Ids that were published: a test keeps its bytes for as long as it has its id.

``ids.lock`` has a line for each test, sorted by id: the id and a digest of what it asks. New ids
are added by the generator; a line never changes, and a test that is withdrawn stays in the list.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

ASKED = ("bytes", "version", "crc", "cuts")
"""What a test asks; its comment, clause and flags may be worded better."""
WITHDRAWN = "withdrawn"
"""Stands after the digest of a test that is in no file any more."""

Lines = dict[str, str]


def digests(documents: dict[str, dict[str, Any]]) -> Lines:
    """Return the digest of every test by its id."""
    return {
        test["id"]: _digest(family, test)
        for family, document in documents.items()
        for group in document["testGroups"]
        for test in group["tests"]
    }


def _digest(family: str, test: dict[str, Any]) -> str:
    asked = [family, *(test.get(name) for name in ASKED)]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def read(path: Path) -> Lines:
    """Return the lines of the list by id; none where there is no list yet."""
    if not path.is_file():
        return {}
    split = (line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return {test_id: digest for test_id, digest in split}  # noqa: C416  # the pairs are lists


def problems(published: Lines, current: Lines) -> list[str]:
    """Return what the current tests do to published ones, one sentence each."""
    found = []
    for test_id, line in published.items():
        digest, _, state = line.partition(" ")
        if state == WITHDRAWN and test_id in current:
            found.append(f"{test_id} was withdrawn; an id is not used again")
        elif state != WITHDRAWN and test_id not in current:
            found.append(f"{test_id} is gone; mark it as withdrawn in ids.lock")
        elif state != WITHDRAWN and current[test_id] != digest:
            found.append(f"{test_id} has other bytes than before; give the new test a new id")
    return found


def text(published: Lines, current: Lines) -> str:
    """Return the list with the tests that are new."""
    lines = current | published
    return "".join(f"{test_id} {lines[test_id]}\n" for test_id in sorted(lines))
