"""Cases about two nodes of a cluster; asked where the kit is told of a second one (AMB-43)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import BOTH, case
from lance_conformance.server.expect import ack, answer, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.consumers import CLUSTER_STATUS
from lance_conformance.wire.control import (
    LIST_TOPICS,
    create_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame, FrameKind

Status = Mapping[str, Any]


def cluster_case(
    case_id: str, clause: str, dialects: tuple[str, ...] = BOTH
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for two nodes."""
    return case(case_id, clause, dialects=dialects, needs=("second-target",), quick=False)


async def _status(peer: Peer) -> Status:
    right = answer(Command.CLUSTER_STATUS_RESPONSE, "16.5/status")
    return read_json((await peer.ask(CLUSTER_STATUS, right)).payload) or {}


@dataclass(frozen=True, slots=True)
class Pair:
    """Both nodes, each with its status."""

    leader: Peer
    follower: Peer


async def _statuses(ctx: CaseContext) -> tuple[Status, Status]:
    return await _status(ctx.side), await _status(await ctx.open_second())


async def _pair(ctx: CaseContext) -> Pair:
    """Connections to the node that leads and to the one that follows."""
    async with ctx.precondition("the status of both nodes"):
        second = await ctx.open_second()
        own, other = await _status(ctx.side), await _status(second)
    if own.get("is_leader"):
        return Pair(ctx.side, second)
    if other.get("is_leader"):
        return Pair(second, ctx.side)
    raise NotApplicable("neither of the two nodes leads; name the leader as one of them")


@cluster_case("clu/ids-differ", "16.5/node-ids")
async def ids_differ(ctx: CaseContext) -> None:
    """Two nodes have two ids."""
    own, other = await _statuses(ctx)
    said = own.get("node_id"), other.get("node_id")
    ctx.check(said[0] != said[1], "field:node_id", f"two nodes must have two ids: {said}")


@cluster_case("clu/one-leader", "16.5/one-leader")
async def one_leader(ctx: CaseContext) -> None:
    """At most one of two nodes says that it leads."""
    own, other = await _statuses(ctx)
    both = bool(own.get("is_leader") and other.get("is_leader"))
    ctx.check(not both, "field:is_leader", "both nodes say that they lead")


@cluster_case("clu/same-leader", "16.5/same-leader")
async def same_leader(ctx: CaseContext) -> None:
    """Two nodes that know a leader name the same one."""
    own, other = await _statuses(ctx)
    said = {own.get("leader_id"), other.get("leader_id")} - {None}
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
    pair = await _pair(ctx)
    topic = await _led_topic(ctx, pair)
    frame = ingest(topic, ctx.batch(), ctx.values(2))
    acked = ack(frame.batch_id, "12.2/not-leader")
    missing = ctx.error(ErrorCode.TOPIC_NOT_FOUND, cite="6.4/unknown-topic", text="topic")
    reply = await pair.follower.ask(frame, acked, _not_leader(ctx, "12.2/not-leader"), missing)
    stored = await _all_of(ctx, pair.leader, topic)
    right = frame.payload if reply.kind is FrameKind.ACK else b""
    ctx.check(stored == right, "data", f"the leader must hold {len(right)} bytes: {len(stored)}")


async def _led_topic(ctx: CaseContext, pair: Pair) -> int:
    """A topic created on the leader."""
    async with ctx.precondition("creating a topic on the leader"):
        created = await pair.leader.ask(create_topic(ctx.name()), topic_response("5.3/answer"))
    return int((read_json(created.payload) or {}).get("id") or 0)


async def _all_of(ctx: CaseContext, peer: Peer, topic_id: int) -> bytes:
    fetched = answer(Command.FETCH_RESPONSE, "5.9/answer")
    return ctx.read(peer, await peer.ask(fetch(topic_id, 0, 65536), fetched)).data


@cluster_case("clu/create-is-led", "12.2/not-leader-create")
async def create_is_led(ctx: CaseContext) -> None:
    """A follower refuses CreateTopic as NotLeader, or hands it on: the leader has the topic."""
    pair = await _pair(ctx)
    right = topic_response("5.3/answer")
    refused = _not_leader(ctx, "12.2/not-leader-create")
    reply = await pair.follower.ask(create_topic(ctx.name()), right, refused)
    if reply.batch_id == Command.TOPIC_RESPONSE:
        topic_id = int((read_json(reply.payload) or {}).get("id") or 0)
        await pair.leader.ask(get_topic(topic_id), topic_response("12.2/not-leader-create"))


@cluster_case("clu/leader-address", "12.3/leader-address")
async def leader_address(ctx: CaseContext) -> None:
    """NotLeader says where the leader is: an address that a client can connect to."""
    pair = await _pair(ctx)
    reply = await _refused_write(ctx, pair)
    said = _address(ctx, reply)
    host, _, port = said.rpartition(":")
    right = bool(host) and port.isdecimal() and 0 < int(port) < 65536
    ctx.check(right, "field:leader_addr", f"the leader's HOST:PORT must come: {said!r}")


async def _refused_write(ctx: CaseContext, pair: Pair) -> Frame:
    """What a follower says to a batch."""
    frame = ingest(await _led_topic(ctx, pair), ctx.batch(), ctx.values(1))
    refused = answer(Command.ERROR_RESPONSE, "12.2/not-leader")
    reply = await pair.follower.ask(frame, refused, ack(frame.batch_id, "12.2/not-leader"))
    if reply.kind is FrameKind.ACK:
        raise NotApplicable("the follower hands writes on to the leader")
    return reply


def _address(ctx: CaseContext, reply: Frame) -> str:
    if ctx.dialect.errors == "json":
        details = (read_json(reply.payload) or {}).get("details")
        return str(details.get("leader_addr", "")) if isinstance(details, dict) else ""
    words = reply.payload.decode(errors="replace")
    return words.rpartition("redirect to ")[2].strip()


@cluster_case("clu/reads-agree", "5.8/every-node")
async def reads_agree(ctx: CaseContext) -> None:
    """What a follower brings of a topic is what the leader has, as far as it goes."""
    pair = await _pair(ctx)
    topic = await _led_topic(ctx, pair)
    frame = ingest(topic, ctx.batch(), ctx.values(3))
    async with ctx.precondition("storing on the leader"):
        await pair.leader.ask(frame, ack(frame.batch_id))
    fetched, behind = (
        answer(command, "5.8/every-node")
        for command in (Command.FETCH_RESPONSE, Command.CATCHING_UP)
    )
    codes = ErrorCode.TOPIC_NOT_FOUND, ErrorCode.NOT_LEADER, ErrorCode.LEADER_UNKNOWN
    absent = ctx.error(*codes, cite="12.2/not-leader")
    reply = await pair.follower.ask(fetch(topic, 0, 65536), fetched, behind, absent)
    if reply.batch_id == Command.FETCH_RESPONSE:
        data = ctx.read(pair.follower, reply).data
        ctx.check(frame.payload.startswith(data), "data", f"{len(data)} bytes the leader has not")


@cluster_case("clu/topics-agree", "5.4/every-node")
async def topics_agree(ctx: CaseContext) -> None:
    """An id is one topic on every node: where a follower lists it, it has the leader's name."""
    pair = await _pair(ctx)
    name = ctx.name()
    async with ctx.precondition("creating a topic on the leader"):
        created = await pair.leader.ask(create_topic(name), topic_response("5.3/answer"))
    topic_id = (read_json(created.payload) or {}).get("id")
    reply = await pair.follower.ask(LIST_TOPICS, topic_response("5.4/every-node"))
    topics = (read_json(reply.payload) or {}).get("topics")
    listed = [topic for topic in topics or [] if isinstance(topic, dict)]
    names = [topic.get("name") for topic in listed if topic.get("id") == topic_id]
    ctx.check(names in ([], [name]), "field:name", f"topic {topic_id} is {name!r}, not {names}")
