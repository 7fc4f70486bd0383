"""A group as it is shown to people."""

import math

from lance_sdk.groups._protocol.group import Group
from lance_sdk.groups._protocol.group_metadata import Member
from lance_sdk.groups._protocol.wire import topic_position
from lance_spec.messages.groups import DescribedGroup, DescribedMember


def describe(group: Group, now: float, *, whole: bool) -> DescribedGroup:
    """Return what is told of a group.

    Args:
        group: it.
        now: the time.
        whole: with its members and topics.
    """
    topics = [group.topics[topic_id] for topic_id in sorted(group.topics)] if whole else []
    members = [group.members[name] for name in sorted(group.members)] if whole else []
    ends = [topic.release_by for topic in group.topics.values() if topic.release_by < math.inf]
    return DescribedGroup(
        group=group.name,
        state=group.state,
        generation=group.generation,
        deadline_ms=round(max(0.0, min(ends) - now) * 1000) if ends else 0,
        strategy=group.strategy.name,
        members=[_member(group, member, now) for member in members],
        topics=[topic_position(topic.identity, topic.position) for topic in topics],
    )


def _member(group: Group, member: Member, now: float) -> DescribedMember:
    topics, name = group.topics.items(), member.name
    return DescribedMember(
        member=name,
        client=member.joining.client,
        session_timeout_ms=round(member.joining.session_timeout * 1000),
        idle_ms=round(max(0.0, now - member.seen) * 1000),
        generation=member.generation,
        owned=sorted(topic_id for topic_id, topic in topics if topic.owner == name),
        pending=sorted(
            topic_id
            for topic_id, topic in topics
            if topic.target == name and topic.owner not in {None, name}
        ),
    )
