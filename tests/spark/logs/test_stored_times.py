"""The server's times of records that have none of their own (AMB-61)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from lance_sdk import Client, Producer
from lance_sdk.errors import Unsupported
from lance_sdk.spark.logs.stored_times import StoredTimes
from lance_sdk.spark.rows.column_names import Origin
from lance_sdk.spark.rows.columns import Parted, arrow_schema, to_batch
from lance_sdk.types import BatchTimes
from lance_server.embedded import EmbeddedServer
from lance_spec.enums import RecordType
from lance_spec.records import encode_record

TIMES = ("offset", "timestamp", "ts_ns", "time_source")
RECORD = encode_record(b"abc")


def parted(count: int, kind: int = RecordType.RAW_DATA) -> Parted:
    """Records of eight bytes each."""
    return Parted.of(bytearray(encode_record(b"abc", kind) * count))


class Told:
    """Answers as a server would, a few batches at a time."""

    def __init__(self, *batches: tuple[int, int], at_once: int = 2) -> None:
        self.batches = batches
        self.at_once = at_once
        self.asked: list[int] = []

    def ask(self, start: int, end: int) -> BatchTimes:
        """Answer, and note where the question began."""
        self.asked.append(start)
        left = [batch for batch in self.batches if batch[0] >= start]
        told = left[: self.at_once]
        rest = left[self.at_once : self.at_once + 1]
        following = rest[0][0] if rest else end
        return BatchTimes(
            tuple(place for place, _ in told), tuple(time for _, time in told), following
        )


def test_a_record_has_the_time_of_its_batch() -> None:
    """However many are told of at once."""
    told = Told((0, 10), (16, 20), (24, 30))
    stored = StoredTimes(told.ask, 0, 40)
    found = stored.of(parted(5), 0)
    assert found is not None
    assert found.tolist() == [10, 10, 20, 30, 30]
    assert told.asked == [0, 24]


def test_the_server_is_asked_when_the_records_come_so_far() -> None:
    """Not for the whole range at once."""
    told = Told((0, 10), (16, 20), (24, 30))
    stored = StoredTimes(told.ask, 0, 40)
    first = stored.of(parted(2), 0)
    assert first is not None
    assert (first.tolist(), told.asked) == ([10, 10], [0])
    second = stored.of(parted(3), 16)
    assert second is not None
    assert (second.tolist(), told.asked) == ([20, 30, 30], [0, 24])


def test_what_retention_dropped_meanwhile_has_no_time() -> None:
    """The records were read, their batch is gone."""
    found = StoredTimes(Told((16, 20)).ask, 0, 40).of(parted(3), 0)
    assert found is not None
    assert found.tolist() == [0, 0, 20]


def test_records_with_a_time_of_their_own_ask_for_nothing() -> None:
    """One connection less to wait for."""
    told = Told((0, 10))
    assert StoredTimes(told.ask, 0, 40).of(parted(3, RecordType.TIMESTAMPED), 0) is None
    assert told.asked == []


def test_a_server_that_cannot_tell_is_asked_once() -> None:
    """The records have no time then."""
    asked = []

    def ask(start: int, _end: int) -> BatchTimes:
        asked.append(start)
        raise Unsupported("it cannot")

    stored = StoredTimes(ask, 0, 40)
    assert [stored.of(parted(2), offset) for offset in (0, 16)] == [None, None]
    assert asked == [0]


def test_the_server_says_what_the_files_say(
    server: EmbeddedServer, at: Mapping[str, str], reader: Any, produce: Callable[..., list[bytes]]
) -> None:
    """Over segments, and with records of both kinds."""
    produce("orders", 2000)
    with Producer(f"{server.url}/orders", dialect="specified") as producer:
        producer.send(b"with a time", timestamp=1_700_000_000)
        producer.send(b"without")
    produce("orders", 2000)
    live = reader.rows(reader.splits(**at, topic="orders", minPartitions="3"), *TIMES)
    stored = reader.rows(reader.splits(path=str(server.data_dir), topic="orders"), *TIMES)
    assert live == stored
    assert {row["time_source"] for row in live} == {"record", "server"}


def test_an_older_server_gives_no_time(
    at: Mapping[str, str],
    reader: Any,
    produce: Callable[..., list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows are there, with null."""

    def refuse(*_: object) -> BatchTimes:
        raise Unsupported("it cannot")

    produce("orders", 3)
    monkeypatch.setattr(Client, "batch_times", refuse)
    rows = reader.rows(reader.splits(**at, topic="orders"), *TIMES)
    assert [(row["timestamp"], row["ts_ns"], row["time_source"]) for row in rows] == [
        (None, None, None)
    ] * 3


def test_a_time_that_is_unknown_is_null() -> None:
    """Beside others that are known."""
    times = np.array([0, 5_000], np.uint64)
    schema = arrow_schema(("ts_ns", "time_source"))
    batch = to_batch(schema, parted(2), Origin("orders", 0), times)
    assert batch.to_pylist() == [
        {"ts_ns": None, "time_source": None},
        {"ts_ns": 5_000, "time_source": "server"},
    ]
