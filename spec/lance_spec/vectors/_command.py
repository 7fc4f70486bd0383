"""``vectors list`` and ``vectors check``: what they take, what they print, their exit codes."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lance_spec import vectors
from lance_spec.vectors import FAMILIES, load
from lance_spec.vectors._check import check
from lance_spec.vectors._exec import Report, Selection, facts, run
from lance_spec.vectors._known import KnownError, load_known
from lance_spec.vectors._process import AdapterError

_SHOWN: Final = 50
_STEP: Final = 25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a parser the actions ``list`` and ``check``; each sets ``run``."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="list families, groups and how many tests they have")
    checking = actions.add_parser(
        "check", help="check that they are well formed, or run them against a program"
    )
    for each in (listing, checking):
        each.add_argument("--family", action="append", default=[], help="only this family")
        each.add_argument("--json", action="store_true", help="print JSON")
    checking.add_argument(
        "--exec", dest="program", metavar="CMD", help="run them against this adapter"
    )
    checking.add_argument("--group", action="append", default=[], help="only such groups (pattern)")
    checking.add_argument("--id", action="append", default=[], help="only such ids (pattern)")
    checking.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="FAMILY",
        help="fail unless the adapter declares this family and skips none of its tests; "
        "'all' means every selected family",
    )
    checking.add_argument("--known", type=Path, help="JSON file of known differences")
    checking.add_argument(
        "--timeout", type=_seconds, default=10.0, help="seconds for one answer (default 10)"
    )
    listing.set_defaults(run=_list)
    checking.set_defaults(run=_check)


def main(arguments: Sequence[str] | None = None, prog: str = "python -m lance_spec vectors") -> int:
    """Run one action; return the process's exit code.

    Args:
        arguments: what follows the program's name.
        prog: the program's name, for its help.
    """
    parser = argparse.ArgumentParser(prog=prog, description="Work with the test vectors.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except FileNotFoundError as error:  # the vectors themselves are not installed
        return _cannot(error)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86400:
        raise argparse.ArgumentTypeError(f"expected seconds above 0 and up to a day, got {text}")
    return value


def _list(options: argparse.Namespace) -> int:
    try:
        found = {name: _groups(name) for name in options.family or FAMILIES}
    except ValueError as error:
        return _cannot(error)
    if options.json:
        return _print([json.dumps(found, indent=2)])
    for family, groups in found.items():
        _print([f"{family}: {sum(each['tests'] for each in groups)} tests"])
        _print([f"  {each['tests']:5} {' '.join(each['group'])}" for each in groups])
    return 0


def _groups(family: str) -> list[dict[str, Any]]:
    groups = load(family).document["testGroups"]
    return [{"group": list(facts(each)), "tests": len(each["tests"])} for each in groups]


def _check(options: argparse.Namespace) -> int:
    if options.program is not None:
        return _check_program(options)
    if options.group or options.id or options.known or options.require:
        return _cannot("--group, --id, --known and --require go with --exec")
    names = options.family or FAMILIES
    if unknown := [each for each in names if each not in FAMILIES]:
        return _cannot(f"no family {', '.join(unknown)}; `vectors list` shows them")
    try:
        problems = check(vectors.root(), names)
    except ModuleNotFoundError as error:
        return _cannot(f"{error.name} is missing: pip install 'lance-sdk[test]'")
    counts = {} if problems else {family: len(load(family).tests) for family in names}
    if options.json:
        _print([json.dumps({"ok": not problems, "problems": problems, "tests": counts}, indent=2)])
    else:
        _print([*problems, *(f"{family}: {count} tests" for family, count in counts.items())])
    return 1 if problems else 0


def _check_program(options: argparse.Namespace) -> int:
    """Run the vectors against a program and print what came of it."""
    chosen = Selection(tuple(options.family), tuple(options.group), tuple(options.id))
    required = options.require
    watch = _progress if sys.stderr.isatty() and not options.json else None
    try:
        if "all" in required:
            required = [family for family, _ in chosen.tests()]
        chosen = replace(chosen, required=tuple(dict.fromkeys(required)))
        known = load_known(options.known) if options.known else []
        report = run(_words(options.program), known, options.timeout, chosen, watch)
    except (AdapterError, KnownError, ValueError) as error:
        return _cannot(error)
    finally:
        if watch:
            sys.stderr.write("\r\x1b[K")
    _print([json.dumps(report.to_json(), indent=2)] if options.json else _lines(report))
    return 0 if report.ok else 1


def _words(command: str) -> list[str]:
    words = shlex.split(command)
    if not words:
        raise AdapterError("--exec is empty; name a program")
    return words


def _progress(family: str, done: int, total: int) -> None:
    """Keep one line of the terminal up to date."""
    if done % _STEP == 0:
        sys.stderr.write(f"\r\x1b[K{done:5} of {total}  {family}")
        sys.stderr.flush()


def _lines(report: Report) -> list[str]:
    lines = [f"{name}: {how}" for name, how in list(report.differences.items())[:_SHOWN]]
    if len(report.differences) > _SHOWN:
        lines.append(f"… and {len(report.differences) - _SHOWN} more")
    lines += [f"known to differ, but does not: {pattern}" for pattern in report.stale]
    lines += [f"skipped {count}: {reason}" for reason, count in report.skipped.items()]
    lines += [f"not declared {count}: {family}" for family, count in report.undeclared.items()]
    lines += [f"required but not shown: {family}: {why}" for family, why in report.unmet.items()]
    counts = f"{report.passed.total()} passed, {len(report.differences)} differ"
    counts = f"{counts}, {report.known} known to differ, {report.skipped.total()} skipped"
    counts = f"{counts}, {report.undeclared.total()} not declared"
    return [*lines, f"{report.program}: {counts}" if report.program else counts]


def _print(lines: Sequence[str]) -> int:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    return 0


def _cannot(why: object) -> int:
    sys.stderr.write(f"{why}\n")
    return 2
