"""Run files read back: what `jsonl` wrote, judged before it is believed."""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_conformance.engine.suite import Suite
from lance_conformance.engine.suites import PROTOCOLS, SUITES, suite_named
from lance_conformance.engine.transcript import Chunk

SCHEMA = 1


class RunFileError(ValueError):
    """A file is not a run file, or not a whole one; the message says where."""


@dataclass(frozen=True, slots=True)
class Told:
    """A run as its file tells it.

    Attributes:
        header: what it was about.
        cases: what each case came to, by id, in the order in which they ended.
        footer: how it ended.
    """

    header: Mapping[str, Any]
    cases: Mapping[str, Mapping[str, Any]]
    footer: Mapping[str, Any]

    @property
    def suite(self) -> Suite:
        """The suite that was asked; run files did not always name it."""
        return suite_named(self.header.get("protocol", PROTOCOLS[0]))

    @property
    def title(self) -> str:
        """Target and dialect in a few words."""
        return f"{self.header['target']} ({self.header['dialect']})"


def read_run(path: Path) -> Told:
    """Read a run file.

    Raises:
        RunFileError: it is not a run file, or the run that wrote it died before its end.
        OSError: it cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as stream:
        return read_lines(stream, str(path))


def read_lines(lines: Iterable[str], path: str) -> Told:
    """Read the lines of a run file.

    Args:
        lines: its lines.
        path: how it is called in messages.

    Raises:
        RunFileError: it is not a run file, or the run that wrote it died before its end.
    """
    header: Mapping[str, Any] | None = None
    footer: Mapping[str, Any] | None = None
    cases: dict[str, Mapping[str, Any]] = {}
    for number, row in _rows(lines, path):
        kind = row.get("type")
        place = f"{path}, line {number}"
        if footer is not None:
            raise RunFileError(f"{place}: something follows the footer")
        if header is None:
            header = _judged_header(row, place)
        elif kind == "footer":
            footer = row
        elif kind == "case" and isinstance(row.get("id"), str):
            if row["id"] in cases:
                raise RunFileError(f"{place}: the case {row['id']} appears a second time")
            cases[row["id"]] = row
        else:
            raise RunFileError(f"{place}: expected a case or the footer, found {kind!r}")
    if header is None:
        raise RunFileError(f"{path} is empty; a run writes one with --jsonl")
    if footer is None:
        raise RunFileError(
            f"{path} has no footer: the run died after {len(cases)} cases; run again"
        )
    return Told(header, cases, footer)


def _rows(lines: Iterable[str], path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RunFileError(f"{path}, line {number}: no JSON: {error}") from None
        if not isinstance(row, dict):
            raise RunFileError(f"{path}, line {number}: expected an object")
        yield number, row


def _judged_header(row: dict[str, Any], place: str) -> Mapping[str, Any]:
    if row.get("type") != "header":
        raise RunFileError(f"{place}: expected the header of a run, found {row.get('type')!r}")
    if row.get("schema") != SCHEMA:
        raise RunFileError(
            f"{place}: schema {row.get('schema')!r}; this kit reads {SCHEMA}: "
            "use the kit that wrote it, or run again"
        )
    protocol = row.get("protocol", PROTOCOLS[0])
    if protocol not in SUITES:
        raise RunFileError(
            f"{place}: protocol {protocol!r}; this kit knows {', '.join(SUITES)}: "
            "use the kit that wrote it"
        )
    return row


def transcript(case: Mapping[str, Any]) -> list[Chunk]:
    """Return everything that went over a case's connections.

    Raises:
        RunFileError: it is damaged.
    """
    try:
        return [_chunk(row) for row in case.get("transcript", ())]
    except (KeyError, TypeError, binascii.Error) as error:
        raise RunFileError(f"the transcript of {case['id']} is damaged: {error!r}") from None


def _chunk(row: Mapping[str, Any]) -> Chunk:
    return Chunk(
        at=row["at"],
        connection=row["connection"],
        direction=row["direction"],
        data=base64.b64decode(row.get("data", ""), validate=True),
        note=row.get("note", ""),
        fault=row.get("fault"),
    )
