"""``vectors check --exec``: what it prints, and its exit code."""

import shlex
import sys
from pathlib import Path

from lance_spec.vectors._exec import Report, run
from lance_spec.vectors._known import KnownError, load_known
from lance_spec.vectors._process import AdapterError

_SHOWN = 50


def check_program(command: str, known: Path | None, timeout: float) -> int:
    """Run the vectors against a program and print what came of it.

    Args:
        command: the adapter and its arguments, as one would type them.
        known: the file of known differences, if there is one.
        timeout: seconds for one answer.

    Returns:
        0 when it does what the vectors and the list say, 1 when not, 2 when it cannot be told.
    """
    try:
        differences = load_known(known) if known else []
        report = run(_words(command), differences, timeout)
    except (AdapterError, KnownError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in _lines(report):
        sys.stdout.write(f"{line}\n")
    return 0 if report.ok else 1


def _words(command: str) -> list[str]:
    words = shlex.split(command)
    if not words:
        raise AdapterError("--exec is empty; name a program")
    return words


def _lines(report: Report) -> list[str]:
    lines = [f"{name}: {how}" for name, how in list(report.differences.items())[:_SHOWN]]
    if len(report.differences) > _SHOWN:
        lines.append(f"… and {len(report.differences) - _SHOWN} more")
    lines += [f"known to differ, but does not: {pattern}" for pattern in report.stale]
    lines += [f"skipped {count}: {reason}" for reason, count in report.skipped.items()]
    skipped = sum(report.skipped.values())
    counts = f"{report.passed} passed, {len(report.differences)} differ"
    return [*lines, f"{counts}, {report.known} known to differ, {skipped} skipped"]
