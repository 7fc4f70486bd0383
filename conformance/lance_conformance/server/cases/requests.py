"""One right request of each kind, for the cases that change or guard it."""

from collections.abc import Awaitable, Callable

from lance_conformance.server.case_context import CaseContext
from lance_conformance.wire import consumers, control
from lance_conformance.wire.frame import Frame

Request = Callable[[CaseContext], Awaitable[Frame]]
CONSUMER = 0x0123_4567_89AB_CDEF
WEEK = 604_800


async def ingest(ctx: CaseContext) -> Frame:
    """Ingest, one record."""
    return control.ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))


async def create(ctx: CaseContext) -> Frame:
    """CreateTopic."""
    return control.create_topic(ctx.name())


async def create_limited(ctx: CaseContext) -> Frame:
    """CreateTopicWithRetention."""
    return control.create_topic_with_retention(ctx.name(), WEEK, 2**30)


async def delete(ctx: CaseContext) -> Frame:
    """DeleteTopic."""
    return control.delete_topic((await ctx.disposable_topic()).id)


async def set_retention(ctx: CaseContext) -> Frame:
    """SetRetention."""
    return control.set_retention((await ctx.topic()).id, WEEK, 2**30)


async def list_topics(_: CaseContext) -> Frame:
    """ListTopics."""
    return control.LIST_TOPICS


async def get(ctx: CaseContext) -> Frame:
    """GetTopic."""
    return control.get_topic((await ctx.topic()).id)


async def fetch(ctx: CaseContext) -> Frame:
    """Fetch, from the beginning."""
    return control.fetch((await ctx.topic()).id, 0, 1024)


async def subscribe(ctx: CaseContext) -> Frame:
    """Subscribe, as `CONSUMER`."""
    return consumers.subscribe((await ctx.topic()).id, CONSUMER)


async def unsubscribe(ctx: CaseContext) -> Frame:
    """Unsubscribe, as `CONSUMER`."""
    return consumers.unsubscribe((await ctx.topic()).id, CONSUMER)


async def commit(ctx: CaseContext) -> Frame:
    """CommitOffset, as `CONSUMER`."""
    return consumers.commit_offset((await ctx.topic()).id, CONSUMER, 0)


async def status(_: CaseContext) -> Frame:
    """GetClusterStatus."""
    return consumers.CLUSTER_STATUS


async def offset_for_time(ctx: CaseContext) -> Frame:
    """OffsetForTime, of the beginning of time."""
    return consumers.offset_for_time((await ctx.topic()).id, 0)
