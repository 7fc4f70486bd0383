"""Before the cases: is anybody there, which forms do they speak, and how fast do they answer."""

import asyncio
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Failure
from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.dialect import PRESETS, Forms
from lance_conformance.server.preflight import (
    ROUND_TRIPS,
    STEP_TIMEOUT,
    PreflightError,
    budget_of,
    reached,
)

WRITES = 5


@dataclass(frozen=True, slots=True)
class Findings:
    """What the target was found to do.

    Attributes:
        forms: Which forms it answers in kind.
        round_trip: Seconds of the slowest of some round trips.
        write: Seconds of the slowest of a creation and some writes, `None` if none could be made.
    """

    forms: tuple[str, ...]
    round_trip: float
    write: float | None = None

    @property
    def budget(self) -> float:
        """Seconds that one case needs at most, going by what was measured."""
        return budget_of(max(self.round_trip, self.write or 0.0))

    def facts(self) -> dict[str, Any]:
        """What was found, for the head of the run file."""
        return {"forms": list(self.forms)}


async def preflight(
    base: Conditions, timeout_scale: float = 1.0, step_timeout: float = STEP_TIMEOUT
) -> tuple[Conditions, Findings]:
    """Probe the target, and say under which conditions its cases are to be asked.

    Args:
        base: Target, names and seed; its `pinned` and `demanded` say what was asked for.
        timeout_scale: Stretches the budget that is measured, and the step timeout.
        step_timeout: Seconds that each step may take.

    Raises:
        PreflightError: Nothing can be proven about this target.
    """
    base = replace(base, budget=step_timeout * timeout_scale)
    base = replace(base, target=await reached(base))
    forms = await _forms(base)
    spoken = base.demanded if base.pinned else _speech(forms)
    answered = PRESETS["binary" if "binary" in forms else "json"]
    findings = await _measured(replace(base, dialect=answered), forms)
    return replace(base, dialect=spoken, budget=findings.budget * timeout_scale), findings


def _speech(forms: tuple[str, ...]) -> Forms:
    return PRESETS["both" if len(forms) > 1 else forms[0]]


async def _forms(base: Conditions) -> tuple[str, ...]:
    """The forms in which a question is answered, each tried on a connection of its own."""
    served, why = [], []
    for name in ("binary", "json"):
        problem = await _serves(replace(base, dialect=PRESETS[name]))
        if problem is None:
            served.append(name)
        else:
            why.append(f"{name}: {problem.message}")
    if not served:
        raise PreflightError(
            f"{base.target} accepts connections but answers neither a binary ListTopics nor an "
            f"OffsetFetch in JSON, so nothing can be proven ({'; '.join(why)})"
        )
    return tuple(served)


async def _serves(conditions: Conditions) -> Failure | None:
    ctx = CaseContext(conditions, "kit/probe", conditions.budget)
    try:
        await ctx.begin()
    except Failure as failure:
        return failure
    finally:
        await ctx.end(clean=False)
    return None


async def _measured(conditions: Conditions, forms: tuple[str, ...]) -> Findings:
    ctx = CaseContext(conditions, "kit/preflight", conditions.budget)
    clock = asyncio.get_running_loop().time
    try:
        await ctx.begin()
        trips = []
        for _ in range(ROUND_TRIPS):
            began = clock()
            await ctx.side.ask(*ctx.exchange())
            trips.append(clock() - began)
        return Findings(forms, max(trips), await _write(ctx))
    except Failure as failure:
        raise PreflightError(
            f"{conditions.target} answers once, but not the next steps, so nothing can be "
            f"proven: {failure.message}"
        ) from failure
    finally:
        await ctx.end(clean=False)


async def _write(ctx: CaseContext) -> float | None:
    """How long it takes to create a topic or to write, whatever takes longer.

    As far as either can be done; the cases about it say what is wrong.
    """
    if not ctx.speech.binary or ctx.conditions.read_only:
        return None
    clock = asyncio.get_running_loop().time
    times = [clock()]
    try:
        topic = await ctx.topic()
        times.append(clock())
        for _ in range(WRITES):
            await ctx.store(topic, ctx.values(1))
            times.append(clock())
    except Failure:
        pass  # the cases about it say what is wrong
    return max((after - before for before, after in pairwise(times)), default=None)
