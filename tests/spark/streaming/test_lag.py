"""How far a streaming query is behind: in bytes, records and seconds."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Client
from lance_sdk.errors import ConfigError, Unsupported
from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.lag import Lag, lag, lag_bytes
from lance_sdk.spark.logs.boundaries import stored_since
from lance_sdk.spark.logs.contract import TopicView
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint, encode_checkpoint
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]
SECOND = 10**9


@given(
    ends=st.dictionaries(st.text(max_size=5), st.integers(0, 2**62)),
    reached=st.dictionaries(st.text(max_size=5), st.integers(0, 2**62)),
)
def test_lag_is_what_is_left_of_each_topic(ends: dict[str, int], reached: dict[str, int]) -> None:
    """A topic that was not read from yet is behind by the whole; other formats have no lag."""

    def offsets(places: Mapping[str, int]) -> str:
        known = {
            name: TopicCheckpoint(TopicIdentity(1, name), place, place)
            for name, place in places.items()
        }
        return json.dumps(encode_checkpoint(known))

    ours = {"latestOffset": offsets(ends), "endOffset": offsets(reached)}
    other = {"latestOffset": "17", "endOffset": None}
    left = {name: max(0, end - reached.get(name, 0)) for name, end in ends.items()}
    assert lag_bytes({"sources": [other, ours]}) == left


class Query:
    """A streaming query as Spark drives and reports it."""

    def __init__(self, **said: str) -> None:
        options = Options.parse({"pollInterval": "0s", "startingOffsets": "earliest", **said})
        self.progress = StreamOffsets(open_log(options), options)
        self.at = self.progress.initial()

    def lag(self, limit: int) -> Lag:
        """Plan a micro-batch, and return how far the query is behind after it."""
        self.at = self.progress.advance(self.at, limit)
        told = {"latestOffset": json.dumps(self.progress.ends()), "endOffset": json.dumps(self.at)}
        return lag({"sources": [told]})["orders"]


@pytest.fixture(params=["server", "files"])
def query(request: Any, server: EmbeddedServer, produce: Fill, at: Mapping[str, str]) -> Query:
    """A query over 4,000 records of 45 bytes, which fill several segments."""
    for first in (0, 2000):
        produce("orders", 2000, first=first)
    where = dict(at) if request.param == "server" else {"path": str(server.data_dir)}
    return Query(**where, topic="orders")


def test_records_are_counted(query: Query) -> None:
    """At a server by their mean size, which is that of each here."""
    behind = query.lag(45_000)
    assert behind.records == behind.bytes // 45 > 2000


def test_a_query_that_has_not_begun_is_behind_by_everything(query: Query) -> None:
    """Spark asks for the ends before there is a micro-batch, too."""
    found = query.progress.ends()["topics"]["orders"]["lag"]
    assert (found["bytes"], found["records"]) == (180_000, 4000)


def test_a_query_at_the_end_is_behind_by_nothing(query: Query) -> None:
    """In each unit."""
    assert query.lag(2**62) == Lag(0, 0, 0.0)


def test_seconds_are_known(query: Query) -> None:
    """Since the first record that was not taken was stored: less than a test takes."""
    assert 0 <= (query.lag(45_000).seconds or -1) < 300


@pytest.mark.parametrize("age", [SECOND // 100, SECOND, 90 * SECOND, 40 * 86_400 * SECOND])
@pytest.mark.parametrize("created", [0, 1])
def test_a_time_is_found_by_few_looks(
    monkeypatch: pytest.MonkeyPatch, age: int, created: int
) -> None:
    """Early by a sixty-fourth of its age at most."""
    now, asked = 1_800_000_000 * SECOND, []
    monkeypatch.setattr("time.time_ns", lambda: now)

    class Server:
        def offset_for_time(self, number: int, moment: int) -> int:
            asked.append(number)
            return 50 if moment <= now - age else 100

    view = TopicView(TopicIdentity(7, "orders", created), 0, 100)
    found = now - stored_since(Server(), view, 50)  # type: ignore[arg-type]  # as much as is asked
    assert age <= found <= age + max(age // 32, SECOND // 500)
    assert len(asked) < 45


def test_a_server_that_knows_no_times_leaves_seconds_open(
    monkeypatch: pytest.MonkeyPatch, produce: Fill, at: Mapping[str, str]
) -> None:
    """As a published one does."""

    def refuse(*_: Any) -> int:
        raise Unsupported("no times")

    produce("orders", 100)
    monkeypatch.setattr(Client, "offset_for_time", refuse)
    behind = Query(**at, topic="orders").lag(450)
    assert (behind.records, behind.seconds) == (90, None)


def test_of_two_sources_the_one_further_behind_counts() -> None:
    """A topic may be read twice in a query."""

    def source(size: int) -> dict[str, Any]:
        end = TopicCheckpoint(TopicIdentity(1, "a"), 9, 9, rest={"lag": {"bytes": size}})
        return {"latestOffset": encode_checkpoint({"a": end}), "endOffset": None}

    assert lag({"sources": [source(3), source(7), source(5)]}) == {"a": Lag(7)}


class Event:
    """What Spark tells of a micro-batch."""

    def __init__(self, behind: Mapping[str, Any], second: int = 0) -> None:
        end = TopicCheckpoint(TopicIdentity(1, "orders"), 9, 9, rest={"lag": behind})
        self.progress = self
        self.timestamp = f"2026-01-01T00:00:{second:02d}.000Z"
        self.name, self.id = None, "some-id"
        self.sources = [self]
        self.latestOffset, self.endOffset = json.dumps(encode_checkpoint({"orders": end})), None


def test_a_listener_keeps_and_tells() -> None:
    """The latest samples; all are told."""
    listener_module = pytest.importorskip("lance_sdk.spark.lag_listener", reason="needs pyspark")
    told: list[Any] = []
    listener = listener_module.LagListener(told.append, keep=2)
    for number in range(3):
        listener.onQueryProgress(Event({"bytes": number, "records": 1}))
    assert [each.lag.bytes for each in told] == [0, 1, 2]
    assert listener.samples == told[1:]


def test_a_listener_draws(tmp_path: Path) -> None:
    """Both axes, and the topic's name."""
    listener_module = pytest.importorskip("lance_sdk.spark.lag_listener", reason="needs pyspark")
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    listener = listener_module.LagListener()
    with pytest.raises(ConfigError, match="nothing to draw"):
        listener.draw(tmp_path / "lag.svg")
    for second in range(5):
        listener.onQueryProgress(Event({"bytes": 5000 * second, "seconds": 0.5}, second))
    with mpl.rc_context({"svg.fonttype": "none"}):  # text stays text
        listener.draw(tmp_path / "lag.svg")
    drawn = (tmp_path / "lag.svg").read_text()
    expected = ["How far the queries are behind", "kB", "seconds", "orders"]
    assert [text for text in expected if text not in drawn] == []
