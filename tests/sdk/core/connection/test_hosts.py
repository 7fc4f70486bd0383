"""Which host is tried next, and in which dialect."""

from lance_sdk._protocol.hosts import Endpoint, Hosts
from lance_spec.dialect import DEPLOYED, SPECIFIED

ONE, TWO = Endpoint("one"), Endpoint("two")
AUTO = (SPECIFIED, DEPLOYED)


def test_specified_is_tried_first() -> None:
    """Nothing is known of a fresh endpoint."""
    assert Hosts([ONE], AUTO).dialect(None) is SPECIFIED


def test_closed_before_the_first_byte_means_try_deployed_at_once() -> None:
    """A server that cannot read the header CRC closes without a frame (LWP section 11.3)."""
    hosts = Hosts([ONE], AUTO)
    assert hosts.closed_unheard(None)
    assert hosts.dialect(None) is DEPLOYED


def test_closed_under_both_is_no_dialect_problem() -> None:
    """After both were tried there is no third."""
    hosts = Hosts([ONE], AUTO)
    hosts.closed_unheard(None)
    assert not hosts.closed_unheard(None)


def test_a_proven_dialect_is_remembered() -> None:
    """The next connection to that endpoint begins with what worked."""
    hosts = Hosts([ONE], AUTO)
    hosts.proved(DEPLOYED)
    hosts.give_up()
    assert hosts.dialect(None) is DEPLOYED


def test_a_proven_dialect_belongs_to_its_endpoint() -> None:
    """Another endpoint is asked from the start."""
    hosts = Hosts([ONE, TWO], AUTO)
    hosts.proved(DEPLOYED)
    hosts.give_up()
    assert hosts.current is TWO
    assert hosts.dialect(None) is SPECIFIED


def test_a_proven_dialect_is_forgotten_when_it_is_not_heard_any_more() -> None:
    """The server may have been replaced by one of the other kind."""
    hosts = Hosts([ONE], AUTO)
    hosts.proved(DEPLOYED)
    assert hosts.closed_unheard(None)
    assert hosts.dialect(None) is SPECIFIED


def test_a_pinned_dialect_is_spoken_everywhere() -> None:
    """While ingests are unacknowledged it never changes, not even at another host."""
    hosts = Hosts([ONE, TWO], AUTO)
    hosts.give_up()
    assert hosts.dialect(DEPLOYED) is DEPLOYED
    assert hosts.candidates(DEPLOYED) == (DEPLOYED,)
    assert not hosts.closed_unheard(DEPLOYED)


def test_a_round_is_over_when_every_host_was_given_up() -> None:
    """Only then is it time to wait."""
    hosts = Hosts([ONE, TWO], AUTO)
    assert not hosts.give_up()
    assert hosts.give_up()
    assert hosts.current is ONE


def test_a_leader_is_tried_next_and_once() -> None:
    """LWP section 12.4: follow leader_addr at once; when it fails, go on in the list."""
    hosts = Hosts([ONE, TWO], AUTO)
    hosts.redirect("10.0.0.7:2000")
    assert not hosts.give_up()
    assert hosts.current == Endpoint("10.0.0.7", 2000)
    assert hosts.give_up()
    assert hosts.current is TWO


def test_hosts_that_name_each_other_are_not_asked_at_once() -> None:
    """Each that was named itself costs a pause."""
    hosts = Hosts([ONE, TWO], AUTO)
    hosts.redirect(str(TWO))
    assert not hosts.give_up()
    for named in (ONE, TWO, ONE):
        hosts.redirect(str(named))
        assert hosts.give_up()
        assert hosts.current == named


def test_a_leader_that_is_no_address_is_ignored() -> None:
    """A server's words are not trusted to be well formed."""
    hosts = Hosts([ONE], AUTO)
    for nonsense in ("", "nowhere", "host:", "host:x", "host:99999", ":1992", "host:0"):
        hosts.redirect(nonsense)
        hosts.give_up()
        assert hosts.current is ONE
