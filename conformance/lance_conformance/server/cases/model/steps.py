"""Steps of a walk: one question, several in one write, and what needs a conversation."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.case_context import Topic
from lance_conformance.server.cases.model.facts import (
    Facts,
    Producer,
    SubscriptionFacts,
    TopicFacts,
)
from lance_conformance.server.cases.model.questions import (
    BESIDE,
    DECIDED,
    MIXED,
    REGISTERED,
    TOGETHER,
    TOGETHER_REGISTERED,
    Exchange,
    about,
    store,
    store_in,
)
from lance_conformance.server.cases.variation.common import holds
from lance_conformance.server.consumers import pushed_under, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import read_consumer_at, subscribe, unsubscribe
from lance_conformance.wire.control import (
    END_OFFSET,
    create_topic,
    create_topic_with_retention,
    delete_topic,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame
from lance_conformance.wire.tlv import boundaries

MOST = 6
"""Questions in one write."""
STABLE = ("id", "name", "created_at", "topic_epoch")
PUSHES, LARGER_PUSHES = (16, 64, 300, 65_536), (300, 5000, 65_536, 1 << 20)
"""Most bytes of a push; larger ones where much is pushed."""
READERS = 3
"""Subscriptions on one connection."""
LIMITS = (1 << 30, 1 << 40)
UNUSED = ("timestamp_ns", "record_count", "topic_id")
"""Fields that no answer uses."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that may happen at any time.

    Attributes:
        what: A key of `STEPS`.
        draw: Seed of everything else about it, so that it is the same when others are left out.
        words: What was asked when it was carried out last.
    """

    what: str
    draw: int
    words: list[str] = field(default_factory=list, compare=False)

    def __str__(self) -> str:
        return ", ".join(self.words) or self.what

    async def do(self, facts: Facts) -> None:
        """Carry it out."""
        facts.words = self.words
        self.words.clear()
        facts.rng = Random(self.draw)  # noqa: S311 - repeatable steps
        await STEPS[self.what](facts)


async def _put(facts: Facts, peer: Peer, exchanges: list[Exchange]) -> None:
    """Ask, all in one write, and judge each answer."""
    if len(exchanges) == 1 and exchanges[0].fault:
        peer.send_faulty(exchanges[0].frame, exchanges[0].fault)
    else:
        peer.send_bytes(b"".join(_encoded(facts, each.frame) for each in exchanges))
    facts.words += [each.words for each in exchanges]
    for each in exchanges:
        reply = await peer.frame(*each.allowed)
        if facts.mixed:
            _bare(facts, each, reply)
        each.judge(reply)


def _bare(facts: Facts, exchange: Exchange, reply: Frame) -> None:
    """The header of an answer has no more than its kind and its command or batch."""
    said = {name: getattr(reply, name) for name in UNUSED if getattr(reply, name)}
    facts.ctx.check(not said, "field:other", f"in the answer to {exchange.words}: {said}")


def _encoded(facts: Facts, frame: Frame) -> bytes:
    return frame.encode(facts.ctx.dialect.compute)


async def ask(facts: Facts) -> None:
    """One question."""
    facts.turn()
    kinds = MIXED if facts.mixed else REGISTERED if facts.strict else DECIDED
    exchange = kinds[facts.rng.choice(list(kinds))](facts)
    if exchange is not None:
        await _put(facts, facts.now.peer, [exchange])


async def write(facts: Facts) -> None:
    """One batch."""
    facts.turn()
    exchange = store(facts)
    if exchange is not None:
        await _put(facts, facts.now.peer, [exchange])


async def together(facts: Facts) -> None:
    """Several questions in one write."""
    facts.turn()
    kinds = facts.rng.choice(TOGETHER_REGISTERED if facts.strict else TOGETHER)
    drawn = (
        REGISTERED[facts.rng.choice(list(kinds))] for _ in range(facts.rng.randrange(2, MOST + 1))
    )
    found = [each for each in (question(facts) for question in drawn) if each]
    if found:
        await _put(facts, facts.now.peer, found)


# -- topics ----------------------------------------------------------------------------------------


async def create(facts: Facts) -> None:
    """A name that is free becomes a topic with an id of its own, also where it was one before."""
    free = [slot for slot in range(len(facts.names)) if slot not in facts.logs]
    if not free:
        return
    slot, peer, check = facts.rng.choice(free), facts.turn(), facts.ctx.check
    name, limited = facts.names[slot], facts.rng.random() < 0.3 and facts.can("retention")
    request = create_topic_with_retention(name, *LIMITS) if limited else create_topic(name)
    facts.words.append(f"create {name}")
    strange = facts.ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite="5.3/name-utf8-kept", text="name")
    odd = (strange,) if name != facts.names[0] and facts.strict else ()
    reply = await peer.ask(request, topic_response("5.3/answer"), *odd)
    if reply.batch_id == Command.ERROR_RESPONSE:
        return
    body = read_json(reply.payload) or {}
    topic_id, epoch = body.get("id"), body.get("topic_epoch")
    check(body.get("name") == name, "field:name", f"{name!r} was created, not {body.get('name')!r}")
    used = {log.topic.id for log in facts.logs.values()}
    used |= set(facts.deleted if facts.strict else ())
    fresh = isinstance(topic_id, int) and 0 < topic_id < 2**32 and topic_id not in used
    check(fresh, "field:id", f"the id of a new topic must be new, not {topic_id!r}")
    if facts.strict and isinstance(epoch, int):
        last = facts.epochs.get(slot, 0)
        check(epoch > last, "field:topic_epoch", f"topic_epoch must rise above {last}: {epoch}")
        facts.epochs[slot] = epoch
    told = {key: body[key] for key in STABLE if key in body}
    log = TopicFacts(Topic(int(topic_id or 0), name), told)
    log.limits = LIMITS if limited else None
    facts.logs[slot] = log


async def delete(facts: Facts) -> None:
    """A topic goes with its data, its commits and its subscriptions, and no other one."""
    if not facts.logs:
        return
    slot = facts.rng.choice(list(facts.logs))
    log, peer = facts.logs[slot], facts.turn()
    topic_id = log.topic.id
    facts.words.append(f"delete {topic_id}")
    await facts.ctx.confirm(log.topic)
    for subscriber, _ in facts.readers(log):
        await _caught_up(facts, subscriber)
    reply = await peer.ask(delete_topic(topic_id), topic_response("5.6/delete"))
    said = (read_json(reply.payload) or {}).get("deleted")
    facts.ctx.check(said == topic_id, "field:deleted", f"{topic_id} was deleted, not {said}")
    del facts.logs[slot]
    facts.deleted.append(topic_id)
    for subscriber, reader in list(facts.readers(log)):
        gone = facts.ctx.error(
            ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND, cite="5.12/push-ends", text="topic"
        )
        await subscriber.expect(gone)
        facts.subscribers[subscriber].remove(reader)


# -- subscriptions ---------------------------------------------------------------------------------


async def follow(facts: Facts) -> None:
    """A subscription begins where it must; where the target pushes, it goes on."""
    log = facts.log()
    if log is None or not facts.can("subscribe"):
        return
    bounds = LARGER_PUSHES if facts.mixed else PUSHES
    consumer, most = facts.rng.choice(facts.consumers), facts.rng.choice(bounds)
    starts = [0, 0, *log.ends] if facts.can("commits") else [*log.ends[1:], len(log.data)]
    if facts.strict and not log.closed:
        starts.append(END_OFFSET)
    start = facts.rng.choice(starts)
    if start == 0 and log.commits.get(consumer) and not facts.strict:
        return
    lasting = facts.strict and facts.can("push")
    peer = await _subscriber(facts, log) if lasting else await facts.ctx.open()
    at = log.commits.get(consumer, 0) if start == 0 else min(start, len(log.data))
    reader = SubscriptionFacts(log, consumer, at, most)
    await _begun(facts, peer, reader, start)
    if lasting:
        facts.subscribers.setdefault(peer, []).append(reader)
        await _caught_up(facts, peer)
    else:
        peer.drop()


async def _begun(facts: Facts, peer: Peer, reader: SubscriptionFacts, start: int) -> None:
    """Subscribe, and see that the subscription begins where the reader is."""
    log, consumer = reader.log, reader.consumer
    facts.words.append(f"subscribe {consumer:#x} to {log.topic.id} at {start}")
    request = subscribe(log.topic.id, consumer, start, reader.most)
    reply = await _answered(facts, peer, request, subscribe_ack(consumer, cite="5.12/ack"))
    said = read_consumer_at(reply.payload)
    told = f"a subscription at {start} of {len(log.data)} begins at {reader.at}: {said}"
    facts.ctx.check(said and said.offset == reader.at, "field:offset", told)


async def _subscriber(facts: Facts, log: TopicFacts) -> Peer:
    """A connection without a subscription to this topic; now and then one that has others."""
    free = [
        peer for peer, readers in facts.subscribers.items()
        if len(readers) < READERS and log not in [reader.log for reader in readers]
    ]  # fmt: skip
    return facts.rng.choice(free) if free and facts.rng.random() < 0.6 else await facts.ctx.open()


async def _answered(facts: Facts, peer: Peer, frame: Frame, right: Allowed) -> Frame:
    """Ask on a connection that may be pushed to at any time, once all pushes have come."""
    await _caught_up(facts, peer)
    return await peer.ask(frame, right)


async def _caught_up(facts: Facts, peer: Peer) -> None:
    """Take pushes until each subscription of a connection has all that is there."""
    readers = facts.subscribers.get(peer, ())
    while behind := [reader for reader in readers if reader.at < len(reader.log.data)]:
        frame = await peer.frame(
            *(pushed_under(each.log.topic.id, "5.12/push-topic") for each in behind)
        )
        reader = next(each for each in behind if each.log.topic.id == frame.topic_id)
        _judged(facts, peer, frame, reader)


def _judged(facts: Facts, peer: Peer, frame: Frame, reader: SubscriptionFacts) -> None:
    """One push must go on where the one before ended."""
    got, check = facts.ctx.read(peer, frame), facts.ctx.check
    rest = reader.log.data[reader.at :]
    ends = [end - reader.at for end in reader.log.ends if end > reader.at]
    told = f"a push of {len(got.data)} bytes from {reader.at} of topic {reader.log.topic.id}"
    check(got.data and rest.startswith(got.data), "data", f"{told} has other data")
    check(len(got.data) <= reader.most, "data-size", f"{told} is above {reader.most}")
    after = reader.at + len(got.data)
    check(got.next_offset == after, "field:next_offset", f"{told} goes on at {got.next_offset}")
    fits = bool(ends) and ends[0] <= reader.most
    whole = len(boundaries(got.data)) - 1
    check(len(got.data) in ends or not fits, "cut", f"{told} ends within a record")
    if got.record_count is not None and fits:
        check(got.record_count == whole, "field:record_count", f"{told} counts {got.record_count}")
    reader.at = after


async def unfollow(facts: Facts) -> None:
    """After an Unsubscribe nothing more comes of that topic; other subscriptions go on."""
    if not any(facts.subscribers.values()):
        return
    peer = facts.rng.choice([peer for peer, readers in facts.subscribers.items() if readers])
    reader = facts.rng.choice(facts.subscribers[peer])
    facts.words.append(f"unsubscribe {reader.consumer:#x} from {reader.log.topic.id}")
    right = unsubscribe_ack("5.13/ack")
    await _answered(facts, peer, unsubscribe(reader.log.topic.id, reader.consumer), right)
    facts.subscribers[peer].remove(reader)
    for log in (reader.log, *(other.log for other in facts.subscribers[peer])):
        if not log.closed:
            facts.turn()
            await _put(facts, facts.now.peer, [store_in(facts, log)])
    await _caught_up(facts, peer)
    await peer.expect_quiet("5.13/stops")


async def beside(facts: Facts) -> None:
    """A subscriber asks, is refused, and is pushed to as before."""
    peers = [peer for peer, readers in facts.subscribers.items() if readers]
    if not peers:
        return
    peer = facts.rng.choice(peers)
    await _caught_up(facts, peer)
    exchange = BESIDE[facts.rng.choice(list(BESIDE))](facts)
    if exchange is not None:
        await _put(facts, peer, [exchange])
    log = facts.subscribers[peer][0].log
    if not log.closed:
        facts.turn()
        await _put(facts, facts.now.peer, [store_in(facts, log)])
        await _caught_up(facts, peer)


async def catch_up(facts: Facts) -> None:
    """Every subscription has all that was stored."""
    for peer in list(facts.subscribers):
        await _caught_up(facts, peer)


# -- connections -----------------------------------------------------------------------------------


async def reconnect(facts: Facts) -> None:
    """A connection ends and another one takes its place: it counts its batches from 1 again."""
    place = facts.rng.randrange(len(facts.producers))
    facts.producers[place].peer.drop()
    facts.producers[place] = Producer(await facts.ctx.open())


async def leave(facts: Facts) -> None:
    """A subscriber goes away; its subscriptions end with it."""
    if facts.subscribers:
        peer = facts.rng.choice(list(facts.subscribers))
        del facts.subscribers[peer]
        peer.drop()


async def restart(facts: Facts) -> None:
    """The target ends and comes again: all is there but connections and subscriptions."""
    await facts.ctx.restart()
    facts.subscribers.clear()
    await facts.connect()
    for log in facts.logs.values():
        log.closed = True


async def inspect(facts: Facts) -> None:
    """Every topic is as it was told, holds what was stored there, and is known to its consumers."""
    for log in list(facts.logs.values()):
        facts.turn()
        await _put(facts, facts.now.peer, [about(facts, log)])
        await holds(facts.ctx, log.topic, log.data)
        for consumer, at in log.commits.items() if facts.strict and facts.can("subscribe") else ():
            await _begun(facts, await facts.ctx.open(), SubscriptionFacts(log, consumer, at, 64), 0)


STEPS: Mapping[str, Callable[[Facts], Awaitable[None]]] = {
    "create": create, "delete": delete, "ask": ask, "write": write, "together": together,
    "follow": follow, "unfollow": unfollow, "catch_up": catch_up, "reconnect": reconnect,
    "leave": leave, "restart": restart, "inspect": inspect, "beside": beside,
}  # fmt: skip
