"""Whether the target is still there: a run that loses it says when, and blames no other case.

After a failure that the end of the target would explain, the control probe is asked. Where nothing
listens any more, or nothing is answered, the cases that were under way are named, and those that
are left are not asked. Where several cases that were under way together lose their connections, a
target that was started again may have ended in one of them: each is asked again alone.
"""

import asyncio
from dataclasses import replace

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Blocked
from lance_conformance.engine.registry import Case
from lance_conformance.engine.run.verdict import TARGET_GONE, Result, Verdict
from lance_conformance.engine.transcript import Transcript

RETURN_TIME = 3.0
"""Seconds that a target whose port closed gets to come back, for a supervisor may restart it."""
PROBES = 2
"""Unanswered control probes after which a target that accepts connections counts as stopped."""
PROBE_BUDGET = 2.5
"""How many times the budget of a case one of these probes gets."""
BETWEEN = 0.1
"""Seconds between two attempts to reach a target that may come back."""
_CONNECTION_LOST = frozenset({"refused", "target-died", "closed-early", "truncated-frame"})
_SHOWN = 16
"""Bytes of the last frame that a message shows."""


class TargetWatch:
    """Notices that the target has ended or stopped.

    Args:
        conditions: What the cases are held to.

    Attributes:
        gone: How the target was lost, as a sentence; empty while it is there.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._under_way: list[Case] = []
        self._lock = asyncio.Lock()
        self._lost: dict[str, set[str]] = {}
        """Cases that lost their connections, and the cases that were under way beside each."""
        self.gone = ""

    def __repr__(self) -> str:
        return f"<TargetWatch {self.gone or 'the target is there'}>"

    def begin(self, case: Case) -> None:
        """Note that a case is under way."""
        self._under_way.append(case)

    async def end(self, result: Result) -> Result:
        """Note that a case has ended; return what became of it.

        The target is asked whether it is there only where its end would explain the result.
        """
        if result.reason in _CONNECTION_LOST:
            self._lost[result.case.id] = {each.id for each in self._under_way} - {result.case.id}
        if self._is_explained_by_the_end(result):
            async with self._lock:
                if not self.gone:
                    await self._look(result.case)
        alone = len(self._under_way) == 1
        self._under_way.remove(result.case)
        if not self.gone or not self._is_explained_by_the_end(result):
            return result
        return self._at_the_end(result, alone=alone)

    def may_be_innocent(self, result: Result) -> bool:
        """Whether a case lost its connections while other cases were under way."""
        return result.verdict is not Verdict.PASS and bool(self._lost.get(result.case.id))

    def is_suspect(self, result: Result) -> bool:
        """Whether one of those other cases lost its connections, too (known after all cases)."""
        beside = self._lost.get(result.case.id, set())
        return any(other in self._lost for other in beside)

    def not_asked(self, case: Case) -> Result:
        """The result of a case for which no target is left."""
        return Result(
            case, Verdict.INCONCLUSIVE, reason=TARGET_GONE, message=f"not asked: {self.gone}"
        )

    def _is_explained_by_the_end(self, result: Result) -> bool:
        if result.verdict in (Verdict.PASS, Verdict.SKIP, Verdict.ERROR):
            return False
        return result.timing or result.reason in _CONNECTION_LOST

    async def _look(self, case: Case) -> None:
        loop = asyncio.get_running_loop()
        began, unanswered = loop.time(), 0
        while (reason := await self._probe(case)) is not None:
            unanswered += reason != "refused"
            if unanswered >= PROBES:
                self.gone = f"the target has answered nothing since {self._names()}"
                return
            if reason == "refused" and loop.time() - began > RETURN_TIME:
                self.gone = f"the target closed its port during {self._names()}"
                return
            await asyncio.sleep(BETWEEN)

    async def _probe(self, case: Case) -> str | None:
        """Ask the control probe; return why it was not answered."""
        time = PROBE_BUDGET * self._conditions.budget
        context = case.among.converse(self._conditions, "kit/control", time)
        try:
            async with asyncio.timeout(time):
                await context.begin()
        except Blocked as failure:
            return failure.reason
        except TimeoutError:
            return "timeout"
        finally:
            await context.end(clean=False)
        return None

    def _names(self) -> str:
        return " or ".join(sorted({case.id for case in self._under_way}))

    def _at_the_end(self, result: Result, *, alone: bool) -> Result:
        """What became of a case during which the target was lost.

        It is blamed only where no other case was under way and it saw more than slowness.
        """
        blamed = alone and not result.timing and result.verdict is not Verdict.BLOCKED
        return replace(
            result,
            verdict=result.verdict if blamed else Verdict.INCONCLUSIVE,
            reason=TARGET_GONE,
            message=f"{self.gone}{_last_sent(result.transcript)}",
            timing=False,
        )


def _last_sent(transcript: Transcript | None) -> str:
    sent = [
        chunk for chunk in (transcript.chunks if transcript else ()) if chunk.direction == "sent"
    ]
    if not sent:
        return "; it had sent nothing"
    data = sent[-1].data
    shown = data[:_SHOWN].hex(" ") + (" ..." if len(data) > _SHOWN else "")
    return f"; the last bytes that were sent are {len(data)}: {shown}"
