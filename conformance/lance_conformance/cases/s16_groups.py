"""Cases about a coordinator of consumer groups; asked where the kit is told of one (AMB-38)."""

from collections.abc import Callable
from dataclasses import replace

from lance_conformance.cases.registry import case
from lance_conformance.peer.conn import Peer
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.peer.expect import Event, answer
from lance_conformance.protocols.outcomes import ANOTHER_KIND, Allowed
from lance_conformance.protocols.questions import Question
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


def group_case(case_id: str, clause: str) -> Callable[[Question], Question]:
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


async def _member(c: Dialogue) -> tuple[Peer, str, str]:
    """A connection that is a member, with the names of group and member."""
    peer, group = await c.open_coordinator(), c.name()
    async with c.control("joining a group"):
        await _join(peer, join(group, "first"), "16.3/join")
    return peer, group, "first"


@group_case("grp/join", "16.3/join")
async def joins(c: Dialogue) -> None:
    """A member that joins is told its name, and how often to show that it lives."""
    joined = await _join(await c.open_coordinator(), join(c.name(), "first"), "16.3/join")
    c.check(joined.member == "first", "field:member", f"it must be 'first': {joined.member!r}")
    within = 0 < joined.heartbeat_ms < joined.session_ms
    c.check(within, "field:heartbeat_interval_ms", f"a heartbeat must fit a session: {joined}")


@group_case("grp/nameless", "16.3/names")
async def nameless(c: Dialogue) -> None:
    """Members that want no name are given one each."""
    group, names = c.name(), []
    for _ in range(2):
        peer = await c.open_coordinator()
        names.append((await _join(peer, join(group, ""), "16.3/names")).member)
    right = all(names) and len(set(names)) == 2
    c.check(right, "field:member", f"two members must have two names: {names}")


@group_case("grp/name-taken", "16.3/name-taken")
async def name_taken(c: Dialogue) -> None:
    """The name of a member that is alive is not given to another connection."""
    _, group, name = await _member(c)
    other = await c.open_coordinator()
    await other.ask(join(group, name), _refused(GroupCode.NAME_TAKEN, "16.3/name-taken"))


@group_case("grp/unknown-strategy", "16.3/strategy")
async def unknown_strategy(c: Dialogue) -> None:
    """A strategy that the coordinator does not know is refused."""
    await _member(c)
    peer = await c.open_coordinator()
    wrong = join(c.name(), "first", strategy="by-the-moon")
    await peer.ask(wrong, _refused(GroupCode.STRATEGY_REFUSED, "16.3/strategy"))


@group_case("grp/heartbeat", "16.3/heartbeat")
async def beats(c: Dialogue) -> None:
    """The heartbeat of a member is answered."""
    peer, group, name = await _member(c)
    right = answer(GroupCommand.HEARTBEAT_ACK, "16.3/heartbeat")
    await peer.ask(heartbeat(group, name), right)


@group_case("grp/unknown-group", "16.3/unknown-group")
async def unknown_group(c: Dialogue) -> None:
    """A heartbeat for a group that nobody joined is refused."""
    peer, _, name = await _member(c)
    wrong = heartbeat(c.name(), name)
    await peer.ask(wrong, _refused(GroupCode.UNKNOWN_GROUP, "16.3/unknown-group"))


@group_case("grp/unknown-member", "16.3/unknown-member")
async def unknown_member(c: Dialogue) -> None:
    """A heartbeat of somebody who did not join is refused."""
    peer, group, _ = await _member(c)
    wrong = heartbeat(group, "somebody")
    await peer.ask(wrong, _refused(GroupCode.UNKNOWN_MEMBER, "16.3/unknown-member"))


@group_case("grp/leave", "16.3/leave")
async def leaves(c: Dialogue) -> None:
    """A member that left is no member any more."""
    peer, group, name = await _member(c)
    async with c.control("leaving"):
        await peer.ask(leave(group, name), answer(GroupCommand.LEAVE_ACK, "16.3/leave"))
    gone = _refused(GroupCode.UNKNOWN_MEMBER, "16.3/leave")
    await peer.ask(heartbeat(group, name), gone)


@group_case("grp/commit-unknown-topic", "16.3/commit")
async def commit_unknown_topic(c: Dialogue) -> None:
    """A commit for a topic that is none of the group's is refused, topic by topic."""
    peer, group, name = await _member(c)
    reply = await peer.ask(
        commit(group, name, c.unknown_topic, 25), answer(GroupCommand.COMMIT_ACK, "16.3/commit")
    )
    code = read_result(reply.payload)
    right = code == GroupCode.UNKNOWN_TOPIC
    c.check(right, "field:code", f"the topic's code must be UNKNOWN_TOPIC (6), is {code}")


@group_case("grp/describe", "16.3/describe")
async def describes(c: Dialogue) -> None:
    """A description of a group names it and its members."""
    peer, group, name = await _member(c)
    reply = await peer.ask(describe(group), answer(GroupCommand.DESCRIPTION, "16.3/describe"))
    for word in (group, name):
        told = bytes((len(word),)) + word.encode() in reply.payload
        c.check(told, "field:member", f"{word!r} must be part of the description")


async def _sized(c: Dialogue, change: Callable[[bytes], bytes]) -> None:
    peer, group, name = await _member(c)
    right = heartbeat(group, name)
    wrong = replace(right, payload=change(right.payload))
    peer.send(wrong)
    await peer.expect(_refused(GroupCode.INVALID_REQUEST, "16.3/payload"))


@group_case("grp/short", "16.3/payload")
async def short(c: Dialogue) -> None:
    """A request that lacks its last byte is refused."""
    await _sized(c, lambda payload: payload[:-1])


@group_case("grp/long", "16.3/payload")
async def long(c: Dialogue) -> None:
    """A request with a byte too many is refused."""
    await _sized(c, lambda payload: payload + b"\0")
