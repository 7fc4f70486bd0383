"""The report for people."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lance_conformance import __version__
from lance_conformance.engine.report.evidence import evidence
from lance_conformance.engine.report.run import MEANINGS, Run, by_area, notable, reproduce
from lance_conformance.engine.report.style import Style
from lance_conformance.engine.run.verdict import UNPROVEN, Exit, Result, Verdict, totals

WORDS = {
    Verdict.PASS: "ok",
    Verdict.FAIL: "failed",
    Verdict.WARN: "warned",
    Verdict.INFO: "noted",
    Verdict.SKIP: "skipped",
    Verdict.BLOCKED: "blocked",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.FLAKY: "flaky",
    Verdict.XFAIL: "known to fail",
    Verdict.ERROR: "kit errors",
}
BRIEF = frozenset({Verdict.BLOCKED, Verdict.INFO, Verdict.XFAIL})
"""Verdicts that get one line each unless more is asked for; they often come in droves."""


def head(run: Run, style: Style) -> Iterator[str]:
    """What is about to be asked of whom."""
    dialect = run.conditions.dialect
    yield (
        f"{style.strong('lance-conformance')} {__version__}   {run.suite.title}   "
        f"target {run.conditions.target}   "
        f"dialect {style.strong(dialect.name)} (asked: {run.dialect_asked})"
    )
    yield style.faint(
        f"{run.suite.in_words(run.axes.facts())} · "
        f"{run.selected} cases, {run.profile} profile · "
        f"{run.conditions.budget * 1000:.0f} ms a case · seed {run.conditions.seed}"
    )


def sections(results: Sequence[Result], style: Style, *, verbose: bool) -> Iterator[str]:
    """One line a section; with `verbose` one line a case below it."""
    areas = by_area(results)
    width = max(map(len, areas), default=0)
    wide = max((len(rows[0].case.heading) for rows in areas.values()), default=0)
    for area, rows in areas.items():
        counts = totals(rows)
        told = "   ".join(
            style.verdict(Verdict(name), f"{count} {WORDS[Verdict(name)]}")
            for name, count in counts.items()
        )
        yield f"  {rows[0].case.heading:<{wide}} {style.faint(area.ljust(width))}  {told}"
        if verbose:
            yield from (_line(result, style) for result in rows)


def _line(result: Result, style: Style) -> str:
    word = style.verdict(result.verdict, f"{result.verdict.value:<12}")
    why = f"  {style.faint(result.message)}" if result.message else ""
    return f"      {word} {result.case.id:<34} {result.seconds * 1000:6.1f} ms{why}"


def problems(
    run: Run, results: Sequence[Result], style: Style, *, verbose: bool, quiet: bool
) -> Iterator[str]:
    """Everything that is not a pass or a skip, the worst with all its evidence."""
    for result in results:
        if not notable(result) or result.not_asked:
            continue
        if quiet or (result.verdict in BRIEF and not verbose):
            yield _one_line(result, style)
        else:
            yield ""
            yield from _in_full(run, result, style)


def _one_line(result: Result, style: Style) -> str:
    clause = result.case.clause
    word = style.verdict(result.verdict, result.verdict.value)
    return f"{word} {result.case.id} [{clause.key}] {result.reason}: {result.message}"


def _in_full(run: Run, result: Result, style: Style) -> Iterator[str]:
    clause = result.case.clause
    word = style.verdict(result.verdict, result.verdict.value)
    register = f", {', '.join(clause.register)}" if clause.register else ""
    yield f"{word}  {style.strong(result.case.id)}   {result.reason}"
    yield f"  rule      {clause.level} {clause.key} ({clause.basis}{register}): {clause.text}"
    yield f"  case      {result.case.title}"
    if result.expected:
        yield f"  expected  {result.expected[0]}"
        yield from (f"        or  {other}" for other in result.expected[1:])
        yield f"  received  {result.received}"
    if result.message and (not result.expected or result.verdict in UNPROVEN):
        yield f"  because   {result.message}"
    yield from evidence(run, result, style)
    yield f"  again     {reproduce(run, result)}"


def not_asked(results: Sequence[Result], style: Style) -> Iterator[str]:
    """Why cases were skipped or not asked: one line a reason, with their count."""
    reasons = Counter(
        (WORDS[result.verdict], result.message)
        for result in results
        if result.verdict is Verdict.SKIP or result.not_asked
    )
    for (word, reason), count in reasons.most_common():
        yield style.faint(f"{count} {word}: {reason}")


def tail(
    run: Run, results: Sequence[Result], code: Exit, seconds: float, style: Style
) -> Iterator[str]:
    """The last two lines: the count and the verdict."""
    told = ", ".join(f"{n} {WORDS[Verdict(v)]}" for v, n in totals(results).items())
    passed = code is Exit.OK
    broken = [r for r in results if r.fails(strict=run.strict)]
    rules = f": {', '.join(sorted({r.case.clause.key for r in broken}))}" if broken else ""
    yield f"{len(results)} cases in {seconds:.2f} s: {told}"
    verdict = Verdict.PASS if passed else Verdict.FAIL
    without = f" (without {', '.join(run.without)})" if run.without else ""
    yield style.verdict(verdict, f"{MEANINGS[code]}{rules}{without}")
