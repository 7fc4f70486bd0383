"""Cases about what a server pushes to subscribers (LWP section 5.12, AMB-21)."""

from collections.abc import Callable

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.consumers import commit_ack, pushed, subscribe_ack
from lance_conformance.peer.dialogue import Dialogue, Topic
from lance_conformance.peer.expect import ack, answer
from lance_conformance.protocols.questions import Question
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import commit_offset, subscribe, unsubscribe
from lance_conformance.wire.control import END_OFFSET, delete_topic, fetch, ingest, read_json
from lance_conformance.wire.frame import Command, Kind
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

RECORD = RECORD_HEADER + 20
"""Bytes of one record as these cases write them."""


def push_case(case_id: str, clause: str) -> Callable[[Question], Question]:
    """Register a case for servers that push."""
    return case(case_id, clause, dialects=("specified",), needs=("push",), quick=False)


async def _subscribe(
    c: Dialogue, topic: Topic, start: int = 0, max_bytes: int = 65536, peer: Peer | None = None
) -> Peer:
    """Subscribe, on a connection of its own unless one is given."""
    peer = peer or await c.open()
    async with c.control("subscribing"):
        await peer.ask(
            subscribe(topic.id, c.consumer, start, max_bytes),
            subscribe_ack(c.consumer, cite="AMB-21"),
        )
    return peer


async def _pushed(c: Dialogue, peer: Peer, topic: Topic, size: int) -> bytes:
    """Collect pushes until there are so many bytes; their form is other cases' concern."""
    data = b""
    while len(data) < size:
        frame = await peer.frame(pushed(topic.id, "5.12/push"))
        more = c.read(peer, frame).data
        c.check(more, "data", "a push without data must not come")
        data += more
    return data


@push_case("sub/push-existing", "5.12/push")
async def existing(c: Dialogue) -> None:
    """Records that are there already are pushed to a new subscriber."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(3))
    data = await _pushed(c, await _subscribe(c, topic), topic, len(payload))
    c.check(data == payload, "data", "what is pushed must be what was stored")


@push_case("sub/push-new", "5.12/push-new")
async def new(c: Dialogue) -> None:
    """Records that are stored later are pushed as they come."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    for _ in range(2):
        payload = await c.store(topic, c.values(2))
        data = await _pushed(c, peer, topic, len(payload))
        c.check(data == payload, "data", "what is pushed must be what was stored")


@push_case("sub/push-topic-in-header", "5.12/push-topic")
async def topic_in_header(c: Dialogue) -> None:
    """The header of a push names its topic, by which it is told from an answer."""
    topic = await c.topic()
    await c.store(topic, c.values(1))
    peer = await _subscribe(c, topic)
    frame = await peer.frame(answer(Command.FETCH_RESPONSE, "5.12/push"))
    said = frame.topic_id
    c.check(said == topic.id, "field:topic_id", f"the header must name {topic.id}, not {said}")


@push_case("sub/push-from-offset", "5.12/push-start")
async def from_offset(c: Dialogue) -> None:
    """Pushing begins at the offset that was asked for."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(4))
    start = boundaries(payload)[2]
    peer = await _subscribe(c, topic, start)
    data = await _pushed(c, peer, topic, len(payload) - start)
    c.check(data == payload[start:], "data", f"pushing must begin at {start}")


@push_case("sub/push-from-commit", "5.12/resume")
async def from_commit(c: Dialogue) -> None:
    """A consumer that subscribes at 0 is pushed what lies behind its commit."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(4))
    start = boundaries(payload)[3]
    async with c.control("committing"):
        right = commit_ack(c.consumer, cite="5.14/ack")
        await c.side.ask(commit_offset(topic.id, c.consumer, start), right)
    data = await _pushed(c, await _subscribe(c, topic), topic, len(payload) - start)
    c.check(data == payload[start:], "data", f"pushing must begin at the commit, {start}")


@push_case("sub/push-from-end", "5.12/sentinel")
async def from_end(c: Dialogue) -> None:
    """A subscriber at 2^64-1 is pushed only what is stored from then on."""
    topic = await c.topic()
    await c.store(topic, c.values(3))
    peer = await _subscribe(c, topic, END_OFFSET)
    payload = await c.store(topic, c.values(1))
    data = await _pushed(c, peer, topic, len(payload))
    c.check(data == payload, "data", "only the last record must come")


@push_case("sub/push-max-bytes", "5.12/max-batch-bytes")
async def max_bytes(c: Dialogue) -> None:
    """No push brings more than Max Batch Bytes."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(6))
    limit = 2 * RECORD + 7
    peer = await _subscribe(c, topic, max_bytes=limit)
    seen = 0
    while seen < len(payload):
        size = len(c.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data)
        c.check(0 < size <= limit, "data-size", f"{size} bytes in a push of at most {limit}")
        seen += size


@push_case("sub/push-whole-records", "5.9/cut")
async def whole_records(c: Dialogue) -> None:
    """A push ends where a record ends whenever one fits."""
    topic = await c.topic()
    await c.store(topic, c.values(6))
    peer = await _subscribe(c, topic, max_bytes=2 * RECORD + 7)
    size = len(c.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).data)
    c.check(size == 2 * RECORD, "data-size", f"two records must come, {size} bytes came")


@push_case("sub/push-large-record", "5.9/cut-record")
async def large_record(c: Dialogue) -> None:
    """A record larger than Max Batch Bytes comes in pieces, and nothing of it is lost."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(2, 150))
    peer = await _subscribe(c, topic, max_bytes=100)
    data = await _pushed(c, peer, topic, len(payload))
    c.check(data == payload, "data", "the pieces must make up what was stored")


@push_case("sub/push-all-once", "5.12/push-once")
async def all_once(c: Dialogue) -> None:
    """Pushes bring every byte once, and each says where the next one begins."""
    topic = await c.topic()
    payload = await c.store(topic, c.values(5)) + await c.store(topic, c.values(5))
    peer = await _subscribe(c, topic, max_bytes=3 * RECORD)
    data = b""
    while len(data) < len(payload):
        got = c.read(peer, await peer.frame(pushed(topic.id, "5.12/push")))
        data += got.data
        where = got.next_offset
        c.check(where == len(data), "field:next_offset", f"must be {len(data)}, is {where}")
    c.check(data == payload, "data", "the pushes must make up what was stored")
    await peer.expect_quiet("5.12/push-once")


@push_case("sub/push-record-count", "5.9/record-count")
async def record_count(c: Dialogue) -> None:
    """The Record Count of a push is the number of whole records in it."""
    topic = await c.topic()
    await c.store(topic, c.values(6))
    peer = await _subscribe(c, topic, max_bytes=4 * RECORD)
    said = c.read(peer, await peer.frame(pushed(topic.id, "5.12/push"))).record_count
    c.check(said in (4, None), "field:record_count", f"must be 4, is {said}")


@push_case("sub/push-behind-ack", "5.12/ack-first")
async def behind_ack(c: Dialogue) -> None:
    """The SubscribeAck comes before the first push."""
    topic = await c.topic()
    await c.store(topic, c.values(2))
    peer = await c.open()
    peer.send(subscribe(topic.id, c.consumer))
    await peer.expect(subscribe_ack(c.consumer, cite="5.12/ack-first"))
    await peer.expect(pushed(topic.id, "5.12/push"))


@push_case("sub/push-stops", "5.13/stops")
async def stops(c: Dialogue) -> None:
    """Behind the Ack of an Unsubscribe nothing more is pushed."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    async with c.control("a push, and unsubscribing"):
        payload = await c.store(topic, c.values(1))
        await _pushed(c, peer, topic, len(payload))
        await peer.ask(unsubscribe(topic.id, c.consumer), ack(c.consumer, "AMB-22"))
    await c.store(topic, c.values(1))
    await peer.expect_quiet("5.13/stops")


@push_case("sub/push-other-goes-on", "5.13/only-that")
async def other_goes_on(c: Dialogue) -> None:
    """Unsubscribe ends one subscription, not the other ones of the connection."""
    first, second = await c.topic(), await c.topic()
    peer = await _subscribe(c, first)
    await _subscribe(c, second, peer=peer)
    async with c.control("unsubscribing"):
        await peer.ask(unsubscribe(first.id, c.consumer), ack(c.consumer, "AMB-22"))
    payload = await c.store(second, c.values(2))
    data = await _pushed(c, peer, second, len(payload))
    c.check(data == payload, "data", "the other topic must still be pushed")


@push_case("sub/push-two-topics", "5.12/each-topic")
async def two_topics(c: Dialogue) -> None:
    """What is stored in a topic is pushed under that topic only."""
    topics = [await c.topic(), await c.topic()]
    peer = await c.open()
    for topic in topics:
        await _subscribe(c, topic, peer=peer)
    for topic in reversed(topics):
        payload = await c.store(topic, c.values(2))
        data = await _pushed(c, peer, topic, len(payload))
        c.check(data == payload, "data", f"another record was pushed for topic {topic.id}")


@push_case("sub/push-to-everybody", "5.12/each-connection")
async def to_everybody(c: Dialogue) -> None:
    """Every subscriber of a topic is pushed every record."""
    topic = await c.topic()
    peers = [await _subscribe(c, topic) for _ in range(3)]
    payload = await c.store(topic, c.values(2))
    for peer in peers:
        data = await _pushed(c, peer, topic, len(payload))
        c.check(data == payload, "data", "each subscriber must get the same records")


@push_case("sub/push-only-subscribers", "5.12/asked-only")
async def only_subscribers(c: Dialogue) -> None:
    """A connection that did not subscribe is pushed nothing."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    payload = await c.store(topic, c.values(2))
    async with c.control("a push to the subscriber"):
        await _pushed(c, peer, topic, len(payload))
    await c.side.expect_quiet("5.12/asked-only")


@push_case("sub/push-own-writes", "5.12/push-own")
async def own_writes(c: Dialogue) -> None:
    """A subscriber that stores records is sent the Ack and the push."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    frame = ingest(topic.id, c.batch(), c.values(2))
    peer.send(frame)
    acked, push = ack(frame.batch_id, "5.12/push-own"), pushed(topic.id, "5.12/push-own")
    kinds = {(await peer.frame(acked, push)).kind for _ in range(2)}
    c.check(kinds == {Kind.ACK, Kind.CONTROL}, "count", f"one of each must come, not {kinds}")


@push_case("sub/push-twice-refused", "5.12/once-a-topic")
async def twice_refused(c: Dialogue) -> None:
    """A second subscription to the same topic on one connection is refused."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    again = subscribe(topic.id, c.consumer + 1)
    await peer.ask(again, c.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21"))


@push_case("sub/push-fetch-refused", "5.12/no-fetch-beside")
async def fetch_refused(c: Dialogue) -> None:
    """A Fetch on a connection that is pushed to is refused: its answer could not be told."""
    topic = await c.topic()
    peer = await _subscribe(c, topic)
    refused = c.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21")
    await peer.ask(fetch(topic.id, 0, 1024), refused)


@push_case("sub/push-zero-limit-refused", "5.12/max-batch-bytes")
async def zero_limit_refused(c: Dialogue) -> None:
    """A subscription whose batches may bring no byte is refused."""
    topic, peer = await c.topic(), await c.open()
    refused = c.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-21")
    await peer.ask(subscribe(topic.id, c.consumer, max_bytes=0), refused)


@push_case("sub/push-topic-deleted", "5.12/push-ends")
async def topic_deleted(c: Dialogue) -> None:
    """When its topic is deleted a subscription ends with an error that names the topic."""
    topic = await c.doomed_topic()
    peer = await _subscribe(c, topic)
    async with c.control("deleting a topic"):
        await c.side.ask(delete_topic(topic.id), answer(Command.TOPIC_RESPONSE, "5.6/delete"))
    codes = ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND
    frame = await peer.frame(c.error(*codes, cite="5.12/push-ends"))
    details = (read_json(frame.payload) or {}).get("details", {})
    said = details.get("topic_id")
    c.check(said == topic.id, "field:topic_id", f"details.topic_id must be {topic.id}: {said!r}")
