"""How far a write is, seen from outside; and that looking never gets in its way."""

from collections.abc import Callable, Mapping

import pytest

from lance_sdk.spark.options import Options
from lance_sdk.spark.pipelines.growth import Growth, watched

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]


def test_a_topic_has_grown_by_what_has_come_since(produce: Fill, at: At) -> None:
    """What was there before does not count; a topic that comes later has grown by all it has."""
    produce("orders", 100)
    growth = Growth(Options.parse(at), ["orders", "later"])
    assert growth.now() == 0
    produce("orders", 10, first=100)
    produce("later", 5)
    assert growth.now() == 15


def test_progress_begins_at_nothing_and_ends_at_all(produce: Fill, at: At) -> None:
    """Whatever others write meanwhile."""
    told: list[tuple[int, int]] = []
    with watched(Options.parse(at), ["orders"], 50, lambda *both: told.append(both)):
        produce("orders", 100)
    assert (told[0], told[-1]) == ((0, 50), (50, 50))
    assert all(done <= total for done, total in told)


def test_a_write_that_fails_is_not_told_as_done(at: At) -> None:
    """The error goes on its way."""
    told: list[tuple[int, int]] = []
    with (
        pytest.raises(RuntimeError),
        watched(Options.parse(at), ["orders"], 450, lambda *both: told.append(both)),
    ):
        raise RuntimeError
    assert told == [(0, 450)]


def test_a_server_that_is_away_is_no_error_of_the_bar() -> None:
    """The write itself tells it."""
    growth = Growth(Options.parse({"servers": "127.0.0.1:9", "requestTimeout": "1s"}), ["orders"])
    assert growth.now() == 0
