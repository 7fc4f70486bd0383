"""Before the cases: does the driver keep to its protocol, and which dialects are spoken."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from lance_conformance.client.case_context import ClientCaseContext
from lance_conformance.client.cases.misc import EVERYTHING
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.driver import DriverDiedError
from lance_conformance.client.inprocess import client_of
from lance_conformance.client.operations import Op, list_topics, send
from lance_conformance.client.target import ClientTarget
from lance_conformance.dialect import PRESETS
from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Failure, NotApplicable
from lance_conformance.server.preflight import PreflightError

BUDGET = 4.0
"""Seconds that a case gets; a client gets a fourth of them for one operation."""
NONSENSE = "juggle"
FIRST = (send(b"preflight"), list_topics())
"""What shows that a client speaks a dialect; either will do."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the client was found to do.

    Attributes:
        dialects: The dialects it speaks.
        operations: The operations its driver has.
        missing: Those it has not.
        broken: Rules for every frame that it breaks even when all is well.
        budget: Seconds that a case gets.
    """

    dialects: tuple[str, ...]
    operations: tuple[str, ...]
    missing: tuple[str, ...]
    broken: tuple[str, ...]
    budget: float

    def facts(self) -> dict[str, Any]:
        """For the head of the run file."""
        return {
            "dialects": list(self.dialects),
            "operations": list(self.operations),
            "missing": list(self.missing),
            "broken": list(self.broken),
        }


async def preflight(
    base: Conditions, timeout_scale: float = 1.0, step_timeout: float = BUDGET
) -> tuple[Conditions, Capabilities]:
    """Find out what the client can do.

    Args:
        base: The client; ``pinned`` and ``demanded`` say what was asked for.
        timeout_scale: Stretches the budget of a case.
        step_timeout: Seconds that each step may take.

    Raises:
        PreflightError: Nothing can be proven about this client.
    """
    base = replace(base, target=client_of(base.target))
    await _refuses_nonsense(client_of(base.target), step_timeout)
    wanted = [base.demanded] if base.pinned else list(PRESETS.values())
    why = {each.name: await _speaks(replace(base, dialect=each), step_timeout) for each in wanted}
    spoken = [each for each in wanted if not why[each.name]]
    if not spoken:
        told = "; ".join(f"{name}: {problem}" for name, problem in why.items())
        raise PreflightError(f"{base.target} neither sends a record nor lists topics: {told}")
    found = replace(base, dialect=spoken[0], budget=BUDGET * timeout_scale)
    operations, missing, broken = await _operations(found, step_timeout)
    target = replace(client_of(base.target), known=frozenset(broken))
    names = tuple(each.name for each in spoken)
    skills = Capabilities(names, operations, missing, broken, found.budget)
    return replace(found, target=target), skills


async def _refuses_nonsense(client: ClientTarget, step_timeout: float) -> None:
    try:
        driver = await client.drivers.take()
    except DriverDiedError as problem:
        raise PreflightError(f"{client}: {problem}") from problem
    try:
        async with asyncio.timeout(step_timeout):
            answer = await driver.call({"op": NONSENSE})
    except DriverDiedError as problem:
        await driver.end()
        raise PreflightError(f"{client}: {problem}") from problem
    except TimeoutError:
        await driver.end()
        raise PreflightError(
            f"{client} does not answer {NONSENSE!r} in {step_timeout:.1f} s"
        ) from None
    client.drivers.give(driver)
    if answer.get("unsupported") is not True:
        raise PreflightError(
            f"{client} answered the operation {NONSENSE!r}, which does not exist, with "
            f"{str(answer)[:200]}; a driver must answer what it does not know with "
            '{"unsupported": true}'
        )


async def _speaks(conditions: Conditions, budget: float) -> str:
    """Why the client does not speak a dialect; empty when it does."""
    problem = ""
    for op in FIRST:
        ctx = ClientCaseContext(conditions, "kit/preflight", budget)
        await ctx.prepare()
        try:
            await ctx.perform(_alone(op))
        except (Failure, NotApplicable) as found:
            problem = problem or str(found)
            await ctx.end(clean=False)
        else:
            await ctx.end(clean=True)
            return ""
    return problem


def _alone(op: Op) -> ClientCase:
    return ClientCase((op,), paired=False, rule=ANY_RULE)


ANY_RULE = "$none"
"""No rule has this name, so a scenario that is about it is judged by none."""


async def _operations(
    conditions: Conditions, budget: float
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Operations that the driver has, those it has not, and rules that are broken on the way."""
    ctx = ClientCaseContext(conditions, "kit/preflight", budget)
    await ctx.prepare()
    try:
        has, server = await ctx.rehearse(EVERYTHING)
    except Failure as problem:
        await ctx.end(clean=False)
        raise PreflightError(f"{conditions.target}: {problem}") from problem
    await ctx.end(clean=True)
    operations = tuple(name for name, there in has.items() if there)
    missing = tuple(name for name, there in has.items() if not there)
    return operations, missing, tuple(sorted(server.broken))
