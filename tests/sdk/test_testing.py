"""The shipped helpers do what they say."""

import pytest

from lance_sdk import Producer
from lance_sdk.testing import FakeServer, LoadedDice, ManualClock


def test_a_manual_clock_moves_when_told() -> None:
    """And never backwards."""
    clock = ManualClock(5.0)
    assert clock() == 5.0
    assert clock.advance(1.5) == 6.5
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_loaded_dice_fall_where_told() -> None:
    """Between the ends, and with the bits given."""
    rng = LoadedDice(0.25, bits=0xFF)
    assert rng.uniform(0, 8) == 2
    assert rng.getrandbits(4) == 0xF


def test_a_fake_server_keeps_what_it_acknowledges() -> None:
    """With header fields, for tests to look at."""
    with FakeServer(topics=("a", "b")) as server:
        with Producer(server.url("b")) as producer:
            producer.send(b"x")
        (frame,) = server.ingested
    assert (frame.topic_id, frame.record_count, frame.connection) == (2, 1, 1)
    assert server.records(2) == [b"x"]


def test_a_fake_server_says_what_did_not_happen() -> None:
    """A wait that fails shows the last frames."""
    with FakeServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr("lance_sdk.testing.server._WAIT", 0.01)
        with pytest.raises(AssertionError, match="the frame did not come true; frames: "):
            server.wait_for(lambda: False, "the frame")
