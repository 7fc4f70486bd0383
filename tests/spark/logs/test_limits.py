"""How much a micro-batch takes, how much it waits for, and patterns that match nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]
EVERYTHING = 2**62


class Trigger:
    """Asks for micro-batches at times that a test decides."""

    def __init__(self, reader: Any, **said: str) -> None:
        options = Options.parse({"pollInterval": "0s", "startingOffsets": "earliest", **said})
        self.now = 0.0
        self._reader = reader
        self._progress = StreamOffsets(open_log(options), options, clock=lambda: self.now)
        self._at = self._progress.initial()

    def fire(self) -> list[bytes]:
        """Return the values of the next micro-batch; none when it is not time yet."""
        end = self._progress.advance(self._at, EVERYTHING)
        if end == self._at:
            return []
        self._at = end
        return [row["value"] for row in self._reader.rows(self._progress.splits(end), "value")]

    def rest(self) -> list[list[bytes]]:
        """Return the values of the micro-batches until there is nothing new."""
        found = []
        while values := self.fire():
            found.append(values)
        return found


@pytest.fixture(params=["server", "files"])
def source(request: Any, server: EmbeddedServer, at: dict[str, str]) -> dict[str, str]:
    """The server, or its files."""
    return dict(at) if request.param == "server" else {"path": str(server.data_dir)}


def test_a_micro_batch_takes_so_many_records_at_most(
    reader: Any, produce: Fill, source: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """Exactly so many from a server; from files whole batches, of 45 records here."""
    expected = produce("orders", 450)
    found = Trigger(reader, **source, topic="orders", maxOffsetsPerTrigger="100").rest()
    assert [value for values in found for value in values] == expected
    sizes = {len(values) for values in found[:-1]}
    at_server = "server" in request.node.callspec.id
    assert sizes == {100} if at_server else max(sizes) <= 100


def test_topics_share_the_records_of_a_micro_batch(
    reader: Any, produce: Fill, at: dict[str, str]
) -> None:
    """And what one leaves the others take."""
    produce("a", 10)
    produce("b", 300)
    sizes = [
        len(values)
        for values in Trigger(reader, **at, topics="a,b", maxOffsetsPerTrigger="100").rest()
    ]
    assert sizes == [100, 100, 100, 10]


def test_a_micro_batch_waits_for_records(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """The first one does not; the others until there are enough, or it took too long."""
    said = {"minOffsetsPerTrigger": "50", "maxTriggerDelay": "10 seconds"}
    trigger = Trigger(reader, **source, topic="orders", **said) if produce("orders", 5) else None
    assert trigger is not None
    assert len(trigger.fire()) == 5
    produce("orders", 30, first=5)
    assert trigger.fire() == []
    produce("orders", 30, first=35)
    assert len(trigger.fire()) == 60
    produce("orders", 1, first=65)
    trigger.now += 9
    assert trigger.fire() == []
    trigger.now += 1
    assert len(trigger.fire()) == 1


def test_a_run_to_the_end_waits_for_nothing(
    reader: Any, produce: Fill, source: dict[str, str]
) -> None:
    """Trigger.AvailableNow takes what is there."""
    produce("orders", 5)
    trigger = Trigger(reader, **source, topic="orders", minOffsetsPerTrigger="50")
    assert len(trigger.fire()) == 5
    produce("orders", 3, first=5)
    trigger._progress.stop_at_now()
    assert len(trigger.fire()) == 3


@pytest.mark.parametrize("how", ["batch", "stream"])
def test_a_pattern_that_matches_nothing_is_warned_of(
    reader: Any, produce: Fill, source: dict[str, str], caplog: Any, *, how: str
) -> None:
    """Once: no rows are all that a query would show."""
    produce("orders", 5)
    said = {**source, "topicsPattern": "order"}
    if how == "batch":
        assert reader.splits(**said) == []
    else:
        trigger = Trigger(reader, **said)
        assert (trigger.fire(), trigger.fire()) == ([], [])
    assert caplog.text.count("topicsPattern='order' matches no topic") == 1


def test_each_topic_begins_at_its_time(reader: Any, produce: Fill, server: EmbeddedServer) -> None:
    """Others at their beginning."""
    produce("a", 5)
    produce("b", 5)
    data = str(server.data_dir)
    rows = reader.rows(reader.splits(path=data, topic="a"), "ts_ns")
    later = rows[0]["ts_ns"] // 1_000_000 + 1
    said = {"path": data, "startingOffsetsByTimestamp": f'{{"a": {later}}}'}
    assert {split.topic for split in reader.splits(**said)} == {"b"}
