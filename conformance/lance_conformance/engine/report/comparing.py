"""Two runs beside each other."""

from collections.abc import Iterator
from dataclasses import dataclass

from lance_conformance.engine.report.reading import Told
from lance_conformance.engine.run.verdict import Verdict

GOOD = frozenset({Verdict.PASS.value})
NEUTRAL = frozenset({Verdict.SKIP.value, Verdict.INFO.value})


@dataclass(frozen=True, slots=True)
class Change:
    """A case that came to something else.

    Attributes:
        case_id: which case.
        before: verdict and reason in the first run; empty when it was not asked.
        after: the same in the second run.
        worse: it passed, and does not any more.
        better: it did not pass, and does now.
    """

    case_id: str
    before: str
    after: str
    worse: bool
    better: bool

    def __str__(self) -> str:
        mark = "worse " if self.worse else "better" if self.better else "other "
        return (
            f"{mark}  {self.case_id}: {self.before or 'not asked'} -> {self.after or 'not asked'}"
        )


def compare(before: Told, after: Told) -> Iterator[Change]:
    """Yield what changed from one run to another, in the order of the first."""
    for case_id in [*before.cases, *(new for new in after.cases if new not in before.cases)]:
        one, two = _told(before, case_id), _told(after, case_id)
        if one == two:
            continue
        was_good, is_good = one.partition(" ")[0] in GOOD, two.partition(" ")[0] in GOOD
        neutral = not two or two.partition(" ")[0] in NEUTRAL
        yield Change(
            case_id,
            one,
            two,
            worse=was_good and not is_good and not neutral,
            better=is_good and bool(one) and one.partition(" ")[0] not in NEUTRAL,
        )


def _told(run: Told, case_id: str) -> str:
    case = run.cases.get(case_id)
    return "" if case is None else f"{case['verdict']} {case['reason']}".strip()
