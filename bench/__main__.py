"""``python -m bench``: measure, print a table, and say which bars are missed."""

import argparse
import json
import statistics
import sys
import tomllib
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from bench import (
    clients,
    codec,
    fetching,
    fluvio,
    journal,
    latency,
    server,
    spark,
    spark_growth,
)
from bench.harness import Outcome, Scenario, measure

SCENARIOS: tuple[Scenario, ...] = (
    *codec.SCENARIOS,
    *clients.SCENARIOS,
    *server.SCENARIOS,
    *fetching.SCENARIOS,
    *latency.SCENARIOS,
    *journal.SCENARIOS,
    *spark.SCENARIOS,
    *(spark_growth.SCENARIOS if spark.SCENARIOS else ()),
    *fluvio.SCENARIOS,
)


def main() -> int:
    """Run the chosen scenarios; 0 when every bar is reached (or none was asked for)."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="scenarios, e.g. 'codec/*'")
    parser.add_argument("--quick", action="store_true", help="3 pairs a scenario instead of 7")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--list", action="store_true", help="only name the scenarios")
    options = parser.parse_args()
    chosen = [s for s in SCENARIOS if any(fnmatch(s.name, p) for p in options.patterns)]
    if not chosen:
        parser.error(f"no scenario matches {' '.join(options.patterns)}; see --list")
    if options.list:
        print(*(scenario.name for scenario in chosen), sep="\n")
        return 0
    pairs, bars = (3 if options.quick else 7), _bars()
    outcomes = [_told(scenario, pairs, bars.get(scenario.name)) for scenario in chosen]
    if options.json:
        print(json.dumps({o.scenario: asdict(o) | {"ratio": o.ratio} for o in outcomes}, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else 120)
        console.print(_table(outcomes))
        print(_notes(outcomes))
    return int(options.check and not all(outcome.passed for outcome in outcomes))


def _bars() -> dict[str, float]:
    """Return the committed bars: the least ratio by scenario."""
    return dict(tomllib.loads(Path(__file__).with_name("bars.toml").read_text())["bars"])


def _told(scenario: Scenario, pairs: int, floor: float | None) -> Outcome:
    print(f"{scenario.name} …", file=sys.stderr)
    return measure(scenario, pairs, floor)


def _table(outcomes: list[Outcome]) -> Table:
    table = Table("scenario", "unit", "ours", "other", "ratio", "min", "max", "bar", box=box.SIMPLE)
    for outcome in outcomes:
        bar = "-" if outcome.floor is None else f"{outcome.floor:.2f}"
        table.add_row(
            outcome.scenario,
            outcome.unit,
            _short(outcome.ours),
            _short(outcome.theirs),
            f"{outcome.ratio:.2f}",
            f"{min(outcome.ratios):.2f}",
            f"{max(outcome.ratios):.2f}",
            bar if outcome.passed else f"{bar} MISSED",
        )
    return table


def _notes(outcomes: list[Outcome]) -> str:
    """Say with whom each scenario compares, and how noisy the machine was."""
    return "\n".join(
        f"{outcome.scenario}: against {outcome.other}"
        + (f" ({outcome.disturbed} disturbed pairs taken again)" if outcome.disturbed else "")
        for outcome in outcomes
    )


def _short(rates: list[float]) -> str:
    value = statistics.median(rates)
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return f"{value / factor:.2f} {unit}"
    return f"{value:.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
