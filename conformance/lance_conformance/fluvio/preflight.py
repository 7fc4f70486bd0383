"""Before the cases: is anybody there, where is the SPU, and how fast do both answer."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Failure
from lance_conformance.fluvio.case_context import CaseContext, FluvioDialect
from lance_conformance.fluvio.peer import Peer
from lance_conformance.fluvio.wire.calls import api_versions, list_objects, watch
from lance_conformance.fluvio.wire.objects import ObjectKind, Partition, Spu
from lance_conformance.fluvio.wire.responses import Versions
from lance_conformance.server.preflight import STEP_TIMEOUT, PreflightError, budget_of, reached

T = TypeVar("T")

WRITES = 3


@dataclass(frozen=True, slots=True)
class Findings:
    """What the target was found to do.

    Attributes:
        spu: Where its SPU is.
        platform: What it calls its version.
        slowest: Seconds of the slowest of some round trips and acknowledged writes.
    """

    spu: tuple[str, int]
    platform: str
    slowest: float

    @property
    def budget(self) -> float:
        """Seconds that one case needs at most, going by what was measured."""
        return budget_of(self.slowest)

    def facts(self) -> dict[str, Any]:
        """What was found, for the head of the run file."""
        return {"spu": list(self.spu), "platform": self.platform}


async def preflight(
    base: Conditions, timeout_scale: float = 1.0, step_timeout: float = STEP_TIMEOUT
) -> tuple[Conditions, Findings]:
    """Ask the SC where its SPU is, and both how fast they are.

    Args:
        base: Target, names and seed.
        timeout_scale: Stretches the budget that is measured, and the step timeout.
        step_timeout: Seconds that each step may take.

    Raises:
        PreflightError: Nothing can be proven about this target.
    """
    base = replace(base, budget=step_timeout * timeout_scale)
    base = replace(base, target=await reached(base))
    versions, spu = await _in_time(base, _introduction)
    base = replace(base, dialect=FluvioDialect(spu=spu))
    slowest = await _in_time(base, _measured)
    cluster = FluvioDialect(spu=spu, late=await _in_time(base, _late))
    found = Findings(spu, versions.platform, slowest)
    return replace(base, dialect=cluster, budget=found.budget * timeout_scale), found


async def _in_time(base: Conditions, step: Callable[[CaseContext], Awaitable[T]]) -> T:
    ctx = CaseContext(base, "kit/preflight", base.budget)
    try:
        return await step(ctx)
    except Failure as failure:
        raise PreflightError(
            f"{base.target} does not answer as an SC with an SPU does, so nothing can be proven: "
            f"{failure.message}"
        ) from failure
    finally:
        await ctx.end(clean=False)


async def _introduction(ctx: CaseContext) -> tuple[Versions, tuple[str, int]]:
    peer = await ctx.open("sc")
    versions = await peer.ask(api_versions())
    return versions, await _spu(ctx, peer)


async def _spu(ctx: CaseContext, peer: Peer) -> tuple[str, int]:
    found = (await peer.ask(watch(ObjectKind.SPU))).all
    spus = [each for each in found if isinstance(each, Spu) and each.online and each.hosts]
    ctx.check(spus, "spu-missing", "it tells of no SPU that is online")
    ctx.check(len(spus) == 1, "spus", f"it has {len(spus)} SPUs; the kit asks clusters of one")
    encrypted = ctx.conditions.access.tls is not None
    spoken = "TLS" if spus[0].encrypted else "no TLS"
    ctx.check(spus[0].encrypted == encrypted, "tls", f"its SPU speaks {spoken}, unlike the SC")
    return spus[0].hosts[0], spus[0].port


async def _measured(ctx: CaseContext) -> float:
    """How long creating and writing take, as far as they work: cases say what is wrong there."""
    clock = asyncio.get_running_loop().time
    slowest = 0.0
    await ctx.begin()
    began = clock()
    with suppress(Failure):
        topic = await ctx.topic()
        for _ in range(WRITES):
            slowest, began = max(slowest, clock() - began), clock()
            await ctx.put(topic, ctx.records(1))
    return max(slowest, clock() - began)


async def _late(ctx: CaseContext) -> bool:
    """Whether the SC hears of records only some time after they were acknowledged."""
    await ctx.begin()
    with suppress(Failure):
        topic = await ctx.topic()
        await ctx.put(topic, ctx.records(1))
        found = (await ctx.sc.ask(list_objects(ObjectKind.PARTITION))).objects
        ends = {each.name: each.end for each in found if isinstance(each, Partition)}
        if ends.get(f"{topic}-0") != 1 and await ctx.settled(topic, [1]):
            return True
    return False
