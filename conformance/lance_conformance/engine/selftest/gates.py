"""The gates: what must hold before anybody may trust a verdict of the kit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lance_conformance.engine.registry import Case
from lance_conformance.engine.selftest.matrix import Matrix, differences
from lance_conformance.engine.selftest.runs import Trials
from lance_conformance.engine.selftest.targets import Findings
from lance_conformance.engine.suite import Suite

NULLS_MAY_PASS: Mapping[str, str] = {}
"""Cases that a server of another protocol may pass, each with the reason. There is none: the
control probe comes before every case, and nobody passes it without the answer to a question."""
SHOWN = 12
Kill = tuple[str, str, str]
"""Dialect, mutant and reason."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate, passed or not.

    Attributes:
        name: What must hold.
        figure: How much of it was looked at.
        faults: Where it does not hold, one sentence each.
    """

    name: str
    figure: str
    faults: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether it holds everywhere."""
        return not self.faults


def golden_passes(suite: Suite, trials: Trials) -> Gate:
    """Gate 1: the golden servers pass every case that applies to them."""
    faults = []
    passed = 0
    for subject, findings in trials.items():
        if subject.kind != "golden":
            continue
        for case in suite.cases:
            if case.id not in findings:
                continue  # a case of thorough runs, which only a whole self-test asks
            verdict, reason, _ = findings[case.id]
            wanted = "PASS" if subject.dialect in case.dialects else "SKIP"
            passed += verdict == wanted == "PASS"
            if verdict != wanted:
                faults.append(f"{subject}: {case.id} is {verdict} ({reason}), not {wanted}")
    return Gate("the golden servers pass every case", f"{passed} passes", tuple(faults))


def every_case_can_fail(suite: Suite, matrix: Matrix) -> Gate:
    """Gate 2: every scored case is failed by a mutant, in every dialect it has a meaning in.

    A case of thorough runs asks what a usual case asks, with a larger number: it needs no mutant of
    its own.
    """
    asked = [
        (case, dialect)
        for case in suite.cases
        if case.scored and not case.thorough
        for dialect in suite.presets
        if dialect in case.dialects
    ]
    proven = {(case, d) for d, mutants in matrix.items() for m in mutants.values() for case in m}
    faults = [
        f"{case.id} ({d}) is failed by no mutant" for case, d in asked if not _in(case, d, proven)
    ]
    figure = f"{len(asked) - len(faults)}/{len(asked)} cases proven"
    return Gate("every scored case can fail", figure, tuple(faults))


def _in(case: Case, dialect: str, proven: set[tuple[str, str]]) -> bool:
    return (case.id, dialect) in proven


def every_mutant_is_killed(matrix: Matrix) -> Gate:
    """Gate 3: every mutant fails a case."""
    everyone = [
        (name, d, kills) for d, mutants in matrix.items() for name, kills in mutants.items()
    ]
    faults = [f"{name} ({d}) fails no case" for name, d, kills in everyone if not kills]
    figure = f"{len(everyone) - len(faults)}/{len(everyone)} mutants killed"
    return Gate("every mutant is killed", figure, tuple(faults))


def matrix_is_committed(matrix: Matrix, before: Matrix) -> Gate:
    """Gate 4: the matrix is the committed one, case by case and reason by reason."""
    kills = sum(len(m) for mutants in matrix.values() for m in mutants.values())
    faults = tuple(differences(matrix, before))
    return Gate("the kill matrix is the committed one", f"{kills} kills", faults)


def nulls_pass_nothing(suite: Suite, trials: Trials) -> Gate:
    """Gate 5: servers that do not speak the protocol pass no scored case."""
    faults = []
    tried = 0
    scored = {case.id for case in suite.cases if case.scored} - set(NULLS_MAY_PASS)
    for subject, findings in trials.items():
        if subject.kind == "null":
            tried += 1
            passed = [case for case, found in findings.items() if found.verdict == "PASS"]
            faults += [f"{subject} passes {case}" for case in passed if case in scored]
    return Gate("null servers pass nothing", f"{tried} null servers", tuple(faults))


def no_case_repeats_another(suite: Suite, matrix: Matrix) -> Gate:
    """Gate 6: cases about one clause are told apart by a mutant, or say whose twin they are.

    The families that `twin_of` makes count as one case.
    """
    scored = [case for case in suite.cases if case.scored and not case.thorough]
    faults = [
        f"{', '.join(case.id for case in group)} ask about {group[0].clause.key}, "
        "and no mutant tells them apart"
        for group in _indistinct(scored, matrix)
        if len({case.twin_of or case.id for case in group}) > 1
    ]
    strangers = [
        f"{case.id} calls itself a twin of {case.twin_of}, which there is not"
        for case in scored
        if case.twin_of is not None and case.twin_of not in suite.by_id
    ]
    twins = sum(case.twin_of is not None for case in scored)
    figure = f"{len(scored)} cases, {twins} of them twins on purpose"
    return Gate("no case repeats another", figure, (*faults, *strangers))


def _indistinct(cases: Sequence[Case], matrix: Matrix) -> Iterable[list[Case]]:
    """Cases of one clause that the same mutants fail for the same reasons.

    A case without kills is left to gate 2.
    """
    groups: dict[tuple[str, frozenset[Kill]], list[Case]] = {}
    columns = _columns(matrix)
    for case in cases:
        if case.id in columns:
            column = frozenset(columns[case.id])
            groups.setdefault((case.clause.key, column), []).append(case)
    return groups.values()


def _columns(matrix: Matrix) -> dict[str, list[Kill]]:
    """Who fails each case."""
    found: dict[str, list[Kill]] = {}
    for dialect, rows in matrix.items():
        for name, kills in rows.items():
            for case, reason in kills.items():
                found.setdefault(case, []).append((dialect, name, reason))
    return found


def order_does_not_matter(suite: Suite, trials: Trials) -> Gate:
    """Gate 7: another order, and cases side by side, bring the same verdicts.

    The mutants run in a shuffled order, too; for them gate 4 makes the comparison.
    """
    faults = []
    runs = 0
    for dialect in suite.presets:
        found = [f for s, f in trials.items() if s.kind == "golden" and s.dialect == dialect]
        runs += len(found)
        for other in found[1:]:
            faults += _unlike(dialect, found[0], other)
    return Gate("results do not depend on order", f"{runs} golden runs", tuple(faults))


def _unlike(dialect: str, one: Findings, other: Findings) -> list[str]:
    return [
        f"{case} ({dialect}) is {one[case].verdict} in one order, {other[case].verdict} in another"
        for case in one
        if one[case][:2] != other[case][:2]
    ]


def report(gates: Sequence[Gate], *, verbose: bool = False) -> str:
    """The gates in words, faults below each."""
    lines = []
    for gate in gates:
        lines.append(f"{'ok  ' if gate.passed else 'FAIL'}  {gate.name}: {gate.figure}")
        shown = gate.faults if verbose else gate.faults[:SHOWN]
        lines += [f"        {fault}" for fault in shown]
        if len(gate.faults) > len(shown):
            lines.append(f"        ... and {len(gate.faults) - len(shown)} more (-v shows them)")
    return "\n".join(lines)
