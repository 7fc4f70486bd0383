"""Baselines: what is known to be wrong, why, and until when that is accepted.

An entry excuses one case that fails for one reason. It is strict both ways: a case that fails for
another reason fails, and an entry that nothing needs any more is stale.
"""

import datetime as dt
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lance_conformance.engine.report.reading import Told
from lance_conformance.engine.run.verdict import Result, Verdict
from lance_conformance.engine.suite import Suite

EXCUSABLE = (Verdict.FAIL, Verdict.WARN)
"""Verdicts that an entry can excuse."""
_KEYS = {"reason", "why", "issue", "expires"}


class BaselineError(ValueError):
    """A baseline cannot be used; the message names the entry."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One entry.

    Attributes:
        case_id: the case.
        reason: the reason code it fails for.
        why: why that is accepted, for people.
        issue: where it is being worked on; empty when nowhere.
        expires: the last day on which it counts; None means for ever.
    """

    case_id: str
    reason: str
    why: str
    issue: str = ""
    expires: dt.date | None = None


def read_baseline(path: Path, suite: Suite) -> dict[str, KnownFailure]:
    """Read a baseline: a TOML file with a table for each case.

    Args:
        path: the file.
        suite: what the cases are of.

    Raises:
        BaselineError: it is not a baseline.
        OSError: it cannot be read.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: {error}") from None
    found: dict[str, KnownFailure] = {}
    for case_id, table in tables.items():
        if case_id not in suite.by_id:
            raise BaselineError(f"{path}: there is no case {case_id!r}; see 'list'")
        found[case_id] = _excuse(path, case_id, table)
    return found


def _excuse(path: Path, case_id: str, table: Any) -> KnownFailure:
    place = f"{path}: {case_id}"
    if not isinstance(table, Mapping):
        raise BaselineError(f"{place}: expected a table with reason and why")
    if unknown := sorted(set(table) - _KEYS):
        known = ", ".join(sorted(_KEYS))
        raise BaselineError(f"{place}: unknown key {unknown[0]!r}; there are {known}")
    for key in ("reason", "why"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise BaselineError(f"{place}: {key} must not be empty")
    expires = table.get("expires")
    if expires is not None and type(expires) is not dt.date:
        raise BaselineError(f"{place}: expires must be a date, such as 2027-01-31")
    return KnownFailure(
        case_id, table["reason"], table["why"], str(table.get("issue", "")), expires
    )


class Baseline:
    """What is known, applied to results as they come.

    Args:
        excuses: the entries by case; entries of cases that are not asked are left alone.
        today: the day it is.

    Attributes:
        stale: what is wrong with entries, in words.
    """

    def __init__(self, excuses: Mapping[str, KnownFailure], today: dt.date) -> None:
        self._excuses = excuses
        self._today = today
        self.stale: list[str] = []

    def apply(self, result: Result) -> Result:
        """Return a result, excused where an entry does that."""
        entry = self._excuses.get(result.case.id)
        if entry is None or result.verdict is Verdict.SKIP:
            return result
        problem = _problem(result, entry, self._today)
        if problem is not None:
            self.stale.append(f"{entry.case_id}: {problem}")
            return result
        told = f"{result.message} (known: {entry.why}{f', {entry.issue}' if entry.issue else ''})"
        return replace(result, verdict=Verdict.XFAIL, message=told)


def _problem(result: Result, entry: KnownFailure, today: dt.date) -> str | None:
    """Return why an entry does not excuse a result, or None when it does."""
    if result.verdict not in EXCUSABLE:
        return f"it is {result.verdict.value} now; remove the entry"
    if result.reason != entry.reason:
        return f"it fails because of {result.reason!r} now, not {entry.reason!r}"
    if entry.expires is not None and entry.expires < today:
        return f"the entry expired on {entry.expires}; renew it with a reason, or mend the server"
    return None


def write_baseline(run: Told) -> str:
    """Return a baseline that excuses everything that a run found, to be filled with reasons."""
    return "\n".join(_entries(run))


def _entries(run: Told) -> Iterator[str]:
    yield f"# What is known to be wrong with {run.title}."
    yield "# Say why for each entry, and by when it will be mended (expires = 2027-01-31)."
    for case_id, case in run.cases.items():
        if case["verdict"] in EXCUSABLE:
            yield ""
            yield f'["{case_id}"]'
            yield f'reason = "{case["reason"]}"'
            yield f'why = "unexplained: {_plain(case["message"])}"'
    yield ""


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else "'" for c in text)[:200]
