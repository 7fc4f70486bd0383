"""Fetching in bulk, and going on otherwise where something is not plain."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Client, Producer
from lance_sdk.errors import MisalignedOffset, TopicChanged
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs import bulk_fetch, server_split
from lance_sdk.spark.rows.columns import arrow_schema
from lance_server import running
from lance_server.embedded import EmbeddedServer
from lance_server.security.tokens import AuthConfig
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command
from lance_spec.frames import encode_keepalive
from lance_spec.messages.lwp import Fetch

Fill = Callable[..., list[bytes]]
At = Mapping[str, str]
SMALL = {"topic": "orders", "fetchBytes": "8KB"}
"""A Fetch of four batches."""


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets from which consumers went on."""
    found: list[int] = []
    made = server_split.open_consumer

    def note(options: Any, topic: str, start: int, *more: Any) -> Any:
        found.append(start)
        return made(options, topic, start, *more)

    monkeypatch.setattr(server_split, "open_consumer", note)
    return found


class Bulk:
    """Two thousand records, and what a task receives of them in bulk."""

    def __init__(self, reader: Any, produce: Fill, at: At, monkeypatch: pytest.MonkeyPatch) -> None:
        self._values = produce("orders", 2000)
        self._read = lambda: reader.values(**at, **SMALL)
        self._monkeypatch = monkeypatch

    def change(self, first: int, change: Callable[[memoryview], None]) -> None:
        """Change what is received, a header and a payload by turns, from the n-th time on."""
        numbers, receive = count(), bulk_fetch._Connection._receive

        def changed(connection: Any, view: memoryview) -> None:
            receive(connection, view)
            if next(numbers) >= first:
                change(view)

        self._monkeypatch.setattr(bulk_fetch._Connection, "_receive", changed)

    def ask(self, change: Callable[[Any, Command, bytes], bytes]) -> None:
        """Do something before each request, and change it."""
        ask = bulk_fetch._Connection._ask

        def changed(connection: Any, command: Command, payload: bytes) -> None:
            ask(connection, command, change(connection, command, payload))

        self._monkeypatch.setattr(bulk_fetch._Connection, "_ask", changed)

    def reads_all(self) -> None:
        """Every record comes once."""
        assert self._read() == self._values


@pytest.fixture
def bulk(reader: Any, produce: Fill, at: At, monkeypatch: pytest.MonkeyPatch) -> Bulk:
    """What a task receives."""
    return Bulk(reader, produce, at, monkeypatch)


def spoil(view: memoryview) -> None:
    """Change the last byte."""
    view[-1] ^= 1


def cut(view: memoryview) -> None:
    """Lose the connection."""
    del view
    raise ConnectionResetError("cut by the test")


def test_a_range_of_records_is_fetched_in_bulk(
    reader: Any, produce: Fill, at: At, consumers: list[int]
) -> None:
    """From any record, up to any other, by no consumer."""
    values = produce("orders", 2000)
    assert reader.values(**at, **SMALL) == values
    begin, end = '{"orders": 4500}', '{"orders": 63000}'
    found = reader.rows(
        reader.splits(**at, **SMALL, startingOffsets=begin, endingOffsets=end), "offset", "value"
    )
    assert [row["value"] for row in found] == values[100:1400]
    assert [row["offset"] for row in found] == list(range(4500, 63000, 45))
    assert consumers == []


def test_an_end_inside_a_record_leaves_that_out(
    reader: Any, produce: Fill, at: At, consumers: list[int]
) -> None:
    """As nobody knows that a record ends there, what comes after it is fetched as well."""
    values = produce("orders", 1000)
    assert reader.values(**at, **SMALL, endingOffsets='{"orders": 9010}') == values[:200]
    assert consumers == []


def test_a_start_inside_a_record_is_told(reader: Any, produce: Fill, at: At) -> None:
    """A consumer judges it."""
    produce("orders", 1000)
    with pytest.raises(MisalignedOffset, match="offset 9010 lies inside a record"):
        reader.values(**at, **SMALL, startingOffsets='{"orders": 9010}')


@pytest.mark.parametrize("size", [3000, 40_000], ids=["cut", "larger than a Fetch"])
def test_records_that_no_fetch_holds_whole(reader: Any, produce: Fill, at: At, size: int) -> None:
    """What is cut is fetched again from its beginning."""
    values = produce("orders", 40, size=size)
    assert reader.values(**at, **SMALL) == values


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("change", [spoil, cut])
def test_what_is_not_plain_is_left_to_a_consumer(
    bulk: Bulk, consumers: list[int], first: int, change: Callable[[memoryview], None]
) -> None:
    """A byte that differs and a connection that ends, wherever: every record comes once."""
    bulk.change(first, change)
    bulk.reads_all()
    assert len(consumers) == 1
    assert consumers[0] % 45 == 0
    assert (consumers[0] > 0) == (first > 1)


def test_a_server_that_wants_to_know_whether_somebody_is_there(
    bulk: Bulk, consumers: list[int]
) -> None:
    """Its Keepalive is answered, and the data come after it."""

    def keepalive(connection: Any, command: Command, payload: bytes) -> bytes:
        del command
        connection._sock.sendall(encode_keepalive(SPECIFIED))  # which the server answers
        return payload

    bulk.ask(keepalive)
    bulk.reads_all()
    assert consumers == []


def test_an_answer_of_more_than_was_asked_for_is_not_taken(
    bulk: Bulk, consumers: list[int]
) -> None:
    """Whatever a header says: no memory is made for it."""

    def ask_for_more(connection: Any, command: Command, payload: bytes) -> bytes:
        del connection, command
        return replace(Fetch.decode(payload), max_bytes=16 << 20).encode()

    bulk.ask(ask_for_more)
    bulk.reads_all()
    assert consumers == [0]


def test_an_error_is_judged_by_a_consumer(
    reader: Any, server: EmbeddedServer, produce: Fill, at: At
) -> None:
    """The topic is deleted and created again between two Fetches."""
    produce("orders", 2000)
    (split,) = reader.splits(**at, **SMALL)
    batches = split.read(arrow_schema(["value"]))
    next(batches)
    with Client(server.url) as client:
        client.delete_topic("orders")
    produce("orders", 2000, first=7)
    with pytest.raises(TopicChanged):
        list(batches)


def test_other_records_before_the_place_reached_are_noticed(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer compares what was read in bulk with what is there now (AMB-30)."""
    bulk.change(4, cut)
    over = server_split.Fingerprint.over

    def others(data: bytes, end: int) -> Any:
        return over(bytes(len(data)), end)

    monkeypatch.setattr(server_split.Fingerprint, "over", others)
    with pytest.raises(DataLost, match="are not those that were read there"):
        bulk.reads_all()


def test_a_token_is_presented(reader: Any, tmp_path: Path, consumers: list[int]) -> None:
    """On the connection for bulk as on the others."""
    with running(tmp_path / "closed", auth=AuthConfig(tokens=("s3cret-word",))) as server:
        with Producer(f"{server.url}/orders", token="s3cret-word", create_topic=True) as producer:
            producer.send_many([b"a", b"b"])
        where = {"servers": "{}:{}".format(*server.address), "token": "s3cret-word"}
        assert reader.values(**where, topic="orders") == [b"a", b"b"]
    assert consumers == []


def test_a_reader_that_rests_too_long_for_the_server_goes_on(
    reader: Any, tmp_path: Path, consumers: list[int]
) -> None:
    """The server ends a connection on which nothing happens; the records are read all the same."""
    values = [b"%08d" % number for number in range(4000)]
    with running(tmp_path / "resting", idle_timeout=0.5, segment_size=64 << 10) as server:
        url = f"{server.url}/orders"
        with Producer(url, create_topic=True, batch_bytes=2048) as producer:
            producer.send_many(values)
        (split,) = reader.splits(servers="{}:{}".format(*server.address), **SMALL)
        found: list[bytes] = []
        for batch in split.read(arrow_schema(["value"])):
            found += batch.column(0).to_pylist()
            if len(found) < 1000:
                time.sleep(1.5)
    assert found == values
    assert len(consumers) == 1
