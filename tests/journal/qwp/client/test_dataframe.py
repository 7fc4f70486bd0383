"""Frames of Arrow and pandas: whole columns, all rows or none."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from tests.journal.qwp.conftest import quick

from lance_sdk.journal.qwp import QwpSender, RowError
from lance_sdk.journal.qwp.dataframe import frame_rows
from lance_server.listeners.qwp.testing import Endpoint
from lance_spec.messages.qwp import ColumnType

from .test_rows import frames, read, writer

pa = pytest.importorskip("pyarrow", reason="the extra dataframe is not installed")

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def arrived(frame: object, *, symbols: Any = (), at: str | None = None) -> list[dict[str, Any]]:
    """Return the rows that a host makes of a frame."""
    rows = writer()
    rows.add_batch(frame_rows(frame, "t", symbols=symbols, at=at, max_name=127))
    return [row for _, row in read(*frames(rows))["t"]]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, None]), [True, None]),
        (pa.array([1, None], pa.int8()), [1, None]),
        (pa.array([-300, 3], pa.int16()), [-300, 3]),
        (pa.array([70_000], pa.int32()), [70_000]),
        (pa.array([2**62], pa.int64()), [2**62]),
        (pa.array([200], pa.uint8()), [200]),
        (pa.array([60_000], pa.uint16()), [60_000]),
        (pa.array([2**31], pa.uint32()), [2**31]),
        (pa.array([7], pa.uint64()), [7]),
        (pa.array([0.5, None], pa.float32()), [0.5, None]),
        (pa.array([0.5, None]), [0.5, None]),
        (pa.array(["a", None]), ["a", None]),
        (pa.array(["a"], pa.large_string()), ["a"]),
        (pa.array([b"\xff"]), ["/w=="]),
        (pa.array([dt.date(1970, 1, 2)]), ["1970-01-02T00:00:00.000Z"]),
        (pa.array([1], pa.timestamp("s")), ["1970-01-01T00:00:01.000000Z"]),
        (pa.array([1, None], pa.timestamp("ns", "UTC")), ["1970-01-01T00:00:00.000000001Z", None]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 2)), ["1.50"]),
        (pa.array([[1.0, 2.0], None]), [[1.0, 2.0], None]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
    ],
    ids=str,
)
def test_a_column_of_arrow_arrives(array: Any, expected: list[object]) -> None:
    """Every type that has a counterpart, nulls included."""
    table = pa.table({"c": array, "n": range(len(array))})
    assert [row["c"] for row in arrived(table)] == expected


def test_a_column_of_nothing_is_left_out() -> None:
    """It has no type that could be told."""
    assert arrived(pa.table({"v": [1], "c": pa.nulls(1)})) == [{"v": 1}]


def test_texts_become_symbols_where_that_is_wanted() -> None:
    """By name, or all of them."""
    table = pa.table({"a": ["x"], "b": ["y"]})
    for symbols, expected in ((["a"], ["SYMBOL", "VARCHAR"]), (True, ["SYMBOL"] * 2)):
        rows = frame_rows(table, "t", symbols=symbols, at=None, max_name=127)
        assert [ColumnType(each.type).name for each in rows.columns.values()] == expected


def test_a_frame_has_a_designated_timestamp() -> None:
    """Its column is the row's time, and no column."""
    table = pa.table({"v": [1, 2], "when": pa.array([5, 6], pa.timestamp("us"))})
    rows = writer()
    rows.add_batch(frame_rows(table, "t", symbols=(), at="when", max_name=127))
    assert read(*frames(rows))["t"] == [(5000, {"v": 1}), (6000, {"v": 2})]


@pytest.mark.parametrize(
    ("table", "options", "complaint"),
    [
        (pa.table({"c": [{"a": 1}]}), {}, "column 'c'"),
        (pa.table({"c": pa.array([1], pa.duration("s"))}), {}, "no column holds Arrow's duration"),
        (pa.table({"c": pa.array([2**63], pa.uint64())}), {}, "does not fit"),
        (pa.table({"bad.name": [1]}), {}, "bad.name"),
        (pa.table({"v": [1]}), {"at": "when"}, "no such column"),
        (pa.table({"v": [1]}), {"at": "v"}, "no time"),
        (pa.table({"v": [1]}), {"symbols": ["s"]}, "no such column"),
        (pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), {}, "one name"),
        (
            pa.table({"v": [1], "t": pa.array([None], pa.timestamp("us"))}),
            {"at": "t"},
            "timestamp is null",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_frame_that_cannot_be_sent_names_the_column(
    table: Any, options: dict[str, Any], complaint: str
) -> None:
    """And nothing of it is sent."""
    with pytest.raises(RowError, match=complaint):
        arrived(table, **options)


def test_what_is_no_frame_is_refused() -> None:
    """The type is named."""
    with pytest.raises(TypeError, match="list"):
        arrived([1, 2])


def test_frames_of_pandas_are_taken(qwp: Endpoint) -> None:
    """Categories become symbols, missing numbers null."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(
        {
            "s": pd.Categorical(["a", "b", "a"]),
            "f": [0.5, float("nan"), 2.5],
            "t": pd.to_datetime([1, 2, 3], unit="s", utc=True),
        }
    )
    with QwpSender(quick(f"ws::addr={qwp.addr};")) as sender:
        sender.dataframe(frame, "t", at="t")
    assert qwp.records("t") == [
        (1_000_000_000, {"s": "a", "f": 0.5}),
        (2_000_000_000, {"s": "b", "f": None}),
        (3_000_000_000, {"s": "a", "f": 2.5}),
    ]


def test_a_frame_of_any_size_is_split(qwp: Endpoint) -> None:
    """Rows before and behind it keep their place."""
    table = pa.table({"v": range(1, 50_001), "s": [f"s{n % 9}" for n in range(1, 50_001)]})
    conf = f"ws::addr={qwp.addr};sf_max_segment_bytes=64k;auto_flush=off;"
    with QwpSender.from_conf(conf) as sender:
        sender.row("t", columns={"v": 0})
        sender.dataframe(table, "t", symbols=["s"])
        sender.row("t", columns={"v": 50_001})
    assert qwp.values("t") == [*range(50_002)]
