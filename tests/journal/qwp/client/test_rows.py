"""From Python values to the wire: types, nulls, limits, names."""

import datetime as dt
import ipaddress
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.errors import ConfigError
from lance_sdk.journal.qwp import RowError, RowOptions, timestamp_micros, timestamp_nanos, values
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.qwp.writer import RowWriter
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.rows import Reader
from lance_spec.messages.lwp import Timestamped
from lance_spec.records import decode_records

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TOKYO = dt.timezone(dt.timedelta(hours=9))


class Clock:
    """Seconds that a test turns."""

    now = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


def writer(limit: int = 1 << 20, clock: Any = Clock(), **options: Any) -> RowWriter:  # noqa: B008 - a clock that stands still
    """Return a writer without a journal."""
    return RowWriter(RowOptions(**options), SymbolDictionary(), limit, clock)


def frames(rows: RowWriter) -> list[bytes]:
    """Return the frames of all rows, as if they were stored."""
    rows.seal()
    found = []
    while (frame := rows.front()) is not None:
        found.append(frame)
        rows.stored()
    return found


def read(*messages: bytes) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Return what the endpoint makes of messages, by table."""
    reader, tables = Reader(QwpOptions()), {}
    for message in messages:
        for table in reader.read(message, 7)[1]:
            for data, _ in table.chunks:
                for _, value in decode_records(data):
                    stamped = Timestamped.decode(value)
                    row = (stamped.timestamp_ns, json.loads(stamped.data))
                    tables.setdefault(table.table, []).append(row)
    return tables


def sent(**columns: Any) -> dict[str, Any]:
    """Return what arrives of one row."""
    rows = writer()
    rows.add("t", None, columns, NOON)
    ((_, row),) = read(*frames(rows))["t"]
    return row


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (42, 42),
        (-1.5, -1.5),
        ("text é", "text é"),
        ("", ""),
        (b"\xff\0", "/wA="),
        (NOON, "2026-01-01T12:00:00.000000Z"),
        (dt.datetime(2026, 1, 1, 21, tzinfo=TOKYO), "2026-01-01T12:00:00.000000Z"),
        (dt.date(1970, 1, 2), "1970-01-02T00:00:00.000Z"),
        (Decimal("-12.340"), "-12.340"),
        (Decimal("1E+3"), "1000"),
        (uuid.UUID(int=5), str(uuid.UUID(int=5))),
        (ipaddress.IPv4Address("1.2.3.4"), "1.2.3.4"),
        ([1.5, 2], [1.5, 2.0]),
        ([[1.0], [2.0]], [[1.0], [2.0]]),
        (math.nan, None),
        (values.byte(-5), -5),
        (values.short(300), 300),
        (values.int32(70_000), 70_000),
        (values.long(2**62), 2**62),
        (values.float32(0.5), 0.5),
        (values.char("é"), "é"),
        (values.geohash("u4pruy"), "u4pruy"),
        (values.geohash("101", 3), "101"),
        (values.geohash("u4", 7), "1101000"),
        (values.geohash("zzzzzzzz"), "zzzzzzzz"),
        (values.geohash("11111111", 8), "11111111"),
        (values.long256(2**255), "0x8" + "0" * 63),
        (values.decimal64(Decimal("1.5")), "1.5"),
        (values.decimal128(Decimal("-1.5")), "-1.5"),
        (values.long_array([1, 2]), [1, 2]),
        (values.date(NOON), "2026-01-01T12:00:00.000Z"),
        (values.ipv4("10.0.0.1"), "10.0.0.1"),
        (values.uuid128(str(uuid.UUID(int=9))), str(uuid.UUID(int=9))),
        (values.symbol("s"), "s"),
        (timestamp_nanos(1), "1970-01-01T00:00:00.000000001Z"),
        (timestamp_micros(-1), "1969-12-31T23:59:59.999999Z"),
    ],
    ids=repr,
)
def test_a_value_arrives_as_what_it_is(value: object, expected: object) -> None:
    """Every type of column can be sent, most of them from plain Python values."""
    assert sent(c=value) == {"c": expected}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        {"a": 1},
        2**63,
        -(2**63),
        dt.datetime(2026, 1, 1),  # noqa: DTZ001 - without a zone on purpose
        Decimal("NaN"),
        Decimal(10) ** 77,
        Decimal(10) ** -77,
        "\ud800",
        [1.0, [2.0]],
        [[1.0], [2.0, 3.0]],
        ["a"],
        [2**60],
        1 + 2j,
    ],
    ids=repr,
)
def test_a_value_that_no_column_holds_is_named(value: object) -> None:
    """Table, row and column stand in the error, and nothing changes."""
    rows = writer()
    rows.add("t", None, {"a": 1}, None)
    with pytest.raises(RowError, match=r"table 't', row 1, column 'c'"):
        rows.add("t", None, {"a": 2, "c": value}, None)
    assert [row for _, row in read(*frames(rows))["t"]] == [{"a": 1}]


@pytest.mark.parametrize(
    "make",
    [
        lambda: values.byte(128),
        lambda: values.short(True),
        lambda: values.int32(-(2**31)),
        lambda: values.float32(1e300),
        lambda: values.char("ab"),
        lambda: values.geohash("a"),
        lambda: values.geohash("u4pruydqqvj8u"),
        lambda: values.geohash(""),
        lambda: values.geohash("u4", 3),
        lambda: values.long256(-1),
        lambda: values.decimal64(Decimal(2) ** 63),
        lambda: values.long_array([1.5]),
        lambda: values.symbol(3),
        lambda: values.ipv4("1.2.3"),
        lambda: timestamp_micros(2**63),
        lambda: timestamp_micros("now"),
    ],
)
def test_a_value_out_of_range_is_refused_where_it_is_made(make: Any) -> None:
    """Before it is in a row."""
    with pytest.raises((ValueError, TypeError)):
        make()


def test_columns_a_row_does_not_have_are_null() -> None:
    """Also those that only a later row brings."""
    rows = writer()
    rows.add("t", {"s": "x"}, {"a": 1}, None)
    rows.add("t", None, {"b": True}, None)
    rows.add("t", {"s": None}, {"a": None, "b": None, "c": "only"}, None)
    assert [row for _, row in read(*frames(rows))["t"]] == [
        {"s": "x", "a": 1, "b": None, "c": None},
        {"s": None, "a": None, "b": True, "c": None},
        {"s": None, "a": None, "b": None, "c": "only"},
    ]


CELLS = {
    "i": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "b": st.none() | st.booleans(),
    "v": st.none() | st.text(max_size=50),
    "s": st.none() | st.sampled_from(["a", "b", "é", ""]),
}


@given(
    st.lists(st.fixed_dictionaries({}, optional=CELLS), min_size=1, max_size=40),
    st.integers(1000, 4000),
)
@settings(max_examples=60, deadline=None)
def test_what_was_given_is_what_arrives(given_rows: list[dict[str, Any]], limit: int) -> None:
    """Whatever rows are given and wherever frames are cut, the same rows arrive in order."""
    rows, expected = writer(limit), []
    for number, row in enumerate(given_rows):
        symbols = {"s": row["s"]} if "s" in row else None
        columns = {name: value for name, value in row.items() if name != "s"}
        rows.add("t", symbols, {**columns, "n": number}, timestamp_nanos(number))
        expected.append((number, {**row, "n": number}))
    found = frames(rows)
    assert all(len(each) <= limit for each in found)
    arrived = read(*found)["t"]
    assert [stamp for stamp, _ in arrived] == [stamp for stamp, _ in expected]
    for (_, got), (_, want) in zip(arrived, expected, strict=True):
        assert {name: value for name, value in got.items() if value is not None} == {
            name: value for name, value in want.items() if value is not None
        }


def test_integers_fit_in_a_column_of_doubles() -> None:
    """As long as they are exact there; the other way round they do not."""
    rows = writer()
    rows.add("t", None, {"f": 0.5}, None)
    rows.add("t", None, {"f": 2}, None)
    with pytest.raises(RowError, match="exactly"):
        rows.add("t", None, {"f": 2**53 + 1}, None)
    rows.add("t", None, {"i": 1}, None)
    with pytest.raises(RowError, match="DOUBLE in a column of type LONG"):
        rows.add("t", None, {"i": 0.5}, None)
    assert [row["f"] for _, row in read(*frames(rows))["t"]] == [0.5, 2.0, None]


def test_decimals_of_one_column_share_a_scale() -> None:
    """The widest one; what then no longer fits is refused."""
    rows = writer()
    for each in ("1.5", "2", "-0.125"):
        rows.add("t", None, {"d": values.decimal64(Decimal(each))}, None)
    with pytest.raises(RowError, match="no longer fit"):
        rows.add("t", None, {"d": values.decimal64(Decimal(2**62))}, None)
    assert [row["d"] for _, row in read(*frames(rows))["t"]] == ["1.500", "2.000", "-0.125"]


def test_geohashes_of_one_column_share_a_precision() -> None:
    """A batch says it once for all of its rows."""
    rows = writer()
    rows.add("t", None, {"g": values.geohash("u4")}, None)
    with pytest.raises(RowError, match="10 bits"):
        rows.add("t", None, {"g": values.geohash("u4p")}, None)


@pytest.mark.parametrize(("first", "second"), [(NOON, None), (None, NOON)])
def test_rows_with_and_without_a_time_do_not_mix(first: Any, second: Any) -> None:
    """A flush between them makes them two batches."""
    rows = writer()
    rows.add("t", None, {"v": 1}, first)
    with pytest.raises(RowError, match="flush"):
        rows.add("t", None, {"v": 2}, second)
    rows.seal()
    rows.add("t", None, {"v": 2}, second)
    assert len(read(*frames(rows))["t"]) == 2


def test_micros_and_nanos_do_not_mix() -> None:
    """The designated timestamp has one type."""
    rows = writer()
    rows.add("t", None, {"v": 1}, timestamp_micros(1))
    with pytest.raises(RowError, match="TIMESTAMP_NANOS in a column of type TIMESTAMP"):
        rows.add("t", None, {"v": 2}, timestamp_nanos(1))


@pytest.mark.parametrize("at", [5, "now", dt.datetime(2026, 1, 1), values.long(5)])  # noqa: DTZ001 - without a zone on purpose
def test_a_time_that_is_none_is_refused(at: Any) -> None:
    """A bare number does not say its unit."""
    with pytest.raises(RowError, match="at"):
        writer().add("t", None, {"v": 1}, at)


@pytest.mark.parametrize("table", ["", "a?b", "x" * 128, ".a", "a..b", "a.", 5, "a/b", "\ud800"])
def test_a_table_name_that_no_host_takes_is_refused(table: Any) -> None:
    """Before anything is stored under it."""
    with pytest.raises(RowError):
        writer().add(table, None, {"v": 1}, None)


@pytest.mark.parametrize("column", ["", "a.b", "a-b", "x" * 128, "a\n", 5])
def test_a_column_name_that_no_host_takes_is_refused(column: Any) -> None:
    """Also where it is a symbol's."""
    rows = writer()
    with pytest.raises(RowError):
        rows.add("t", None, {column: 1}, None)
    with pytest.raises(RowError):
        rows.add("t", {column: "x"}, None, None)
    assert rows.rows == 0


def test_a_row_of_nothing_is_refused() -> None:
    """It would be invisible."""
    with pytest.raises(RowError, match="at least one value"):
        writer().add("t", {"s": None}, {"v": None}, NOON)


def test_a_name_is_a_symbol_or_a_column() -> None:
    """Not both."""
    with pytest.raises(RowError, match="symbol and as a column"):
        writer().add("t", {"v": "x"}, {"v": 1}, None)


def test_rows_that_wait_are_bounded() -> None:
    """Where nothing is flushed by itself, memory has a limit."""
    rows = writer(max_buffer=5000, auto_flush=False)
    for number in range(20):
        rows.add("t", None, {"v": "x" * 100, "n": number}, None)
    with pytest.raises(RowError, match="max_buf_size"):
        rows.add("t", None, {"v": "x" * 3000}, None)
    assert rows.rows == 20


def test_flushes_are_due_by_rows_bytes_and_age() -> None:
    """Whichever comes first; age counts from the oldest row."""
    clock = Clock()
    by_rows = writer(auto_flush_rows=2, auto_flush_interval=None)
    by_bytes = writer(auto_flush_rows=None, auto_flush_bytes=200, auto_flush_interval=None)
    by_age = writer(clock=clock, auto_flush_rows=None, auto_flush_interval=0.1)
    never = writer(auto_flush=False, auto_flush_rows=1)
    for rows in (by_rows, by_bytes, by_age, never):
        rows.add("t", None, {"v": "x" * 60}, None)
        assert not rows.flush_due
    for rows in (by_rows, by_bytes, never):
        rows.add("t", None, {"v": "x" * 120}, None)
    clock.now = 0.2
    assert [rows.flush_due for rows in (by_rows, by_bytes, by_age, never)] == [True] * 3 + [False]


@pytest.mark.parametrize("option", ["auto_flush_rows", "auto_flush_bytes", "max_buffer"])
def test_options_out_of_range_are_refused(option: str) -> None:
    """The option is named."""
    with pytest.raises(ConfigError, match=option):
        RowOptions(**{option: 0})


def test_a_row_does_not_pay_for_the_columns_of_others() -> None:
    """However many columns a table has, a row that fits alone is sent."""
    rows = writer(600)
    for number in range(100):
        rows.add("t", None, {f"column_{number}": number}, None)
    found = frames(rows)
    assert all(len(each) <= 600 for each in found)
    arrived = [row for _, row in read(*found)["t"]]
    assert [row[f"column_{number}"] for number, row in enumerate(arrived)] == [*range(100)]


def test_tables_share_a_frame() -> None:
    """Rows of several tables go out together, each with all of its rows."""
    rows = writer()
    for number in range(3):
        rows.add("a", {"s": "x"}, {"v": number}, None)
        rows.add("b", {"s": "y"}, {"v": number}, None)
    (frame,) = frames(rows)
    arrived = read(frame)
    assert [row["v"] for _, row in arrived["a"]] == [0, 1, 2]
    assert [row["s"] for _, row in arrived["b"]] == ["y", "y", "y"]


def test_by_default_a_frame_brings_the_symbols_that_it_uses_and_no_others() -> None:
    """So any client can send it, on any connection (SF-04), and it costs no old symbol."""
    rows = writer()
    for name in ("first", "second"):
        rows.add("t", {"s": name}, {"v": 1}, None)
        rows.seal()
    first, second = frames(rows)
    assert read(second)["t"][0][1]["s"] == "second"
    assert b"second" not in first
    assert b"first" not in second
