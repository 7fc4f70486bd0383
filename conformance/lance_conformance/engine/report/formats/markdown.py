"""A run as Markdown, for a pull request or the summary of a build."""

from collections.abc import Iterator

from lance_conformance.engine.report.reading import Told
from lance_conformance.engine.run.verdict import Verdict

_MARKS = {Verdict.FAIL.value: "❌", Verdict.PASS.value: "✅", Verdict.WARN.value: "⚠️"}
_QUIET = (Verdict.PASS.value, Verdict.SKIP.value)


def markdown(run: Told) -> str:
    """Return the run as a Markdown document."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Told) -> Iterator[str]:
    header, footer = run.header, run.footer
    mark = "✅" if footer["exit_code"] == 0 else "❌"
    yield f"## {mark} {run.suite.title} conformance of {_cell(run.title)}"
    yield ""
    yield (
        f"{_cell(footer['verdict'])}. {footer['cases']} cases, {header['profile']} profile, "
        f"in {footer['seconds']:.1f} s, kit {_cell(header['kit'])}."
    )
    yield ""
    yield from _areas(run)
    problems = [case for case in run.cases.values() if case["verdict"] not in _QUIET]
    if problems:
        yield ""
        yield "| | Case | Level | Clause | What was wrong |"
        yield "|---|---|---|---|---|"
        for case in problems:
            told = f"{case['reason']}: {case['message']}"
            cells = (_MARKS.get(case["verdict"], "▫️"), f"`{case['id']}`", case["level"])
            yield f"| {' | '.join(cells)} | {_cell(case['clause'])} | {_cell(told)} |"


def _areas(run: Told) -> Iterator[str]:
    verdicts = [v.value for v in Verdict if any(c["verdict"] == v for c in run.cases.values())]
    yield f"| Area | {' | '.join(verdicts)} |"
    yield f"|---|{'---:|' * len(verdicts)}"
    for area, title in run.suite.areas.items():
        rows = [case["verdict"] for name, case in run.cases.items() if name.startswith(f"{area}/")]
        if rows:
            counts = " | ".join(str(rows.count(verdict) or "") for verdict in verdicts)
            yield f"| {title} | {counts} |"


def _cell(text: object) -> str:
    """Return text that cannot break out of its cell, or out of the document."""
    safe = str(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
    return " ".join(safe.replace("<", "&lt;").split())
