"""The container that every family of vectors shares."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

Test = dict[str, Any]
Note = dict[str, Any]

WIDE = frozenset(
    {
        "batch_id",
        "timestamp_ns",
        "start_offset",
        "end_offset",
        "next_offset",
        "high_water_mark",
        "current_max_offset",
        "consumer_id",
        "offset",
        "time_ns",
        "max_age_secs",
    }
)
"""64-bit fields: written as decimal strings, since many JSON readers round large numbers."""


_PROJECT: Final = Path(__file__).resolve().parents[2] / "pyproject.toml"
CORPUS: Final[str] = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"]
"""The release that a file belongs to; the files of one release belong together."""
LWP = {"name": "LWP", "version": "1.0", "revision": "1.2 (2026-02-04)"}


def document(
    family: str,
    header: list[str],
    notes: dict[str, Note],
    groups: list[dict[str, Any]],
    spec: dict[str, str] = LWP,
) -> dict[str, Any]:
    """Return a family's file."""
    return {
        "schema": f"schema/{family}_v1.schema.json",
        "spec": spec,
        "corpus": CORPUS,
        "numberOfTests": sum(len(group["tests"]) for group in groups),
        "header": header,
        "notes": notes,
        "testGroups": groups,
    }


def group(kind: str, tests: Iterable[Test], **facts: Any) -> dict[str, Any]:
    """Return a group of tests that share a dialect, a receiver or a message."""
    source = {"name": "lance-sdk", "version": "1"}
    return {"type": kind, **facts, "source": source, "tests": list(tests)}


def note(bug_type: str, description: str, effect: str, *clauses: str) -> Note:
    """Return what a flag stands for: a mistake, and what comes of it."""
    return {
        "bugType": bug_type,
        "description": description,
        "effect": effect,
        "clauses": list(clauses),
        "seenIn": [],
    }


def shown(values: dict[str, int | bytes | bool], wide: Iterable[str] = WIDE) -> dict[str, Any]:
    """Return field values as JSON: bytes in hexadecimal, 64-bit numbers as strings."""
    return {name: _shown(name, value, frozenset(wide)) for name, value in values.items()}


def _shown(name: str, value: int | bytes | bool, wide: frozenset[str]) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if name in wide else value


def close(reason: str, field: str, offset: int, **more: Any) -> dict[str, Any]:
    """Return the outcome of bytes that end a connection."""
    return {"action": "close", "reason": reason, "field": field, "offset": offset, **more}


def error(code: int, field: str, offset: int) -> dict[str, Any]:
    """Return the outcome of bytes that are answered with an error."""
    return {"action": "error", "code": code, "field": field, "offset": offset}


def reject(reason: str, field: str, offset: int) -> dict[str, Any]:
    """Return the outcome of bytes that a reader does not believe."""
    return {"action": "reject", "reason": reason, "field": field, "offset": offset}


ACCEPT = {"action": "accept"}
