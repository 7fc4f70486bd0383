"""One right request of each kind, for the cases that change or guard it."""

from collections.abc import Awaitable, Callable

from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.wire import consumers, control
from lance_conformance.wire.frame import Frame

Request = Callable[[Dialogue], Awaitable[Frame]]
CONSUMER = 0x0123_4567_89AB_CDEF
WEEK = 604_800


async def ingest(c: Dialogue) -> Frame:
    """Ingest, one record."""
    return control.ingest((await c.topic()).id, c.batch(), c.values(1))


async def create(c: Dialogue) -> Frame:
    """CreateTopic."""
    return control.create_topic(c.name())


async def create_limited(c: Dialogue) -> Frame:
    """CreateTopicWithRetention."""
    return control.create_topic_with_retention(c.name(), WEEK, 2**30)


async def delete(c: Dialogue) -> Frame:
    """DeleteTopic."""
    return control.delete_topic((await c.doomed_topic()).id)


async def set_retention(c: Dialogue) -> Frame:
    """SetRetention."""
    return control.set_retention((await c.topic()).id, WEEK, 2**30)


async def list_topics(_: Dialogue) -> Frame:
    """ListTopics."""
    return control.LIST_TOPICS


async def get(c: Dialogue) -> Frame:
    """GetTopic."""
    return control.get_topic((await c.topic()).id)


async def fetch(c: Dialogue) -> Frame:
    """Fetch, from the beginning."""
    return control.fetch((await c.topic()).id, 0, 1024)


async def subscribe(c: Dialogue) -> Frame:
    """Subscribe, as `CONSUMER`."""
    return consumers.subscribe((await c.topic()).id, CONSUMER)


async def unsubscribe(c: Dialogue) -> Frame:
    """Unsubscribe, as `CONSUMER`."""
    return consumers.unsubscribe((await c.topic()).id, CONSUMER)


async def commit(c: Dialogue) -> Frame:
    """CommitOffset, as `CONSUMER`."""
    return consumers.commit_offset((await c.topic()).id, CONSUMER, 0)


async def status(_: Dialogue) -> Frame:
    """GetClusterStatus."""
    return consumers.CLUSTER_STATUS


async def offset_for_time(c: Dialogue) -> Frame:
    """OffsetForTime, of the beginning of time."""
    return consumers.offset_for_time((await c.topic()).id, 0)
