"""Control requests as calls: order, deadlines, and what a lost connection does to them."""

from typing import Any

from tests.sdk.core.conftest import LIMITS

from lance_sdk._protocol.events import Close, Connect
from lance_sdk._protocol.request_tracker import PendingRequest, ping_call
from lance_sdk.errors import (
    ConnectionLost,
    DeadlineExceeded,
    NotLeader,
    RemoteProtocolError,
    TopicNotFound,
)
from lance_spec.bodies import decode_topics, encode_json
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind, encode_backpressure, encode_keepalive

TOPICS = encode_json({"topics": []})


def listing(*, repeatable: bool = True) -> PendingRequest:
    """Return a call for ListTopics."""
    return PendingRequest(
        Command.LIST_TOPICS, b"", Command.TOPIC_RESPONSE, decode_topics, repeatable=repeatable
    )


def submit(rig: Any, call: PendingRequest) -> PendingRequest:
    """Submit a call now."""
    rig.caller.submit(call, rig.clock.now)
    rig.wire.turn()
    return call


def test_a_call_settles_with_its_parsed_answer(client: Any) -> None:
    """The answer's payload goes through the call's parser."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    rig.wire.control(Command.TOPIC_RESPONSE, TOPICS)
    assert call.value == []
    assert rig.wire.settled().count(call) == 1


def test_an_error_settles_the_call(client: Any) -> None:
    """As the class of its code."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    rig.wire.error(ErrorCode.TOPIC_NOT_FOUND, "none")
    assert isinstance(call.error, TopicNotFound)


def test_an_unreadable_answer_settles_the_call_and_nothing_else(client: Any) -> None:
    """The stream is still in step."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    rig.wire.control(Command.TOPIC_RESPONSE, b"[]")
    assert isinstance(call.error, RemoteProtocolError)
    assert rig.session.connection.fault is None


def test_a_call_has_a_deadline(client: Any) -> None:
    """After it the late answer falls into a tombstone."""
    rig = client.build(timeout=2.0)
    rig.wire.connect()
    call = submit(rig, listing())
    rig.wire.advance(2.0)
    assert isinstance(call.error, DeadlineExceeded)
    assert not call.error.maybe_applied
    second = submit(rig, listing())
    rig.wire.control(Command.TOPIC_RESPONSE, b"the first answer")
    assert not second.done
    rig.wire.control(Command.TOPIC_RESPONSE, TOPICS)
    assert second.value == []


def test_no_call_is_sent_behind_one_that_was_given_up(client: Any) -> None:
    """Its answer could be taken for the one that never came: both deadlines are one moment."""
    rig = client.build(timeout=LIMITS.request_timeout)
    rig.wire.connect()
    late = listing()
    rig.caller.submit(late, rig.clock.now)
    rig.clock.advance(0.5)  # until the thread that sends is awake
    rig.wire.turn()
    rig.wire.take(FrameKind.CONTROL)
    rig.wire.advance(20.0)
    rig.wire.send(encode_keepalive(SPECIFIED))  # it lives
    rig.wire.advance(LIMITS.request_timeout - 20.5)
    assert isinstance(late.error, DeadlineExceeded)
    submit(rig, listing())
    assert rig.wire.take(FrameKind.CONTROL) == []


def test_a_repeatable_call_survives_a_lost_connection(client: Any) -> None:
    """It is asked again on the next."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    rig.wire.cut()
    rig.wire.advance(0.1)
    rig.wire.connect()
    assert [topic.name for topic in call.value] == ["orders"]


def test_another_call_fails_and_may_have_been_applied(client: Any) -> None:
    """CreateTopic twice is not CreateTopic once."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing(repeatable=False))
    rig.wire.cut()
    assert isinstance(call.error, ConnectionLost)
    assert call.error.maybe_applied


def test_calls_wait_for_a_connection(client: Any) -> None:
    """What is asked while there is none is asked when there is one."""
    rig = client.build()
    rig.wire.connect()
    rig.wire.cut()
    call = submit(rig, listing(repeatable=False))
    rig.wire.advance(0.1)
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.control(Command.TOPIC_RESPONSE, TOPICS)
    assert call.value == []


def test_a_ping_measures_the_round_trip(client: Any) -> None:
    """From the sending of its Keepalive to the answer."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, ping_call())
    assert len(rig.wire.take(FrameKind.KEEPALIVE)) == 1
    rig.wire.advance(0.25)
    rig.wire.send(encode_keepalive(SPECIFIED))
    assert call.value == 0.25


def test_closing_fails_what_is_left_at_its_deadline(client: Any) -> None:
    """Nobody waits forever."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    rig.session.close(rig.clock.now, 1.0)
    rig.wire.advance(1.0)
    assert call.done
    assert call.error is not None


def test_frames_about_ingest_mean_nothing_to_a_client(client: Any) -> None:
    """Backpressure is ignored; an Ack or an error out of nowhere ends the connection."""
    rig = client.build()
    rig.wire.connect()
    rig.wire.send(encode_backpressure(SPECIFIED))
    assert rig.session.connection.fault is None
    rig.wire.ack(7)
    assert "acknowledged batch 0x7, which was never sent" in str(rig.session.connection.fault)
    rig.wire.hang_up()
    rig.wire.advance(0.1)
    rig.wire.connect()
    rig.wire.error(ErrorCode.INTERNAL_ERROR, "going down")
    assert "going down" in str(rig.session.connection.fault)


def test_closing_does_not_wait_for_a_call_that_nobody_waits_for(client: Any) -> None:
    """Ctrl-C, or a cancelled task, has left it; its answer may take its time."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing())
    assert not rig.caller.drained
    call.abandoned = True
    rig.session.close(rig.clock.now, 60.0)
    assert isinstance(rig.session.next_action(rig.clock.now), Close)


def send_away(rig: Any) -> None:
    """Have the server name another one."""
    rig.wire.error(ErrorCode.NOT_LEADER, "not here", leader_addr="10.0.0.7:2000")


def test_a_call_goes_where_the_server_says(client: Any) -> None:
    """Whether or not it may be repeated: nothing was done (LWP section 12.4)."""
    rig = client.build()
    rig.wire.connect()
    call = submit(rig, listing(repeatable=False))
    send_away(rig)
    rig.wire.hang_up()
    rig.wire.advance(1.0)
    action = rig.wire.actions[-1]
    assert isinstance(action, Connect)
    assert (action.host, action.port) == ("10.0.0.7", 2000)
    rig.wire.connect()
    assert [topic.name for topic in call.value] == ["orders"]


def test_what_was_asked_after_it_is_answered_first(client: Any) -> None:
    """A call that cannot be repeated is not cut off by one that goes elsewhere."""
    rig = client.build()
    rig.wire.connect()
    submit(rig, listing())
    second = submit(rig, listing(repeatable=False))
    send_away(rig)
    assert rig.session.connection.fault is None
    rig.wire.control(Command.TOPIC_RESPONSE, TOPICS)
    assert second.value == []
    assert isinstance(rig.session.connection.fault.__cause__, NotLeader)


def test_servers_that_name_each_other_are_an_error(client: Any) -> None:
    """At the fourth of them."""
    rig = client.build()
    call = listing()
    rig.caller.submit(call, rig.clock.now)
    for moves in range(4):
        rig.wire.accept()
        rig.wire.send(encode_keepalive(SPECIFIED))
        send_away(rig)
        if moves < 3:
            rig.wire.hang_up()
            rig.wire.advance(5.0)
    assert isinstance(call.error, NotLeader)
