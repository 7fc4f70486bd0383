"""AMB-42: the wait is uniform in [d, 2d), d = min(base * 2**n, cap), reset by progress."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.testing import LoadedDice


def test_delays_double_up_to_the_cap() -> None:
    """Without jitter the delays are base, 2 base, 4 base … and then the cap."""
    backoff = Backoff(0.1, 0.5, LoadedDice(0.0))
    assert [backoff.next_delay() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_jitter_adds_up_to_the_same_again() -> None:
    """With the random source at its highest, each delay is twice its base."""
    backoff = Backoff(0.1, 30.0, LoadedDice(1.0))
    assert backoff.next_delay() == 0.2


def test_reset_starts_over() -> None:
    """After progress the first delay is the base again."""
    backoff = Backoff(0.1, 30.0, LoadedDice(0.0))
    backoff.next_delay()
    backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() == 0.1


@given(
    base=st.floats(0.001, 10),
    factor=st.floats(1, 1000),
    fraction=st.floats(0, 1),
    attempts=st.integers(1, 200),
)
def test_every_delay_is_within_bounds_and_none_shrinks(
    base: float, factor: float, fraction: float, attempts: int
) -> None:
    """However long it goes on, no delay leaves [base, 2 cap] and the floor only rises."""
    cap = base * factor
    backoff = Backoff(base, cap, LoadedDice(fraction))
    delays = [backoff.next_delay() for _ in range(attempts)]
    assert all(base <= delay <= 2 * cap * 1.000001 for delay in delays)
    assert all(later >= earlier for earlier, later in pairwise(delays))
