"""A member's core under a manual clock: what it says when, and what it does on its own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lance_sdk._protocol.completion import Completion
from lance_sdk.errors import RemoteProtocolError
from lance_sdk.groups import CommitRefused, CoordinatorLost, GroupErrorCode, GroupRefused
from lance_sdk.groups._member.factory import build_member
from lance_sdk.groups._member.settings import check_settings
from lance_sdk.groups._protocol.member import MemberHandler
from lance_sdk.groups._protocol.membership import Change, CommitCall, MembershipPhase
from lance_sdk.offsets import Commit, TopicIdentity
from lance_sdk.testing import ManualClock, Wire
from lance_spec.enums import Command
from lance_spec.frames import FrameKind
from lance_spec.messages import groups as m

ORDERS = TopicIdentity(id=7, name="orders", created_at=1, epoch=1)
LATER = TopicIdentity(id=8, name="later", created_at=1, epoch=1)
REQUESTS: dict[int, Any] = {
    kind.COMMAND: kind
    for kind in (m.GroupJoin, m.GroupSync, m.GroupHeartbeat, m.GroupCommit, m.GroupLeave)
}


class Talk:
    """A member, and a coordinator that a test speaks for."""

    def __init__(self) -> None:
        settings = check_settings(
            "lance://server",
            group="g",
            topics=["orders"],
            member="",
            strategy="",
            session_timeout=30.0,
            rebalance_timeout=5.0,
            metadata=b"",
            options={},
        )
        options = {"dialect": "specified", "backoff_base": 0.1, "idle_timeout": 1000.0}
        core, self.member = build_member("lance://coordinator:1", settings, options)
        self.asleep = 0.0
        self.member._asleep = lambda: self.asleep
        self.member.enter(settings.subscription([ORDERS]))
        self.clock = ManualClock()
        self.session = core.session
        self.session.open(self.clock.now)
        self.wire = Wire(core.session, self.clock)
        self.wire.connect()

    def asked(self) -> Any:
        """Return the one request that the member has sent."""
        [frame] = self.wire.take(FrameKind.CONTROL)
        return REQUESTS[frame.batch_id].decode(frame.payload)

    def answer(self, message: Any) -> None:
        """Answer it."""
        self.wire.control(message.COMMAND, message.encode())

    def refuse(self, code: int) -> None:
        """Refuse it."""
        self.answer(m.GroupError(code=code, generation=0, message="no"))

    def join(self) -> None:
        """Let the member in, and give it its topic."""
        self.asked()
        self.answer(joined())
        self.asked()
        self.answer(assignment(assigned=[ORDERS]))

    def change(self) -> Change | None:
        """Take the next change."""
        change = self.member.changes.first()
        if change is not None:
            self.member.changes.applied(change)
        return change

    def settle(self, call: CommitCall) -> CommitCall:
        """Submit a commit."""
        self.member.submit(call, self.clock.now)
        self.wire.turn()
        return call


def joined() -> m.GroupJoinAck:
    """Return the answer to a join."""
    return m.GroupJoinAck(
        member="m1",
        generation=4,
        state=m.GroupState.STABLE,
        session_timeout_ms=30_000,
        heartbeat_interval_ms=3_000,
        strategy="sticky",
    )


def recorded(code: int = 0) -> m.TopicCommitResult:
    """Return what became of the commit of the topic."""
    return m.TopicCommitResult(topic_id=7, code=code)


def assignment(
    *,
    generation: int = 5,
    assigned: list[TopicIdentity] | None = None,
    revoked: list[int] | None = None,
    lost: list[int] | None = None,
    deadline_ms: int = 0,
    offset: int | None = None,
) -> m.GroupAssignment:
    """Return the answer to a sync."""
    at = (
        None
        if offset is None
        else m.GroupPosition(offset=offset, generation=3, committed_at_ns=0, fingerprint=b"")
    )
    carried = [
        m.TopicPosition(
            topic=m.GroupTopic(topic_id=each.id, created_at=1, topic_epoch=1, name=each.name or ""),
            position=at,
        )
        for each in assigned or []
    ]
    return m.GroupAssignment(
        generation=generation,
        state=m.GroupState.STABLE,
        deadline_ms=deadline_ms,
        assigned=carried,
        revoked=revoked or [],
        lost=lost or [],
    )


def beat(*, changed: bool = False) -> m.GroupHeartbeatAck:
    """Return the answer to a heartbeat."""
    return m.GroupHeartbeatAck(generation=5, state=m.GroupState.STABLE, changed=changed)


def commit(offset: int) -> CommitCall:
    """Return a call that commits."""
    return CommitCall([Commit(consumer="g", topic=ORDERS, offset=offset, generation=4)])


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Return a member that is connected and wants to join."""
    return Talk()


def test_joins_then_syncs(talk: Talk) -> None:
    """A member says what it wants, then asks what is its own."""
    asked = talk.asked()
    assert (asked.group, asked.member, asked.generation) == ("g", "", 0)
    assert [topic.name for topic in asked.topics] == ["orders"]
    talk.answer(joined())
    assert talk.asked() == m.GroupSync(group="g", member="m1", generation=0, owned=[])


def test_assignment_is_told(talk: Talk) -> None:
    """What is assigned is told with the offset to go on from, and held."""
    talk.asked()
    talk.answer(joined())
    talk.asked()
    talk.answer(assignment(assigned=[ORDERS], offset=50))
    change = talk.change()
    assert change is not None
    [given] = change.assigned
    assert (given.topic, given.commit.offset, given.generation) == (ORDERS, 50, 5)
    assert talk.member.held == {7: ORDERS}


def test_waiting_for_a_change(talk: Talk) -> None:
    """Who waits is woken by a change."""
    gate = talk.member.changes.gate()
    talk.join()
    assert gate.done
    assert isinstance(gate, Completion)


def test_heartbeats_have_their_time(talk: Talk) -> None:
    """Heartbeats leave when they are due, on the core's own clock, and not earlier."""
    talk.join()
    talk.wire.advance(2.9)
    assert talk.wire.take(FrameKind.CONTROL) == []
    talk.wire.advance(0.2)
    assert talk.asked() == m.GroupHeartbeat(group="g", member="m1", generation=5)
    talk.answer(beat())
    talk.wire.advance(3.1)
    assert isinstance(talk.asked(), m.GroupHeartbeat)


def test_changed_heartbeat_leads_to_a_sync(talk: Talk) -> None:
    """A heartbeat's answer that says so has the member sync at once."""
    talk.join()
    talk.wire.advance(3.1)
    talk.asked()
    talk.answer(beat(changed=True))
    assert talk.asked() == m.GroupSync(group="g", member="m1", generation=5, owned=[7])


def revoke(talk: Talk) -> None:
    """Have the topic revoked, to be released within four seconds."""
    talk.join()
    talk.change()
    talk.wire.advance(3.1)
    talk.asked()
    talk.answer(beat(changed=True))
    talk.asked()
    talk.answer(assignment(generation=6, revoked=[7], deadline_ms=4_000))


def test_revoked_topic_is_held_until_released(talk: Talk) -> None:
    """A revoked topic is told once, stays held, and the sync after its release leaves it out."""
    revoke(talk)
    change = talk.change()
    assert change.revoked == (ORDERS,)
    assert talk.member.held == {7: ORDERS}
    talk.member.applied(change)
    talk.wire.turn()
    assert talk.asked() == m.GroupSync(group="g", member="m1", generation=6, owned=[])


def test_topic_not_released_in_time_is_lost(talk: Talk) -> None:
    """When the time to release is over, the member stops by itself."""
    revoke(talk)
    talk.change()
    talk.wire.advance(3.9)
    talk.wire.take(FrameKind.CONTROL)
    assert talk.change() is None
    talk.wire.advance(0.2)
    assert talk.change().lost == (ORDERS,)
    assert talk.member.held == {}


def test_member_fences_itself(talk: Talk) -> None:
    """When the coordinator is silent for a session timeout, what was held counts as lost."""
    talk.join()
    talk.change()
    talk.wire.cut()
    talk.wire.advance(25.0)
    assert talk.change() is None
    talk.wire.advance(4.0)
    assert talk.change().lost == (ORDERS,)
    assert talk.member.phase is MembershipPhase.OUTSIDE


def test_short_outage_loses_nothing(talk: Talk) -> None:
    """After a lost connection the member shows at once that it lives, and holds what it held."""
    talk.join()
    talk.change()
    talk.wire.cut()
    talk.wire.advance(1.0)
    talk.wire.connect()
    assert isinstance(talk.asked(), m.GroupHeartbeat)
    talk.answer(beat())
    assert talk.change() is None
    assert talk.member.held == {7: ORDERS}


def test_forgotten_member_joins_again_with_what_it_holds(talk: Talk) -> None:
    """A coordinator that was restarted learns what the member holds, and its generation."""
    talk.join()
    talk.wire.advance(3.1)
    talk.asked()
    talk.refuse(GroupErrorCode.UNKNOWN_GROUP)
    asked = talk.asked()
    assert (asked.member, asked.generation, asked.owned) == ("m1", 5, [7])


def test_refusal_that_may_pass_is_tried_again(talk: Talk) -> None:
    """A name that is still taken is asked for again, later."""
    talk.asked()
    talk.refuse(GroupErrorCode.NAME_TAKEN)
    assert talk.wire.take(FrameKind.CONTROL) == []
    talk.wire.advance(0.5)
    assert isinstance(talk.asked(), m.GroupJoin)


def test_topics_that_come_later_are_joined_for(talk: Talk) -> None:
    """It joins again with all that it wants and all that it holds."""
    talk.join()
    talk.member.extend([LATER])
    talk.wire.turn()
    asked = talk.asked()
    assert [topic.name for topic in asked.topics] == ["orders", "later"]
    assert asked.owned == [7]
    talk.answer(joined())
    assert talk.asked() == m.GroupSync(group="g", member="m1", generation=5, owned=[7])
    talk.answer(assignment(assigned=[ORDERS, LATER]))
    assert set(talk.member.held) == {7, 8}


def test_later_topics_are_joined_for_again_after_an_outage(talk: Talk) -> None:
    """The join that was on its way is repeated."""
    talk.join()
    talk.member.extend([LATER])
    talk.wire.turn()
    talk.asked()
    talk.wire.cut()
    talk.wire.advance(0.2)
    talk.wire.connect()
    assert len(talk.asked().topics) == 2


def test_refused_later_topics_leave_the_member_as_it_is(talk: Talk) -> None:
    """It keeps what it has, and says so."""
    talk.join()
    talk.member.extend([LATER])
    talk.wire.turn()
    talk.asked()
    talk.refuse(m.GroupErrorCode.UNKNOWN_TOPIC)
    assert talk.member.phase is MembershipPhase.INSIDE
    assert talk.member.changes.error is None
    assert talk.member.topics == (ORDERS,)
    talk.wire.advance(3.1)
    assert isinstance(talk.asked(), m.GroupHeartbeat)


def test_refusal_that_will_not_pass_is_raised(talk: Talk) -> None:
    """A refusal that trying again does not cure reaches the application."""
    talk.asked()
    talk.refuse(GroupErrorCode.STRATEGY_REFUSED)
    with pytest.raises(GroupRefused, match="STRATEGY_REFUSED: no"):
        talk.change()


def test_commit_that_waits_for_a_connection_keeps_its_assignment(
    talk: Talk,
) -> None:
    """A commit that waits is sent with what is known then, under its own assignment."""
    talk.join()
    talk.wire.cut()
    call = talk.settle(commit(50))
    talk.wire.advance(1.0)
    talk.wire.connect()
    beat_, sent = talk.wire.take(FrameKind.CONTROL)
    assert beat_.batch_id == Command.GROUP_HEARTBEAT
    asked = m.GroupCommit.decode(sent.payload)
    assert (asked.generation, asked.order[0].since) == (5, [4])
    talk.answer(beat())
    talk.answer(m.GroupCommitAck(generation=5, results=[recorded()]))
    assert (call.done, call.error) == (True, None)


def test_commit_carries_the_generation_of_its_own_assignment(talk: Talk) -> None:
    """A commit says which assignment it belongs to, and comes after those before it."""
    talk.join()
    for offset in (50, 60):
        talk.member.submit(commit(offset), talk.clock.now)
    talk.wire.turn()
    sent = [m.GroupCommit.decode(each.payload) for each in talk.wire.take(FrameKind.CONTROL)]
    assert [(each.sequence, each.since) for [each] in (asked.order for asked in sent)] == [
        (1, [4]),
        (2, [4]),
    ]


def test_commit_waits_until_the_member_is_known_again(talk: Talk) -> None:
    """A coordinator that was restarted refuses heartbeat and commit: the member goes on."""
    talk.join()
    talk.change()
    talk.wire.advance(3.1)
    call = talk.settle(commit(50))
    first, second = talk.wire.take(FrameKind.CONTROL)
    assert (first.batch_id, second.batch_id) == (Command.GROUP_HEARTBEAT, Command.GROUP_COMMIT)
    talk.refuse(GroupErrorCode.UNKNOWN_GROUP)
    talk.refuse(GroupErrorCode.UNKNOWN_GROUP)
    assert talk.asked().owned == [7]
    assert talk.change() is None
    talk.answer(joined())
    again = [each for each in talk.wire.take(FrameKind.CONTROL) if each.payload == second.payload]
    assert len(again) == 1
    talk.answer(assignment(assigned=[ORDERS]))
    talk.answer(m.GroupCommitAck(generation=5, results=[recorded()]))
    assert (call.done, call.error) == (True, None)


def test_commit_that_is_sent_again_does_not_go_back(talk: Talk) -> None:
    """After a cut an older commit is sent again as the later one that may have been recorded."""
    talk.join()
    for offset in (390, 494):
        talk.member.submit(commit(offset), talk.clock.now)
    talk.wire.turn()
    talk.wire.take(FrameKind.CONTROL)
    talk.wire.cut()
    talk.wire.advance(1.0)
    talk.wire.connect()
    _, *sent = talk.wire.take(FrameKind.CONTROL)
    asked = [m.GroupCommit.decode(each.payload) for each in sent]
    assert [(each.order[0].sequence, each.topics[0].offset) for each in asked] == [
        (1, 494),
        (2, 494),
    ]


def test_commit_of_a_member_with_an_error_fails_at_once(talk: Talk) -> None:
    """Nobody waits for a commit that can never be answered."""
    talk.asked()
    talk.refuse(GroupErrorCode.STRATEGY_REFUSED)
    call = talk.settle(commit(50))
    assert isinstance(call.error, GroupRefused)


def test_half_open_connection_is_replaced(talk: Talk) -> None:
    """A coordinator that takes the old connection for alive is shown the member's secret."""
    first = talk.asked()
    talk.answer(joined())
    talk.asked()
    talk.answer(assignment(assigned=[ORDERS]))
    talk.wire.cut()
    talk.wire.advance(1.0)
    talk.wire.connect()
    assert isinstance(talk.asked(), m.GroupHeartbeat)
    talk.refuse(GroupErrorCode.NAME_TAKEN)
    again = talk.asked()
    assert (again.owned, again.standing[0].since) == ([7], [5])
    assert again.standing[0].secret == first.standing[0].secret != 0


def test_older_coordinator_is_spoken_to_in_its_way(talk: Talk) -> None:
    """A coordinator that cannot read what newer members add is asked without it."""
    assert talk.asked().standing
    talk.refuse(GroupErrorCode.INVALID_REQUEST)
    assert talk.asked().standing == []
    talk.answer(joined())
    talk.asked()
    talk.answer(assignment(assigned=[ORDERS]))
    talk.settle(commit(50))
    assert talk.asked().order == []


def test_join_that_is_refused_for_a_session_timeout_is_raised(talk: Talk) -> None:
    """A member that cannot get in says why at every look, and no more once it is in."""
    for _ in range(59):
        if talk.wire.take(FrameKind.CONTROL):
            talk.refuse(GroupErrorCode.STORE_FAILED)
        assert talk.change() is None
        talk.wire.advance(0.5)
    talk.wire.advance(0.5)
    for _ in range(2):
        with pytest.raises(GroupRefused, match="STORE_FAILED"):
            talk.change()
    while not talk.wire.take(FrameKind.CONTROL):
        talk.wire.advance(0.5)
    talk.answer(joined())
    assert talk.change() is None


def test_coordinator_that_stays_away_is_raised(talk: Talk) -> None:
    """A member whose coordinator is gone tells that it lost its topics, and then why."""
    talk.join()
    talk.change()
    talk.wire.cut()
    talk.wire.advance(28.0)
    assert talk.change().lost == (ORDERS,)
    assert talk.change() is None
    talk.wire.advance(30.0)
    with pytest.raises(CoordinatorLost, match="not heard of"):
        talk.change()


def test_suspended_machine_counts_as_silence(talk: Talk) -> None:
    """Time in which the machine was suspended counts, though the monotonic clock stands still."""
    talk.join()
    talk.change()
    talk.asleep = 60.0
    talk.wire.advance(0.1)
    assert talk.change().lost == (ORDERS,)
    asked = list(talk.wire.take(FrameKind.CONTROL))
    assert m.GroupJoin.decode(asked[-1].payload).owned == []


def test_refused_commit_names_the_topic_and_syncs(talk: Talk) -> None:
    """A commit of a topic that was lost says which, and the member asks what is its own."""
    talk.join()
    call = talk.settle(commit(50))
    talk.wire.take(FrameKind.CONTROL)
    results = [recorded(GroupErrorCode.NOT_OWNER)]
    talk.answer(m.GroupCommitAck(generation=6, results=results))
    assert isinstance(call.error, CommitRefused)
    assert call.error.codes == {"orders": GroupErrorCode.NOT_OWNER}
    assert isinstance(talk.asked(), m.GroupSync)


def test_leaves_when_it_closes(talk: Talk) -> None:
    """A member that closes says so, after what is to be committed."""
    talk.join()
    call = talk.settle(commit(50))
    talk.session.close(talk.clock.now, 10.0)
    talk.wire.turn()
    talk.wire.take(FrameKind.CONTROL)
    talk.answer(m.GroupCommitAck(generation=5, results=[recorded()]))
    assert isinstance(talk.asked(), m.GroupLeave)
    talk.answer(m.GroupLeaveAck(generation=6))
    talk.wire.turn()
    talk.wire.hang_up()
    assert talk.session.finished
    assert call.done


def test_closing_without_a_connection_does_not_wait(talk: Talk) -> None:
    """A member that cannot reach its coordinator closes at once."""
    talk.join()
    talk.wire.cut()
    talk.session.close(talk.clock.now, 10.0)
    talk.wire.turn()
    assert talk.session.finished


@pytest.mark.parametrize(
    "answer",
    [
        lambda: (Command.GROUP_ASSIGNMENT, b"\xff" * 30),
        lambda: (
            Command.GROUP_ASSIGNMENT,
            assignment(assigned=[ORDERS], offset=2**64 - 1).encode(),
        ),
        lambda: (Command.GROUP_LEAVE_ACK, bytes(8)),
        lambda: (Command.GROUP_ASSIGNMENT, assignment(assigned=[TopicIdentity(8)]).encode()),
    ],
    ids=["garbage", "impossible offset", "answer to something else", "topic not asked for"],
)
def test_nonsense_ends_the_connection(
    talk: Talk, answer: Callable[[], tuple[Command, bytes]]
) -> None:
    """A coordinator that answers nonsense is hung up on, and tried again."""
    talk.asked()
    talk.answer(joined())
    talk.asked()
    talk.wire.control(*answer())
    assert talk.session.connection is None or isinstance(
        talk.session.connection.fault, RemoteProtocolError
    )
    talk.wire.hang_up()
    talk.wire.advance(1.0)
    talk.wire.connect()
    assert isinstance(talk.asked(), m.GroupSync | m.GroupHeartbeat)


def test_repr_shows_state(talk: Talk) -> None:
    """A member shows its name, its phase and what it holds."""
    assert repr(talk.member) == "<MemberHandler '' of 'g' OUTSIDE generation=0 held=0>"
    talk.join()
    assert repr(talk.member) == "<MemberHandler 'm1' of 'g' INSIDE generation=5 held=1>"
    assert isinstance(talk.member, MemberHandler)
