"""``python -m bench``: measure, print a table, and say which bars are missed.

``python -m bench curves`` measures how costs grow, ``flames`` records where the time goes, and
``plot`` draws what ``--save`` has written down. Everything shares two cores, for which the bars
stand, however many there are; LANCE_BENCH_CORES is another number.
"""

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch

from rich.console import Console

from bench import machine, plots, report, results
from bench.bars import bars, missed
from bench.curves import command as curves
from bench.harness import FULL, QUICK, Outcome, Scenario, measure
from bench.profiles import flames
from bench.progress import told

COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "curves": curves.main,
    "flames": flames.main,
    "plot": plots.main,
}


EVERYTHING = ["*"]
"""The patterns when none is given."""


def main(arguments: list[str]) -> int:
    """Run a command, or else scenarios."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a thousand connections
    machine.confine()
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    return scenarios(arguments)


def scenarios(arguments: list[str]) -> int:
    """Run the chosen scenarios.

    Returns:
        0 when every bar is reached (or none was asked for); 1 otherwise.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    chosen = _chosen(options.patterns, quick=options.quick)
    if not chosen:
        parser.error(f"no scenario matches {' '.join(options.patterns)}; see --list")
    if options.list:
        print(*(scenario.name for scenario in chosen), sep="\n")
        return 0
    path = results.FOLDER / "latest.json"
    figures = (
        results.kept(path, everything=options.patterns == EVERYTHING and not options.quick)
        if options.save
        else {}
    )
    outcomes = []
    for outcome in _measured(chosen, quick=options.quick):
        outcomes.append(outcome)
        figures[outcome.scenario] = report.as_json(outcome)
        if options.save:
            results.save(path, figures)
    _tell(outcomes, json_wanted=options.json)
    problems = missed(outcomes)
    print(*(f"missed: {problem}" for problem in problems), sep="\n", file=sys.stderr)
    return int(options.check and bool(problems))


def _tell(outcomes: list[Outcome], *, json_wanted: bool) -> None:
    if json_wanted:
        figures = {each.scenario: report.as_json(each) for each in outcomes}
        print(json.dumps(figures, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else 130)
        console.print(report.table(outcomes))
        print(report.notes(outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=EVERYTHING, help="scenarios, e.g. 'codec/*'")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer pairs, and of all scenarios those with a bar: some four minutes",
    )
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--save", action="store_true", help="write bench/results/latest.json")
    parser.add_argument("--list", action="store_true", help="only name the scenarios")
    return parser


def _chosen(patterns: list[str], *, quick: bool) -> list[Scenario]:
    if quick:
        os.environ.setdefault("LANCE_BENCH_MB", "72")  # Spark's logs, of two whole segments
    from bench.catalogue import SCENARIOS  # noqa: PLC0415 - heavy, and what it reads is set above

    if quick and patterns == EVERYTHING:
        return [each for each in SCENARIOS if each.name in bars()]
    return [each for each in SCENARIOS if any(fnmatch(each.name, name) for name in patterns)]


def _measured(chosen: list[Scenario], *, quick: bool) -> Iterator[Outcome]:
    effort, floors = QUICK if quick else FULL, bars()
    for scenario in told(chosen, [scenario.name for scenario in chosen]):
        yield measure(scenario, effort, floors.get(scenario.name))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
