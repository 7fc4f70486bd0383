"""Running the vectors against a program in any language."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from lance_spec.vectors import FAMILIES, Vector, load
from lance_spec.vectors._contract import declared, hello, problem, requests
from lance_spec.vectors._known import KnownDifference
from lance_spec.vectors._process import AdapterError, AdapterProcess

Ask: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
Watch: TypeAlias = Callable[[str, int, int], None]


@dataclass(slots=True)
class Report:
    """What came of a run.

    Attributes:
        program: how the adapter calls the code under test, or ``""``.
        passed: number of tests that were answered rightly, by family.
        skipped: number of tests that the adapter does not take, by its reason.
        passed_over: the same number, by family.
        undeclared: number of tests in families that the adapter does not take, by family.
        differences: tests that were answered wrongly and are not known to be: id, and how.
        known: number of tests that differ as the list of known differences says.
        stale: patterns of that list that no test differs by any more.
        unmet: why a family that was required was not shown wholly, by family.
    """

    program: str = ""
    passed: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)
    undeclared: Counter[str] = field(default_factory=Counter)
    differences: dict[str, str] = field(default_factory=dict)
    known: int = 0
    stale: list[str] = field(default_factory=list)
    unmet: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the program does what the vectors and the list say, in at least one test."""
        wrong = self.differences or self.stale or self.unmet
        return not wrong and self.passed.total() > 0

    def demand(self, families: Iterable[str]) -> None:
        """Note which of these families were not declared, or not taken as a whole."""
        for family in families:
            if family in self.undeclared:
                self.unmet[family] = "the adapter does not declare it"
            elif self.passed_over[family]:
                self.unmet[family] = f"the adapter skips {self.passed_over[family]} of its tests"

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "ok": self.ok,
            "program": self.program,
            "passed": dict(self.passed),
            "differences": [{"id": each, "how": how} for each, how in self.differences.items()],
            "known": self.known,
            "stale": self.stale,
            "skipped": dict(self.skipped),
            "undeclared": dict(self.undeclared),
            "unmet": self.unmet,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tests to run; patterns are those of a shell, and none means all.

    Attributes:
        families: names of families.
        groups: patterns for what a group is about: its message, type, dialect, and so on.
        ids: patterns for ids.
        required: families that the program must declare, and of which it may skip nothing.
    """

    families: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def tests(self) -> list[tuple[str, Vector]]:
        """Return the tests with their families.

        Raises:
            ValueError: there is no such family, or nothing matches.
        """
        chosen = [
            (family, vector)
            for family in dict.fromkeys(self.families or FAMILIES)
            for vector in load(family)
            if self._takes(vector)
        ]
        if not chosen:
            raise ValueError("no test matches; `vectors list` shows families and groups")
        selected = {family for family, _ in chosen}
        if absent := [family for family in self.required if family not in selected]:
            raise ValueError(
                f"no test of {', '.join(absent)} is selected, so it cannot be required"
            )
        return chosen

    def _takes(self, vector: Vector) -> bool:
        names = set(facts(vector.group))
        return _any(self.ids, {vector.id}) and _any(self.groups, names)

    @property
    def whole(self) -> bool:
        """Whether it leaves nothing out."""
        return not (self.families or self.groups or self.ids)


def facts(group: dict[str, Any]) -> Iterator[str]:
    """Return the words and numbers by which a group can be chosen."""
    for name, value in group.items():
        if name == "dialect" and isinstance(value, dict):
            yield str(value["name"])
        elif name != "source" and isinstance(value, str | int):
            yield str(value)


def _any(patterns: Sequence[str], names: set[str]) -> bool:
    return not patterns or any(fnmatchcase(name, each) for each in patterns for name in names)


def run(
    command: list[str],
    known: Sequence[KnownDifference],
    timeout: float,
    selection: Selection | None = None,
    watch: Watch | None = None,
) -> Report:
    """Ask a program about every test that is selected.

    Args:
        command: the adapter and its arguments.
        known: in what it is known to differ.
        timeout: seconds for one answer.
        selection: which tests; all by default.
        watch: called before each test with its family, how many are done, and how many there are.

    Raises:
        AdapterError: the program does not keep the contract.
        ValueError: nothing is selected.
    """
    chosen = selection or Selection()
    chosen.tests()  # nothing is started for nothing
    with AdapterProcess(command, timeout) as adapter:
        return judge_all(adapter.ask, known, chosen, watch)


def judge_all(
    ask: Ask,
    known: Sequence[KnownDifference],
    selection: Selection | None = None,
    watch: Watch | None = None,
) -> Report:
    """Ask which families are taken, ask about each of their tests, and sum up."""
    chosen = selection or Selection()
    tests = chosen.tests()
    report, taken = _greeted(ask, list(dict.fromkeys(family for family, _ in tests)))
    seen: set[str] = set()
    for done, (family, vector) in enumerate(tests):
        if watch:
            watch(family, done, len(tests))
        if family not in taken:
            report.undeclared[family] += 1
        else:
            seen.update(_tell(report, family, vector, judge(ask, family, vector), known))
    report.demand(dict.fromkeys(chosen.required))
    if chosen.whole:  # a pattern may speak of tests that were left out
        report.stale = [each.tests for each in known if each.tests not in seen]
    return report


def _greeted(ask: Ask, families: list[str]) -> tuple[Report, set[str]]:
    answer = ask(hello(families))
    try:
        return Report(program=str(answer.get("name", ""))[:200]), declared(answer, families)
    except ValueError as error:
        raise AdapterError(str(error)) from None


def _tell(
    report: Report,
    family: str,
    vector: Vector,
    verdict: str | None,
    known: Sequence[KnownDifference],
) -> list[str]:
    """Count a verdict, and return the patterns of known differences that it is covered by."""
    matching = [each.tests for each in known if each.covers(vector.id)]
    if verdict is None:
        report.passed[family] += 1
    elif verdict.startswith("skip: "):
        report.skipped[verdict.removeprefix("skip: ")] += 1
        report.passed_over[family] += 1
    elif matching:
        report.known += 1
        return matching
    else:
        report.differences[vector.id] = verdict
    return []


def judge(ask: Ask, family: str, vector: Vector) -> str | None:
    """Return what is wrong with the answers about one test; a skip begins with ``skip:``."""
    for request in requests(family, vector):
        answer = ask(request)
        if "skip" in answer:
            return f"skip: {str(answer['skip'])[:200]}"
        if complaint := problem(family, vector, answer):
            return complaint
    return None
