"""Records of batches: the fast path says what the grammar says, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_server.listeners.fluvio.refusals import FluvioRefusal
from lance_server.listeners.fluvio.values import chained, to_log
from lance_spec._native import accelerator
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.fluvio.batches import (
    MAX_DELTA,
    NO_TIMESTAMP,
    Compression,
    FluvioRecord,
    each_record,
    open_batch,
    pack_batches,
    read_records,
)
from lance_spec.fluvio.record_mapping import from_tlv, to_tlv
from lance_spec.messages.fluvio import Batch, Record, Records
from lance_spec.records import decode_records, encode_record

_LIMIT = 1 << 24
_TIMES = st.one_of(st.just(NO_TIMESTAMP), st.integers(0, 1 << 44))
_RECORDS = st.builds(
    FluvioRecord,
    st.binary(max_size=300),
    st.none() | st.binary(max_size=300),
    _TIMES,
    st.just(0),
)


def plain(records: list[FluvioRecord]) -> list[FluvioRecord]:
    """Return records without their places."""
    return [each._replace(offset_delta=0) for each in records]


@given(st.lists(_RECORDS, max_size=20), st.sampled_from(Compression))
def test_records_come_back_from_batches(records: list[FluvioRecord], kind: Compression) -> None:
    """Whatever the times, in as many batches as they need, numbered through."""
    batches = list(pack_batches(records, 100, kind))
    opened = [open_batch(each, limit=_LIMIT) for each in batches]
    assert plain([each for some in opened for each in some]) == records
    places = [
        batch.base_offset + each.offset_delta
        for batch, some in zip(batches, opened, strict=True)
        for each in some
    ]
    assert places == list(range(100, 100 + len(records)))


@given(st.lists(_RECORDS, min_size=1, max_size=10))
def test_the_grammar_reads_what_is_written(records: list[FluvioRecord]) -> None:
    """Every batch is one of the grammar's, with a valid checksum."""
    for batch in pack_batches(records):
        again = Batch.decode(batch.encode())
        assert again.crc_ok()
        found = Records.decode(again.records).records
        opened = open_batch(again, limit=_LIMIT)
        assert [(each.key, each.value, each.offset_delta) for each in found] == [
            (each.key, each.value, each.offset_delta) for each in opened
        ]
        assert all(abs(each.timestamp_delta) <= MAX_DELTA for each in found)


@given(
    st.lists(
        st.builds(
            Record,
            attributes=st.just(0),
            timestamp_delta=st.integers(-(1 << 63), (1 << 63) - 1),
            offset_delta=st.integers(0, 1 << 40),
            key=st.none() | st.binary(max_size=20),
            value=st.binary(max_size=20),
        ),
        max_size=5,
    )
)
def test_what_the_grammar_writes_is_read(records: list[Record]) -> None:
    """Numbers of any length are understood."""
    raw = Records(records=records).encode()
    found = read_records(raw, len(records), 0)
    assert [(each.key, each.value, each.timestamp_ms, each.offset_delta) for each in found] == [
        (each.key, each.value, each.timestamp_delta, each.offset_delta) for each in records
    ]


@given(st.lists(_RECORDS, min_size=1, max_size=3), st.data())
def test_damage_is_an_error_where_the_grammar_says_so(
    records: list[FluvioRecord], data: st.DataObject
) -> None:
    """The fast path takes nothing that the grammar does not take."""
    raw = bytearray(next(pack_batches(records)).records)
    place = data.draw(st.integers(4, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    count = int.from_bytes(raw[:4], "big")
    try:
        expected = Records.decode(bytes(raw)).records
    except DecodeError:
        with pytest.raises(DecodeError):
            read_records(bytes(raw), count, 0)
    else:
        found = read_records(bytes(raw), count, 0)
        assert [(each.key, each.value) for each in found] == [
            (each.key, each.value) for each in expected
        ]


def in_python(raw: bytes, count: int, first: int, limit: int) -> object:
    """Return what the interpreted loop makes of records, or what it raises."""
    try:
        return chained(each_record(raw, count, first), limit)
    except (DecodeError, FluvioRefusal) as error:
        return type(error), str(error)


@given(
    st.lists(_RECORDS, min_size=1, max_size=5),
    st.data(),
    st.sampled_from([-(1 << 63), -2, -1, 0, 1, 1 << 40, (1 << 63) - 1]),
    st.sampled_from([0, 100, _LIMIT]),
)
def test_the_compiled_loop_makes_the_same_of_records(
    records: list[FluvioRecord], data: st.DataObject, first: int, limit: int
) -> None:
    """Damaged or not: it gives the same records of the log, or leaves the judgement to Python."""
    raw = bytearray(next(pack_batches(records)).records)
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] ^= data.draw(st.integers(1, 255))
    raw = raw[: data.draw(st.integers(4, len(raw)) | st.just(len(raw)))]
    count = int.from_bytes(raw[:4], "big")
    if count > len(raw):
        return  # `counted` refuses it before
    try:
        found: object = to_log(bytes(raw), count, first, limit)
    except (DecodeError, FluvioRefusal) as error:
        found = type(error), str(error)
    assert found == in_python(bytes(raw), count, first, limit)


@pytest.mark.skipif(accelerator is None, reason="the compiled loops were not built")
@given(st.lists(_RECORDS, min_size=1, max_size=20))
def test_the_compiled_loop_takes_what_is_usual(records: list[FluvioRecord]) -> None:
    """Records that producers send need no interpreted loop."""
    assert accelerator is not None
    for batch in pack_batches(records):
        made = accelerator.fluvio_to_log(batch.records, batch.first_timestamp, _LIMIT)
        assert made == chained(open_batch(batch, limit=_LIMIT), _LIMIT).data


@given(_RECORDS)
def test_records_come_back_from_the_log(record: FluvioRecord) -> None:
    """Key, time and value are told apart again."""
    kind, head = to_tlv(record)
    ((again, value),) = decode_records(encode_record(head + record.value, kind))
    assert from_tlv(again, value) == record


@given(st.integers(0, 255), st.binary(max_size=30))
def test_any_record_of_the_log_is_served(kind: int, value: bytes) -> None:
    """What is too short for the key or the time of its type is taken as it stands."""
    found = from_tlv(kind, value)
    assert value.endswith(found.value)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (FluvioRecord(b"", b"k" * 65_536), "key"),
        (FluvioRecord(b"", None, -2), "timestamp"),
        (FluvioRecord(b"", None, 1 << 60), "timestamp"),
        (FluvioRecord(bytes(16 * 1024 * 1024), b"k"), "value"),
    ],
)
def test_what_the_log_has_no_room_for_is_named(record: FluvioRecord, field: str) -> None:
    """The error says which part does not fit."""
    with pytest.raises(EncodeError, match=field):
        to_tlv(record)
