"""``python -m bench curves``: measure how costs grow."""

import argparse
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatch

from rich.console import Console

from bench import results
from bench.curves import report
from bench.curves.bed import Bed
from bench.curves.curve import Curve, Measured, measure
from bench.progress import told

FILE = results.FOLDER / "curves.json"
_ROUNDS = 3


def main(arguments: list[str]) -> int:
    """Measure the chosen curves and print them.

    Returns:
        1 when ``--check`` was given and a cost grows faster than it may; 0 otherwise.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    from bench.curves.catalogue import CURVES  # noqa: PLC0415 - only this command needs them

    chosen = [each for each in CURVES if any(fnmatch(each.name, name) for name in options.names)]
    if not chosen:
        parser.error(f"no curve matches {' '.join(options.names)}; see --list")
    if options.list:
        print(*(curve.name for curve in chosen), sep="\n")
        return 0
    figures = results.kept(FILE, everything=options.names == ["*"]) if options.save else {}
    measured = []
    for each in _measured(chosen, quick=options.quick, large=options.large):
        measured.append(each)
        figures[each.curve.name] = report.as_json(each)
        if options.save:
            results.save(FILE, figures)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else 130).print(report.table(measured))
    problems = [problem for each in measured if (problem := report.steep(each))]
    print(*problems, sep="\n", file=sys.stderr)
    return int(options.check and bool(problems))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench curves", description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], help="curves, e.g. 'ingest/*'")
    parser.add_argument("--quick", action="store_true", help="once, and fewer points")
    parser.add_argument("--large", action="store_true", help="logs of up to 10 GB; 30 GB of disk")
    parser.add_argument("--check", action="store_true", help="exit 1 when a cost grows too fast")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--save", action="store_true", help="write bench/results/curves.json")
    parser.add_argument("--list", action="store_true", help="only name the curves")
    return parser


def _measured(chosen: list[Curve], *, quick: bool, large: bool) -> Iterator[Measured]:
    rounds = 1 if quick else _ROUNDS
    with Bed() as bed:
        for curve in told(chosen, [curve.name for curve in chosen]):
            yield measure(curve, _points(curve, quick=quick, large=large), rounds, bed)


def _points(curve: Curve, *, quick: bool, large: bool) -> tuple[int, ...]:
    points = curve.points + (curve.large if large else ())
    return (*points[:-1:2], points[-1]) if quick else points
