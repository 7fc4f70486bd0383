"""The published sender writes to our endpoint; what it wrote is read with our consumer."""

import contextlib
import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import questdb
from questdb import QuestDBError, TimestampMicros, TimestampNanos

import lance_sdk
from lance_server.listeners.qwp.testing import Endpoint

from .conftest import published

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize("durable", ["off", "on"])
def test_rows_arrive_with_plain_and_with_durable_acks(qwp: Endpoint, durable: str) -> None:
    """It is told that they are safe, and they are there."""
    conf = f"ws::addr={qwp.addr};auto_flush=off;request_durable_ack={durable};"
    with published(conf) as sender:
        for number in range(100):
            sender.row(
                "trades",
                symbols={"symbol": f"S{number % 7}"},
                columns={"price": number / 2, "size": number},
                at=TimestampNanos(1_700_000_000_000_000_000 + number),
            )
            if number % 10 == 9:
                fsn = sender.flush_and_get_fsn()
        assert sender.await_acked_fsn(fsn, 10_000)
    assert qwp.values("trades", "size") == [*range(100)]
    assert qwp.values("trades", "symbol") == [f"S{number % 7}" for number in range(100)]


def test_our_consumer_reads_them(qwp: Endpoint) -> None:
    """A row is a Timestamped record with JSON in it."""
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        sender.row("t", columns={"v": 1.5}, at=TimestampMicros(1_700_000_000_000_000))
        sender.flush()
    with lance_sdk.Consumer(f"{qwp.url}/t", start="beginning") as consumer:
        record = next(iter(consumer))
    assert (record.timestamp_ns, record.json()) == (1_700_000_000_000_000_000, {"v": 1.5})


def test_every_type_it_has_is_understood(qwp: Endpoint) -> None:
    """What it sends for each Python value becomes the JSON that says the same."""
    columns = {
        "b": True,
        "i": 42,
        "f": 1.25,
        "s": "text é",
        "ts": TimestampMicros(1_700_000_000_000_001),
        "tn": TimestampNanos(1_700_000_000_000_000_001),
        "when": NOON,
        "d": Decimal("12.34"),
        "a": np.array([[1.0, 2.0], [3.0, 4.0]]),
    }
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        sender.row("t", symbols={"y": "sym"}, columns=columns, at=NOON)
        sender.flush()
    ((stamp, row),) = qwp.records("t")
    assert stamp == int(NOON.timestamp()) * 1_000_000_000
    assert row == {
        "y": "sym",
        "b": True,
        "i": 42,
        "f": 1.25,
        "s": "text é",
        "ts": "2023-11-14T22:13:20.000001Z",
        "tn": "2023-11-14T22:13:20.000000001Z",
        "when": "2026-01-01T12:00:00.000000Z",
        "d": "12.34",
        "a": [[1.0, 2.0], [3.0, 4.0]],
    }


def test_nulls_of_rows_without_a_column_are_null(qwp: Endpoint) -> None:
    """Its columns repeat in every later frame, with the type's own null."""
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        sender.row("t", columns={"i": 1, "f": 2.0, "s": "x", "b": True}, at=NOON)
        sender.row("t", columns={"other": 5}, at=NOON)
        sender.flush()
    assert qwp.rows("t")[1] == {"i": None, "f": None, "s": None, "b": False, "other": 5}


def test_its_data_frames_are_understood(qwp: Endpoint) -> None:
    """Columns of pandas arrive as rows."""
    frame = pd.DataFrame(
        {
            "s": pd.Categorical(["a", "b", "a"]),
            "i": [1, 2, 3],
            "f": [0.5, float("nan"), 2.5],
            "t": pd.to_datetime([1, 2, 3], unit="s", utc=True),
        }
    )
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        sender.dataframe(frame, table_name="t", symbols=["s"], at="t")
        sender.flush()
    assert qwp.records("t") == [
        (1_000_000_000, {"s": "a", "i": 1, "f": 0.5}),
        (2_000_000_000, {"s": "b", "i": 2, "f": None}),
        (3_000_000_000, {"s": "a", "i": 3, "f": 2.5}),
    ]


def test_it_catches_up_after_a_reconnect(qwp: Endpoint) -> None:
    """On a new connection it sends its symbols again, and we understand the rest."""
    qwp.when(connection=0, message=3, close=1001)
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        for number in range(8):
            sender.row("t", symbols={"s": f"s{number % 4}"}, columns={"v": number}, at=NOON)
            fsn = sender.flush_and_get_fsn()
        assert sender.await_acked_fsn(fsn, 10_000)
    assert qwp.values("t") == [*range(8)]
    assert qwp.values("t", "s") == [f"s{number % 4}" for number in range(8)]


def test_our_refusal_is_its_error(qwp: Endpoint) -> None:
    """It halts, with our words, as it does with its own server."""
    qwp.when(reject="SCHEMA_MISMATCH", text="no such column", times=0)
    sender = published(f"ws::addr={qwp.addr};auto_flush=off;")
    sender.establish()
    sender.row("t", columns={"v": 1}, at=NOON)
    fsn = sender.flush_and_get_fsn()
    with pytest.raises(QuestDBError, match="no such column"):
        sender.await_acked_fsn(fsn, 10_000)
    with contextlib.suppress(QuestDBError):  # it tells again what it has told
        sender.close()


@pytest.mark.parametrize("status", ["WRITE_ERROR", "INTERNAL_ERROR", "NOT_WRITABLE"])
def test_it_goes_on_after_a_refusal_for_the_moment(qwp: Endpoint, status: str) -> None:
    """The close after the refusal makes it connect again; that row and the next ones arrive."""
    qwp.when(message=2, reject=status, text="not now")
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        for number in range(6):
            sender.row("t", columns={"v": number}, at=NOON)
            fsn = sender.flush_and_get_fsn()
        assert sender.await_acked_fsn(fsn, 30_000)
    assert set(qwp.values("t")) == {*range(6)}


def test_a_uuid_is_understood(qwp: Endpoint) -> None:
    """Sixteen bytes in the order of the wire."""
    known = uuid.uuid4()
    with published(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        sender.row("t", columns={"u": known}, at=NOON)
        sender.flush()
    assert qwp.values("t", "u") == [str(known)]


def test_its_pool_needs_lazy_connect(qwp: Endpoint) -> None:
    """Otherwise it opens a connection for queries, which the endpoint does not answer."""
    with pytest.raises(QuestDBError, match="404"):
        questdb.connect(f"ws::addr={qwp.addr};").close()
    with (
        questdb.connect(f"ws::addr={qwp.addr};lazy_connect=true;") as pool,
        pool.sender() as sender,
    ):
        sender.row("t", symbols={"s": "a"}, columns={"v": 1}, at=TimestampNanos(1))
        sender.flush(wait=True)
    assert qwp.values("t") == [1]
