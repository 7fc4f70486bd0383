"""Connecting, handshake, dialects, reconnecting and ending, all in memory."""

from typing import Any

import pytest

from lance_sdk._protocol.events import Close, Connect, Connected, Disconnected, Notice
from lance_sdk._protocol.handshake import Plan
from lance_sdk._protocol.hosts import Endpoint
from lance_sdk._protocol.session_handler import SessionState
from lance_sdk.errors import (
    AuthenticationFailed,
    ClosedError,
    ConnectFailed,
    ConnectionLost,
    TopicAlreadyExists,
    TopicNotFound,
)
from lance_spec.bodies import ErrorBody, encode_json
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import FrameKind, encode_backpressure, encode_keepalive
from lance_spec.messages.lwp import AuthenticateResponse


def test_the_first_frame_is_a_keepalive(producer: Any) -> None:
    """It proves that an LWP server is there, and in which dialect."""
    rig = producer.build()
    rig.wire.accept()
    assert [frame.kind for frame in rig.wire.frames] == [FrameKind.KEEPALIVE]
    assert rig.session.state is SessionState.HANDSHAKE


def notices(rig: Any) -> list[str]:
    """Return what the log was told, in order."""
    return [event.message for event in rig.wire.events if isinstance(event, Notice)]


def test_a_silent_server_is_told_of_after_a_second(producer: Any) -> None:
    """The log names it and the limit, once; the connection waits on."""
    rig = producer.build()
    rig.wire.accept()
    rig.wire.advance(0.9)
    assert notices(rig) == []
    rig.wire.advance(0.2)
    (text,) = notices(rig)
    assert text.startswith("one:1992 took the connection and has said nothing for 1 s")
    assert "waiting up to 5 s" in text
    rig.wire.advance(2.0)
    assert len(notices(rig)) == 1
    assert rig.session.state is SessionState.HANDSHAKE


def test_a_slow_server_is_not_told_of(producer: Any) -> None:
    """It has said something within the second."""
    rig = producer.build()
    rig.wire.accept()
    rig.wire.advance(0.9)
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.advance(2.0)
    assert notices(rig) == []


def test_a_topic_name_is_resolved_before_anything_is_sent(producer: Any) -> None:
    """Control requests never travel beside Ingest frames (AMB-10)."""
    rig = producer.build()
    rig.send()
    rig.wire.accept()
    assert rig.wire.take(FrameKind.INGEST) == []
    rig.wire.send(encode_keepalive(SPECIFIED))
    assert [frame.command for frame in rig.wire.frames[1:]] == [Command.LIST_TOPICS]
    assert rig.wire.take(FrameKind.INGEST) == []


def test_the_session_opens_when_the_topic_is_known(producer: Any) -> None:
    """`opened` settles without an error at readiness."""
    rig = producer.build()
    rig.wire.connect()
    assert rig.session.state is SessionState.READY
    assert rig.session.opened.done
    assert rig.session.opened.error is None
    assert rig.wire.events[0] == Connected("192.0.2.1:1992", "specified")


def test_a_missing_topic_fails_the_opening_and_says_how_to_create_it(producer: Any) -> None:
    """The error names the command and the option."""
    producer.plan = Plan("lance://one", topic="absent", create_topic=False)
    rig = producer.build()
    rig.wire.connect()
    error = rig.session.opened.error
    assert isinstance(error, TopicNotFound)
    assert "lwp topics create absent --url lance://one" in str(error)
    assert "create_topic=True" in str(error)


def test_what_cannot_create_topics_does_not_advise_it(consumer: Any) -> None:
    """A consumer's error names the command alone, and quotes the topic for the shell."""
    consumer.plan = Plan("lance://one", topic="not there")
    rig = consumer.build()
    rig.wire.connect()
    error = rig.session.opened.error
    assert isinstance(error, TopicNotFound)
    assert "lwp topics create 'not there' --url lance://one" in str(error)
    assert "create_topic" not in str(error)


def test_a_missing_topic_is_created_on_request(producer: Any) -> None:
    """create_topic=True asks for it by name."""
    producer.plan = Plan("lance://one", topic="absent", create_topic=True)
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
    assert [bytes(frame.payload) for frame in rig.wire.frames[2:]] == [b"absent"]
    answer = encode_json({"id": 9, "name": "absent", "created_at": 1})
    rig.wire.control(Command.TOPIC_RESPONSE, answer)
    assert rig.session.state is SessionState.READY


def test_a_topic_that_somebody_is_creating_is_waited_for(producer: Any) -> None:
    """A server may refuse the name before it lists the topic: it is looked for again."""
    producer.plan = Plan("lance://one", topic="absent", create_topic=True)
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
    rig.wire.error(ErrorCode.TOPIC_ALREADY_EXISTS, "exists")
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
    assert rig.session.state is SessionState.HANDSHAKE
    rig.wire.advance(0.05)
    topic = {"id": 9, "name": "absent", "created_at": 1}
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": [topic]}))
    assert rig.session.state is SessionState.READY


def test_a_topic_that_exists_and_is_never_listed_is_an_error(producer: Any) -> None:
    """After a second of looking."""
    producer.plan = Plan("lance://one", topic="absent", create_topic=True)
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
    rig.wire.error(ErrorCode.TOPIC_ALREADY_EXISTS, "exists")
    for _ in range(50):
        assert rig.session.state is SessionState.HANDSHAKE
        rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
        rig.wire.advance(0.02)
    assert isinstance(rig.session.opened.error, TopicAlreadyExists)


def test_losing_the_race_to_create_a_topic_is_no_error(producer: Any) -> None:
    """TopicAlreadyExists means that it is there now: it is looked up again."""
    producer.plan = Plan("lance://one", topic="absent", create_topic=True)
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": []}))
    rig.wire.error(ErrorCode.TOPIC_ALREADY_EXISTS, "exists")
    topic = {"id": 9, "name": "absent", "created_at": 1}
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": [topic]}))
    assert rig.session.state is SessionState.READY


def test_names_are_compared_in_normal_form(producer: Any) -> None:
    """AMB-24: a name that is spelled with combining marks is the same name."""
    producer.plan = Plan("lance://one", topic="\u00e9")
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    topic = {"id": 9, "name": "e\u0301", "created_at": 1}
    rig.wire.control(Command.TOPIC_RESPONSE, encode_json({"topics": [topic]}))
    assert rig.session.state is SessionState.READY


def test_a_token_is_presented_before_anything_else_is_asked(client: Any) -> None:
    """Authenticate follows the Keepalive; a refusal ends the session for good."""
    rig = client.build()
    rig.session._plan = Plan("lance://one", token="secret")
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    assert bytes(rig.wire.frames[1].payload) == b"secret"
    refusal = AuthenticateResponse(ok=False, message=b"Invalid token")
    rig.wire.control(Command.AUTHENTICATE_RESPONSE, refusal.encode())
    assert isinstance(rig.session.opened.error, AuthenticationFailed)
    assert "Invalid token" in str(rig.session.opened.error)


def test_one_round_over_the_hosts_and_no_more(producer: Any) -> None:
    """With open_timeout=0, `opened` fails when every host was tried once."""
    producer.endpoints = (Endpoint("one"), Endpoint("two", 2000))
    rig = producer.build()
    rig.wire.refuse()
    assert not rig.session.opened.done
    rig.wire.refuse("dns", OSError("no such host"))
    error = rig.session.opened.error
    assert isinstance(error, ConnectFailed)
    assert [(a.endpoint, a.phase) for a in error.attempts] == [
        ("one:1992", "tcp"),
        ("two:2000", "dns"),
    ]
    assert rig.session.finished


def test_open_timeout_keeps_trying(producer: Any) -> None:
    """Until it is over, rounds follow one another with growing delays (AMB-42)."""
    producer.open_timeout = 1.0
    rig = producer.build()
    rig.wire.refuse()
    assert rig.session.next_deadline() == rig.clock.now + 0.1
    rig.wire.advance(0.1)
    rig.wire.refuse()
    assert rig.session.next_deadline() == pytest.approx(rig.clock.now + 0.2)
    rig.wire.advance(1.0)
    rig.wire.refuse()
    assert len(rig.session.opened.error.attempts) == 3


def test_an_unheard_close_tries_the_other_dialect_at_once(producer: Any, auto: Any) -> None:
    """`auto`: specified, then deployed, without a pause."""
    producer.dialects, producer.speaks = auto, DEPLOYED
    rig = producer.build()
    rig.wire.accept()
    rig.wire.cut()
    rig.wire.connect()
    assert rig.session.state is SessionState.READY
    assert rig.session.dialect == DEPLOYED


def test_closed_under_both_lists_both_attempts(producer: Any, auto: Any) -> None:
    """ConnectFailed names the dialects that were spoken."""
    producer.dialects = auto
    rig = producer.build()
    for _ in auto:
        rig.wire.accept()
        rig.wire.cut()
    error = rig.session.opened.error
    assert [attempt.dialect for attempt in error.attempts] == ["specified", "deployed"]
    assert "before its first byte" in str(error)
    assert "is not a LANCE server" in str(error)


def test_only_a_valid_frame_proves_a_dialect(producer: Any, auto: Any) -> None:
    """What answers in IEEE speaks deployed, although it was asked in specified."""
    producer.dialects = auto
    rig = producer.build()
    rig.wire.accept()
    rig.wire._dialect = DEPLOYED
    rig.wire.send(encode_keepalive(DEPLOYED))
    assert rig.session.connection.dialect == DEPLOYED


def test_garbage_is_a_failed_attempt_that_shows_how_it_begins(producer: Any) -> None:
    """An HTTP server on the port is not mistaken for a network problem."""
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4)
    rig.wire.hang_up()
    assert "the answer begins with 'HTTP'" in str(rig.session.opened.error)


def test_a_silent_server_is_given_up_after_connect_timeout(producer: Any) -> None:
    """The handshake has a deadline of its own."""
    rig = producer.build()
    rig.wire.accept()
    rig.wire.advance(5.0)
    rig.wire.hang_up()
    assert "no answer to the handshake in 5.0 s" in str(rig.session.opened.error)


def test_a_full_server_is_tried_again(producer: Any) -> None:
    """ConnectionLimit instead of a handshake is retryable (LWP section 12.2)."""
    producer.open_timeout = 60.0
    rig = producer.build()
    rig.wire.accept()
    rig.wire.error(ErrorCode.CONNECTION_LIMIT, "too many")
    rig.wire.hang_up()
    assert rig.session.state is SessionState.WAITING


def test_the_leader_is_followed(producer: Any) -> None:
    """NotLeader with an address redirects the next attempt (LWP section 12.4)."""
    producer.open_timeout = 60.0
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(SPECIFIED))
    rig.wire.error(ErrorCode.NOT_LEADER, "not here", leader_addr="10.0.0.7:2000")
    rig.wire.hang_up()
    rig.wire.advance(0.0)
    action = rig.wire.actions.pop()
    assert isinstance(action, Connect)
    assert (action.host, action.port) == ("10.0.0.7", 2000)


def test_a_lost_connection_is_made_again_after_a_delay(producer: Any) -> None:
    """The delay is announced with the reason."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.cut(ConnectionResetError("reset by peer"))
    lost = rig.wire.events[-1]
    assert isinstance(lost, Disconnected)
    assert isinstance(lost.error, ConnectionLost)
    assert lost.retry_in == 0.1
    rig.wire.advance(0.1)
    rig.wire.connect()
    assert rig.session.connects == 2


def test_a_server_that_accepts_and_drops_is_not_hammered(producer: Any) -> None:
    """A connection alone is no progress: the delays keep growing (AMB-42)."""
    rig = producer.build()
    delays = []
    for _ in range(4):
        rig.wire.connect()
        rig.wire.cut()
        delays.append(rig.wire.events[-1].retry_in)
        rig.wire.advance(delays[-1])
    assert delays == [0.1, 0.2, 0.4, 0.8]


def test_an_acknowledgement_is_progress(producer: Any) -> None:
    """After one the delays start over."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.cut()
    rig.wire.advance(0.1)
    rig.wire.connect()
    rig.send()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(frame.batch_id)
    rig.wire.cut()
    assert rig.wire.events[-1].retry_in == 0.1


def test_the_dialect_stays_while_ingests_are_unacknowledged(producer: Any, auto: Any) -> None:
    """A retry in the other dialect would not be the same frame (AMB-25)."""
    producer.dialects = auto
    rig = producer.build()
    rig.wire.connect()
    rig.send()
    assert len(rig.wire.take(FrameKind.INGEST)) == 1
    rig.wire.cut()
    rig.wire.advance(0.1)
    rig.wire.accept()
    rig.wire.cut()  # closed before its first byte, but nothing else is tried
    rig.wire.advance(0.2)
    rig.wire.connect()
    assert rig.session.dialect == SPECIFIED


def test_a_dead_server_is_noticed(producer: Any) -> None:
    """Thirty silent seconds end the connection, keepalives or not."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.advance(30.0)
    assert isinstance(rig.wire.actions[-1], Close)
    rig.wire.hang_up()
    assert "silent for 30.0 s" in str(rig.wire.events[-1].error)


def test_an_idle_connection_is_kept_alive(producer: Any) -> None:
    """While its keepalives are answered it lives forever."""
    rig = producer.build()
    rig.wire.connect()
    for _ in range(10):
        rig.wire.advance(10.0)
        assert len(rig.wire.take(FrameKind.KEEPALIVE)) == 1
        rig.wire.send(encode_keepalive(SPECIFIED))
    assert rig.session.state is SessionState.READY


def test_closing_a_drained_session_hangs_up(producer: Any) -> None:
    """Nothing to wait for: the connection ends, the session is finished."""
    rig = producer.build()
    rig.wire.connect()
    rig.session.close(rig.clock.now, 10.0)
    rig.wire.turn()
    rig.wire.hang_up()
    assert rig.session.finished


def test_closing_waits_for_acknowledgements_until_its_deadline(producer: Any) -> None:
    """What is not acknowledged by then fails, and may have been stored."""
    rig = producer.build()
    rig.wire.connect()
    batch = rig.send()
    rig.session.close(rig.clock.now, 10.0)
    rig.wire.advance(9.9)
    assert not batch.done
    rig.wire.advance(0.1)
    assert batch.done
    failure = batch.failure()
    assert failure is not None
    assert failure.maybe_applied
    rig.wire.hang_up()
    assert rig.session.finished


def test_closing_during_a_dial_abandons_it(producer: Any) -> None:
    """The driver is told to stop dialling; opening fails."""
    rig = producer.build()
    rig.wire.turn()
    assert isinstance(rig.wire.actions.pop(), Connect)
    rig.session.close(rig.clock.now, 10.0)
    rig.wire.turn()
    rig.wire.hang_up()
    assert rig.session.finished
    assert isinstance(rig.session.opened.error, ClosedError)


def test_closing_while_disconnected_tries_until_its_deadline(producer: Any) -> None:
    """A short outage during close() costs nothing."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.cut()
    batch = rig.send()
    rig.session.close(rig.clock.now, 10.0)
    rig.wire.advance(0.1)
    rig.wire.connect()
    (frame,) = rig.wire.take(FrameKind.INGEST)
    rig.wire.ack(frame.batch_id)
    assert batch.done
    assert batch.failure() is None


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED])
def test_an_unreadable_answer_ends_the_connection(producer: Any, dialect: Dialect) -> None:
    """It is the peer's fault, it is named, and another try is made."""
    producer.dialects, producer.speaks, producer.open_timeout = (dialect,), dialect, 60.0
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_keepalive(dialect))
    rig.wire.control(Command.TOPIC_RESPONSE, b"not json")
    rig.wire.hang_up()
    assert rig.session.state is SessionState.WAITING
    assert "TopicResponse" in str(rig.wire.events[-1].error)


def test_an_answer_to_nothing_ends_the_connection(producer: Any) -> None:
    """Without correlation ids an unexpected answer means the stream is out of step."""
    rig = producer.build()
    rig.wire.connect()
    rig.wire.control(Command.TOPIC_RESPONSE, b"{}")
    rig.wire.hang_up()
    assert "which answers no request" in str(rig.wire.events[-1].error)


def test_error_bodies_are_understood_in_both_forms(producer: Any) -> None:
    """JSON and the deployed server's text lead to the same class (AMB-10)."""
    for dialect in (SPECIFIED, DEPLOYED):
        body = ErrorBody(ErrorCode.TOPIC_NOT_FOUND, "Topic 7 not found")
        producer.dialects, producer.speaks = (dialect,), dialect
        rig = producer.build()
        rig.wire.accept()
        rig.wire.send(encode_keepalive(dialect))
        rig.wire.control(Command.ERROR_RESPONSE, body.encode(dialect))
        assert isinstance(rig.session.opened.error, TopicNotFound)


def test_an_acknowledgement_before_anything_was_sent_ends_the_connection(producer: Any) -> None:
    """During the handshake nothing can be acknowledged; Backpressure means nothing yet."""
    producer.open_timeout = 60.0
    rig = producer.build()
    rig.wire.accept()
    rig.wire.send(encode_backpressure(SPECIFIED))
    assert rig.session.state is SessionState.HANDSHAKE
    rig.wire.ack(1)
    rig.wire.hang_up()
    assert "before any was sent" in str(rig.wire.events[-1].error)
