"""Walks: steps drawn at random, the same for the same seed."""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.chance import hunt
from lance_conformance.server.cases.model.facts import Facts
from lance_conformance.server.cases.model.steps import Step
from lance_conformance.server.cases.variation.common import register

WEIGHTS = {
    "create": 4, "delete": 3, "ask": 24, "write": 8, "together": 6, "follow": 4, "unfollow": 2,
    "catch_up": 2, "reconnect": 2, "leave": 1,
}  # fmt: skip
MIXED = WEIGHTS | {"follow": 6, "beside": 10}
LENGTH = 140
BEFORE, AFTER = 80, 60
"""Steps around a restart."""
USUAL, ALL = 8, 32
"""Walks of a usual run, and of a thorough one."""
FEW_MIXED, ALL_MIXED = 4, 16
"""The same of those that look at every field."""
RESTARTS = 3
WEIGHT = 2
"""Times of an answer until the first is due; each right one gives the next its time."""


def _drawn(rng: Random, length: int, table: Mapping[str, int] = WEIGHTS) -> list[Step]:
    names, weights = list(table), list(table.values())
    return [Step(what, rng.randrange(1 << 32)) for what in rng.choices(names, weights, k=length)]


async def _walked(ctx: CaseContext, *, strict: bool, restarts: bool, mixed: bool = False) -> None:
    """Topics come and go, producers and subscribers too; each answer is held against a model.

    Where an answer is wrong, the report has the smallest walk that was found to bring it.
    """
    opening = [Step("create", number) for number in range(2)] + [Step("write", 2), Step("write", 3)]
    drawn = MIXED if mixed else WEIGHTS
    steps = [*opening, *_drawn(ctx.rng, BEFORE if restarts else LENGTH, drawn)]
    if restarts:
        steps += [
            Step("restart", 0),
            Step("inspect", 0),
            Step("create", 4),
            *_drawn(ctx.rng, AFTER),
        ]

    async def attempt(some: Sequence[Step]) -> None:
        facts = Facts(ctx, strict=strict, mixed=mixed)
        await facts.connect()
        try:
            for step in some:
                await step.do(facts)
            await Step("inspect", 0).do(facts)
        finally:
            facts.hang_up()

    await (attempt(steps) if restarts else hunt(ctx, steps, attempt))


for _number in range(1, ALL + 1):
    register(
        f"any/decided-{_number}", "5.1/any-order",
        "In any order of requests, each answer is the one that the document gives for the state.",
        partial(_walked, strict=False, restarts=False), weight=WEIGHT, thorough=_number > USUAL,
        twin_of="any/decided-1", dialects=("specified",),
    )  # fmt: skip
    register(
        f"any/registered-{_number}", "5.1/any-order-registered",
        "In any order of requests, each answer is the one that the register gives for the state.",
        partial(_walked, strict=True, restarts=False), weight=WEIGHT, thorough=_number > USUAL,
        twin_of="any/registered-1", dialects=("specified",),
    )  # fmt: skip
for _number in range(1, ALL_MIXED + 1):
    register(
        f"any/mixed-{_number}", "5.1/any-order-registered",
        "In any order of requests, also of subscribers, every field of each answer is right.",
        partial(_walked, strict=True, restarts=False, mixed=True), weight=2 * WEIGHT,
        thorough=_number > FEW_MIXED, twin_of="any/registered-1", dialects=("specified",),
    )  # fmt: skip
for _number in range(1, RESTARTS + 1):
    register(
        f"any/decided-restart-{_number}", "6.1/restart-any-order",
        "All that was acknowledged before a restart is there afterwards.",
        partial(_walked, strict=False, restarts=True), weight=WEIGHT, needs=("restart",),
        twin_of="any/decided-restart-1", dialects=("specified",),
    )  # fmt: skip
    register(
        f"any/registered-restart-{_number}", "6.1/restart-any-order-registered",
        "All that the register says survives a restart is there afterwards.",
        partial(_walked, strict=True, restarts=True), weight=WEIGHT, needs=("restart",),
        twin_of="any/registered-restart-1", dialects=("specified",),
    )  # fmt: skip
