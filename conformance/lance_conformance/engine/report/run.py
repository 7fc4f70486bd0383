"""One run as the reports see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_conformance import __version__
from lance_conformance.engine.access import Access
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.run.verdict import Exit, Result, Verdict, totals
from lance_conformance.engine.suite import PreflightResult, Suite
from lance_conformance.engine.suites import suite_named
from lance_conformance.spec.clauses import Level

MEANINGS = {
    Exit.OK: "conforming: every MUST that was asked is kept",
    Exit.NONCONFORMING: "not conforming",
    Exit.UNPROVEN: "nothing broken, but not every MUST could be proven",
    Exit.STALE: "conforming but for what is known, and the baseline is stale",
    Exit.TARGET_GONE: "the target ended or stopped while it was asked",
    Exit.NOTHING_SELECTED: "nothing proven: every selected case was skipped",
    Exit.KIT_ERROR: "the kit failed; please report this",
    Exit.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run was about.

    Attributes:
        conditions: What the target was held to.
        axes: What it was found to do.
        profile: ``quick`` or ``full``.
        dialect_asked: ``auto`` or the dialect it was held to by name.
        selected: How many cases were selected.
        strict: SHOULD and FLAKY count as failures.
        protocol: The name of the suite that was asked.
    """

    conditions: Conditions
    axes: PreflightResult
    profile: str
    dialect_asked: str
    selected: int
    strict: bool = False
    protocol: str = "lwp"

    @property
    def suite(self) -> Suite:
        """The suite that was asked."""
        return suite_named(self.protocol)

    @property
    def without(self) -> list[str]:
        """What was left out on purpose."""
        return sorted(self.conditions.without)

    def facts(self) -> dict[str, Any]:
        """What goes into the head of every report."""
        dialect = self.conditions.dialect
        return {
            "kit": __version__,
            "protocol": self.protocol,
            "target": str(self.conditions.target),
            "dialect_asked": self.dialect_asked,
            "dialect": dialect.name,
            "axes": self.axes.facts(),
            "budget_seconds": round(self.conditions.budget, 4),
            "profile": self.profile,
            "seed": self.conditions.seed,
            "run_id": self.conditions.run_id,
            **({"without": self.without} if self.without else {}),
            "selected": self.selected,
        }

    def summary(self, results: Sequence[Result], code: Exit, seconds: float) -> dict[str, Any]:
        """What a program wants to know of a run that is over."""
        return {
            **self.facts(),
            "seconds": round(seconds, 3),
            "exit_code": int(code),
            "verdict": MEANINGS[code],
            "totals": totals(results),
            "levels": {level.value: totals(_of_level(results, level)) for level in Level},
            "problems": [problem(result) for result in results if notable(result)],
        }


def _of_level(results: Sequence[Result], level: Level) -> list[Result]:
    return [result for result in results if result.case.level is level]


def notable(result: Result) -> bool:
    """Whether a result is anything but a pass or a skip."""
    return result.verdict not in (Verdict.PASS, Verdict.SKIP)


def problem(result: Result) -> dict[str, Any]:
    """One result in short."""
    clause = result.case.clause
    return {
        "id": result.case.id,
        "verdict": result.verdict.value,
        "level": clause.level.value,
        "clause": clause.key,
        "rule": clause.text,
        "reason": result.reason,
        "message": result.message,
    }


def by_area(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results, area by area, in the order of the areas."""
    areas = results[0].case.among.areas if results else {}
    found = {area: [r for r in results if r.case.area == area] for area in areas}
    return {area: rows for area, rows in found.items() if rows}


def _way_in(access: Access) -> str:
    """The options about getting in; secrets stay out, and files are the reader's own."""
    options = ["--tls --ca FILE"] if access.tls is not None else []
    if access.tls is not None and access.tls.has_certificate:
        options.append("--cert FILE")
    if access.token is not None:
        options.append(f"--token-file FILE --token-mode {access.token_mode}")
    return "".join(f"{option} " for option in options)


def reproduce(run: Run, result: Result) -> str:
    """The command that asks this one case again."""
    return (
        f"lance-conformance {run.suite.command(run.conditions.target)} "
        f"--dialect {run.dialect_asked} {_way_in(run.conditions.access)}"
        f"{''.join(f'--without {name} ' for name in run.without)}"
        f"--seed {run.conditions.seed} {result.case.id}"
    )
