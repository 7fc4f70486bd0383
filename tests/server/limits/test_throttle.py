"""Token buckets: no consumer takes more than its share (design section 17.5)."""

from hypothesis import given
from hypothesis import strategies as st

from lance_server.lwp.flow_control.throttle import TokenBucket
from lance_server.testing import SessionPeer, the_error, told
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import Subscribe


def limited(rate: int = 1000, **options: object) -> SessionPeer:
    """A connection that may read at a rate, to a topic with 3,000 bytes."""
    peer = SessionPeer(consumer_rate=rate, **options)
    peer.exchange(*[peer.ingest(batch, [bytes(995)]) for batch in (1, 2, 3)])
    return peer


@given(
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 5000)), min_size=1, max_size=50),
    rate=st.integers(100, 10_000),
)
def test_over_any_time_no_more_than_the_rate_goes_through(
    steps: list[tuple[float, int]], rate: int
) -> None:
    """Besides one second's worth at once, and the read that crosses the line."""
    bucket, now, taken, largest = TokenBucket(rate, 0.0), 0.0, 0, 0
    for pause, size in steps:
        now += pause
        if not bucket.wait(now):
            bucket.take(size)
            taken, largest = taken + size, max(largest, size)
    assert taken <= rate * (now + 1) + largest


@given(rate=st.integers(1, 10_000), debt=st.integers(1, 100_000))
def test_after_the_stated_wait_one_may_read_again(rate: int, debt: int) -> None:
    """The wait that is told is long enough."""
    bucket = TokenBucket(rate, 0.0)
    bucket.take(rate + debt)
    wait = bucket.wait(0.0)
    assert wait > 0
    assert bucket.wait(wait + 1e-6) == 0


def test_who_reads_too_fast_is_told_when_to_come_again() -> None:
    """RateLimited, with the time in milliseconds (LWP section 12.3)."""
    peer = limited()
    assert told(peer.exchange(peer.fetch(0, 2000))) == ["FETCH_RESPONSE"]
    error = the_error(peer.exchange(peer.fetch(2000, 2000)))
    assert error.code is ErrorCode.RATE_LIMITED
    wait = error.details["retry_after_ms"]
    assert 1000 <= wait <= 1200
    peer.wait(wait / 1000 + 0.001)
    assert told(peer.exchange(peer.fetch(2000, 2000))) == ["FETCH_RESPONSE"]
    assert peer.counters.throttled == 1


def test_deployed_clients_read_the_known_words() -> None:
    """They match on the text."""
    peer = limited(100)
    peer.dialect = DEPLOYED
    peer.reconnect()
    peer.exchange(peer.fetch(0, 2000))
    assert the_error(peer.exchange(peer.fetch(0, 2000))).message == "Rate limit exceeded"


def test_each_connection_has_its_own_rate() -> None:
    """One that has read enough does not hold up another."""
    peer = limited()
    peer.exchange(peer.fetch(0, 3000))
    peer.reconnect()
    assert told(peer.exchange(peer.fetch(0, 3000))) == ["FETCH_RESPONSE"]


def test_a_subscriber_is_pushed_to_at_its_rate() -> None:
    """What is too much now comes later, and in full."""
    peer = limited()
    subscribe = peer.control(Command.SUBSCRIBE, Subscribe(0, 0, 1000, 1).encode())
    pushed = told(peer.exchange(subscribe)).count("FETCH_RESPONSE")
    assert pushed < 3
    for _ in range(8):
        peer.wait(0.5)
        pushed += told(peer.received()).count("FETCH_RESPONSE")
    assert pushed == 3
    assert peer.session.closing is None


def test_without_a_rate_nobody_waits() -> None:
    """The default."""
    peer = limited(0)
    assert told(peer.exchange(*[peer.fetch(0, 3000)] * 50)) == ["FETCH_RESPONSE"] * 50
