"""Verdicts of a case and of a run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from lance_conformance.engine.registry import Case
from lance_conformance.engine.transcript import Transcript
from lance_conformance.spec.clauses import Level


class Verdict(StrEnum):
    """How one case ended."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    WARN = "WARN"
    INFO = "INFO"
    SKIP = "SKIP"
    BLOCKED = "BLOCKED"
    INCONCLUSIVE = "INCONCLUSIVE"
    FLAKY = "FLAKY"
    XFAIL = "XFAIL"
    """It fails as the baseline says."""
    ERROR = "ERROR"


UNPROVEN = frozenset({Verdict.BLOCKED, Verdict.INCONCLUSIVE, Verdict.FLAKY})
"""Verdicts under which a rule was neither kept nor broken."""


TARGET_GONE = "target-gone"
"""The reason of results after which no target was left."""


class Exit(IntEnum):
    """How the process ends."""

    OK = 0
    NONCONFORMING = 1
    USAGE = 2
    UNREACHABLE = 3
    UNPROVEN = 4
    NOTHING_SELECTED = 5
    STALE = 6
    TARGET_GONE = 7
    KIT_ERROR = 70
    INTERRUPTED = 130


PRECEDENCE = (
    Exit.KIT_ERROR,
    Exit.USAGE,
    Exit.UNREACHABLE,
    Exit.TARGET_GONE,
    Exit.NOTHING_SELECTED,
    Exit.NONCONFORMING,
    Exit.STALE,
    Exit.UNPROVEN,
    Exit.OK,
)
"""Of several reasons to end, the first one here counts."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case.

    Attributes:
        case: The case.
        verdict: How it ended.
        seconds: How long it took.
        reason: A machine reason code, empty after a pass.
        message: One sentence for people.
        expected: The outcomes that were allowed.
        received: What came instead.
        connection: The connection on which it went wrong.
        transcript: Everything that went over the wire.
        timing: Slowness alone could have caused it.
        retried: It was asked a second time, alone.
    """

    case: Case
    verdict: Verdict
    seconds: float = 0.0
    reason: str = ""
    message: str = ""
    expected: tuple[str, ...] = ()
    received: str = ""
    connection: int | None = None
    transcript: Transcript | None = None
    timing: bool = False
    retried: bool = False

    @property
    def not_asked(self) -> bool:
        """Whether the case was left out because no target was left."""
        return self.reason == TARGET_GONE and self.transcript is None

    def fails(self, *, strict: bool = False) -> bool:
        """Whether it makes the target nonconforming.

        Args:
            strict: SHOULD and FLAKY count, too.
        """
        if strict and self.verdict in (Verdict.WARN, Verdict.FLAKY):
            return True
        return self.verdict is Verdict.FAIL


def broken(level: Level) -> Verdict:
    """The verdict on a rule of this level that was not kept."""
    return {Level.MUST: Verdict.FAIL, Level.SHOULD: Verdict.WARN, Level.MAY: Verdict.INFO}[level]


def totals(results: Iterable[Result]) -> dict[str, int]:
    """How many cases ended in each verdict, those that occur."""
    counted = Counter(result.verdict for result in results)
    return {verdict.value: counted[verdict] for verdict in Verdict if counted[verdict]}


def exit_code(results: Iterable[Result], *, strict: bool = False, stale: bool = False) -> Exit:
    """How a run with these results ends.

    Args:
        results: One for each case that was selected.
        strict: SHOULD and FLAKY count as failures.
        stale: An entry of the baseline does not fit any more.
    """
    reasons = {_reason_to_end(result, strict=strict) for result in results}
    if stale:
        reasons.add(Exit.STALE)
    reasons.discard(None)
    if not reasons:
        return Exit.NOTHING_SELECTED
    return next(code for code in PRECEDENCE if code in reasons)


def _reason_to_end(result: Result, *, strict: bool) -> Exit | None:
    if result.verdict is Verdict.SKIP:
        return None
    if result.verdict is Verdict.ERROR:
        return Exit.KIT_ERROR
    if result.reason == TARGET_GONE:
        return Exit.TARGET_GONE
    if result.fails(strict=strict):
        return Exit.NONCONFORMING
    matters = result.case.level is Level.MUST or (strict and result.case.scored)
    if matters and result.verdict in UNPROVEN:
        return Exit.UNPROVEN
    return Exit.OK
