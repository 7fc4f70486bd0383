"""Records in their bytes become columns, and columns become the same bytes again."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.errors import ConfigError
from lance_sdk.spark.columns import (
    TYPES,
    Origin,
    Parted,
    arrow_schema,
    check_schema,
    to_batch,
)
from lance_sdk.spark.encoding import check_columns, frames_of
from lance_sdk.spark.errors import DataDamaged, SinkError
from lance_sdk.values.keyed import join
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError
from lance_spec.records import decode_records, encode_record

RECORDS = st.lists(st.tuples(st.integers(0x80, 0xFE), st.binary(max_size=60)), max_size=30)
HERE = Origin("orders", 1000, "0_1.lnc")


def chain(records: list[tuple[int, bytes]]) -> bytes:
    """Return records as they stand in a log."""
    return b"".join(encode_record(value, kind) for kind, value in records)


def rows(data: bytes, *names: str) -> list[dict[str, object]]:
    """Return records as rows."""
    batch = to_batch(arrow_schema(names), Parted.of(bytearray(data)), HERE)
    return batch.to_pylist()


@settings(deadline=None)
@given(RECORDS)
def test_columns_say_what_the_records_say(records: list[tuple[int, bytes]]) -> None:
    """Types and values come out as the codec of the specification reads them."""
    found = rows(chain(records), "type", "value", "size")
    assert [(row["type"], row["value"]) for row in found] == records
    assert [row["size"] for row in found] == [len(value) for _, value in records]


@settings(deadline=None)
@given(RECORDS)
def test_an_offset_is_where_the_record_begins(records: list[tuple[int, bytes]]) -> None:
    """Reading from a row's offset on gives that row's record first."""
    data = chain(records)
    for row in rows(data, "offset", "type", "value"):
        rest = data[row["offset"] - HERE.offset :]  # type: ignore[operator]  # an integer
        assert decode_records(rest)[0] == (row["type"], row["value"])


@settings(deadline=None)
@given(RECORDS, st.integers(5, 200))
def test_rows_become_the_bytes_they_were_read_from(
    records: list[tuple[int, bytes]], limit: int
) -> None:
    """Reading and writing are inverse, however the bytes are cut into frames."""
    data = chain(records)
    batch = to_batch(arrow_schema(("type", "value")), Parted.of(bytearray(data)), HERE)
    frames = list(frames_of(batch, "copy", limit))
    assert b"".join(frame.payload for frame in frames) == data
    assert sum(frame.count for frame in frames) == len(records)
    assert all(len(frame.payload) <= limit or frame.count == 1 for frame in frames)


@settings(deadline=None)
@given(RECORDS.filter(bool), st.data())
def test_a_chain_that_is_cut_is_refused(
    records: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    """With the index and the place of the record at fault."""
    whole = chain(records)
    places = {0, len(whole), *Parted.of(bytearray(whole)).places().tolist()}
    end = data.draw(st.integers(0, len(whole)).filter(lambda place: place not in places))
    with pytest.raises(DecodeError, match="a whole record"):
        Parted.of(bytearray(whole[:end]))


@settings(deadline=None)
@given(RECORDS, st.data())
def test_what_is_left_out_on_either_side_is_not_shown(
    records: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    """Every column says of the others what it said of all, also once they have travelled."""
    whole = chain(records)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(whole) + 9)] * 2)))
    expected = [
        row
        for row in rows(whole, *TYPES)
        if first <= row["offset"] - HERE.offset <= last - 5 - row["size"]  # type: ignore[operator]
    ]
    inside = Parted.of(bytearray(whole)).between(first // 2, last + 5).between(first, last)
    batch = to_batch(arrow_schema(TYPES), inside, HERE)
    batch.validate(full=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    travelled = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert batch.to_pylist() == travelled.to_pylist() == expected


def test_a_record_over_the_limit_is_refused() -> None:
    """A length beyond 16 MiB is no record's, even when so many bytes follow."""
    huge = bytes((1,)) + (2**24 + 1).to_bytes(4, "little") + bytes(2**24 + 1)
    with pytest.raises(DecodeError, match="over the limit"):
        Parted.of(bytearray(huge))


def test_only_the_columns_asked_for_are_made() -> None:
    """In the order in which they were asked for."""
    data = chain([(1, b"value")])
    assert rows(data, "size", "offset") == [{"size": 5, "offset": 1000}]


def test_all_columns_have_the_types_that_are_promised() -> None:
    """An Arrow batch must be exactly what Spark was told."""
    data = chain([(1, b"value")])
    batch = to_batch(arrow_schema(TYPES), Parted.of(bytearray(data)), HERE)
    assert batch.schema == arrow_schema(TYPES)
    batch.validate(full=True)


def test_keys_and_times_stand_in_their_columns() -> None:
    """The value keeps them too, so that a copy is the same bytes."""
    value, kind = join(b"body", b"key", 1_700_000_000_000_000_007)
    data = chain([(kind, value), (1, b"plain")])
    keyed, plain = rows(data, "key", "ts_ns", "value")
    assert (keyed["key"], keyed["ts_ns"], keyed["value"]) == (
        b"key",
        1_700_000_000_000_000_007,
        value,
    )
    assert (plain["key"], plain["ts_ns"]) == (None, None)


def test_a_broken_key_names_the_record() -> None:
    """And says how to read the records all the same."""
    data = chain([(1, b"fine"), (RecordType.KEY_VALUE, b"\xff\xffno")])
    with pytest.raises(DataDamaged, match=r"offset 1009.*leave out the columns key"):
        rows(data, "key")


def test_an_offset_that_spark_cannot_count_is_refused() -> None:
    """Spark's integers have a sign."""
    data = chain([(1, b"x")])
    with pytest.raises(DataDamaged, match="beyond what Spark can count"):
        to_batch(arrow_schema(["offset"]), Parted.of(bytearray(data)), Origin("t", 2**63 - 1))


def test_an_unknown_column_is_refused() -> None:
    """With the names of those there are."""
    with pytest.raises(ConfigError, match="no column 'cost'; the columns are topic, offset"):
        arrow_schema(["cost"])


def test_a_column_of_another_type_is_refused() -> None:
    """Reading text is a cast of the query's."""
    with pytest.raises(ConfigError, match="'value' is binary, not string"):
        check_schema(pa.schema([("value", pa.string())]))


def written(**columns: list[object]) -> list[tuple[int, bytes]]:
    """Return rows as the records that they become."""
    batch = pa.RecordBatch.from_pydict(columns)
    frames = frames_of(batch, None if "topic" in columns else "t", 1 << 20)
    return [record for frame in frames for record in decode_records(frame.payload)]


def test_text_is_written_as_utf_8() -> None:
    """A column of strings needs no cast."""
    assert written(value=["grün"]) == [(1, "grün".encode())]


def test_no_value_is_a_tombstone() -> None:
    """A null becomes a NULL record (AMB-12)."""
    assert written(value=[b"x", None]) == [(1, b"x"), (RecordType.NULL, b"")]


def test_keys_and_times_are_put_before_the_value() -> None:
    """As a producer does (LWP section 8.3)."""
    value, kind = join(b"body", "key", 77)
    assert written(value=[b"body"], key=["key"], ts_ns=[77]) == [(kind, value)]


def test_rows_name_their_topics() -> None:
    """Frames of one topic keep the order of its rows."""
    batch = pa.RecordBatch.from_pydict({"topic": ["a", "b", "a"], "value": [b"1", b"2", b"3"]})
    frames = {frame.topic: decode_records(frame.payload) for frame in frames_of(batch, None, 99)}
    assert frames == {"a": [(1, b"1"), (1, b"3")], "b": [(1, b"2")]}


def test_a_topic_that_is_said_outranks_the_column() -> None:
    """As with the Kafka connector."""
    batch = pa.RecordBatch.from_pydict({"topic": ["a"], "value": [b"1"]})
    assert [frame.topic for frame in frames_of(batch, "b", 99)] == ["b"]


def test_a_row_without_a_topic_is_refused() -> None:
    """Where nothing else says where it belongs."""
    with pytest.raises(SinkError, match="a row has no topic"):
        written(topic=[None], value=[b"1"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["payload"], "need a column value"),
        (["value", "partition"], "'partition' has no place in a record"),
        (["value"], "say which topic"),
    ],
)
def test_rows_that_cannot_be_records_are_refused_at_once(names: list[str], message: str) -> None:
    """Before a task has started."""
    with pytest.raises(ConfigError, match=message):
        check_columns(names, None)
