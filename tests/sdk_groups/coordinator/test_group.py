"""One group at its coordinator, fact by fact."""

import logging

import pytest

from lance_sdk.groups._protocol.limits import Refusal
from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY, Strategy
from lance_sdk.offsets import Commit, TopicIdentity
from lance_spec.messages.groups import GroupErrorCode, GroupState

from .group_core import (
    REBALANCE,
    SESSION,
    TOPICS,
    code_of,
    commit,
    ids,
    join,
    new_group,
    two_members,
)


def test_first_member_gets_everything() -> None:
    """Who is alone reads every topic at once."""
    group = new_group()
    join(group, "a")
    assert ids(group.sync("a", "a", (), 0.0)) == [0, 1, 2, 3, 4, 5]
    assert group.state is GroupState.STABLE


def test_second_member_waits_for_the_release() -> None:
    """A topic is its old owner's until that releases it; the new owner does not have it yet."""
    group = new_group()
    first, second = two_members(group)
    assert (ids(first), first.revoked, first.left) == ([0, 1, 2], (3, 4, 5), REBALANCE)
    assert ids(second) == []
    assert group.state is GroupState.REBALANCING


def test_released_topics_go_over() -> None:
    """Once released, the topics are the new owner's, who learns it from its heartbeat."""
    group = new_group()
    two_members(group)
    assert not group.heartbeat("b", "b", 1.5)
    group.sync("a", "a", [0, 1, 2], 2.0)
    assert group.heartbeat("b", "b", 2.0)
    assert ids(group.sync("b", "b", (), 2.0)) == [3, 4, 5]
    assert group.state is GroupState.STABLE


def test_heartbeat_tells_of_a_rebalance() -> None:
    """A member whose topics change hears so at its next heartbeat, and not again once it knows."""
    group = new_group()
    join(group, "a")
    group.sync("a", "a", (), 0.0)
    assert not group.heartbeat("a", "a", 0.5)
    join(group, "b", 1.0)
    assert group.heartbeat("a", "a", 1.0)
    group.sync("a", "a", range(6), 1.0)
    assert not group.heartbeat("a", "a", 1.5)


def test_owner_may_commit_what_it_has_to_release() -> None:
    """Until it releases a topic, its owner commits it."""
    group = new_group()
    first, _ = two_members(group)
    member = group.heard("a", "a", 1.0)
    assert group.begin_commit(member, commit(3, 50, first.generation)) is None


def test_commit_under_the_generation_before_the_sync_counts() -> None:
    """A rebalance that the owner has not heard of yet does not void its commits."""
    group = new_group()
    join(group, "a")
    before = group.sync("a", "a", (), 0.0).generation
    join(group, "b", 1.0)
    member = group.heard("a", "a", 1.0)
    assert group.begin_commit(member, commit(3, 50, before)) is None


def test_topic_waits_for_a_commit_that_is_being_stored() -> None:
    """A released topic goes over only when the last commit is stored, and from there."""
    group = new_group()
    first, _ = two_members(group)
    member, last = group.heard("a", "a", 1.0), commit(3, 50, first.generation)
    group.begin_commit(member, last)
    group.sync("a", "a", [0, 1, 2], 2.0)
    assert ids(group.sync("b", "b", (), 2.0)) == [4, 5]
    group.end_commit(member, last, 2.1, stored=True)
    assert group.heartbeat("b", "b", 2.2)
    found = {a.identity.id: a.position for a in group.sync("b", "b", [4, 5], 2.2).assigned}
    assert found == {3: last, 4: None, 5: None}


def test_commit_that_was_not_stored_moves_nothing() -> None:
    """When the store fails, the next owner starts at the commit before."""
    group = new_group()
    first, _ = two_members(group)
    member, last = group.heard("a", "a", 1.0), commit(3, 50, first.generation)
    group.begin_commit(member, last)
    group.end_commit(member, last, 2.1, stored=False)
    assert group.topics[3].position is None


def test_member_is_not_dead_while_its_commit_is_stored() -> None:
    """A slow store does not kill the members that wait for it."""
    group = new_group()
    join(group, "a")
    generation = group.sync("a", "a", (), 0.0).generation
    member, last = group.members["a"], commit(3, 50, generation)
    group.begin_commit(member, last)
    group.tick(100.0)
    assert "a" in group.members
    group.end_commit(member, last, 100.0, stored=True)
    group.tick(100.0 + SESSION)
    assert group.members == {}


def test_commit_of_another_ones_topic_is_refused() -> None:
    """Who does not own a topic cannot commit it."""
    group = new_group()
    _, second = two_members(group)
    member = group.heard("b", "b", 1.0)
    refused = group.begin_commit(member, commit(0, 50, second.generation))
    assert refused is GroupErrorCode.NOT_OWNER


def test_commit_of_an_earlier_ownership_is_refused() -> None:
    """A commit from before a topic was lost and regained does not count."""
    group = new_group()
    join(group, "a")
    before = group.sync("a", "a", (), 0.0).generation
    group.leave("a", "a", 1.0)
    member = join(group, "a", 2.0)
    group.sync("a", "a", (), 2.0)
    refused = group.begin_commit(member, commit(3, 50, before))
    assert refused is GroupErrorCode.STALE_GENERATION


def test_commit_of_the_future_is_refused() -> None:
    """A generation that was never given out does not count."""
    group = new_group()
    member = join(group, "a")
    generation = group.sync("a", "a", (), 0.0).generation
    refused = group.begin_commit(member, commit(3, 50, generation + 1))
    assert refused is GroupErrorCode.STALE_GENERATION


def test_commit_of_an_unknown_topic_is_refused() -> None:
    """A topic that nobody in the group reads cannot be committed."""
    group = new_group()
    member = join(group, "a")
    strange = Commit(consumer="g", topic=TopicIdentity(id=99, name="x"), offset=1, generation=1)
    assert group.begin_commit(member, strange) is GroupErrorCode.UNKNOWN_TOPIC


def test_member_that_leaves_frees_its_topics_at_once() -> None:
    """Nobody waits for a member that left."""
    group = new_group()
    two_members(group)
    group.leave("a", "a", 2.0)
    assert ids(group.sync("b", "b", (), 2.0)) == [0, 1, 2, 3, 4, 5]


def test_silent_member_is_taken_for_dead(caplog: pytest.LogCaptureFixture) -> None:
    """After its session timeout a silent member is out, and an operator reads so."""
    group = new_group()
    two_members(group)
    group.heartbeat("b", "b", 9.0)
    with caplog.at_level(logging.WARNING, "lance_sdk.groups"):
        assert group.heartbeat("b", "b", 1.0 + SESSION)
    assert "member 'a' () was silent for 10.0 s and is taken for dead" in caplog.text
    assert ids(group.sync("b", "b", (), 11.0)) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(Refusal) as caught:
        group.heartbeat("a", "a", 11.0)
    assert code_of(caught) is GroupErrorCode.UNKNOWN_MEMBER


def test_slow_member_loses_what_it_does_not_release(caplog: pytest.LogCaptureFixture) -> None:
    """At the deadline the topics go over all the same; the old owner learns that they are lost."""
    group = new_group()
    first, _ = two_members(group)
    with caplog.at_level(logging.WARNING, "lance_sdk.groups"):
        assert ids(group.sync("b", "b", (), 1.0 + REBALANCE)) == [3, 4, 5]
    assert "did not release topic 't3' in time" in caplog.text
    late = group.heard("a", "a", 5.0)
    assert group.begin_commit(late, commit(3, 50, first.generation)) is GroupErrorCode.NOT_OWNER
    told = group.sync("a", "a", range(6), 5.0)
    assert (ids(told), told.revoked, told.lost) == ([0, 1, 2], (), (3, 4, 5))


def test_taking_away_raises_the_generation() -> None:
    """The new owner of a topic that was taken away has a higher generation than the old one."""
    group = new_group()
    first, _ = two_members(group)
    assert group.sync("b", "b", (), 1.0 + REBALANCE).generation > first.generation


def test_more_rebalances_do_not_extend_the_time() -> None:
    """Who has to release a topic gets its time once, however many others join meanwhile."""
    group = new_group()
    two_members(group)
    join(group, "c", 3.0)
    assert group.sync("a", "a", range(6), 3.0).left == pytest.approx(REBALANCE - 2.0)


def test_returning_member_keeps_its_topics() -> None:
    """A member that lost its connection joins again, and goes on with what it holds."""
    group = new_group()
    first, _ = two_members(group)
    group.sync("a", "a", [0, 1, 2], 2.0)
    group.members["a"].link = "a!"
    join(group, "a", 3.0, owned=frozenset({0, 1, 2}), generation=first.generation)
    assert ids(group.sync("a", "a", [0, 1, 2], 3.0)) == [0, 1, 2]


def test_restarted_member_begins_anew() -> None:
    """A member that was restarted under its name holds nothing, and gets its topics again."""
    group = new_group()
    join(group, "a")
    group.sync("a", "a", (), 0.0)
    group.members["a"].link = "a!"
    join(group, "a", 1.0)
    assert ids(group.sync("a", "a", (), 1.0)) == [0, 1, 2, 3, 4, 5]


def test_name_of_a_living_member_is_taken() -> None:
    """Two members cannot have one name, neither by joining nor by any other request."""
    group = new_group()
    join(group, "a")
    with pytest.raises(Refusal) as caught:
        join(group, "a", link="other")
    assert code_of(caught) is GroupErrorCode.NAME_TAKEN
    with pytest.raises(Refusal) as caught:
        group.heartbeat("a", "other", 0.0)
    assert code_of(caught) is GroupErrorCode.NAME_TAKEN


def test_limits_are_kept() -> None:
    """One member or topic too many is refused, and the others go on."""
    group = new_group()
    for name in "abcde":
        join(group, name)
    with pytest.raises(Refusal, match="there are 5 members") as caught:
        join(group, "f")
    assert code_of(caught) is GroupErrorCode.LIMIT_EXCEEDED
    many = tuple(TopicIdentity(id=number, name=str(number)) for number in range(9))
    with pytest.raises(Refusal, match="there are 8 topics"):
        join(new_group(), "a", topics=many)


def test_topic_created_anew_is_refused() -> None:
    """A member that sees another topic behind a number cannot mix it with the group's."""
    group = new_group()
    join(group, "a")
    with pytest.raises(Refusal, match="another one to this group") as caught:
        join(group, "b", topics=(TopicIdentity(id=0, name="new"),))
    assert code_of(caught) is GroupErrorCode.UNKNOWN_TOPIC


def test_members_come_back_before_topics_are_divided() -> None:
    """After a restart of the coordinator, members keep what they hold until all had time."""
    group = new_group(settle_for=3.0, generation=7)
    join(group, "a", 0.0, owned=frozenset({0, 1, 2}), generation=7)
    assert ids(group.sync("a", "a", [0, 1, 2], 0.0)) == [0, 1, 2]
    join(group, "b", 1.0, owned=frozenset({3, 4, 5}), generation=7)
    assert ids(group.sync("b", "b", [3, 4, 5], 1.0)) == [3, 4, 5]
    assert group.state is GroupState.REBALANCING
    group.tick(3.0)
    assert group.state is GroupState.STABLE
    assert ids(group.sync("a", "a", [0, 1, 2], 3.0)) == [0, 1, 2]
    assert group.generation > 7


def test_suspended_owner_of_before_does_not_come_back() -> None:
    """After a restart, who held a topic before its last owner is not taken for its owner."""
    group = new_group(settle_for=3.0)
    for identity in TOPICS:
        group.learn(identity, commit(identity.id, 1080, 3))
    owned = {"owned": frozenset({3}), "generation": 4}
    join(group, "old", 0.0, since={3: 1}, **owned)
    assert ids(group.sync("old", "old", [3], 0.0)) == []
    join(group, "new", 1.0, since={3: 3}, **owned)
    assert ids(group.sync("new", "new", [3], 1.0)) == [3]


def test_later_owner_of_before_wins() -> None:
    """After a restart, the one who got a topic last has it, whoever comes back first."""
    group = new_group(settle_for=3.0)
    for identity in TOPICS:
        group.learn(identity, commit(identity.id, 90, 1))
    owned = {"owned": frozenset({3}), "generation": 4}
    join(group, "old", 0.0, since={3: 1}, **owned)
    assert ids(group.sync("old", "old", [3], 0.0)) == [3]
    join(group, "new", 1.0, since={3: 3}, **owned)
    assert ids(group.sync("new", "new", [3], 1.0)) == [3]
    assert group.sync("old", "old", [3], 1.0).lost == (3,)


def test_owner_of_before_that_has_committed_keeps_the_topic() -> None:
    """After a restart, an owner whose commit was taken is not put out: positions never go back."""
    group = new_group(settle_for=3.0)
    owned = {"owned": frozenset({3}), "generation": 4}
    old = join(group, "old", 0.0, since={3: 1}, **owned)
    group.begin_commit(old, commit(3, 700, 1))
    group.end_commit(old, commit(3, 700, 1), 0.5, stored=True)
    join(group, "new", 1.0, since={3: 3}, **owned)
    assert group.sync("new", "new", [3], 1.0).lost == (3,)


def test_topic_of_an_earlier_assignment_is_lost_before_it_comes_anew() -> None:
    """A member that goes on with what it held would have its commits refused for good."""
    group = new_group(generation=5, settle_for=1.0)
    join(group, "b", 0.0)
    group.tick(1.5)  # nobody else came back: everything is meant for b
    join(group, "a", 2.0, owned=frozenset(range(6)), generation=5)
    told = group.sync("a", "a", range(6), 2.0)
    assert (ids(told), told.lost) == ([], tuple(range(6)))
    assert group.heartbeat("a", "a", 2.1)
    again = group.sync("a", "a", (), 2.2)
    assert len(ids(again)) == 3
    assert {group.topics[each].since for each in ids(again)} == {again.generation}


def test_recognised_owner_commits_under_its_own_generation() -> None:
    """A member that was recognised after a restart goes on committing as it did before."""
    group = new_group(settle_for=3.0)
    member = join(group, "a", 0.0, owned=frozenset({3}), generation=9, since={3: 2})
    assert group.begin_commit(member, commit(3, 50, 2)) is None


def test_older_commit_changes_nothing() -> None:
    """A commit that arrives after a later one of its member is as good as recorded."""
    group = new_group()
    member = join(group, "a")
    generation = group.sync("a", "a", (), 0.0).generation
    later = commit(3, 930, generation)
    assert group.begin_commit(member, later, 8) is None
    group.end_commit(member, later, 0.1, stored=True, sequence=8)
    again = [group.begin_commit(member, commit(3, 920, generation), n) for n in (7, 8)]
    assert again == [GroupErrorCode.NONE, GroupErrorCode.NONE]
    assert group.topics[3].position == later


def test_topic_that_is_given_again_has_another_generation() -> None:
    """A member that lost a topic and gets it back cannot commit what it did before."""
    group = new_group()
    member = join(group, "a")
    before = group.sync("a", "a", (), 0.0).generation
    again = group.sync("a", "a", (), 1.0)
    assert ids(again) == [0, 1, 2, 3, 4, 5]
    stale = group.begin_commit(member, commit(3, 494, before))
    assert (stale, again.generation > before) == (GroupErrorCode.STALE_GENERATION, True)


def test_half_open_connection_gives_way_to_its_own_member() -> None:
    """Who knows the member's secret replaces a connection that only looks alive."""
    group = new_group()
    join(group, "a", secret=77)
    held = group.sync("a", "a", (), 0.0)
    since = dict.fromkeys(ids(held), held.generation)
    join(group, "a", 1.0, link="new", secret=77, owned=frozenset(since), since=since)
    assert ids(group.sync("a", "new", range(6), 1.0)) == ids(held)
    with pytest.raises(Refusal) as caught:
        join(group, "a", 1.0, link="third", secret=78)
    assert code_of(caught) is GroupErrorCode.NAME_TAKEN


def test_process_of_the_same_name_is_fenced_off_by_the_next() -> None:
    """A member that was restarted under its name has a higher generation than before."""
    group = new_group()
    join(group, "a", secret=77)
    before = group.sync("a", "a", (), 0.0).generation
    group.members["a"].link = "a!"
    member = join(group, "a", 1.0, secret=78)
    assert ids(group.sync("a", "a", (), 1.0)) == [0, 1, 2, 3, 4, 5]
    stale = group.begin_commit(member, commit(3, 50, before))
    assert stale is GroupErrorCode.STALE_GENERATION


def test_topic_that_was_created_again_takes_the_place_of_the_earlier_one() -> None:
    """An earlier topic of a name is forgotten, and its members lose it."""
    group = new_group()
    join(group, "a")
    group.sync("a", "a", (), 0.0)
    later = TopicIdentity(id=40, name="t3")
    assert group.drop_earlier(later) == [TOPICS[3]]
    group.learn(later, None)
    assert group.heartbeat("a", "a", 1.0)
    assert group.sync("a", "a", range(6), 1.0).lost == (3,)
    with pytest.raises(Refusal, match="created again as #40"):
        join(group, "b", 1.0)


def test_topics_that_no_member_reads_are_forgotten() -> None:
    """When the last member that reads a topic goes, so does the topic."""
    group = new_group()
    join(group, "a")
    group.sync("a", "a", (), 0.0)
    join(group, "b", topics=TOPICS[:2])
    group.leave("a", "a", 1.0)
    assert group.drop_unwanted() == list(TOPICS[2:])
    assert sorted(group.topics) == [0, 1]
    assert group.drop_unwanted() == []


def test_empty_group_keeps_its_topics() -> None:
    """A group whose members have all gone still tells how far it came."""
    group = new_group()
    join(group, "a")
    group.leave("a", "a", 1.0)
    assert group.drop_unwanted() == []
    assert len(group.topics) == 6


def test_new_group_does_not_wait() -> None:
    """A group without a past gives its topics out at once."""
    group = new_group(settle_for=3.0)
    join(group, "a")
    assert len(ids(group.sync("a", "a", (), 0.0))) == 6


def test_generation_goes_on_where_members_left_it() -> None:
    """A coordinator that forgot everything learns the generation from its members."""
    group = new_group()
    join(group, "a", generation=41)
    assert group.sync("a", "a", (), 0.0).generation > 41


def test_failing_strategy_leaves_nobody_without_topics(caplog: pytest.LogCaptureFixture) -> None:
    """When a custom strategy raises, the topics are divided all the same, and it is told."""

    def broken(*_: object) -> dict[int, str]:
        raise RuntimeError("custom")

    group = new_group(Strategy("mine", broken))
    with caplog.at_level(logging.ERROR, "lance_sdk.groups"):
        join(group, "a")
    assert "strategy 'mine' failed; topics are divided by 'sticky'" in caplog.text
    assert len(ids(group.sync("a", "a", (), 0.0))) == 6


@pytest.mark.parametrize("strategy", [RANGE, ROUND_ROBIN, STICKY], ids=lambda each: each.name)
@pytest.mark.parametrize("heartbeat", [0.7, 3.0])
def test_dead_member_is_replaced_in_time(strategy: Strategy, heartbeat: float) -> None:
    """A dead worker's topics have new owners within session timeout plus one heartbeat."""
    group, names = new_group(strategy), ["a", "b", "c"]
    held: dict[str, list[int]] = {name: [] for name in names}
    for name in names:
        join(group, name)
    now = 0.0
    while now < 30.0:
        for name in names:
            if group.heartbeat(name, name, now):
                told = group.sync(name, name, held[name], now)
                held[name] = ids(group.sync(name, name, ids(told), now))
        now += heartbeat
    orphans, last_heard = set(held.pop("b")), group.members["b"].seen
    assert orphans
    adopted_at = None
    while adopted_at is None:
        for name in ("a", "c"):
            if group.heartbeat(name, name, now):
                held[name] = ids(group.sync(name, name, held[name], now))
        if orphans <= set(held["a"]) | set(held["c"]):
            adopted_at = now
        now += heartbeat
    assert adopted_at - last_heard <= SESSION + heartbeat
