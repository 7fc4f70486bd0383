"""Boundaries in a topic at a server: found by time, without reading the records."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Client, Producer
from lance_sdk.errors import Unsupported
from lance_sdk.spark.logs.boundaries import Boundaries
from lance_sdk.spark.logs.contract import EVERYTHING
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.checkpoint import decode_checkpoint
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_server.embedded import EmbeddedServer

At = Mapping[str, str]
BATCHES = st.lists(
    st.tuples(st.integers(0, 10**12), st.integers(1, 10**6)), min_size=1, max_size=60
)
"""Nanoseconds since the batch before, and the size of each."""


class Topic:
    """A topic as a server finds times in it."""

    def __init__(self, batches: list[tuple[int, int]], created_ns: int) -> None:
        self.times = list(accumulate((gap for gap, _ in batches), initial=created_ns))[1:]
        self.starts = list(accumulate((size for _, size in batches), initial=0))
        self.end = self.starts.pop()
        self.asked = 0

    def ask(self, time_ns: int) -> int:
        """Return the offset of the first batch of a time."""
        self.asked += 1
        later = (s for at, s in zip(self.times, self.starts, strict=True) if at >= time_ns)
        return next(later, self.end)


@given(BATCHES, st.integers(0, 10**18), st.integers(0, 2**64 - 1), st.integers(1, 40))
def test_a_range_is_cut_at_batches_only(
    batches: list[tuple[int, int]], created: int, now: int, pieces: int
) -> None:
    """Whatever the times of the batches are, and whatever this machine's clock says."""
    topic = Topic(batches, created)
    size = -(-topic.end // pieces)
    edges = Boundaries(topic.ask, 0, topic.end, created, now).cut(0, topic.end, size)
    assert edges == sorted(set(edges) & set(topic.starts[1:]))
    assert len(edges) < pieces
    assert topic.asked <= 64 * pieces


@given(BATCHES, st.integers(0, 10**18), st.data())
def test_the_boundary_found_is_near(
    batches: list[tuple[int, int]], created: int, data: st.DataObject
) -> None:
    """No batch of another time lies between it and the place, unless it is near enough."""
    topic = Topic(batches, created)
    place = data.draw(st.integers(1, topic.end - 1) if topic.end > 1 else st.just(1))
    nearness = data.draw(st.integers(0, topic.end))
    found = Boundaries(topic.ask, 0, topic.end, created, 0).before(place, nearness)
    assert 0 <= found <= place
    times = dict(zip(reversed(topic.starts), reversed(topic.times), strict=True))
    between = {times[start] for start in topic.starts if found < start <= place}
    assert place - found <= nearness or between <= {times[found]}


def _refuse(*_: Any) -> int:
    raise Unsupported("it knows no times")


@pytest.fixture
def large(server: EmbeddedServer) -> list[bytes]:
    """Values of a topic of 8 MB, of which each 200 kB came at a time of their own."""
    values = [b"%06d" % number * 16_666 for number in range(80)]
    url = f"{server.url}/orders"
    with Producer(url, create_topic=True, dialect="specified") as producer:
        for first in range(0, 80, 2):
            producer.send_many(values[first : first + 2])
            producer.flush()
    return values


def test_min_partitions_cuts_without_reading_twice(
    reader: Any, server: EmbeddedServer, large: list[bytes], at: At
) -> None:
    """Of each split the driver reads only what its fingerprint covers."""
    before = server.stats()["bytes_out"]
    splits = reader.splits(**at, topic="orders", minPartitions="4")
    read = server.stats()["bytes_out"] - before
    assert len(splits) >= 4
    assert all(split.fingerprint is not None for split in splits)
    assert read < 0.2 * 8_000_000
    assert [row["value"] for row in reader.rows(splits, "value")] == large
    assert server.stats()["bytes_out"] - before - read < 1.1 * 8_000_000


def test_a_server_that_tells_no_batches_is_cut_by_time(
    reader: Any, large: list[bytes], at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without reading it twice, as well."""
    monkeypatch.setattr(Client, "batch_times", _refuse)
    splits = reader.splits(**at, topic="orders", minPartitions="4")
    assert len(splits) >= 4
    assert all(split.fingerprint is not None for split in splits)
    assert [row["value"] for row in reader.rows(splits, "value")] == large


def test_a_boundary_costs_one_question(
    reader: Any, large: list[bytes], at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a server that tells where the batch at an offset begins (AMB-61)."""
    asked: list[tuple[Any, ...]] = []
    batch_times = Client.batch_times

    def note(client: Client, *where: Any) -> Any:
        asked.append(where)
        return batch_times(client, *where)

    monkeypatch.setattr(Client, "batch_times", note)
    monkeypatch.setattr(Client, "offset_for_time", _refuse)
    splits = reader.splits(**at, topic="orders", minPartitions="4")
    assert len(splits) == 4
    assert len(asked) <= 2 * 4, "one for a cut, and one for a fingerprint"
    assert [row["value"] for row in reader.rows(splits, "value")] == large


def test_an_end_inside_a_record_leaves_that_record_out(
    reader: Any, large: list[bytes], at: At
) -> None:
    """Also where the range is cut."""
    said = {**at, "topic": "orders", "minPartitions": "2"}
    splits = reader.splits(**said, endingOffsets='{"orders": 4000000}')
    assert len(splits) == 2
    assert [row["value"] for row in reader.rows(splits, "value")] == large[:39]


def test_a_server_without_times_is_cut_by_reading(
    reader: Any, large: list[bytes], at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each split then knows its checksum."""
    monkeypatch.setattr(Client, "offset_for_time", _refuse)
    monkeypatch.setattr(Client, "batch_times", _refuse)
    splits = reader.splits(**at, topic="orders", minPartitions="4")
    assert all(split.crc is not None for split in splits)
    assert [row["value"] for row in reader.rows(splits, "value")] == large


@pytest.mark.parametrize("limit", [5_000_000, EVERYTHING])
def test_a_large_micro_batch_is_planned_without_reading_it(
    reader: Any, server: EmbeddedServer, large: list[bytes], at: At, limit: int
) -> None:
    """Its end is a record's boundary within the limit, with a fingerprint."""
    options = Options.parse({**at, "topic": "orders", "startingOffsets": "earliest"})
    progress = StreamOffsets(open_log(options), options)
    found: list[bytes] = []
    place = progress.initial()
    before = server.stats()["bytes_out"]
    end = progress.advance(place, limit)
    assert server.stats()["bytes_out"] - before < 0.2 * 8_000_000
    while end != place:
        (checkpoint,) = decode_checkpoint(end).values()
        assert checkpoint.offset - checkpoint.start <= limit
        assert checkpoint.fingerprint is not None
        found += [row["value"] for row in reader.rows(progress.splits(end), "value")]
        place, end = end, progress.advance(end, limit)
    assert found == large
