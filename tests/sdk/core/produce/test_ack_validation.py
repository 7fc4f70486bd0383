"""Acks that name a consumer are believed only when they name the one that asked."""

import pytest

from lance_sdk._protocol.consume.consumer_acks import begun, commit_call
from lance_spec.errors import DecodeError
from lance_spec.messages.lwp import CommitAck, SubscribeAck


def test_a_subscribe_ack_of_ours_tells_where_it_begins() -> None:
    """Its offset is where the records begin (LWP section 5.12)."""
    assert begun(SubscribeAck(7, 130).encode(), 7).offset == 130


def test_a_subscribe_ack_of_another_consumer_would_skip_records() -> None:
    """Its offset is somebody else's commit: going on there would lose what stands before."""
    with pytest.raises(DecodeError, match=r"consumer_id at byte 0: expected 7, got 8"):
        begun(SubscribeAck(8, 130).encode(), 7)


def test_a_commit_is_confirmed_by_its_own_ack() -> None:
    """Consumer and offset are repeated (LWP section 5.14)."""
    call = commit_call(1, 7, 130)
    assert call.parse(CommitAck(7, 130).encode()) == CommitAck(7, 130)


@pytest.mark.parametrize(("ack", "field"), [(CommitAck(8, 130), "consumer_id"),
                                            (CommitAck(7, 131), "offset")])  # fmt: skip
def test_a_commit_is_not_confirmed_by_another(ack: CommitAck, field: str) -> None:
    """A CommitAck of another consumer or offset is an error, and names what is wrong."""
    with pytest.raises(DecodeError, match=field):
        commit_call(1, 7, 130).parse(ack.encode())
