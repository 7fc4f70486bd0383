"""Cases about frames that never become whole (LWP section 3.4)."""

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import ALIVE, Dialogue, Topic
from lance_conformance.peer.expect import ack
from lance_conformance.wire.control import LIST_TOPICS, ingest
from lance_conformance.wire.frame import HEADER_SIZE


async def _seen(c: Dialogue) -> None:
    """Let the target see what was sent so far."""
    for _ in range(2):
        await c.side.ask(LIST_TOPICS, ALIVE)


async def _nothing(c: Dialogue, topic: Topic) -> None:
    size = len(await c.stored(topic))
    c.check(size == 0, "stored", f"{size} bytes are stored of a frame that is not whole")


@case("seg/unfinished-not-stored", "3.4/whole", quick=False)
async def unfinished_not_stored(c: Dialogue) -> None:
    """Whole records in a frame that is not whole yet are not stored; with its rest they are."""
    topic = await c.topic()
    peer, frame = await c.open(), ingest(topic.id, c.batch(), c.values(2))
    data = peer.encode(frame)
    rest = len(frame.payload) // 2
    peer.send_bytes(data[:-rest])
    await _seen(c)
    await _nothing(c, topic)
    peer.send_bytes(data[-rest:])
    await peer.expect(ack(frame.batch_id, "3.4/whole"))
    c.check(await c.stored(topic) == frame.payload, "data", "the whole payload must be stored")


async def _abandoned(c: Dialogue, missing: int) -> None:
    topic = await c.topic()
    peer, frame = await c.open(), ingest(topic.id, c.batch(), c.values(2))
    peer.send_bytes(peer.encode(frame)[:-missing])
    await _seen(c)
    peer.drop()
    await c.still_alive()
    await _nothing(c, topic)


@case("seg/abandoned-in-payload", "3.4/whole", quick=False)
async def abandoned_in_payload(c: Dialogue) -> None:
    """Of a frame whose client goes away in the middle of its payload nothing is stored."""
    await _abandoned(c, 25)


@case("seg/abandoned-before-payload", "3.4/whole", quick=False)
async def abandoned_before_payload(c: Dialogue) -> None:
    """A client that goes away behind a header leaves nothing, and harms nobody."""
    await _abandoned(c, 50)


@case("seg/abandoned-in-header", "3.4/whole", quick=False)
async def abandoned_in_header(c: Dialogue) -> None:
    """A client that goes away in the middle of a header leaves nothing, and harms nobody."""
    await _abandoned(c, 50 + HEADER_SIZE // 2)
