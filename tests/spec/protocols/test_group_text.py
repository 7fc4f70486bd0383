"""The text protocol of published group coordinators (AMB-38)."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.groups.text_protocol import (
    MAX_MESSAGE,
    Answer,
    Assignments,
    HeartbeatAck,
    JoinAccepted,
    LeaveAcknowledged,
    Refused,
    TextRequest,
    Verb,
    decode_answer,
    encode_answer,
)

U64 = st.integers(0, 2**64 - 1)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TOPICS = st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple)
ANSWERS = st.one_of(
    st.builds(JoinAccepted, WORDS, U64, TOPICS),
    st.builds(HeartbeatAck, U64),
    st.builds(Assignments, U64, TOPICS),
    st.just(LeaveAcknowledged()),
    st.builds(Refused, WORDS),
)


@given(st.sampled_from(Verb), WORDS.filter(bool))
def test_a_request_reads_as_it_is_written(verb: Verb, worker_id: str) -> None:
    """Verb, colon, worker."""
    request = TextRequest(verb, worker_id)
    assert TextRequest.decode(request.encode()) == request


@given(ANSWERS)
def test_an_answer_reads_as_it_is_written(answer: Answer) -> None:
    """Quotes, backslashes and control characters in a name come back as they were."""
    assert decode_answer(encode_answer(answer)) == answer


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    """Nothing from the network raises anything else."""
    for decode in (TextRequest.decode, decode_answer):
        with contextlib.suppress(DecodeError):
            assert decode(data)


@given(ANSWERS, st.data())
def test_an_answer_cut_short_is_refused(answer: Answer, data: st.DataObject) -> None:
    """There is no end mark, so a piece must not pass for the whole."""
    whole = encode_answer(answer)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(DecodeError):
        decode_answer(whole[:length])


def test_a_message_that_is_too_long_is_not_written() -> None:
    """The other side reads 4096 bytes and no more."""
    with pytest.raises(EncodeError):
        TextRequest(Verb.JOIN, "w" * MAX_MESSAGE).encode()
    with pytest.raises(EncodeError):
        encode_answer(Refused("m" * MAX_MESSAGE))


def test_a_request_names_its_worker() -> None:
    """An empty id would make all such members one."""
    with pytest.raises(EncodeError):
        TextRequest(Verb.JOIN, "").encode()


@pytest.mark.parametrize("escape", ["110000", "d800", "ffffff"])
def test_an_escape_that_is_no_character_is_refused(escape: str) -> None:
    """Rust never writes one."""
    with pytest.raises(DecodeError, match="Unicode"):
        decode_answer(f'Error {{ message: "\\u{{{escape}}}" }}'.encode())
