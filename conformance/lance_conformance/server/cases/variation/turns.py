"""Turns: what is done and undone many times leaves no trace, and nothing comes late."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, SPECIFIED
from lance_conformance.server.cases.variation.common import (
    NOT_FOUND,
    batches,
    created,
    holds,
    joined,
    register,
)
from lance_conformance.server.cases.variation.number import FEW, PUSHED, SYNCED, USUAL
from lance_conformance.server.cases.variation.waiting import pause
from lance_conformance.server.consumers import commit_ack, subscribe_ack, unsubscribe_ack
from lance_conformance.server.expect import ack, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import (
    commit_offset,
    read_consumer_at,
    subscribe,
    unsubscribe,
)
from lance_conformance.wire.control import (
    KEEPALIVE,
    control,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    set_retention,
)
from lance_conformance.wire.frame import Flag, Frame

COVERED = ("created-in-turn", 65)
"""Every usual run creates and deletes as many topics."""
SOON = 1.0
"""Seconds after which what comes late has come."""

# -- done and undone -------------------------------------------------------------------------------


async def _subscribed(ctx: CaseContext, count: int) -> None:
    """The last one is pushed what is stored."""
    topic, peer = await ctx.topic(), await ctx.open()
    for number in range(count):
        acked = subscribe_ack(ctx.consumer, 0, cite="5.13/ends")
        await peer.ask(subscribe(topic.id, ctx.consumer), acked)
        if number < count - 1:
            await peer.ask(unsubscribe(topic.id, ctx.consumer), unsubscribe_ack("5.13/ack"))
    payload = await ctx.store(topic, ctx.values(1))
    got = ctx.read(peer, await peer.frame(PUSHED)).data
    ctx.check(got == payload, "data", "what is pushed must be what was stored")


async def _hung_up(ctx: CaseContext, count: int) -> None:
    """Subscriptions end with their connections, and make room."""
    topic, peer = await ctx.topic(), await ctx.open()
    for number in range(count):
        peer.drop()
        peer = await ctx.open()
        acked = subscribe_ack(ctx.consumer + number, 0, cite="5.12/ends-with-connection")
        await peer.ask(subscribe(topic.id, ctx.consumer + number), acked)
    payload = await ctx.store(topic, ctx.values(1))
    got = ctx.read(peer, await peer.frame(PUSHED)).data
    ctx.check(got == payload, "data", "what is pushed must be what was stored")


async def _created(ctx: CaseContext, count: int) -> None:
    """Deleted topics take no room."""
    for _ in range(count):
        (topic,) = await created(ctx, 1, "5.6/gone")
        await ctx.confirm(topic)
        frame = batches(ctx, topic, 1)[0]
        await ctx.side.ask(frame, ack(frame.batch_id, "5.6/gone"))
        await ctx.side.ask(delete_topic(topic.id), topic_response("5.6/gone"))
    (last,) = await created(ctx, 1, "5.6/gone")
    frame = batches(ctx, last, 1)[0]
    await ctx.side.ask(frame, ack(frame.batch_id, "5.6/gone"))
    await holds(ctx, last, frame.payload)


async def _connected(ctx: CaseContext, count: int) -> None:
    """Each connection stores a batch and ends; their batches are all there."""
    topic = await ctx.topic()
    frames = batches(ctx, topic, count)
    for frame in frames:
        peer = await ctx.open()
        await peer.ask(frame, ack(frame.batch_id, "2.1/connections"))
        peer.drop()
    await holds(ctx, topic, joined(frames))


async def _committed(ctx: CaseContext, count: int) -> None:
    """Only the last commit counts."""
    topic = await ctx.topic()
    size = len(await ctx.store(topic, ctx.values(count, 8))) // count
    for place in (*range(1, count + 1), 2):
        acked = commit_ack(ctx.consumer, place * size, cite="5.14/last")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, place * size), acked)
    peer = await ctx.open()
    reply = await peer.ask(
        subscribe(topic.id, ctx.consumer), subscribe_ack(ctx.consumer, cite="5.12/ack")
    )
    said = read_consumer_at(reply.payload)
    told = f"committed {2 * size} after {count} others, resumed at {said}"
    ctx.check(said and said.offset == 2 * size, "field:offset", told)


async def _limited(ctx: CaseContext, count: int) -> None:
    """Each SetRetention is answered with what it set."""
    topic = await ctx.topic()
    for number in range(1, count + 1):
        reply = await ctx.side.ask(
            set_retention(topic.id, 1000 + number, (1 << 30) + number),
            topic_response("5.10/last-counts"),
        )
        wanted = f'"max_age_secs":{1000 + number}'.encode()
        told = reply.payload.replace(b" ", b"")
        ctx.check(wanted in told, "field:limits", f"{wanted!r} was set, {told!r} is told")


Turn = Callable[..., Awaitable[None]]
_TURNS: tuple[tuple[str, str, str, Turn, tuple[str, ...], tuple[str, ...]], ...] = (
    ("subscribed-in-turn", "5.13/ends", "A connection subscribes and unsubscribes {} times.",
     _subscribed, ("push",), SPECIFIED),
    ("hung-up-in-turn", "5.12/ends-with-connection",
     "{} connections subscribe and end; the last one is pushed to.",
     _hung_up, ("push",), SPECIFIED),
    ("created-in-turn", "5.6/gone", "After {} topics that were created and deleted one is created.",
     _created, (), BOTH),
    ("connected-in-turn", "2.1/connections", "{} connections come and go, each with a batch.",
     _connected, (), BOTH),
    ("committed-in-turn", "5.14/last", "Of {} commits of a consumer and one more the last counts.",
     _committed, (), SPECIFIED),
    ("limited-in-turn", "5.10/last-counts", "The limits of a topic are set {} times.",
     _limited, (), BOTH),
)  # fmt: skip
for _name, _clause, _title, _turn, _needs, _dialects in _TURNS:
    for _count in FEW:
        register(
            f"num/{_name}-{_count}", _clause, _title.format(_count), partial(_turn, count=_count),
            needs=_needs, dialects=_dialects, weight=2 + _count // SYNCED,
            thorough=_count not in USUAL or (_name, _count) == COVERED,
        )  # fmt: skip

# -- refused again and again -----------------------------------------------------------------------

Faulty = Callable[[CaseContext, int], Frame]


async def _refusals(ctx: CaseContext, faulty: Faulty, codes: tuple[int, ...], count: int) -> None:
    """Each is refused, and the connection serves as before."""
    topic, peer = await ctx.topic(), await ctx.open()
    refused = ctx.error(*codes, cite="12.1/stays")
    for _ in range(count):
        peer.send_faulty(faulty(ctx, topic.id), "payload")
        await peer.expect(refused)
    frame = batches(ctx, topic, 1)[0]
    await peer.ask(frame, ack(frame.batch_id, "12.1/stays"))
    await holds(ctx, topic, frame.payload)


def _miscounted(ctx: CaseContext, topic_id: int) -> Frame:
    right = ingest(topic_id, ctx.batch(), ctx.values(1))
    return replace(right, record_count=2)


BAD = (ErrorCode.INVALID_PAYLOAD,)
REFUSED: tuple[tuple[str, str, Faulty, tuple[int, ...], tuple[str, ...]], ...] = (
    ("unknown-commands", "unknown commands", lambda _, __: control(0x7E), BAD, BOTH),
    ("lost-batches", "batches for a topic that is not there",
     lambda ctx, _: ingest(ctx.unknown_topic, ctx.batch(), ctx.values(1)), NOT_FOUND, BOTH),
    ("miscounted-batches", "batches with a wrong record count", _miscounted, BAD, SPECIFIED),
    ("lost-fetches", "Fetches from a topic that is not there",
     lambda ctx, _: fetch(ctx.unknown_topic, 0, 64), NOT_FOUND, BOTH),
    ("bad-names", "names with a slash", lambda ctx, _: create_topic(ctx.name("/")),
     (ErrorCode.INVALID_TOPIC_NAME,), BOTH),
    ("short-payloads", "payloads that are short", lambda _, __: control(0x10, bytes(7)), BAD, BOTH),
)  # fmt: skip
for _name, _words, _faulty, _codes, _dialects in REFUSED:
    for _count in FEW:
        register(
            f"num/{_name}-{_count}", "12.1/stays",
            f"A connection is served after {_count} {_words}.",
            partial(_refusals, faulty=_faulty, codes=_codes, count=_count),
            dialects=_dialects, weight=2, twin_of="num/refusals-9",
        )  # fmt: skip

# -- nothing comes late ----------------------------------------------------------------------------

Stimulus = Callable[[CaseContext, Peer, int], Awaitable[None]]


async def _passed_over(ctx: CaseContext, peer: Peer, _topic: int, *, flag: Flag) -> None:
    del ctx
    peer.send_faulty(Frame(flags=flag, batch_id=7), "flags")


async def _told_no(ctx: CaseContext, peer: Peer, _topic: int, *, faulty: Faulty) -> None:
    peer.send_faulty(faulty(ctx, _topic), "payload")
    await peer.expect(ctx.error(*ANY_ERROR, cite="12.1/stays"))


async def _acked(ctx: CaseContext, peer: Peer, topic: int) -> None:
    frame = ingest(topic, ctx.batch(), ctx.values(1))
    await peer.ask(frame, ack(frame.batch_id))


async def _serves_on(ctx: CaseContext, stimulus: Stimulus, cite: str) -> None:
    """The connection is served a second later as at once, and nothing came meanwhile."""
    topic, peer = await ctx.topic(), await ctx.open()
    await stimulus(ctx, peer, topic.id)
    await peer.ask(KEEPALIVE, keepalive(cite))
    await pause(ctx, SOON)
    await peer.ask(KEEPALIVE, keepalive(cite))
    frame = ingest(topic.id, ctx.batch(), ctx.values(1))
    await peer.ask(frame, ack(frame.batch_id, cite))


LATE: tuple[tuple[str, str, str, Stimulus, tuple[str, ...]], ...] = (
    ("ack", "4.2/from-client", "An Ack from a client", partial(_passed_over, flag=Flag.ACK), BOTH),
    ("backpressure", "4.4/from-client", "A Backpressure from a client",
     partial(_passed_over, flag=Flag.BACKPRESSURE), BOTH),
    ("batch", "2.1/connections", "A batch", _acked, BOTH),
    *((f"refused-{name}", "12.1/stays", f"A refusal of {words}",
       partial(_told_no, faulty=faulty), dialects)
      for name, words, faulty, _, dialects in REFUSED),
)  # fmt: skip
for _name, _clause, _words, _stimulus, _dialects in LATE:
    register(
        f"wait/stays-after-{_name}", _clause,
        f"{_words} ends a connection neither at once nor later.",
        partial(_serves_on, stimulus=_stimulus, cite=_clause), seconds=SOON, dialects=_dialects,
    )  # fmt: skip


async def _kept(ctx: CaseContext) -> None:
    """Batches, commits and topics, and the deletion of one."""
    topic, payload = await ctx.filled(3)
    gone = await ctx.disposable_topic()
    size = len(payload) // 3
    async with ctx.precondition("committing and deleting"):
        acked = commit_ack(ctx.consumer, cite="5.14/ack")
        await ctx.side.ask(commit_offset(topic.id, ctx.consumer, size), acked)
        await ctx.side.ask(delete_topic(gone.id), topic_response("5.6/delete"))
    missing = ctx.error(*NOT_FOUND, cite="5.5/not-found", text="not found")
    await ctx.side.ask(get_topic(gone.id), missing)
    await pause(ctx, SOON)
    await holds(ctx, topic, payload)
    await ctx.side.ask(get_topic(gone.id), missing)
    await ctx.side.ask(get_topic(topic.id), topic_response("5.5/get"))
    peer = await ctx.open()
    acked = subscribe_ack(ctx.consumer, size, cite="5.14/kept")
    await peer.ask(subscribe(topic.id, ctx.consumer), acked)


register("wait/kept", "5.14/kept", "What was acknowledged is there a second later.", _kept,
         seconds=SOON, dialects=SPECIFIED)  # fmt: skip
