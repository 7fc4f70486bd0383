"""How topics are divided: each one once, evenly, and with few that change hands."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY, MemberView, Strategy
from lance_sdk.offsets import TopicIdentity

ALL = [RANGE, ROUND_ROBIN, STICKY]


def topics(count: int) -> list[TopicIdentity]:
    """Return topics in the order of their names."""
    return [TopicIdentity(id=number, name=f"t{number:03}") for number in range(count)]


def members(count: int, topic_count: int) -> list[MemberView]:
    """Return members that all read every topic."""
    everything = frozenset(range(topic_count))
    return [MemberView(f"m{number:02}", everything) for number in range(count)]


def sizes(owners: dict[int, str], readers: list[MemberView]) -> list[int]:
    """Return how many topics each member has."""
    return [list(owners.values()).count(member.name) for member in readers]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[MemberView], list[TopicIdentity], dict[int, str]]:
    """Draw members with tastes of their own, topics, and any present owners."""
    count = draw(st.integers(0, 12))
    tastes = draw(st.lists(st.frozensets(st.integers(0, 11)), max_size=6))
    views = [MemberView(f"m{number}", taste) for number, taste in enumerate(tastes)]
    names = st.sampled_from([view.name for view in views] + ["gone"])
    return views, topics(count), draw(st.dictionaries(st.integers(0, 11), names))


@pytest.mark.parametrize("strategy", ALL, ids=lambda each: each.name)
@given(group=groups())
def test_each_topic_once(
    strategy: Strategy, group: tuple[list[MemberView], list[TopicIdentity], dict[int, str]]
) -> None:
    """Every topic that somebody reads has exactly one owner, who reads it."""
    views, all_topics, present = group
    owners = strategy.owners(views, all_topics, present)
    readers = {t.id: {v.name for v in views if t.id in v.topics} for t in all_topics}
    assert set(owners) == {topic_id for topic_id, names in readers.items() if names}
    assert all(owner in readers[topic_id] for topic_id, owner in owners.items())


@pytest.mark.parametrize("strategy", ALL, ids=lambda each: each.name)
@given(member_count=st.integers(1, 7), topic_count=st.integers(0, 30))
def test_equal_members_share_evenly(
    strategy: Strategy, member_count: int, topic_count: int
) -> None:
    """Members that read the same topics differ by one topic at most."""
    views = members(member_count, topic_count)
    shares = sizes(strategy.owners(views, topics(topic_count), {}), views)
    assert max(shares) - min(shares) <= 1


@given(member_count=st.integers(1, 7), topic_count=st.integers(0, 30))
def test_range_gives_neighbours(member_count: int, topic_count: int) -> None:
    """A range is contiguous: in the order of the topics, the owners never come back."""
    owners = RANGE.owners(members(member_count, topic_count), topics(topic_count), {})
    assert [owners[i] for i in range(topic_count)] == sorted(owners.values())


def test_round_robin_deals_one_by_one() -> None:
    """Neighbouring topics go to different members."""
    owners = ROUND_ROBIN.owners(members(3, 7), topics(7), {})
    assert [owners[i] for i in range(7)] == ["m00", "m01", "m02", "m00", "m01", "m02", "m00"]


@given(group=groups())
def test_sticky_moves_nothing_without_need(
    group: tuple[list[MemberView], list[TopicIdentity], dict[int, str]],
) -> None:
    """Dividing what is divided already changes nothing."""
    views, all_topics, present = group
    first = STICKY.owners(views, all_topics, present)
    assert STICKY.owners(views, all_topics, first) == first


@settings(max_examples=60)
@given(
    member_count=st.integers(1, 4),
    topic_count=st.integers(0, 6),
    data=st.data(),
)
def test_sticky_moves_the_minimum(member_count: int, topic_count: int, data: st.DataObject) -> None:
    """Among all even divisions there is none that leaves more topics where they are."""
    views, all_topics = members(member_count, topic_count), topics(topic_count)
    names = [view.name for view in views]
    owner = st.sampled_from([*names, "gone"])
    present = {topic.id: data.draw(owner) for topic in all_topics}
    found = STICKY.owners(views, all_topics, present)
    even = [names[place % member_count] for place in range(topic_count)]
    every = {
        tuple(order[names.index(name)] for name in deal)
        for deal in set(permutations(even))
        for order in permutations(names)
    }
    kept = max(sum(present[i] == deal[i] for i in range(topic_count)) for deal in every)
    assert sum(present[i] == found[i] for i in range(topic_count)) == kept


def test_one_more_member_takes_only_its_share() -> None:
    """A member that joins ten others takes its share, and the others keep the rest."""
    before = STICKY.owners(members(10, 100), topics(100), {})
    after = STICKY.owners(members(11, 100), topics(100), before)
    moved = [topic_id for topic_id in before if before[topic_id] != after[topic_id]]
    assert len(moved) == 9
    assert {after[topic_id] for topic_id in moved} == {"m10"}


def test_custom_strategy_sees_what_members_say() -> None:
    """A function of one's own divides by what the members tell."""
    views = [MemberView("a", frozenset({0}), b"cold"), MemberView("b", frozenset({0}), b"hot")]
    hottest = Strategy("hot", lambda who, what, _now: {what[0].id: max(who, key=_heat).name})
    assert hottest.owners(views, topics(1), {}) == {0: "b"}


def _heat(member: MemberView) -> bool:
    return member.metadata == b"hot"


@pytest.mark.parametrize(
    ("owners", "reason"),
    [({}, "'t000' is left out"), ({0: "nobody"}, "'t000' went to 'nobody'")],
)
def test_faulty_strategy_is_told(owners: dict[int, str], reason: str) -> None:
    """A function that forgets a topic or invents a member is told so."""
    with pytest.raises(ValueError, match=reason):
        Strategy("odd", lambda *_: owners).owners(members(1, 1), topics(1), {})


@pytest.mark.parametrize("strategy", ALL, ids=lambda each: each.name)
def test_largest_group_is_divided_quickly(strategy: Strategy) -> None:
    """The largest group a coordinator takes is divided without anybody being taken for dead."""
    first = strategy.owners(members(128, 4096), topics(4096), {})
    assert len(strategy.owners(members(256, 4096), topics(4096), first)) == 4096
