"""Outcomes as a table for people and as JSON for programs."""

import statistics
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from bench.harness import Outcome

_STEPS = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome with its ratio, its noise and what is held against a bar."""
    summary = {"ratio": outcome.ratio, "noise": outcome.noise, "judged": outcome.judged}
    return asdict(outcome) | summary | {"seconds": round(outcome.seconds, 1)}


def table(outcomes: list[Outcome]) -> Table:
    """Return a table with a line for each scenario."""
    header = ("scenario", "unit", "ours", "other", "ratio", "min", "max", "±", "bar")
    made = Table(*header, box=box.SIMPLE)
    for outcome in outcomes:
        bar = "-" if outcome.floor is None else f"{outcome.floor:.2f}"
        made.add_row(
            outcome.scenario,
            outcome.unit,
            short(statistics.median(outcome.ours)),
            short(statistics.median(outcome.theirs)),
            f"{outcome.ratio:.2f}",
            f"{min(outcome.ratios):.2f}",
            f"{max(outcome.ratios):.2f}",
            f"{outcome.noise:.0%}" if len(outcome.ratios) > 1 else "one pair",
            bar if outcome.passed else f"{bar} MISSED",
        )
    return made


def notes(outcomes: list[Outcome]) -> str:
    """Say with whom each scenario compares, and how noisy the machine was."""
    return "\n".join(
        f"{outcome.scenario}: against {outcome.other}"
        + (f" ({outcome.disturbed} disturbed pairs taken again)" if outcome.disturbed else "")
        for outcome in outcomes
    )


def short(value: float) -> str:
    """Return a figure with three digits, and G, M or k."""
    for unit, factor in _STEPS:
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g}"
