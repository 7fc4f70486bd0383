"""Records of batches: the fast path says what the grammar says, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.fluvio.batches import (
    MAX_DELTA,
    NO_TIMESTAMP,
    Compression,
    FluvioRecord,
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
