"""Keepalives: when one is due, what an arriving one means, and why no storm can begin."""

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.keepalive import Keepalive


def test_one_is_due_after_ten_quiet_seconds() -> None:
    """LWP section 2.3: every 10 seconds if there is no other traffic."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    assert keepalive.next_deadline() == 10.0
    assert not keepalive.start_due(9.9)
    assert keepalive.start_due(10.0)


def test_sending_alone_does_not_put_it_off() -> None:
    """A peer that takes frames and says nothing is asked whether it lives."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.last_sent = 9.0
    assert keepalive.start_due(10.0)


def test_traffic_both_ways_puts_it_off() -> None:
    """While frames go both ways none is needed."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.last_sent = 9.0
    keepalive.last_received = 8.0
    assert not keepalive.start_due(17.9)
    assert keepalive.start_due(18.0)


def test_a_second_one_waits_for_the_first_answer() -> None:
    """One unanswered keepalive is question enough."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.start(10.0)
    assert not keepalive.start_due(25.0)


def test_silence_for_thirty_seconds_is_death() -> None:
    """LWP section 11.4: without any frame for 30 seconds either side may close."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    assert not keepalive.dead(29.9)
    assert keepalive.dead(30.0)


def test_the_answer_measures_the_round_trip() -> None:
    """Answers match in order; the time between is the round trip."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.start(10.0)
    keepalive.arrived(10.25)
    assert keepalive.rtt == 0.25


def test_an_answer_is_not_answered() -> None:
    """Keepalives that this side started are settled by their answer (AMB-23)."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.start(0.0)
    keepalive.arrived(0.1)
    assert not keepalive.answer_due(0.1)


def test_one_the_peer_started_is_answered_at_once() -> None:
    """More received than sent: the peer asks (AMB-23)."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.arrived(5.0)
    assert keepalive.answer_due(5.0)
    assert not keepalive.answer_due(5.0)


def test_answers_are_at_most_one_a_second() -> None:
    """The second question within a second is answered when the second is over."""
    keepalive = Keepalive(10.0, 30.0, 0.0)
    keepalive.arrived(5.0)
    assert keepalive.answer_due(5.0)
    keepalive.arrived(5.1)
    assert not keepalive.answer_due(5.1)
    assert keepalive.next_deadline() == 6.0
    assert keepalive.answer_due(6.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_no_echo_can_make_a_storm(gaps: list[float]) -> None:
    """However fast a peer echoes whatever it gets, it gets at most one answer a second."""
    keepalive, now, answers = Keepalive(10.0, 30.0, 0.0), 0.0, []
    for gap in gaps:
        now += gap
        keepalive.arrived(now)
        if keepalive.answer_due(now):
            answers.append(now)
    assert len(answers) <= 1 + now
