"""Identities, positions and fingerprints, as the messages of groups carry them (AMB-38)."""

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final

from lance_sdk.groups._protocol.limits import Refusal
from lance_sdk.groups._protocol.membership import SubscriptionRequest
from lance_sdk.offsets.contract import Commit, Fingerprint, TopicIdentity
from lance_spec.errors import EncodeError
from lance_spec.messages.groups import (
    GroupCommit,
    GroupErrorCode,
    GroupJoin,
    GroupPosition,
    GroupTopic,
    MemberStanding,
    TopicCommit,
    TopicPosition,
)
from lance_spec.names import check_topic_name

_FINGERPRINT: Final = Struct("<QL16s")


def group_topic(identity: TopicIdentity) -> GroupTopic:
    """Return an identity as it travels."""
    return GroupTopic(
        topic_id=identity.id,
        created_at=identity.created_at or 0,
        topic_epoch=identity.epoch or 0,
        name=identity.name or "",
    )


def identity_of(topic: GroupTopic) -> TopicIdentity:
    """Return the identity that a message carries.

    Raises:
        Refusal: INVALID_REQUEST: no topic can have this name.
    """
    try:
        name = check_topic_name(topic.name) if topic.name else None
    except EncodeError as error:
        raise invalid(f"topic {topic.topic_id}: {error}") from None
    return TopicIdentity(topic.topic_id, name, topic.created_at or None, topic.topic_epoch or None)


def identities_of(topics: Sequence[GroupTopic]) -> tuple[TopicIdentity, ...]:
    """Return the identities that a message carries, each number once.

    Raises:
        Refusal: INVALID_REQUEST.
    """
    found = {topic.topic_id: identity_of(topic) for topic in topics}
    if len(found) < len(topics):
        raise invalid("a topic is named twice")
    return tuple(found.values())


def meant(carried: GroupTopic, known: Mapping[int, TopicIdentity]) -> TopicIdentity | None:
    """Return which of the known topics a position is for.

    It may be a position in an earlier topic of that name, which had another number (AMB-30).
    """
    if carried.topic_id in known:
        return known[carried.topic_id]
    same = (topic for topic in known.values() if carried.name and topic.name == carried.name)
    return next(same, None)


def fingerprint_bytes(mark: Fingerprint | None) -> bytes:
    """Return a fingerprint as it travels."""
    if mark is None:
        return b""
    return _FINGERPRINT.pack(mark.start, mark.length, bytes.fromhex(mark.digest))


def fingerprint_of(data: bytes, offset: int) -> Fingerprint | None:
    """Return the fingerprint that a message carries; none where it is of a kind unknown here.

    Raises:
        Refusal: INVALID_REQUEST: it does not end at the offset.
    """
    if len(data) != _FINGERPRINT.size:
        return None
    start, length, digest = _FINGERPRINT.unpack(data)
    if start + length != offset:
        raise invalid(f"a fingerprint of {start}..{start + length} for offset {offset}")
    return Fingerprint(start, length, digest.hex())


def join_of(
    subscription: SubscriptionRequest,
    member: str,
    generation: int,
    since: Mapping[int, int],
    secret: int,
) -> GroupJoin:
    """Return what a member says to get into its group, or back.

    Args:
        subscription: what it asks for.
        member: its name.
        generation: the last that it knew.
        since: the topics that it holds, each with the generation that gave it to the member.
        secret: of its process; 0 for a coordinator that does not know what that is.
    """
    owned = sorted(since)
    standing = [MemberStanding(secret=secret, since=[since[each] for each in owned])]
    return GroupJoin(
        group=subscription.group,
        member=member,
        generation=generation,
        session_timeout_ms=milliseconds(subscription.session_timeout),
        rebalance_timeout_ms=milliseconds(subscription.rebalance_timeout),
        strategy=subscription.strategy,
        client=subscription.client,
        metadata=subscription.metadata,
        topics=[group_topic(topic) for topic in subscription.topics],
        owned=owned,
        standing=standing if secret else [],
    )


def standing_of(asked: GroupJoin) -> tuple[int, dict[int, int]]:
    """Return a member's secret and the generation of each topic that it holds.

    Raises:
        Refusal: INVALID_REQUEST.
    """
    if not asked.standing:
        return 0, {}
    standing = asked.standing[0]
    if len(asked.standing) > 1 or len(standing.since) != len(asked.owned):
        raise invalid("standing: one is expected, with a generation for each owned topic")
    return standing.secret, dict(zip(asked.owned, standing.since, strict=True))


def order_of(asked: GroupCommit) -> tuple[int, list[int]]:
    """Return the number of a commit and the generation of each of its topics.

    Raises:
        Refusal: INVALID_REQUEST.
    """
    if not asked.order:
        return 0, [asked.generation] * len(asked.topics)
    order = asked.order[0]
    if len(asked.order) > 1 or not order.sequence or len(order.since) != len(asked.topics):
        raise invalid("order: one is expected, from 1 on, with a generation for each topic")
    return order.sequence, order.since


def topic_commit(commit: Commit) -> TopicCommit:
    """Return a commit as a member sends it."""
    return TopicCommit(
        topic=group_topic(commit.topic),
        offset=commit.offset,
        fingerprint=fingerprint_bytes(commit.fingerprint),
    )


def topic_position(identity: TopicIdentity, commit: Commit | None) -> TopicPosition:
    """Return a topic and its position as a coordinator sends them.

    Where there is a commit its own identity travels, so that a member can see that it is one
    of another topic (AMB-30).
    """
    if commit is None:
        return TopicPosition(topic=group_topic(identity), position=None)
    return TopicPosition(
        topic=group_topic(commit.topic),
        position=GroupPosition(
            offset=commit.offset,
            generation=commit.generation,
            committed_at_ns=commit.committed_at_ns,
            fingerprint=fingerprint_bytes(commit.fingerprint),
        ),
    )


def commit_of(group: str, carried: TopicPosition) -> Commit | None:
    """Return the commit that a coordinator sends; None where there is none.

    Raises:
        ConfigError: a number in it is out of range.
        Refusal: INVALID_REQUEST.
    """
    position = carried.position
    if position is None:
        return None
    return Commit(
        consumer=group,
        topic=identity_of(carried.topic),
        offset=position.offset,
        fingerprint=fingerprint_of(position.fingerprint, position.offset),
        generation=position.generation,
        committed_at_ns=position.committed_at_ns,
    )


def milliseconds(seconds: float) -> int:
    """Return a duration as it travels: never 0, which would be none."""
    return max(1, round(seconds * 1000))


def invalid(message: str) -> Refusal:
    """Return the refusal of a request that makes no sense."""
    return Refusal(GroupErrorCode.INVALID_REQUEST, message)
