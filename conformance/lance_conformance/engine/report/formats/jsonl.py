"""The run file: a header, one line a case, a footer. It is written as the run goes on.

A file without a footer is of a run that died; a reader must say so.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any, TextIO

from lance_conformance.engine.report.run import Run, problem
from lance_conformance.engine.run.verdict import Exit, Result
from lance_conformance.engine.transcript import Chunk


class RunFile:
    """Writes one run file.

    Args:
        stream: Where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def header(self, run: Run) -> None:
        """Begin."""
        self._line({"type": "header", "schema": 1, **run.facts()})

    def case(self, result: Result) -> None:
        """Add one case, with every byte of its conversation."""
        chunks = result.transcript.chunks if result.transcript else []
        self._line(
            {
                "type": "case",
                **problem(result),
                "title": result.case.title,
                "section": result.case.clause.section,
                "basis": result.case.clause.basis.value,
                "register": list(result.case.clause.register),
                "expected": list(result.expected),
                "received": result.received,
                "connection": result.connection,
                "seconds": round(result.seconds, 6),
                "retried": result.retried,
                "transcript": [_chunk(chunk) for chunk in chunks],
            }
        )

    def footer(self, run: Run, results: Sequence[Result], code: Exit, seconds: float) -> None:
        """End; the run is complete, or was interrupted and says so."""
        summary = run.summary(results, code, seconds)
        keys = ("exit_code", "verdict", "totals", "levels", "seconds")
        self._line(
            {
                "type": "footer",
                "interrupted": code is Exit.INTERRUPTED,
                "cases": len(results),
                **{key: summary[key] for key in keys},
            }
        )

    def _line(self, row: dict[str, Any]) -> None:
        self._stream.write(json.dumps(row, ensure_ascii=True) + "\n")
        self._stream.flush()


def _chunk(chunk: Chunk) -> dict[str, Any]:
    row: dict[str, Any] = {
        "at": round(chunk.at, 6),
        "connection": chunk.connection,
        "direction": chunk.direction,
    }
    if chunk.data:
        row["data"] = base64.b64encode(chunk.data).decode()
    if chunk.note:
        row["note"] = chunk.note
    if chunk.fault:
        row["fault"] = chunk.fault
    return row
