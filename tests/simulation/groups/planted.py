"""Faults that are planted, to see whether the search finds them.

Each is a mistake that somebody could make, or made: those of the first release among them.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from lance_sdk._errors.base import LanceError
from lance_sdk.groups._coordinator.service import GroupService
from lance_sdk.groups._member.member_reader import MemberReader
from lance_sdk.groups._member.progress import TopicProgress
from lance_sdk.groups._protocol.group import Group
from lance_sdk.groups._protocol.group_metadata import Joining, Topic
from lance_sdk.groups._protocol.host_fetcher import HostFetcher, TopicFetch
from lance_sdk.groups._protocol.member import MemberHandler
from lance_sdk.groups._protocol.membership import CommitCall, MembershipPhase
from lance_sdk.groups._protocol.multi_fetcher import MultiFetcher
from lance_sdk.groups.errors import NotAMember
from lance_sdk.offsets import Commit, TopicIdentity
from lance_spec.messages.groups import GroupErrorCode

Patch = Any
_kept, _fence, _synced, _request = (
    MemberHandler._kept,
    MemberHandler._fence,
    MemberHandler._synced,
    MemberHandler._request,
)
_take, _introduce, _lost = MultiFetcher.take, HostFetcher._introduce, TopicFetch.lost
_place_commits, _begin, _end = MemberReader.place_commits, Group.begin_commit, Group.end_commit
_sync, _join, _tick, _rebalance = Group.sync, Group.join, Group.tick, Group._rebalance
_commit, _keep, _was_committed = TopicProgress.commit, GroupService._keep, MemberReader.committed


def _dying_member(member: MemberHandler, call: Any, error: LanceError, now: float) -> bool:
    if isinstance(error, NotAMember) and member.phase is MembershipPhase.OUTSIDE:
        member.changes.fail(error)
        return False
    return _kept(member, call, error, now)


def _silenced(core: MultiFetcher) -> Any:
    return None if core.errors() else _take(core)


def _ended_by_outage(host: HostFetcher, lane: TopicFetch, connection: Any, now: float) -> None:
    if not getattr(lane.fetcher, "was_lost", False):
        _introduce(host, lane, connection, now)


def _ask_here_again(core: MultiFetcher, fetch: TopicFetch, error: Any, now: float) -> None:
    del core, error
    fetch.lost(now)
    fetch.retry_at = now + 1.0


def _losing(lane: TopicFetch, now: float) -> None:
    lane.fetcher.was_lost = lane.known  # type: ignore[attr-defined]
    _lost(lane, now)


def _end_not_committed(reading: MemberReader) -> list[Commit]:
    reading.submitted(_place_commits(reading))
    return []


def _stamped_when_sent(member: MemberHandler, call: Any, command: Any, expects: Any) -> Any:
    if isinstance(call, CommitCall):
        call.commits = tuple(replace(each, generation=member.generation) for each in call.commits)
    return _request(member, call, command, expects)


def _without_sequence(group: Group, member: Any, commit: Commit, sequence: int = 0) -> Any:
    del sequence
    return _begin(group, member, commit, 0)


def _without_owner(group: Group, member: Any, commit: Commit, sequence: int = 0) -> Any:
    topic = group.topics.get(commit.topic.id)
    if topic is None or topic.owner == member.name:
        return _begin(group, member, commit, sequence)
    topic.saving += 1
    member.busy += 1
    return None


def _without_since(group: Group, member: Any, commit: Commit, sequence: int = 0) -> Any:
    topic = group.topics.get(commit.topic.id)
    if topic is not None and topic.owner == member.name:
        commit = replace(commit, generation=max(commit.generation, topic.since))
    return _begin(group, member, commit, sequence)


def _awake(member: MemberHandler, now: float) -> None:
    asleep, member._asleep = member._asleep, float
    _fence(member, now)
    member._asleep = asleep


def _by_link_alone(group: Group, member: Any, link: object, secret: int = 0) -> None:
    del secret
    _check_link(group, member, link)


_check_link = Group._check_link


def _release_at_once(topic: Topic) -> None:
    topic.owner, topic.release_by = None, float("inf")


def _position_kept(group: Group, member: Any, commit: Commit, now: float, **rest: Any) -> None:
    topic = group.topics.get(commit.topic.id)
    position = None if topic is None else topic.position
    _end(group, member, commit, now, **rest)
    if topic is not None:
        topic.position = position


def _same_generation(group: Group, now: float) -> None:
    generation = group.generation
    _rebalance(group, now)
    group.generation = max(1, generation)


def _without_rebalance(group: Group, name: str, link: object, now: float) -> None:
    group.heard(name, link, now)
    group._remove(name)


def _immortal(group: Group, now: float) -> None:
    for member in group.members.values():
        member.seen = max(member.seen, now)
    _tick(group, now)


def _one_too_far(progress: TopicProgress) -> Commit:
    made = _commit(progress)
    return replace(made, offset=made.offset + 13, fingerprint=None)


def _deaf(group: Group, name: str, link: object, now: float) -> bool:
    group.heard(name, link, now)
    return False


def _nothing_lost(member: MemberHandler, answer: Any, now: float) -> None:
    _synced(member, replace(answer, lost=[]), now)


def _generation_unlearnt(group: Group, joining: Joining, now: float) -> Any:
    return _join(group, replace(joining, generation=0), now)


def _always_free(group: Group, member: Any) -> None:
    for topic_id in member.joining.owned & member.view.topics:
        group.topics[topic_id].target = member.name
        group.topics[topic_id].give(member.name, group.generation, recognised=True)


def _never_revoked(group: Group, name: str, link: object, held: Any, now: float) -> Any:
    told = _sync(group, name, link, held, now)
    return replace(told, revoked=())


def _unreleased(group: Group, name: str, link: object, held: Any, now: float) -> Any:
    owned = {topic_id for topic_id, topic in group.topics.items() if topic.owner == name}
    return _sync(group, name, link, {*held, *owned}, now)


def _only_told(member: MemberHandler, topics: Any) -> None:
    member._identities.update((each.id, each) for each in topics)


async def _answered_before_stored(
    service: GroupService, group: Group, name: str, commit: Commit, sequence: int
) -> GroupErrorCode:
    await _keep(service, group, name, commit, sequence)
    return GroupErrorCode.NONE


def _patch(owner: Any, name: str, value: Any) -> Callable[[], Any]:
    return lambda: patch.object(owner, name, value)


PLANTED: Final[dict[str, tuple[Callable[[], Any], ...]]] = {
    "L1: a commit refused while outside ends the member": (
        _patch(MemberHandler, "_kept", _dying_member),
    ),
    "L2: an error of one topic silences the others": (
        _patch(MultiFetcher, "take", _silenced),
        _patch(MultiFetcher, "check", lambda _: None),
    ),
    "L3: an outage ends the topics": (
        _patch(HostFetcher, "_introduce", _ended_by_outage),
        _patch(TopicFetch, "lost", _losing),
    ),
    "L4: the end is looked for by every owner": (
        _patch(MemberReader, "place_commits", _end_not_committed),
    ),
    "L5: the earlier topic keeps its claim": (_patch(Group, "drop_earlier", lambda *_: []),),
    "L7: commits get their generation when they are sent": (
        _patch(MemberHandler, "_request", _stamped_when_sent),
    ),
    "L7: a commit that arrives late is stored": (
        _patch(Group, "begin_commit", _without_sequence),
        _patch(MemberHandler, "_newest", lambda _, commit: commit),
    ),
    "L8: whoever comes back first is the owner": (
        _patch(Joining, "held_since", lambda joining, _: joining.generation),
    ),
    "L8: suspended time does not count": (_patch(MemberHandler, "_fence", _awake),),
    "L9: a member of the earlier topic is let in": (
        _patch(TopicIdentity, "older_than", lambda *_: False),
    ),
    "L12: a half-open connection keeps its name": (_patch(Group, "_check_link", _by_link_alone),),
    "a topic goes over while its commit is being stored": (
        _patch(Topic, "release", _release_at_once),
    ),
    "a commit is taken from anybody": (_patch(Group, "begin_commit", _without_owner),),
    "a commit of an earlier assignment is taken": (_patch(Group, "begin_commit", _without_since),),
    "a new owner starts where the group first stood": (
        _patch(Group, "end_commit", _position_kept),
    ),
    "a rebalance keeps the generation": (_patch(Group, "_rebalance", _same_generation),),
    "what a member leaves behind is not divided": (_patch(Group, "leave", _without_rebalance),),
    "nobody is taken for dead": (_patch(Group, "tick", _immortal),),
    "a commit is one record too far": (_patch(TopicProgress, "commit", _one_too_far),),
    "heartbeats never tell of changes": (_patch(Group, "heartbeat", _deaf),),
    "members keep what they lost": (_patch(MemberHandler, "_synced", _nothing_lost),),
    "a coordinator forgets the generations of members": (
        _patch(Group, "join", _generation_unlearnt),
    ),
    "a member that comes back takes what it held": (_patch(Group, "_recognise", _always_free),),
    "nobody is asked to release": (_patch(Group, "sync", _never_revoked),),
    "what is released stays with its owner": (_patch(Group, "sync", _unreleased),),
    "a member that gets a topic anew goes on under its old generation": (
        _patch(Group, "_held_from_before", lambda *_: frozenset()),
    ),
    "later partitions are known and not asked for": (_patch(MemberHandler, "extend", _only_told),),
    "a host that is named for a topic is not gone to": (
        _patch(MultiFetcher, "name_host", _ask_here_again),
    ),
    "the topics of a host that is gone are not looked for": (
        _patch(MultiFetcher, "host_failed", lambda *_: None),
    ),
    "a commit is confirmed that was not stored": (
        _patch(GroupService, "_keep", _answered_before_stored),
    ),
}
"""By what it does, what is patched."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault."""
    with ExitStack() as stack:
        for each in PLANTED[name]:
            stack.enter_context(each())
        yield
