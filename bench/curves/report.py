"""Curves as a table for people and as JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from bench.curves.curve import Measured
from bench.curves.fit import Growth, growth
from bench.report import short

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def growths(measured: Measured) -> dict[str, Growth]:
    """Return how time, processor time and memory grow along a curve."""
    return {
        figure: growth(measured.points, [getattr(each, figure) for each in measured.samples])
        for figure in ("seconds", "cpu", "memory")
    }


def steep(measured: Measured) -> str | None:
    """Return a sentence when a curve ends steeper than it may."""
    allowed = measured.curve.steepest
    found = growths(measured)
    bad = [f"{name} {found[name].end:+.2f}" for name in ("seconds", "cpu")]
    if not any(found[name].steeper_than(allowed) for name in ("seconds", "cpu")):
        return None
    return f"{measured.curve.name} ends with slopes {', '.join(bad)} instead of {allowed:+.1f}"


def as_json(measured: Measured) -> dict[str, Any]:
    """Return a curve's figures and slopes."""
    curve = measured.curve
    return {
        "axis": curve.axis,
        "unit": curve.unit,
        "process": curve.process,
        "steepest": curve.steepest,
        "points": list(measured.points),
        "samples": [asdict(each) for each in measured.samples],
        "slopes": {name: asdict(each) for name, each in growths(measured).items()},
    }


def table(curves: Sequence[Measured]) -> Table:
    """Return a table with a line for each point, and the slopes below."""
    header = ("curve", "at", "time", "of its processor", "private memory")
    made = Table(*header, box=box.SIMPLE)
    for measured in curves:
        curve = measured.curve
        made.add_row(f"[bold]{curve.name}", curve.axis, f"per {curve.unit}", curve.process, "")
        for point, sample in zip(measured.points, measured.samples, strict=True):
            memory = f"{sample.memory / 2**20:.0f} MiB"
            made.add_row("", short(point), duration(sample.seconds), duration(sample.cpu), memory)
        slopes = growths(measured).values()
        made.add_row("", "slope", *(f"{each.whole:+.2f}, end {each.end:+.2f}" for each in slopes))
        made.add_section()
    return made


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
