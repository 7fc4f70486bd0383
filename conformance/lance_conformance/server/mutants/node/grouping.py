"""Coordinators that are wrong about the members of a group."""

import struct

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.groups import Members
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.registry import golden, mutant


@mutant(Specified.joined, only="specified")
def forgets_what_members_are_called(
    server: Specified, _name: str, generation: int, session_ms: int, /
) -> Reply:
    """A GroupJoinAck names another member."""
    return golden(server).joined("member", generation, session_ms)


@mutant(Specified.joined, only="specified")
def hears_members_too_seldom(
    server: Specified, name: str, generation: int, session_ms: int, /
) -> Reply:
    """A member is to be silent for longer than a session."""
    reply = golden(server).joined(name, generation, session_ms)
    at = 1 + len(name) + 13
    slow = struct.pack("<I", session_ms * 2)
    return reply._replace(payload=reply.payload[:at] + slow + reply.payload[at + 4 :])


@mutant(Specified.member_name, only="specified")
def calls_all_members_one(_server: Specified, asked: str, _members: Members, /) -> str:
    """Members that want no name are all called the same, and share it."""
    return asked or "member"


@mutant(Specified.member_name, only="specified")
def leaves_members_nameless(_server: Specified, asked: str, _members: Members, /) -> str:
    """A member that wants no name has none."""
    return asked


@mutant(Specified.name_free, only="specified")
def gives_names_away(_server: Specified, _members: Members, _name: str, /) -> bool:
    """A name goes to whoever joins last."""
    return True


@mutant(Specified.strategy_ok, only="specified")
def takes_any_strategy(_server: Specified, _name: str, /) -> bool:
    """A strategy that nobody knows is as good as any."""
    return True


@mutant(Specified.heard, only="specified")
def answers_heartbeats_with_leave(_server: Specified, generation: int, /) -> Reply:
    """A heartbeat is answered as a farewell."""
    return Reply(0x40, 0x6B, struct.pack("<Q", generation))


@mutant(Specified.members_of, only="specified")
def takes_missing_groups_for_empty_ones(server: Specified, group: str, /) -> Members:
    """A group that nobody joined has no members, and is there."""
    return server.memory.groups.get(group, {})


@mutant(Specified.known_member, only="specified")
def knows_everybody(_server: Specified, members: Members, name: str, /) -> None:
    """Whoever names a group is a member."""
    members.setdefault(name, _server.memory.speaker)


@mutant(Specified.left, only="specified")
def lets_nobody_leave(_server: Specified, _members: Members, _name: str, /) -> None:
    """A farewell is acknowledged, and nothing else."""


@mutant(Specified.commit_code, only="specified")
def commits_any_topic(_server: Specified, _topic_id: int, /) -> int:
    """A commit is recorded whatever the topic is."""
    return 0


@mutant(Specified.described, only="specified")
def describes_groups_without_members(server: Specified, group: str, _members: Members, /) -> Reply:
    """A description leaves the members out."""
    return golden(server).described(group, {})


@mutant(Specified.group_error, only="specified")
def refuses_members_for_no_reason(server: Specified, _code: int, /) -> Reply:
    """Every refusal has the code 0."""
    return golden(server).group_error(0)


@mutant(Specified.group_error, only="specified")
def calls_a_short_request_a_missing_member(server: Specified, code: int, /) -> Reply:
    """A request that cannot be read is one of a member who did not join."""
    return golden(server).group_error(3 if code == 1 else code)


@mutant(Specified.group_size_ok, only="specified")
def reads_on_behind_requests(_server: Specified, _left: bytes, /) -> bool:
    """What stands after a request is ignored."""
    return True
