"""What a node makes of what the nodes tell of themselves."""

from hypothesis import given
from hypothesis import strategies as st

from lance_server.cluster.peers import clock_skew


@given(off=st.integers(-(10**10), 10**10), late=st.integers(0, 10**10), back=st.integers(0))
def test_a_late_record_is_not_a_wrong_clock(off: int, late: int, back: int) -> None:
    """The clock is never said to be further off than it is, nor on the other side."""
    sent = 10**18
    appended = sent + late - off
    skew = clock_skew(sent, appended, sent + late + back)
    assert abs(skew) <= abs(off)
    assert skew * off >= 0


@given(off=st.integers(-(10**10), 10**10))
def test_a_record_that_is_not_late_shows_all(off: int) -> None:
    """Without delays the difference is the clock's."""
    assert clock_skew(10**18, 10**18 - off, 10**18) == off
