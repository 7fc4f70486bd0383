"""Cases about several nodes of a cluster; asked where the kit is told of others (AMB-43)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, SPECIFIED, case
from lance_conformance.server.consumers import commit_ack, subscribe_ack
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import (
    CLUSTER_STATUS,
    commit_offset,
    read_consumer_at,
    subscribe,
)
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Frame, FrameKind

Status = Mapping[str, Any]
NONCE: Final = 7 << 40
"""From here on a batch id is known on every connection (AMB-25)."""
A_WEEK: Final = 604_800


def cluster_case(
    case_id: str, clause: str, dialects: tuple[str, ...] = BOTH
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for two nodes or more."""
    return case(case_id, clause, dialects=dialects, needs=("second-target",), quick=False)


async def _status(peer: Peer) -> Status:
    right = answer(Command.CLUSTER_STATUS_RESPONSE, "16.5/status")
    return read_json((await peer.ask(CLUSTER_STATUS, right)).payload) or {}


@dataclass(frozen=True, slots=True)
class Nodes:
    """The node that leads, and those that follow it."""

    leader: Peer
    followers: Sequence[Peer]


async def _statuses(ctx: CaseContext) -> list[Status]:
    return [await _status(peer) for peer in (ctx.side, *await ctx.open_others())]


async def _nodes(ctx: CaseContext) -> Nodes:
    """Connections to the node that leads and to those that follow."""
    async with ctx.precondition("the status of the nodes"):
        peers = [ctx.side, *await ctx.open_others()]
        leaders = [peer for peer in peers if (await _status(peer)).get("is_leader")]
    if not leaders:
        raise NotApplicable("none of the nodes leads; name the leader as one of them")
    return Nodes(leaders[0], [peer for peer in peers if peer is not leaders[0]])


@cluster_case("clu/ids-differ", "16.5/node-ids")
async def ids_differ(ctx: CaseContext) -> None:
    """Nodes have ids of their own."""
    said = [each.get("node_id") for each in await _statuses(ctx)]
    differ = all(said.count(each) == 1 for each in said)
    ctx.check(differ, "field:node_id", f"each node must have an id of its own: {said}")


@cluster_case("clu/one-leader", "16.5/one-leader")
async def one_leader(ctx: CaseContext) -> None:
    """At most one of the nodes says that it leads."""
    count = sum(bool(each.get("is_leader")) for each in await _statuses(ctx))
    ctx.check(count <= 1, "field:is_leader", f"{count} nodes say that they lead")


@cluster_case("clu/same-leader", "16.5/same-leader")
async def same_leader(ctx: CaseContext) -> None:
    """Nodes that know a leader name the same one."""
    said = {each.get("leader_id") for each in await _statuses(ctx)} - {None}
    ctx.check(
        len(said) <= 1,
        "field:leader_id",
        f"the nodes name several leaders: {sorted(map(str, said))}",
    )


def _not_leader(ctx: CaseContext, cite: str) -> Allowed:
    codes = ErrorCode.NOT_LEADER, ErrorCode.LEADER_UNKNOWN, ErrorCode.CLUSTER_NOT_READY
    return ctx.error(*codes, cite=cite, text="not_leader")


@cluster_case("clu/write-is-led", "12.2/not-leader")
async def write_is_led(ctx: CaseContext) -> None:
    """A follower refuses a batch as NotLeader, or hands it on: what it acknowledges is there."""
    nodes = await _nodes(ctx)
    topic, right = await _led_topic(ctx, nodes), b""
    for follower in nodes.followers:
        frame = ingest(topic, ctx.batch(), ctx.values(2))
        acked = ack(frame.batch_id, "12.2/not-leader")
        missing = ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="6.4/unknown-topic", text="topic")
        reply = await follower.ask(frame, acked, _not_leader(ctx, "12.2/not-leader"), missing)
        right += frame.payload if reply.kind is FrameKind.ACK else b""
        stored = await _all_of(ctx, nodes.leader, topic)
        held = f"the leader must hold {len(right)} bytes: {len(stored)}"
        ctx.check(stored == right, "data", held)


async def _led_topic(ctx: CaseContext, nodes: Nodes) -> int:
    """A topic created on the leader."""
    async with ctx.precondition("creating a topic on the leader"):
        created = await nodes.leader.ask(create_topic(ctx.name()), topic_response("5.3/answer"))
    return int((read_json(created.payload) or {}).get("id") or 0)


async def _all_of(ctx: CaseContext, peer: Peer, topic_id: int) -> bytes:
    fetched = answer(Command.FETCH_RESPONSE, "5.9/answer")
    return ctx.read(peer, await peer.ask(fetch(topic_id, 0, 65536), fetched)).data


@cluster_case("clu/retry-is-known", "10.4/retry-elsewhere", SPECIFIED)
async def retry_is_known(ctx: CaseContext) -> None:
    """A batch that the leader has acknowledged and a follower gets again is stored once."""
    nodes = await _nodes(ctx)
    frame = ingest(await _led_topic(ctx, nodes), NONCE + ctx.batch(), ctx.values(2))
    async with ctx.precondition("storing on the leader"):
        await nodes.leader.ask(frame, ack(frame.batch_id))
    for follower in nodes.followers:
        acked = ack(frame.batch_id, "10.4/retry-elsewhere")
        await follower.ask(frame, acked, _not_leader(ctx, "12.2/not-leader"))
        stored = len(await _all_of(ctx, nodes.leader, frame.topic_id))
        once = len(frame.payload)
        ctx.check(stored == once, "data", f"{once} bytes were sent again, {stored} are stored")


@cluster_case("clu/commit-is-known", "5.14/kept", SPECIFIED)
async def commit_is_known(ctx: CaseContext) -> None:
    """A consumer goes on at its commit on every node."""
    nodes = await _nodes(ctx)
    frame = ingest(await _led_topic(ctx, nodes), ctx.batch(), ctx.values(2))
    end = len(frame.payload)
    async with ctx.precondition("storing and committing on the leader"):
        await nodes.leader.ask(frame, ack(frame.batch_id))
        right = commit_ack(ctx.consumer, cite="5.14/ack")
        await nodes.leader.ask(commit_offset(frame.topic_id, ctx.consumer, end), right)
    for follower in nodes.followers:
        acked = subscribe_ack(ctx.consumer, cite="5.14/kept")
        reply = await follower.ask(subscribe(frame.topic_id, ctx.consumer), acked)
        said = read_consumer_at(reply.payload)
        where = said.offset if said else None
        ctx.check(where == end, "field:offset", f"the consumer must go on at {end}, not at {where}")


@cluster_case("clu/create-is-led", "12.2/not-leader-create")
async def create_is_led(ctx: CaseContext) -> None:
    """A follower refuses CreateTopic as NotLeader, or hands it on: the leader has the topic."""
    nodes = await _nodes(ctx)
    right = topic_response("5.3/answer")
    refused = _not_leader(ctx, "12.2/not-leader-create")
    for follower in nodes.followers:
        reply = await follower.ask(create_topic(ctx.name()), right, refused)
        if reply.batch_id == Command.TOPIC_RESPONSE:
            topic_id = int((read_json(reply.payload) or {}).get("id") or 0)
            await nodes.leader.ask(get_topic(topic_id), topic_response("12.2/not-leader-create"))


@cluster_case("clu/delete-is-led", "12.2/not-leader-delete")
async def delete_is_led(ctx: CaseContext) -> None:
    """A follower refuses DeleteTopic as NotLeader, or hands it on: then the topic is gone."""
    nodes = await _nodes(ctx)
    cite = "12.2/not-leader-delete"
    gone = ctx.error(
        ErrorCode.TOPIC_DELETED, ErrorCode.TOPIC_NOT_FOUND, cite=cite, text="not found"
    )
    for follower in nodes.followers:
        topic = await _led_topic(ctx, nodes)
        right, refused = topic_response("5.6/delete"), _not_leader(ctx, cite)
        reply = await follower.ask(delete_topic(topic), right, refused)
        if reply.batch_id == Command.TOPIC_RESPONSE:
            await nodes.leader.ask(get_topic(topic), gone)


@cluster_case("clu/retention-is-led", "12.2/not-leader-retention")
async def retention_is_led(ctx: CaseContext) -> None:
    """A follower refuses SetRetention as NotLeader, or hands it on: then it is the topic's."""
    nodes = await _nodes(ctx)
    cite = "12.2/not-leader-retention"
    for place, follower in enumerate(nodes.followers):
        topic, age = await _led_topic(ctx, nodes), A_WEEK + place
        right, refused = topic_response("5.10/answer"), _not_leader(ctx, cite)
        reply = await follower.ask(set_retention(topic, age, 0), right, refused)
        if reply.batch_id == Command.TOPIC_RESPONSE:
            told = await nodes.leader.ask(get_topic(topic), topic_response(cite))
            kept = (read_json(told.payload) or {}).get("max_age_secs", age)  # not all tell it
            ctx.check(kept == age, "field:retention", f"max_age_secs must be {age}, not {kept}")


@cluster_case("clu/leader-address", "12.3/leader-address")
async def leader_address(ctx: CaseContext) -> None:
    """NotLeader says where the leader is: an address that a client can connect to."""
    nodes = await _nodes(ctx)
    for reply in await _refused_writes(ctx, nodes):
        said = _address(ctx, reply)
        host, _, port = said.rpartition(":")
        right = bool(host) and port.isdecimal() and 0 < int(port) < 65536
        ctx.check(right, "field:leader_addr", f"the leader's HOST:PORT must come: {said!r}")


async def _refused_writes(ctx: CaseContext, nodes: Nodes) -> list[Frame]:
    """What followers say to a batch."""
    topic, replies = await _led_topic(ctx, nodes), []
    for follower in nodes.followers:
        frame = ingest(topic, ctx.batch(), ctx.values(1))
        refused = answer(Command.ERROR_RESPONSE, "12.2/not-leader")
        reply = await follower.ask(frame, refused, ack(frame.batch_id, "12.2/not-leader"))
        if reply.kind is not FrameKind.ACK:
            replies.append(reply)
    if not replies:
        raise NotApplicable("the followers hand writes on to the leader")
    return replies


def _address(ctx: CaseContext, reply: Frame) -> str:
    if ctx.dialect.errors == "json":
        details = (read_json(reply.payload) or {}).get("details")
        return str(details.get("leader_addr", "")) if isinstance(details, dict) else ""
    words = reply.payload.decode(errors="replace")
    return words.rpartition("redirect to ")[2].strip()


@cluster_case("clu/reads-agree", "5.8/every-node")
async def reads_agree(ctx: CaseContext) -> None:
    """What a follower brings of a topic is what the leader has, as far as it goes."""
    nodes = await _nodes(ctx)
    topic = await _led_topic(ctx, nodes)
    frame = ingest(topic, ctx.batch(), ctx.values(3))
    async with ctx.precondition("storing on the leader"):
        await nodes.leader.ask(frame, ack(frame.batch_id))
    fetched, behind = (
        answer(command, "5.8/every-node")
        for command in (Command.FETCH_RESPONSE, Command.CATCHING_UP)
    )
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.NOT_LEADER, ErrorCode.LEADER_UNKNOWN
    absent = ctx.error(*codes, cite="12.2/not-leader")
    for follower in nodes.followers:
        reply = await follower.ask(fetch(topic, 0, 65536), fetched, behind, absent)
        if reply.batch_id == Command.FETCH_RESPONSE:
            data = ctx.read(follower, reply).data
            extra = f"{len(data)} bytes the leader has not"
            ctx.check(frame.payload.startswith(data), "data", extra)


@cluster_case("clu/topics-agree", "5.4/every-node")
async def topics_agree(ctx: CaseContext) -> None:
    """An id is one topic on every node: where a follower lists it, it has the leader's name."""
    nodes = await _nodes(ctx)
    name = ctx.name()
    async with ctx.precondition("creating a topic on the leader"):
        created = await nodes.leader.ask(create_topic(name), topic_response("5.3/answer"))
    topic_id = (read_json(created.payload) or {}).get("id")
    for follower in nodes.followers:
        reply = await follower.ask(LIST_TOPICS, topic_response("5.4/every-node"))
        topics = (read_json(reply.payload) or {}).get("topics")
        listed = [topic for topic in topics or [] if isinstance(topic, dict)]
        names = [topic.get("name") for topic in listed if topic.get("id") == topic_id]
        ctx.check(names in ([], [name]), "field:name", f"topic {topic_id} is {name!r}, not {names}")
