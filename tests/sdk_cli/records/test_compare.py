"""Holding what came back against what was sent."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.demo.compare import Comparison, digest

RECORDS = [b"one", b"two", b"three", b"four"]


def comparison(*batches: list[bytes]) -> Comparison:
    """The four records, and what came back of them."""
    found = Comparison(list(RECORDS))
    for batch in batches:
        found.take(batch)
    return found


def test_the_same_records_are_equal() -> None:
    """However they are cut into batches."""
    assert comparison(RECORDS[:1], RECORDS[1:]).equal


def test_a_missing_record_is_told() -> None:
    """Three of four is not equal."""
    found = comparison(RECORDS[:3])
    assert not found.equal
    assert "3 of 4 came back" in found.verdict()


def test_an_invented_record_is_told() -> None:
    """Five of four is not equal either."""
    found = comparison(RECORDS, [b"five"])
    assert (found.equal, found.received, found.first_difference) == (False, 5, 5)


def test_swapped_records_are_told_by_number() -> None:
    """Order counts."""
    found = comparison([b"one"], [b"three", b"two"], [b"four"])
    assert (found.same_count, found.first_difference) == (True, 2)
    assert "record 2 is not the one sent" in found.verdict()


def test_the_digest_is_that_of_the_records_as_lines() -> None:
    """So that lwp consume and sha256sum give the same."""
    assert digest(RECORDS) == sha256(b"one\ntwo\nthree\nfour\n").hexdigest()


def test_what_came_back_takes_the_place_of_what_was_sent() -> None:
    """The table of the demo is made from consumed records."""
    found = comparison([b"ONE"])
    assert found.records == [b"ONE", b"two", b"three", b"four"]


@given(st.lists(st.binary(max_size=3), max_size=3000), st.lists(st.binary(max_size=3)))
def test_equal_means_equal(sent: list[bytes], received: list[bytes]) -> None:
    """The verdict agrees with Python's own comparison of the lists."""
    same, other = Comparison(list(sent)), Comparison(list(sent))
    same.take(list(sent))
    other.take(list(received))
    assert (same.equal, other.equal) == (True, received == sent)
