"""Cases about CommitOffset (LWP section 5.14, AMB-36)."""

from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.consumers import commit_ack, subscribe_ack
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack, answer, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    read_consumer_at,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import create_topic, delete_topic, read_json
from lance_conformance.wire.frame import Command

LARGEST = 2**64 - 1


async def _commit(
    c: Dialogue, topic: Topic, offset: int, consumer: int | None = None, peer: Peer | None = None
) -> None:
    consumer = c.consumer if consumer is None else consumer
    async with c.control("committing"):
        asked = peer or c.side
        right = commit_ack(consumer, cite="5.14/ack")
        await asked.ask(commit_offset(topic.id, consumer, offset), right)


async def _resumed(c: Dialogue, topic: Topic, consumer: int | None = None) -> int:
    """Where a consumer begins that subscribes at 0, on a connection of its own."""
    consumer = c.consumer if consumer is None else consumer
    peer = await c.open()
    right = subscribe_ack(consumer, cite="5.12/ack")
    frame = await peer.ask(subscribe(topic.id, consumer), right)
    said = read_consumer_at(frame.payload)
    peer.drop()
    return said.offset if said else -1


async def _must_resume(c: Dialogue, topic: Topic, right: int, consumer: int | None = None) -> None:
    where = await _resumed(c, topic, consumer)
    c.check(where == right, "field:offset", f"the consumer must go on at {right}, not at {where}")


async def _filled(c: Dialogue) -> tuple[Topic, int]:
    """A topic, and its end."""
    topic = await c.topic()
    return topic, len(await c.store(topic, c.values(4)))


@case("com/ack", "5.14/ack")
async def acknowledged(c: Dialogue) -> None:
    """CommitOffset is answered with a CommitAck that names the consumer."""
    topic, end = await _filled(c)
    await c.side.ask(
        commit_offset(topic.id, c.consumer, end), commit_ack(c.consumer, cite="5.14/ack")
    )


@case("com/committed-offset", "5.14/committed-offset")
async def committed_offset(c: Dialogue) -> None:
    """A CommitAck names the offset that was committed."""
    topic, end = await _filled(c)
    right = commit_ack(c.consumer, end, cite="5.14/committed-offset")
    await c.side.ask(commit_offset(topic.id, c.consumer, end), right)


@case("com/ack-16-bytes", "5.14/ack-layout")
async def ack_16_bytes(c: Dialogue) -> None:
    """A CommitAck has 16 bytes: the consumer's id and an offset, and nothing behind them."""
    topic, end = await _filled(c)
    frame = await c.side.ask(
        commit_offset(topic.id, c.consumer, end), answer(Command.COMMIT_ACK, "5.14/ack-layout")
    )
    size = len(frame.payload)
    c.check(size == 16, "body:size", f"a CommitAck must have 16 bytes, it has {size}")


@case("com/ack-fields", "5.1/answer-fields", quick=False)
async def ack_fields(c: Dialogue) -> None:
    """In the header of a CommitAck the fields that have no use are 0."""
    topic, end = await _filled(c)
    frame = await c.side.ask(
        commit_offset(topic.id, c.consumer, end), answer(Command.COMMIT_ACK, "5.14/ack")
    )
    said = frame.timestamp_ns, frame.record_count, frame.topic_id
    c.check(said == (0, 0, 0), "field:other", f"timestamp, count and topic must be 0: {said}")


@case("com/kept-for-others", "5.14/kept")
async def kept_for_others(c: Dialogue) -> None:
    """What was committed on one connection counts on every other one."""
    topic, end = await _filled(c)
    peer = await c.open()
    await _commit(c, topic, end, peer=peer)
    peer.drop()
    await _must_resume(c, topic, end)


@case("com/last-counts", "5.14/last")
async def last_counts(c: Dialogue) -> None:
    """Of several commits the last one counts."""
    topic, end = await _filled(c)
    await _commit(c, topic, 25)
    await _commit(c, topic, end)
    await _must_resume(c, topic, end)


@case("com/ack-is-true-going-back", "5.14/committed-offset", quick=False)
async def ack_is_true_going_back(c: Dialogue) -> None:
    """A commit behind the last one is taken or not; the CommitAck says which."""
    topic, end = await _filled(c)
    await _commit(c, topic, end)
    frame = await c.side.ask(
        commit_offset(topic.id, c.consumer, 25), commit_ack(c.consumer, 25, end, cite="5.14/ack")
    )
    said = read_consumer_at(frame.payload)
    await _must_resume(c, topic, said.offset if said else 25)


@case("com/consumers-apart", "5.14/by-consumer")
async def consumers_apart(c: Dialogue) -> None:
    """Each consumer has an offset of its own."""
    topic, end = await _filled(c)
    await _commit(c, topic, end)
    await _commit(c, topic, 25, c.consumer + 1)
    await _must_resume(c, topic, end)
    await _must_resume(c, topic, 25, c.consumer + 1)


@case("com/topics-apart", "5.14/by-topic")
async def topics_apart(c: Dialogue) -> None:
    """A consumer has an offset in each topic."""
    first, end = await _filled(c)
    second, _ = await _filled(c)
    await _commit(c, first, end)
    await _commit(c, second, 25)
    await _must_resume(c, first, end)
    await _must_resume(c, second, 25)


@case("com/zero", "5.14/zero", quick=False)
async def zero(c: Dialogue) -> None:
    """Committing 0 is committing: the consumer begins at the beginning again."""
    topic, end = await _filled(c)
    await _commit(c, topic, end)
    right = commit_ack(c.consumer, 0, cite="5.14/committed-offset")
    async with c.control("committing 0"):
        await c.side.ask(commit_offset(topic.id, c.consumer, 0), right)
    await _must_resume(c, topic, 0)


@case("com/largest-consumer-id", "5.14/consumer-id", quick=False)
async def largest_consumer_id(c: Dialogue) -> None:
    """A consumer id has 64 bits, all of which tell it from others."""
    topic, end = await _filled(c)
    await _commit(c, topic, end, LARGEST)
    await _must_resume(c, topic, 0, LARGEST - 2**63)
    await _must_resume(c, topic, end, LARGEST)


@case("com/large-offset", "5.14/offset", quick=False)
async def large_offset(c: Dialogue) -> None:
    """An offset has 64 bits: one beyond 2^53 comes back as it is, or the commit is refused."""
    topic, _ = await _filled(c)
    where = 2**53 + 1
    codes = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_OFFSET
    right = commit_ack(c.consumer, where, cite="5.14/offset")
    c.side.send(commit_offset(topic.id, c.consumer, where))
    refused = c.error(*codes, cite="12.2/offset-out-of-range")
    await c.expect(c.side, specified=[right, refused], deployed=[right])


@case("com/data-stays", "5.14/data-stays", quick=False)
async def data_stays(c: Dialogue) -> None:
    """A commit takes nothing away: what lies before it can be fetched again."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(4))
    await _commit(c, topic, len(payload))
    got = await c.fetch(topic, 0)
    c.check(got.data == payload, "data", "all records must still be there")


@case("com/pipelined", "5.14/pipelined", quick=False)
async def pipelined(c: Dialogue) -> None:
    """Commits in one write are acknowledged one by one, in their order."""
    topic, end = await _filled(c)
    offsets = 25, 50, end
    c.side.send(*(commit_offset(topic.id, c.consumer, offset) for offset in offsets))
    for offset in offsets:
        await c.side.expect(commit_ack(c.consumer, offset, cite="5.14/pipelined"))


@case("com/while-subscribed", "5.14/while-subscribed", quick=False)
async def while_subscribed(c: Dialogue) -> None:
    """A consumer commits on the connection on which it is subscribed."""
    topic, peer = await c.topic(), await c.open()
    async with c.control("subscribing"):
        await peer.ask(subscribe(topic.id, c.consumer), subscribe_ack(c.consumer, cite="5.12/ack"))
    right = commit_ack(c.consumer, 0, cite="5.14/while-subscribed")
    await peer.ask(commit_offset(topic.id, c.consumer, 0), right)


@case("com/outlives-subscription", "5.14/outlives-subscription", quick=False)
async def outlives_subscription(c: Dialogue) -> None:
    """Unsubscribe does not undo a commit."""
    topic, end = await _filled(c)
    peer = await c.open()
    async with c.control("subscribing at the end"):
        at_end = subscribe(topic.id, c.consumer, end)
        await peer.ask(at_end, subscribe_ack(c.consumer, cite="5.12/ack"))
    await _commit(c, topic, end, peer=peer)
    async with c.control("unsubscribing"):
        await peer.ask(unsubscribe(topic.id, c.consumer), ack(c.consumer, "AMB-22"))
    await _must_resume(c, topic, end)


@case("com/gone-with-topic", "5.14/gone-with-topic", quick=False)
async def gone_with_topic(c: Dialogue) -> None:
    """A new topic has no commits, whatever an earlier one of its name had."""
    first = await c.doomed_topic()
    await c.store(first, c.values(2))
    await _commit(c, first, 50)
    async with c.control("deleting the topic, and creating it again"):
        await c.side.ask(delete_topic(first.id), topic_response("5.6/delete"))
        frame = await c.side.ask(create_topic(first.name), topic_response("5.3/answer"))
    topic_id = (read_json(frame.payload) or {}).get("id")
    c.check(isinstance(topic_id, int), "field:id", f"the id of a topic is no {topic_id!r}")
    await _must_resume(c, Topic(topic_id or 0, first.name), 0)


@case("com/unknown-topic", "5.14/not-found", quick=False)
async def unknown_topic(c: Dialogue) -> None:
    """A commit for a topic that does not exist is refused.

    The published server does not look.
    """
    topic, end = await _filled(c)
    right = commit_offset(topic.id, c.consumer, end)
    await c.duel(
        right,
        replace(right, payload=commit_offset(c.unknown_topic, c.consumer, end).payload),
        answer=commit_ack(c.consumer, cite="5.14/ack"),
        specified=[c.error(ErrorCode.TOPIC_NOT_FOUND, cite="5.14/not-found")],
        deployed=[
            commit_ack(c.consumer, end, cite="AMB-36"),
            c.error(ErrorCode.TOPIC_NOT_FOUND, cite="5.14/not-found", text="not found"),
        ],
    )


@case("com/deleted-topic", "5.6/gone", dialects=("specified",), quick=False)
async def deleted_topic(c: Dialogue) -> None:
    """A commit for a topic that was deleted is refused."""
    topic = await c.doomed_topic()
    async with c.control("deleting a topic"):
        await c.side.ask(delete_topic(topic.id), topic_response("5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    await c.side.ask(
        commit_offset(topic.id, c.consumer, 25), c.error(*codes, cite="5.6/gone", text="not found")
    )
