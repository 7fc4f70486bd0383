"""The anchor: a topic that stands through a run, so that the target is never without one.

A published server that has no topic left reads its registry again at the next ListTopics, gives
ids from 1 on away a second time, and goes on writing to the files of deleted topics (AMB-30). Each
case would then fail of that one fault. So the kit keeps a topic alive; only the case that is about
the fault takes it away.
"""

from collections.abc import Mapping
from typing import Any

from lance_conformance.engine.conditions import Conditions
from lance_conformance.engine.failures import Failure, NotApplicable
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.expect import answer
from lance_conformance.wire.control import LIST_TOPICS, create_topic, delete_topic, read_json
from lance_conformance.wire.frame import Command

Listed = list[Mapping[str, Any]]


def anchor_name(conditions: Conditions) -> str:
    """The name of the anchor; it is the same in each run, for it may be left behind."""
    return f"{conditions.prefix}-anchor"


async def listed(ctx: CaseContext) -> Listed:
    """What ListTopics says, as far as it can be read."""
    reply = await ctx.side.ask(LIST_TOPICS, answer(Command.TOPIC_RESPONSE, "5.4/answer"))
    topics = (read_json(reply.payload) or {}).get("topics")
    return [each for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []


async def drop_anchor(ctx: CaseContext) -> None:
    """Create the anchor unless it is there."""
    if all(each.get("name") != anchor_name(ctx.conditions) for each in await listed(ctx)):
        ctx.side.send(create_topic(anchor_name(ctx.conditions)))
        await ctx.side.receive()


async def weigh_anchor(ctx: CaseContext) -> int | None:
    """Delete the anchor; return the id that it had, if it was there."""
    name = anchor_name(ctx.conditions)
    ids = [each.get("id") for each in await listed(ctx) if each.get("name") == name]
    if len(ids) != 1 or not isinstance(ids[0], int) or not 0 < ids[0] < 2**32:
        return None
    ctx.side.send(delete_topic(ids[0]))
    await ctx.side.receive()
    return ids[0]


async def begin_run(conditions: Conditions) -> None:
    """Create the anchor before the cases are asked; what goes wrong, they will say."""
    if not conditions.read_only:
        await _outside_of_cases(conditions, drop_anchor)


async def finish_run(conditions: Conditions) -> None:
    """Delete the anchor, unless it is all that keeps a published server from losing data."""
    if not conditions.read_only:
        await _outside_of_cases(conditions, _leave)


async def _leave(ctx: CaseContext) -> None:
    if ctx.specified or len(await listed(ctx)) > 1:
        await weigh_anchor(ctx)


async def _outside_of_cases(conditions: Conditions, step: Any) -> None:
    ctx = CaseContext(conditions, "kit/anchor", conditions.budget)
    try:
        await ctx.begin()
        await step(ctx)
    except (OSError, Failure, NotApplicable):
        pass  # as in a case's teardown
    finally:
        await ctx.end(clean=False)
