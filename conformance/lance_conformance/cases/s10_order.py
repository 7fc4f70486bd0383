"""Cases about the order of answers (LWP section 10, AMB-28)."""

from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.peer.expect import ack, answer, keepalive, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, fetch, get_topic, ingest
from lance_conformance.wire.frame import Command, Kind


@case("ord/control-and-keepalive", "10.2/answers-in-order")
async def control_and_keepalive(c: Dialogue) -> None:
    """Control commands and Keepalives of one write are answered in their order."""
    topic = await c.topic()
    c.side.send(get_topic(topic.id), KEEPALIVE, get_topic(topic.id), KEEPALIVE)
    for _ in range(2):
        await c.side.expect(topic_response("AMB-28"))
        await c.side.expect(keepalive("AMB-28"))


@case("ord/ingest-then-fetch", "10.2/answers-in-order")
async def ingest_then_fetch(c: Dialogue) -> None:
    """A Fetch behind an Ingest on one connection is answered after it and sees it.

    The published server answers the Fetch first.
    """
    topic = await c.topic()
    frame = ingest(topic.id, c.batch(), c.values(2))
    fetched = answer(Command.FETCH_RESPONSE, "AMB-28")
    acked = ack(frame.batch_id, "AMB-28")
    c.side.send(frame, fetch(topic.id, 0, 1024))
    if c.specified:
        await c.side.expect(acked)
        got = c.read(c.side, await c.side.frame(fetched))
        c.check(got.data == frame.payload, "data", "the Fetch must see the batch before it")
        return
    kinds = {(await c.side.frame(acked, fetched)).kind for _ in range(2)}
    c.check(kinds == {Kind.ACK, Kind.CONTROL}, "count", f"one answer each must come, not {kinds}")


@case("ord/refused-then-accepted", "10.2/answers-in-order", quick=False)
async def refused_then_accepted(c: Dialogue) -> None:
    """In a pipeline a refusal stands at its place between the Acks.

    The published server sends refusals first.
    """
    topic = await c.topic()
    frames = [ingest(topic.id, c.batch(), c.values(1)) for _ in range(3)]
    acks = [ack(frame.batch_id, "AMB-28") for frame in frames]
    refused = c.error(ErrorCode.TOPIC_NOT_FOUND, cite="6.4/unknown-topic", text="unknown topic")
    c.side.send(frames[0], replace(frames[1], topic_id=c.unknown_topic), frames[2])
    if c.specified:
        for outcome in (acks[0], refused, acks[2]):
            await c.side.expect(outcome)
        return
    kinds = [(await c.side.frame(acks[0], refused, acks[2])).kind for _ in range(3)]
    c.check(kinds.count(Kind.CONTROL) == 1, "count", f"one refusal must come, not {kinds}")
