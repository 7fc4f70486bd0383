"""Answers are handed to the socket in order, a bounded part of them at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.network import write_buffer
from lance_server.network.write_buffer import WriteBuffer

PIECE = 100
answers = st.lists(st.binary(min_size=1, max_size=350), min_size=1, max_size=12)


@given(answers)
def test_every_byte_is_handed_over_once_and_in_order(answers: list[bytes]) -> None:
    """However large or small they are, no more than a piece goes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_buffer, "PIECE", PIECE)
        box = WriteBuffer()
        box.add(answers)
        handed: list[bytes] = []
        while box:
            pieces = [bytes(piece) for piece in box.next_pieces()]
            assert 0 < sum(map(len, pieces)) <= PIECE
            handed += pieces
    assert b"".join(handed) == b"".join(answers)
    assert (box.size, box.handed_over) == (0, sum(map(len, answers)))


@given(answers)
def test_an_answer_counts_until_the_last_of_it_is_gone(answers: list[bytes]) -> None:
    """Its memory is not given back by parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_buffer, "PIECE", PIECE)
        box = WriteBuffer()
        box.add(answers)
        while box:
            box.next_pieces()
            ends, left = 0, 0
            for each in answers:
                ends += len(each)
                left += len(each) if ends > box.handed_over else 0
            assert box.size == left


def test_small_answers_stay_as_they_are() -> None:
    """They are handed over together, and none of them is copied."""
    answers = [bytes([number]) * 10 for number in range(5)]
    box = WriteBuffer()
    box.add(answers)
    assert all(one is two for one, two in zip(box.next_pieces(), answers, strict=True))


def test_nothing_is_left_of_what_was_thrown_away() -> None:
    """Not even the place inside an answer that was begun."""
    box = WriteBuffer()
    box.add([bytes(3 * write_buffer.PIECE)])
    box.next_pieces()
    box.clear()
    assert (bool(box), box.size) == (False, 0)
    box.add([b"next"])
    assert box.next_pieces() == [b"next"]


@pytest.mark.parametrize(
    ("before", "answers", "passes"),
    [
        ([], [b"a", b"bc"], True),
        ([b"x"], [b"a"], False),
        ([], [bytes(write_buffer.PIECE + 1)], False),
    ],
    ids=["empty", "others are before", "more than a piece"],
)
def test_a_piece_that_nothing_is_before_need_not_wait(
    before: list[bytes], answers: list[bytes], passes: bool
) -> None:
    """It counts as handed over at once; anything else changes nothing."""
    box = WriteBuffer()
    box.add(before)
    size = box.size
    assert box.pass_on(answers) is passes
    assert (box.size, box.handed_over) == (size, sum(map(len, answers)) if passes else 0)
