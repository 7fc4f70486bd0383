"""How the topics of a group are divided among its members.

A strategy is a name and a function from members, topics and the present owners to new owners.
Every topic that a member reads gets exactly one owner, and one that reads it. `RANGE`,
`ROUND_ROBIN` and `STICKY` are here; your own is a `Strategy` that the coordinator is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lance_sdk.offsets.contract import TopicIdentity

__all__ = ["RANGE", "ROUND_ROBIN", "STICKY", "MemberView", "Owners", "Strategy"]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member, as a strategy sees it.

    Attributes:
        name: unique in the group; members are given in the order of their names.
        topics: numbers of the topics that it reads.
        metadata: what the member told about itself, for custom strategies.
    """

    name: str
    topics: frozenset[int]
    metadata: bytes = b""


Owners: TypeAlias = Mapping[int, str]
"""Names of members by the numbers of the topics that they own."""

Divide: TypeAlias = Callable[[Sequence[MemberView], Sequence[TopicIdentity], Owners], Owners]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to divide topics.

    Attributes:
        name: what members ask for.
        divide: returns the owners. It gets the members in the order of their names, the topics
            in the order of theirs, and the present owners; it must not wait for anything.
    """

    name: str
    divide: Divide

    def owners(
        self, members: Sequence[MemberView], topics: Sequence[TopicIdentity], present: Owners
    ) -> dict[int, str]:
        """Divide the topics, and check what the function returned.

        Raises:
            ValueError: a topic is left out, or its owner does not read it.
        """
        found = dict(self.divide(members, topics, present))
        readers = _readers(members)
        for topic in topics:
            wanted, owner = readers.get(topic.id, ()), found.get(topic.id)
            if wanted and owner not in wanted:
                given = "is left out" if owner is None else f"went to {owner!r}"
                raise ValueError(
                    f"strategy {self.name!r}: topic {topic.label!r} {given}, "
                    f"and is read by {', '.join(map(repr, wanted))}"
                )
        return {topic.id: found[topic.id] for topic in topics if readers.get(topic.id)}


def _readers(members: Sequence[MemberView]) -> dict[int, tuple[str, ...]]:
    """Return who reads each topic, by name."""
    readers: dict[int, list[str]] = {}
    for member in members:
        for topic_id in member.topics:
            readers.setdefault(topic_id, []).append(member.name)
    return {topic_id: tuple(names) for topic_id, names in readers.items()}


def _range(
    members: Sequence[MemberView], topics: Sequence[TopicIdentity], _present: Owners
) -> Owners:
    """Give each member neighbouring topics; topics with the same readers are divided together."""
    readers = _readers(members)
    alike: dict[tuple[str, ...], list[int]] = {}
    for topic in topics:
        if topic.id in readers:
            alike.setdefault(readers[topic.id], []).append(topic.id)
    return {
        topic_id: names[place * len(names) // len(ids)]
        for names, ids in alike.items()
        for place, topic_id in enumerate(ids)
    }


def _round_robin(
    members: Sequence[MemberView], topics: Sequence[TopicIdentity], _present: Owners
) -> Owners:
    """Deal the topics out like cards; who does not read one is passed over."""
    owners: dict[int, str] = {}
    turn = list(members)
    for topic in topics:
        member = next((each for each in turn if topic.id in each.topics), None)
        if member is not None:
            owners[topic.id] = member.name
            turn.remove(member)
            turn.append(member)
    return owners


def _sticky(
    members: Sequence[MemberView], topics: Sequence[TopicIdentity], present: Owners
) -> Owners:
    """Leave topics where they are, as far as that is even; move the fewest otherwise."""
    hand = {member.name: [] for member in members}  # type: dict[str, list[int]]
    readers = _readers(members)
    homeless = []
    for topic in topics:
        owner = present.get(topic.id)
        if owner is not None and owner in readers.get(topic.id, ()):
            hand[owner].append(topic.id)
        elif topic.id in readers:
            homeless.append(topic.id)
    for topic_id in homeless:
        hand[min(readers[topic_id], key=lambda name: len(hand[name]))].append(topic_id)
    while (move := _relief(hand, readers)) is not None:
        topic_id, giver, taker = move
        hand[giver].remove(topic_id)
        hand[taker].append(topic_id)
    return {topic_id: name for name, ids in hand.items() for topic_id in ids}


def _relief(
    hand: Mapping[str, list[int]], readers: Mapping[int, tuple[str, ...]]
) -> tuple[int, str, str] | None:
    """Return a topic whose move evens the load out: from whom, and to whom."""
    for giver in sorted(hand, key=lambda name: -len(hand[name])):
        for topic_id in reversed(hand[giver]):
            taker = min(readers[topic_id], key=lambda name: len(hand[name]))
            if len(hand[giver]) - len(hand[taker]) > 1:
                return topic_id, giver, taker
    return None


RANGE: Final = Strategy("range", _range)
"""Neighbouring topics together (Design section 20.4)."""
ROUND_ROBIN: Final = Strategy("round-robin", _round_robin)
"""Topics dealt out one by one."""
STICKY: Final = Strategy("sticky", _sticky)
"""As even as the others, with the fewest topics that change hands; the default."""
