"""Write the page with the results of clients from run files.

python conformance/drivers/results.py PAGE "NAME OF THE CLIENT=RUN FILE" ...
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lance_conformance.engine.report.reading import Told, read_run, transcript
from lance_conformance.engine.suites import suite_named
from lance_conformance.engine.transcript import Chunk
from lance_conformance.wire.frame import HEADER_SIZE

HEAD = """Results of clients
==================

These are the results of :doc:`conformance-client` with this SDK and with published clients.
``conformance/drivers/results.py`` makes this page from run files; the drivers are in the same
folder. A client is checked in each dialect that it speaks. Cases for which a driver has no
operation, and cases that have no meaning in a dialect, are skipped. Below each failing case is the
server's answer with which the client failed, as bytes.

"""
SHOWN = 64
"""Bytes of an answer that are shown."""


def page(runs: Sequence[tuple[str, Told]]) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    yield ""
    yield from _table(("Client", "Dialect", "Pass", "Fail", "Warn", "Skip", "Verdict"), [
        (name, run.header["dialect"], *_counts(run), run.footer["verdict"]) for name, run in runs
    ])  # fmt: skip
    yield from _areas(runs)
    for name, run in runs:
        failed = [case for case in run.cases.values() if case["verdict"] in ("FAIL", "WARN")]
        if failed:
            yield from _problems(f"{name}, {run.header['dialect']}", failed)


def _counts(run: Told) -> tuple[str, ...]:
    return tuple(str(run.footer["totals"].get(v, 0)) for v in ("PASS", "FAIL", "WARN", "SKIP"))


def _areas(runs: Sequence[tuple[str, Told]]) -> Iterator[str]:
    """Passed of asked, area by area."""
    yield from ("Area by area", "------------", "", "Passed cases of those that were asked.", "")
    names = [f"{name}, {run.header['dialect']}" for name, run in runs]
    rows = []
    for area, title in suite_named("lwp-client").areas.items():
        cells = []
        for _, run in runs:
            mine = [c["verdict"] for c in run.cases.values() if c["id"].startswith(f"{area}/")]
            asked = [verdict for verdict in mine if verdict != "SKIP"]
            cells.append(f"{asked.count('PASS')} of {len(asked)}" if asked else "none")
        rows.append((f"{title} (``{area}``)", *cells))
    yield from _table(("Area", *names), rows)


def _problems(title: str, failed: Sequence[dict[str, object]]) -> Iterator[str]:
    yield from (title, "-" * len(title), "")
    for case in failed:
        yield f"``{case['id']}``: {case['verdict']}, {case['level']} {case['clause']}"
        yield f"   {case['title']}"
        yield ""
        yield f"   Found: {_plain(str(case['message']))}"
        yield ""
        answers = list(_last_answers(case))
        if answers:
            yield "   .. code-block:: text"
            yield ""
            yield from (f"      {line}" for line in answers)
            yield ""


def _last_answers(case: dict[str, object]) -> Iterator[str]:
    """The wrong answer, or the last one, and how the connection ended."""
    chunks = transcript(case)
    wrong = [chunk for chunk in chunks if chunk.direction == "sent" and chunk.fault]
    last = wrong[:1] or [chunk for chunk in chunks if chunk.direction == "sent"][-1:]
    for chunk in last:
        yield from _bytes(chunk)
        ends = [c for c in chunks if c.connection == chunk.connection and c.direction == "closed"]
        yield f"closed by the client ({ends[0].note.upper()})" if ends else "stayed open"


def _bytes(chunk: Chunk) -> Iterator[str]:
    yield f"the server sent, on connection {chunk.connection}:"
    for start in range(0, min(len(chunk.data), HEADER_SIZE + SHOWN), 22):
        yield f"{start:04x}  {chunk.data[start : start + 22].hex(' ')}"
    if len(chunk.data) > HEADER_SIZE + SHOWN:
        yield f"... {len(chunk.data) - HEADER_SIZE - SHOWN} more bytes"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in [head, *rows]:
        for place, cell in enumerate(row):
            yield f"   {'* -' if place == 0 else '  -'} {cell}"
    yield ""


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() and c not in "`*|\\_" else " " for c in text)[:300]


def main(arguments: Sequence[str]) -> int:
    """Write the page; return the exit code."""
    place, *named = arguments
    runs = [(name, read_run(Path(file))) for name, _, file in (a.partition("=") for a in named)]
    text = "\n".join(line.rstrip() for line in page(runs)).rstrip() + "\n"
    Path(place).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
