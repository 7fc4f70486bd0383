"""A table of runs against servers that are not of this project, each failure with a judgement.

The servers run already; nothing is started here. A failure on which ``judgements.toml`` has no line
ends this with an error: a page must not accuse anybody without a reason.
"""

import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_conformance.engine.report.formats.matrix import BROKEN, Column, as_table, safe
from lance_conformance.engine.report.reading import read_run

KIT = [sys.executable, "-m", "lance_conformance"]
JUDGEMENTS = Path(__file__).parent / "judgements.toml"
_COMPLETE = (0, 1)
"""Exit codes of a run that came to an end: everything kept, or not."""


@dataclass(frozen=True)
class External:
    """A server that somebody else has started.

    Attributes:
        name: How it is called in the table.
        target: HOST:PORT, or the run file of a server that was asked before.
        kit: Options of the kit.
    """

    name: str
    target: str
    kit: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "External":
        """Take ``NAME=HOST:PORT [OPTION...]`` or ``NAME=RUN`` apart.

        Raises:
            SystemExit: It has no such form.
        """
        name, _, rest = text.partition("=")
        words = shlex.split(rest)
        if not name or not words or not (":" in words[0] or Path(words[0]).is_file()):
            sys.exit(f"--external {text!r} must be NAME=HOST:PORT with options, or NAME=RUN")
        return cls(name, words[0], tuple(words[1:]))


def judged(
    cases: Sequence[Mapping[str, Any]], judgements: Sequence[Mapping[str, str]]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Each case that failed, with the judgement on its clause.

    Raises:
        LookupError: There is none for one of them.
    """
    by_clause = {each["clause"]: each for each in judgements}
    for case in cases:
        clause = case["clause"]
        if clause not in by_clause:
            raise LookupError(
                f"{case['id']} [{clause}] failed ({case['message']}), and {JUDGEMENTS.name} has "
                "no line for that clause"
            )
        yield case, by_clause[clause]


def page(columns: Sequence[Column], source: str) -> Iterator[str]:
    """The table, and one line for each clause that was not kept."""
    yield f"Asked: {safe(source)}, by lance-conformance {columns[0].run.header['kit']}."
    yield ""
    yield from as_table(columns)
    judgements = tomllib.loads(JUDGEMENTS.read_text())["judgement"]
    found: dict[str, tuple[Mapping[str, Any], Mapping[str, str], list[str], list[str]]] = {}
    for column in columns:
        broken = [each for each in column.run.cases.values() if each["verdict"] in BROKEN]
        for case, judgement in judged(broken, judgements):
            entry = found.setdefault(case["clause"], (case, judgement, [], []))
            entry[2].append(case["id"])
            entry[3].append(column.name)
    for clause, (case, judgement, ids, names) in sorted(found.items()):
        where = ", ".join(dict.fromkeys(names))
        cases = ", ".join(f"``{each}``" for each in dict.fromkeys(ids))
        yield ""
        yield f"- **{case['level']}** {safe(case['rule'])} [{safe(clause)}]: *{judgement['says']}*."
        yield f"  {safe(judgement['why'])} Seen in: {safe(where)}; {cases}."


def record(externals: Sequence[External], source: str, into: Path) -> None:
    """Ask each server and write the page."""
    with tempfile.TemporaryDirectory(prefix="lance-results-") as name:
        columns = []
        for number, external in enumerate(externals):
            run = Path(external.target)
            if not run.is_file():
                run = Path(name, f"{number}.jsonl")
                _ask(external, run)
            columns.append(Column(external.name, read_run(run)))
        into.write_text("\n".join(page(columns, source)) + "\n")


def _ask(external: External, run: Path) -> None:
    options = [*external.kit, "--timeout-scale", "3", "-q"]
    command = [*KIT, "--target", external.target, "--jsonl", str(run), *options]
    code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
    if code not in _COMPLETE:
        sys.exit(f"{external.name}: the run ended with {code}")
    print(f"{external.name}: exit code {code}")
