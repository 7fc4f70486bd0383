"""Cases about a coordinator of consumer groups; asked where the kit is told of one (AMB-38)."""

from collections.abc import Callable
from dataclasses import replace

from lance_conformance.engine.expectations import ANOTHER_KIND, Allowed
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import Event, answer
from lance_conformance.server.peer import Peer
from lance_conformance.wire.frame import Frame
from lance_conformance.wire.groups import (
    GroupCode,
    GroupCommand,
    Joined,
    commit,
    describe,
    heartbeat,
    join,
    leave,
    read_code,
    read_joined,
    read_result,
)


def group_case(case_id: str, clause: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for coordinators."""
    return case(case_id, clause, dialects=("specified",), needs=("groups",), quick=False)


def _refused(code: GroupCode, cite: str) -> Allowed:
    """A GroupError with this code."""

    def judge(event: Event) -> str | None:
        if not isinstance(event, Frame) or event.batch_id != GroupCommand.ERROR:
            return ANOTHER_KIND
        return None if read_code(event.payload) == code else "field:code"

    return Allowed(f"GroupError {code.name} ({code.value})", cite, judge)


async def _join(peer: Peer, frame: Frame, cite: str) -> Joined:
    reply = await peer.ask(frame, answer(GroupCommand.JOIN_ACK, cite))
    try:
        return read_joined(reply.payload)
    except ValueError as problem:
        raise peer.failure("body:too-short", str(problem)) from problem


async def _member(ctx: CaseContext) -> tuple[Peer, str, str]:
    """A connection that is a member, with the names of group and member."""
    peer, group = await ctx.open_coordinator(), ctx.name()
    async with ctx.precondition("joining a group"):
        await _join(peer, join(group, "first"), "16.3/join")
    return peer, group, "first"


@group_case("grp/join", "16.3/join")
async def joins(ctx: CaseContext) -> None:
    """A member that joins is told its name, and how often to show that it lives."""
    joined = await _join(await ctx.open_coordinator(), join(ctx.name(), "first"), "16.3/join")
    ctx.check(joined.member == "first", "field:member", f"it must be 'first': {joined.member!r}")
    within = 0 < joined.heartbeat_ms < joined.session_ms
    ctx.check(within, "field:heartbeat_interval_ms", f"a heartbeat must fit a session: {joined}")


@group_case("grp/nameless", "16.3/names")
async def nameless(ctx: CaseContext) -> None:
    """Members that want no name are given one each."""
    group, names = ctx.name(), []
    for _ in range(2):
        peer = await ctx.open_coordinator()
        names.append((await _join(peer, join(group, ""), "16.3/names")).member)
    right = all(names) and len(set(names)) == 2
    ctx.check(right, "field:member", f"two members must have two names: {names}")


@group_case("grp/name-taken", "16.3/name-taken")
async def name_taken(ctx: CaseContext) -> None:
    """The name of a member that is alive is not given to another connection."""
    _, group, name = await _member(ctx)
    other = await ctx.open_coordinator()
    await other.ask(join(group, name), _refused(GroupCode.NAME_TAKEN, "16.3/name-taken"))


@group_case("grp/unknown-strategy", "16.3/strategy")
async def unknown_strategy(ctx: CaseContext) -> None:
    """A strategy that the coordinator does not know is refused."""
    await _member(ctx)
    peer = await ctx.open_coordinator()
    wrong = join(ctx.name(), "first", strategy="by-the-moon")
    await peer.ask(wrong, _refused(GroupCode.STRATEGY_REFUSED, "16.3/strategy"))


@group_case("grp/heartbeat", "16.3/heartbeat")
async def beats(ctx: CaseContext) -> None:
    """The heartbeat of a member is answered."""
    peer, group, name = await _member(ctx)
    right = answer(GroupCommand.HEARTBEAT_ACK, "16.3/heartbeat")
    await peer.ask(heartbeat(group, name), right)


@group_case("grp/unknown-group", "16.3/unknown-group")
async def unknown_group(ctx: CaseContext) -> None:
    """A heartbeat for a group that nobody joined is refused."""
    peer, _, name = await _member(ctx)
    wrong = heartbeat(ctx.name(), name)
    await peer.ask(wrong, _refused(GroupCode.UNKNOWN_GROUP, "16.3/unknown-group"))


@group_case("grp/unknown-member", "16.3/unknown-member")
async def unknown_member(ctx: CaseContext) -> None:
    """A heartbeat of somebody who did not join is refused."""
    peer, group, _ = await _member(ctx)
    wrong = heartbeat(group, "somebody")
    await peer.ask(wrong, _refused(GroupCode.UNKNOWN_MEMBER, "16.3/unknown-member"))


@group_case("grp/leave", "16.3/leave")
async def leaves(ctx: CaseContext) -> None:
    """A member that left is no longer a member."""
    peer, group, name = await _member(ctx)
    async with ctx.precondition("leaving"):
        await peer.ask(leave(group, name), answer(GroupCommand.LEAVE_ACK, "16.3/leave"))
    gone = _refused(GroupCode.UNKNOWN_MEMBER, "16.3/leave")
    await peer.ask(heartbeat(group, name), gone)


@group_case("grp/commit-unknown-topic", "16.3/commit")
async def commit_unknown_topic(ctx: CaseContext) -> None:
    """A commit for a topic that is none of the group's is refused, topic by topic."""
    peer, group, name = await _member(ctx)
    reply = await peer.ask(
        commit(group, name, ctx.unknown_topic, 25), answer(GroupCommand.COMMIT_ACK, "16.3/commit")
    )
    code = read_result(reply.payload)
    right = code == GroupCode.UNKNOWN_TOPIC
    ctx.check(right, "field:code", f"the topic's code must be UNKNOWN_TOPIC (6), is {code}")


@group_case("grp/describe", "16.3/describe")
async def describes(ctx: CaseContext) -> None:
    """A description of a group names it and its members."""
    peer, group, name = await _member(ctx)
    reply = await peer.ask(describe(group), answer(GroupCommand.DESCRIPTION, "16.3/describe"))
    for word in (group, name):
        told = bytes((len(word),)) + word.encode() in reply.payload
        ctx.check(told, "field:member", f"{word!r} must be part of the description")


async def _sized(ctx: CaseContext, change: Callable[[bytes], bytes]) -> None:
    peer, group, name = await _member(ctx)
    right = heartbeat(group, name)
    wrong = replace(right, payload=change(right.payload))
    peer.send(wrong)
    await peer.expect(_refused(GroupCode.INVALID_REQUEST, "16.3/payload"))


@group_case("grp/short", "16.3/payload")
async def short(ctx: CaseContext) -> None:
    """A request that lacks its last byte is refused."""
    await _sized(ctx, lambda payload: payload[:-1])


@group_case("grp/long", "16.3/payload")
async def long(ctx: CaseContext) -> None:
    """A request with a byte too many is refused."""
    await _sized(ctx, lambda payload: payload + b"\0")
