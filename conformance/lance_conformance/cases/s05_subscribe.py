"""Cases about Subscribe and Unsubscribe (LWP sections 5.12 and 5.13; AMB-21, AMB-22, AMB-36)."""

from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.consumers import commit_ack, subscribe_ack
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack, answer, keepalive
from lance_conformance.protocols.outcomes import Allowed
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import END_OFFSET, KEEPALIVE, delete_topic, fetch
from lance_conformance.wire.frame import Command
from lance_conformance.wire.tlv import boundaries


def _no_topic(c: Dialogue, cite: str) -> list[Allowed]:
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED
    return [c.error(*codes, cite=cite, text="not found")]


@case("sub/ack", "5.12/ack")
async def acknowledged(c: Dialogue) -> None:
    """Subscribe is answered with a SubscribeAck that names the consumer."""
    topic = await c.topic()
    await (await c.open()).ask(
        subscribe(topic.id, c.consumer), subscribe_ack(c.consumer, cite="5.12/ack")
    )


@case("sub/ack-16-bytes", "5.12/ack-layout")
async def ack_16_bytes(c: Dialogue) -> None:
    """A SubscribeAck has 16 bytes: the consumer's id and an offset, and nothing behind them."""
    topic = await c.topic()
    frame = await (await c.open()).ask(
        subscribe(topic.id, c.consumer), answer(Command.SUBSCRIBE_ACK, "5.12/ack-layout")
    )
    size = len(frame.payload)
    c.check(size == 16, "body:size", f"a SubscribeAck must have 16 bytes, it has {size}")


@case("sub/actual-offset", "5.12/actual-offset")
async def actual_offset(c: Dialogue) -> None:
    """The SubscribeAck names the offset at which the consumer begins: the one it asked for."""
    topic, payload = await c.filled()
    start = boundaries(payload)[2]
    right = subscribe_ack(c.consumer, start, cite="5.12/actual-offset")
    await (await c.open()).ask(subscribe(topic.id, c.consumer, start), right)


@case("sub/from-zero", "5.12/from-zero")
async def from_zero(c: Dialogue) -> None:
    """A consumer that never committed and subscribes at 0 begins at 0."""
    topic, _ = await c.filled()
    await (await c.open()).ask(
        subscribe(topic.id, c.consumer), subscribe_ack(c.consumer, 0, cite="AMB-36")
    )


@case("sub/at-end", "5.12/actual-offset", quick=False)
async def at_end(c: Dialogue) -> None:
    """A consumer may begin at the end of the log."""
    topic, payload = await c.filled()
    end = len(payload)
    right = subscribe_ack(c.consumer, end, cite="5.12/actual-offset")
    await (await c.open()).ask(subscribe(topic.id, c.consumer, end), right)


@case("sub/at-sentinel", "5.12/sentinel", quick=False)
async def at_sentinel(c: Dialogue) -> None:
    """Subscribing at 2^64-1 means at the end.

    The published server takes the number for an offset and repeats it.
    """
    topic, payload = await c.filled()
    where = len(payload) if c.specified else END_OFFSET
    right = subscribe_ack(c.consumer, where, cite="5.12/sentinel")
    await (await c.open()).ask(subscribe(topic.id, c.consumer, END_OFFSET), right)


@case("sub/beyond-end", "5.12/beyond-end", quick=False)
async def beyond_end(c: Dialogue) -> None:
    """Subscribing beyond the end is refused as OffsetOutOfRange, or taken as it is.

    The published server takes it.
    """
    topic, payload = await c.filled()
    where = len(payload) + 1000
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    refused = c.error(*codes, cite="AMB-18")
    taken = subscribe_ack(c.consumer, where, cite="AMB-21")
    peer = await c.open()
    peer.send(subscribe(topic.id, c.consumer, where))
    await c.expect(peer, specified=[refused, taken], deployed=[taken])


@case("sub/resumes-at-commit", "5.12/resume")
async def resumes_at_commit(c: Dialogue) -> None:
    """A consumer that committed and subscribes at 0 goes on at its commit."""
    topic, payload = await c.filled()
    where = boundaries(payload)[3]
    async with c.control("committing"):
        await c.side.ask(
            commit_offset(topic.id, c.consumer, where), commit_ack(c.consumer, cite="5.14/ack")
        )
    await (await c.open()).ask(
        subscribe(topic.id, c.consumer), subscribe_ack(c.consumer, where, cite="AMB-36")
    )


@case("sub/explicit-offset-wins", "5.12/actual-offset", quick=False)
async def explicit_offset_wins(c: Dialogue) -> None:
    """An offset that is asked for counts, even where the consumer committed another one."""
    topic, payload = await c.filled()
    _, first, _, third, *_ = boundaries(payload)
    async with c.control("committing"):
        await c.side.ask(
            commit_offset(topic.id, c.consumer, third), commit_ack(c.consumer, cite="5.14/ack")
        )
    right = subscribe_ack(c.consumer, first, cite="5.12/actual-offset")
    await (await c.open()).ask(subscribe(topic.id, c.consumer, first), right)


@case("sub/largest-consumer-id", "5.12/consumer-id", quick=False)
async def largest_consumer_id(c: Dialogue) -> None:
    """A consumer id has 64 bits, all of which come back."""
    largest = 2**64 - 1
    topic = await c.topic()
    right = subscribe_ack(largest, cite="5.12/consumer-id")
    await (await c.open()).ask(subscribe(topic.id, largest), right)


@case("sub/unknown-topic", "5.12/not-found")
async def unknown_topic(c: Dialogue) -> None:
    """Subscribing to a topic that does not exist is refused."""
    right = subscribe((await c.topic()).id, c.consumer)
    refused = _no_topic(c, "5.12/not-found")
    await c.duel(
        right,
        replace(right, payload=subscribe(c.unknown_topic, c.consumer).payload),
        answer=answer(Command.SUBSCRIBE_ACK, "5.12/ack"),
        specified=refused,
        deployed=refused,
    )


@case("sub/deleted-topic", "5.6/gone", quick=False)
async def deleted_topic(c: Dialogue) -> None:
    """Subscribing to a topic that was deleted is refused."""
    topic = await c.doomed_topic()
    async with c.control("deleting a topic"):
        await c.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    await (await c.open()).ask(subscribe(topic.id, c.consumer), *_no_topic(c, "5.6/gone"))


@case("sub/two-connections", "5.12/each-connection", quick=False)
async def two_connections(c: Dialogue) -> None:
    """Two connections may subscribe to one topic."""
    topic = await c.topic()
    right = subscribe_ack(c.consumer, cite="AMB-21")
    async with c.control("the first subscription"):
        await (await c.open()).ask(subscribe(topic.id, c.consumer), right)
    other = subscribe_ack(c.consumer + 1, cite="5.12/each-connection")
    await (await c.open()).ask(subscribe(topic.id, c.consumer + 1), other)


@case("sub/two-topics", "5.12/each-topic", quick=False)
async def two_topics(c: Dialogue) -> None:
    """One connection may subscribe to several topics."""
    topics, peer = [await c.topic(), await c.topic()], await c.open()
    for topic in topics:
        right = subscribe_ack(c.consumer, cite="5.12/each-topic")
        await peer.ask(subscribe(topic.id, c.consumer), right)


@case("sub/ends-with-connection", "5.12/ends-with-connection", quick=False)
async def ends_with_connection(c: Dialogue) -> None:
    """When a connection is gone, its consumer may subscribe anew on another one."""
    topic = await c.topic()
    right = subscribe_ack(c.consumer, cite="AMB-21")
    first = await c.open()
    async with c.control("the first subscription"):
        await first.ask(subscribe(topic.id, c.consumer), right)
    first.drop()
    again = subscribe_ack(c.consumer, cite="5.12/ends-with-connection")
    await (await c.open()).ask(subscribe(topic.id, c.consumer), again)


@case("sub/keepalive-beside", "4.3/answer", quick=False)
async def keepalive_beside(c: Dialogue) -> None:
    """A connection that is subscribed has its Keepalives answered like any other."""
    peer, _ = await _subscribed(c)
    await peer.ask(KEEPALIVE, keepalive("4.3/answer"))


@case("sub/unsubscribe-ack", "5.13/ack")
async def unsubscribe_acknowledged(c: Dialogue) -> None:
    """Unsubscribe is answered with an Ack frame."""
    peer, topic = await _subscribed(c)
    await peer.ask(unsubscribe(topic.id, c.consumer), _any_ack("5.13/ack"))


@case("sub/unsubscribe-ack-id", "5.13/ack-id")
async def unsubscribe_ack_id(c: Dialogue) -> None:
    """The Ack of an Unsubscribe carries the consumer's id as its Batch ID."""
    peer, topic = await _subscribed(c)
    await peer.ask(unsubscribe(topic.id, c.consumer), ack(c.consumer, "AMB-22"))


async def _subscribed(c: Dialogue) -> tuple[Peer, Topic]:
    """A connection of its own that is subscribed to an empty topic.

    Not the first one: what is pushed there would stand in the way of the teardown.
    """
    topic = await c.topic()
    peer = await c.open()
    async with c.control("subscribing"):
        await peer.ask(subscribe(topic.id, c.consumer), subscribe_ack(c.consumer, cite="AMB-21"))
    return peer, topic


def _any_ack(cite: str) -> Allowed:
    another = ack(0).judge  # it knows what an Ack is; the id is another case's
    return Allowed(
        "an Ack frame",
        cite,
        lambda event: None if another(event) == "field:batch_id" else another(event),
    )


@case("sub/unsubscribe-without", "5.13/without", quick=False)
async def unsubscribe_without(c: Dialogue) -> None:
    """Unsubscribe without a subscription is acknowledged, or refused as ConsumerNotFound."""
    topic = await c.topic()
    c.side.send(unsubscribe(topic.id, c.consumer))
    acked = ack(c.consumer, "AMB-22")
    refused = c.error(ErrorCode.CONSUMER_NOT_FOUND, cite="12.2/consumer-not-found")
    await c.expect(c.side, specified=[acked, refused], deployed=[acked])


@case("sub/anew-after-unsubscribe", "5.13/ends", quick=False)
async def anew_after_unsubscribe(c: Dialogue) -> None:
    """Behind an Unsubscribe the same connection may subscribe to the topic again."""
    peer, topic = await _subscribed(c)
    async with c.control("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, c.consumer), _any_ack("5.13/ack"))
    right = subscribe_ack(c.consumer, cite="5.13/ends")
    await peer.ask(subscribe(topic.id, c.consumer), right)


@case("sub/fetch-after-unsubscribe", "5.13/fetch-again", quick=False)
async def fetch_after_unsubscribe(c: Dialogue) -> None:
    """Behind an Unsubscribe the same connection may fetch."""
    peer, topic = await _subscribed(c)
    async with c.control("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, c.consumer), _any_ack("5.13/ack"))
    payload = await c.store(topic, c.values(2))
    fetched = answer(Command.FETCH_RESPONSE, "5.13/fetch-again")
    got = c.read(peer, await peer.ask(fetch(topic.id, 0, 1024), fetched))
    c.check(got.data == payload, "data", "the Fetch must bring what was stored")


@case("sub/pipelined", "5.12/pipelined", quick=False)
async def pipelined(c: Dialogue) -> None:
    """Subscribe and Unsubscribe in one write are answered one behind the other."""
    topic, peer = await c.topic(), await c.open()
    peer.send(subscribe(topic.id, c.consumer), unsubscribe(topic.id, c.consumer))
    await peer.expect(subscribe_ack(c.consumer, cite="5.12/pipelined"))
    await peer.expect(_any_ack("5.12/pipelined"))


@case("sub/poll-beside", "5.12/poll", dialects=("deployed",))
async def poll_beside(c: Dialogue) -> None:
    """A server that does not push serves Fetch on a connection that is subscribed."""
    peer, topic = await _subscribed(c)
    payload = await c.store(topic, c.values(2))
    got = await c.fetch(topic, 0, peer=peer)
    c.check(got.data == payload, "data", "the Fetch must bring what was stored")


@case("sub/no-push", "5.12/no-push", dialects=("deployed",), quick=False)
async def no_push(c: Dialogue) -> None:
    """A server whose clients poll pushes nothing: they would take it for an answer."""
    peer, topic = await _subscribed(c)
    await c.store(topic, c.values(2))
    await peer.expect_quiet("5.12/no-push")


@case("sub/ack-fields", "5.1/answer-fields", quick=False)
async def ack_fields(c: Dialogue) -> None:
    """In the header of a SubscribeAck the fields that have no use are 0."""
    topic = await c.topic()
    frame = await (await c.open()).ask(
        subscribe(topic.id, c.consumer), answer(Command.SUBSCRIBE_ACK, "5.12/ack")
    )
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    c.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")
