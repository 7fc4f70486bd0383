"""Running the vectors against a program in any language."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lance_spec.vectors import FAMILIES, Vector, load
from lance_spec.vectors._contract import problem, requests
from lance_spec.vectors._known import Known
from lance_spec.vectors._process import AdapterProcess

Ask: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(slots=True)
class Report:
    """What came of a run.

    Attributes:
        passed: number of tests that were answered rightly.
        skipped: number of tests that the adapter does not take, by its reason.
        differences: tests that were answered wrongly and are not known to be: id, and how.
        known: number of tests that differ as the list of known differences says.
        stale: patterns of that list that no test differs by any more.
    """

    passed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    differences: dict[str, str] = field(default_factory=dict)
    known: int = 0
    stale: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the program does what the vectors and the list say, in at least one test."""
        return not self.differences and not self.stale and self.passed > 0


def run(command: list[str], known: Sequence[Known], timeout: float) -> Report:
    """Ask a program about every test of every family.

    Args:
        command: the adapter and its arguments.
        known: in what it is known to differ.
        timeout: seconds for one answer.

    Raises:
        AdapterError: the program does not keep the contract.
    """
    with AdapterProcess(command, timeout) as adapter:
        return judge_all(adapter.ask, known)


def judge_all(ask: Ask, known: Sequence[Known]) -> Report:
    """Ask about every test and sum up."""
    report, seen = Report(), set()
    for family, vector in _vectors():
        verdict = judge(ask, family, vector)
        if verdict is None:
            report.passed += 1
        elif verdict.startswith("skip: "):
            report.skipped[verdict.removeprefix("skip: ")] += 1
        elif matching := [each.tests for each in known if each.covers(vector.id)]:
            report.known += 1
            seen.update(matching)
        else:
            report.differences[vector.id] = verdict
    report.stale = [each.tests for each in known if each.tests not in seen]
    return report


def judge(ask: Ask, family: str, vector: Vector) -> str | None:
    """Return what is wrong with the answers about one test; a skip begins with ``skip:``."""
    for request in requests(family, vector):
        answer = ask(request)
        if "skip" in answer:
            return f"skip: {str(answer['skip'])[:200]}"
        if complaint := problem(family, vector, answer):
            return complaint
    return None


def _vectors() -> Iterator[tuple[str, Vector]]:
    for family in FAMILIES:
        for vector in load(family):
            yield family, vector
