"""Records in their bytes become columns, and columns become the same bytes again."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.rules import rules
from lance_conformance.dialect import SPECIFIED
from lance_conformance.wire.frame import Flag, Frame
from lance_sdk import Record
from lance_sdk.errors import ConfigError, UndecodableRecord
from lance_sdk.spark.errors import DataDamaged, SinkError
from lance_sdk.spark.rows.column_names import TYPES, Origin
from lance_sdk.spark.rows.columns import Parted, arrow_schema, check_schema, to_batch
from lance_sdk.spark.rows.encoding import check_columns, frames_of
from lance_sdk.spark.rows.keyed_columns import malformed_records
from lance_sdk.spark.rows.null_times import null_times, warned
from lance_sdk.values.keyed import join, split
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError
from lance_spec.records import decode_records, encode_record, record_bounds

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
    """A length beyond 16 MiB is not a record's, even when so many bytes follow."""
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


def test_a_record_is_taken_apart_into_its_columns() -> None:
    """The value is the payload; the stored bytes stand in raw."""
    value, kind = join(b"body", b"key", 1_700_000_000_000_000_007)
    data = chain([(kind, value), (1, b"plain")])
    keyed, plain = rows(data, "key", "ts_ns", "timestamp", "time_source", "value", "raw")
    assert keyed == {
        "key": b"key",
        "ts_ns": 1_700_000_000_000_000_007,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "time_source": "record",
        "value": b"body",
        "raw": value,
    }
    assert [plain[name] for name in ("key", "ts_ns", "timestamp", "time_source")] == [None] * 4
    assert (plain["value"], plain["raw"]) == (b"plain", b"plain")


def test_records_as_they_are_stored_on_request() -> None:
    """As the first release had it: key and time stand before the payload, too."""
    value, kind = join(b"body", b"key", 7)
    records = Parted.of(bytearray(chain([(kind, value)])))
    schema = arrow_schema(["key", "value"])
    found = to_batch(schema, records, Origin("orders", 0, stored=True))
    assert found.to_pylist() == [{"key": b"key", "value": value}]


def test_a_time_beyond_63_bits_is_a_timestamp_and_no_integer() -> None:
    """Spark's integers have a sign; nothing else stops for it."""
    value, kind = join(b"x", None, 2**64 - 1)
    (row,) = rows(chain([(kind, value)]), "ts_ns", "timestamp", "value")
    assert (row["ts_ns"], row["timestamp"].year, row["value"]) == (None, 2554, b"x")


def test_times_beyond_63_bits_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of all batches of a split together; a record without a time is none of them."""
    far, near = join(b"x", None, 2**63), join(b"x", None, 2**63 - 1)
    data = chain([(kind, value) for value, kind in (far, near, far)] + [(1, b"plain")])
    batches = [
        to_batch(arrow_schema(["ts_ns", "value"]), Parted.of(bytearray(data)), HERE)
        for _ in range(2)
    ]
    assert [null_times(batch) for batch in batches] == [2, 2]
    passed = list(warned(batches, "topic 'orders'"))
    assert [(batch.schema.metadata, len(batch)) for batch in passed] == [(None, 4)] * 2
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("topic 'orders': times after the year 2262: 4; ts_ns is null there")


def test_where_no_time_is_too_large_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Nor where the column is not asked for."""
    far, near = join(b"x", None, 2**63), join(b"x", None, 2**63 - 1)
    for names, (value, kind) in ((["ts_ns"], near), (["timestamp"], far)):
        batch = to_batch(arrow_schema(names), Parted.of(bytearray(chain([(kind, value)]))), HERE)
        assert list(warned([batch], "topic 'orders'")) == [batch]
    assert not caplog.records


def test_a_time_beyond_63_bits_is_written_as_it_was_read() -> None:
    """To the microsecond: a replay of an archive that has one ends well."""
    value, kind = join(b"x", None, 2**63 + 7_000)
    columns = ("value", "type", "timestamp", "ts_ns", "time_source")
    (row,) = rows(chain([(kind, value)]), *columns)
    assert written(**{name: [row[name]] for name in columns}) == [
        (kind, join(b"x", None, (2**63 + 7_000) // 1000 * 1000)[0])
    ]


MALFORMED = [(RecordType.KEY_VALUE, b"\xff\xffno"), (RecordType.TIMESTAMPED, b"short"), (18, b"")]


@pytest.mark.parametrize(("kind", "value"), MALFORMED)
def test_a_malformed_record_is_damage_and_is_named(kind: int, value: bytes) -> None:
    """Whichever column needs it taken apart; the others are read."""
    data = chain([(1, b"fine"), (kind, value)])
    for name in ("key", "value", "timestamp", "ts_ns", "time_source"):
        with pytest.raises(DataDamaged, match=r"offset 1009: .*onDamage=skip leaves it out"):
            rows(data, name)
    assert [row["raw"] for row in rows(data, "raw")] == [b"fine", value]


@pytest.mark.parametrize(("kind", "value"), MALFORMED)
def test_a_malformed_record_is_left_out_on_request(kind: int, value: bytes) -> None:
    """That one, and no other."""
    data = chain([(1, b"a"), (kind, value), (1, b"b")])
    batch = to_batch(
        arrow_schema(["key", "value"]), Parted.of(bytearray(data)), Origin("t", 0, skip=True)
    )
    assert batch["value"].to_pylist() == [b"a", b"b"]


records_of_all_types = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=5),
        st.none() | st.binary(min_size=1, max_size=9),
        st.none() | st.integers(0, 2**63 - 1),
    ),
    max_size=12,
)


@given(records_of_all_types)
def test_rows_come_back_as_they_were_written(
    said: list[tuple[bytes | None, bytes | None, int | None]],
) -> None:
    """Keys, times, tombstones with and without a key; with their types and without them."""
    columns: dict[str, Any] = {
        "key": pa.array([key for key, _, _ in said], pa.binary()),
        "value": pa.array([value for _, value, _ in said], pa.binary()),
        "ts_ns": pa.array([moment for _, _, moment in said], pa.int64()),
    }
    for _ in range(2):
        batch = pa.RecordBatch.from_pydict(columns)
        data = b"".join(frame.payload for frame in frames_of(batch, "t", 40))
        found = rows(data, "key", "value", "ts_ns", "type")
        assert [(row["key"], row["value"], row["ts_ns"]) for row in found] == said
        columns["type"] = pa.array([row["type"] for row in found], pa.int32())


RECORD_RULES = ("payload-there", "record-chain", "record-count", "reserved-type", "null-length")


@given(records_of_all_types, st.permutations(["key", "value", "ts_ns"]))
def test_what_is_written_the_audit_and_the_kit_accept(
    said: list[tuple[bytes | None, bytes | None, int | None]], order: list[str]
) -> None:
    """Whatever the order of the columns is: an audit finds nothing, and the kit's rules hold."""
    columns = dict(zip(("key", "value", "ts_ns"), zip(*said, strict=True), strict=False))
    types = {"key": pa.binary(), "value": pa.binary(), "ts_ns": pa.int64()}
    arrays = {name: pa.array(columns.get(name, ()), types[name]) for name in order}
    for frame in frames_of(pa.RecordBatch.from_pydict(arrays), "t", 40):
        bounds = np.frombuffer(record_bounds(frame.payload), np.int64)
        assert malformed_records(memoryview(frame.payload), bounds) == []
        sent = Frame(
            flags=Flag.BATCH_MODE, batch_id=1, record_count=frame.count, payload=frame.payload
        )
        seen = ReceivedFrame(0, sent, b"", (), 0, opened=sent)
        assert {
            name: rules()[name].judge(seen, SPECIFIED) for name in RECORD_RULES
        } == dict.fromkeys(RECORD_RULES, "")


@given(records_of_all_types)
def test_columns_say_what_a_record_taken_apart_says(
    said: list[tuple[bytes | None, bytes | None, int | None]],
) -> None:
    """The columns are made together, and mean what `split` means."""
    parts = [
        (1, value or b"")
        if key is None and moment is None
        else join(value or b"", key, moment)[::-1]
        for key, value, moment in said
    ]
    for row, (kind, stored) in zip(rows(chain(parts), "key", "value", "ts_ns"), parts, strict=True):
        body, key, moment = split(kind, stored)
        assert (row["key"], row["value"] or b"", row["ts_ns"]) == (key, body, moment)


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


@given(st.lists(st.tuples(st.sampled_from([1, 2, 16, 17, 18]), st.binary(max_size=14))))
def test_keys_times_and_values_are_those_of_the_client(stored: list[tuple[int, bytes]]) -> None:
    """Tombstones with a key or a time among them (AMB-56); malformed records are left out."""
    expected = []
    for kind, raw in stored:
        record = Record(0, kind, raw)
        with contextlib.suppress(UndecodableRecord):
            row = {"key": record.key, "value": record.value, "ts_ns": record.timestamp_ns}
            expected.append(row | {"ts_ns": row["ts_ns"] if (row["ts_ns"] or 0) < 2**63 else None})
    chain = bytearray(b"".join(encode_record(raw, RecordType(kind)) for kind, raw in stored))
    names = ["key", "value", "ts_ns"]
    found = to_batch(arrow_schema(names), Parted.of(chain), Origin("t", 0, skip=True))
    assert found.to_pylist() == expected


def test_no_value_is_a_tombstone() -> None:
    """A null becomes a NULL record (AMB-12)."""
    assert written(value=[b"x", None]) == [(1, b"x"), (RecordType.NULL, b"")]


def test_keys_and_times_are_put_before_the_value() -> None:
    """As a producer does (LWP section 8.3)."""
    value, kind = join(b"body", "key", 77)
    assert written(value=[b"body"], key=["key"], ts_ns=[77]) == [(kind, value)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": [b"x"], "key": [b"k"], "type": [1]}, "says 1, .* make it 16"),
        ({"value": [b"x"], "type": [16]}, "says 16, .* make it 1"),
        ({"value": [b"x"], "type": [18]}, "says 18, .* make it 1"),
        ({"value": [b"x"], "type": [255]}, "says 255, .* make it 1"),
        ({"value": [None], "type": [1]}, "says 1, .* make it 255"),
        ({"value": [b"x"], "ts_ns": [5], "type": [3]}, "says 3, .* make it 17"),
        ({"value": [b"x"], "type": [1.9]}, "must be an integer"),
        ({"value": [b"x"], "type": [256]}, "not from 0 to 255"),
        ({"value": [b"x", b"y"], "type": [1, 0]}, "row 1 of a batch: type 0 is reserved"),
        ({"value": [b""], "key": [b"k"]}, "is a tombstone"),
        ({"value": [b"x"], "ts_ns": [-1]}, "before 1970"),
        ({"value": [b"x"], "timestamp": [5]}, "must be a timestamp"),
        ({"value": [b"x"], "timestamp": [datetime(2555, 1, 1, tzinfo=UTC)]}, "year 2554"),
        ({"value": [b"x"], "key": [b"k" * 65536]}, "room for 65535"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(
    columns: dict[str, list[object]], message: str
) -> None:
    """Nothing that a row says is dropped without a word."""
    with pytest.raises(SinkError, match=message):
        written(**columns)


@pytest.mark.parametrize(("kind", "value"), [*MALFORMED, (255, b"x")])
def test_a_stored_value_that_is_malformed_is_not_written(kind: int, value: bytes) -> None:
    """Its readers could not read it."""
    batch = pa.RecordBatch.from_pydict({"type": [kind], "value": [value]})
    with pytest.raises(SinkError, match=f"row 0 of a batch: type {kind}"):
        list(frames_of(batch, "t", 99, stored=True))


def test_a_time_that_a_server_gave_is_not_written() -> None:
    """The record had none: a copy has none either."""
    batch = pa.RecordBatch.from_pydict(
        {"value": [b"a", b"b"], "ts_ns": [5, 6], "time_source": ["server", "record"]}
    )
    (frame,) = frames_of(batch, "t", 99)
    timed, kind = join(b"b", None, 6)
    assert decode_records(frame.payload) == [(1, b"a"), (kind, timed)]


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
