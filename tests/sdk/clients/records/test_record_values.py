"""A record is what was sent: payload, key and time apart, and the stored bytes beside them."""

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Record
from lance_sdk.errors import LocalProtocolError, UndecodableRecord
from lance_sdk.testing import FakeServer
from lance_sdk.types import OPAQUE, OpaqueBytes, RecordBatch
from lance_sdk.values import Json
from lance_sdk.values.keyed import join
from lance_spec.enums import RecordType
from lance_spec.records import encode_record

WHEN = datetime(2026, 1, 31, 12, 30, 15, tzinfo=UTC)
KEYED = Record(10, RecordType.KEY_VALUE, b"\x01\x00kv", "orders")
KINDS = [RecordType.KEY_VALUE, RecordType.TIMESTAMPED, RecordType.KEY_TIMESTAMPED]


@given(
    payload=st.binary(max_size=20),
    key=st.none() | st.binary(max_size=20),
    time=st.none() | st.integers(0, 2**64 - 1),
)
def test_value_is_the_payload_and_raw_the_stored_bytes(
    payload: bytes, key: bytes | None, time: int | None
) -> None:
    """Whatever stands before the payload, it is in raw and not in value.

    An empty payload after a key or a time is a tombstone, whose value is None (AMB-56).
    """
    keyed = key is not None or time is not None
    raw, kind = join(payload, key, time) if keyed else (payload, RecordType.RAW_DATA)
    (record,) = RecordBatch("orders", 7, 1, encode_record(raw, kind))
    value = None if keyed and not payload else payload
    assert (record.value, record.body, record.raw) == (value, payload, raw)
    assert (record.key, record.timestamp_ns) == (key, time)
    assert record.next_offset == 7 + 5 + len(raw)


@pytest.mark.anyio
async def test_a_record_read_is_what_was_sent(api: Any, server: FakeServer) -> None:
    """With a key and a time, without, and None for a tombstone."""
    async with api.producer(server.url()) as producer:
        await producer.send(b"v", key=b"k", timestamp=WHEN)
        await producer.send(b"v")
        await producer.send(None)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        found = [(each.value, each.key, each.timestamp) async for each in consumer]
    assert found == [(b"v", b"k", WHEN), (b"v", None, None), (None, None, None)]


@pytest.mark.anyio
async def test_values_says_how_value_is_decoded(api: Any, server: FakeServer) -> None:
    """One by one and in batches; body stays the payload's bytes."""
    async with api.producer(server.url(), values="json") as producer:
        await producer.send({"id": 1}, key="k")
        await producer.send(None)
    options = {"values": "json", "stop_at_end": True}
    async with api.consumer(server.url(), **options) as consumer:
        one_by_one = [(each.value, each.body) async for each in consumer]
        await consumer.seek("beginning")
        in_batches = [each.value async for batch in consumer.batches() for each in batch]
    assert one_by_one == [({"id": 1}, b'{"id":1}'), (None, b"")]
    assert in_batches == [{"id": 1}, None]


@pytest.mark.anyio
async def test_send_raw_copies_records_unchanged(api: Any, server: FakeServer) -> None:
    """Type, key, time and payload, one by one and in bulk, whatever ``values=`` says."""
    async with api.producer(server.url(), values="json") as producer:
        await producer.send({"id": 1}, key="k", timestamp=WHEN)
        await producer.send([2])
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        first = [record async for record in consumer]
    async with api.producer(server.url(), values="json") as producer:
        for record in first:
            await producer.send_raw(record.raw, record.type)
            await producer.send_many_raw([record.raw], record.type)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        stored = [(record.type, record.raw) async for record in consumer]
    was = [(record.type, record.raw) for record in first]
    assert stored == [*was, was[0], was[0], was[1], was[1]]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
async def test_the_old_way_of_copying_is_an_error(api: Any, server: FakeServer, kind: int) -> None:
    """In bulk too: value is no longer what is stored, so it must not pass in silence."""
    well_formed = b"\x00" * 12
    async with api.producer(server.url()) as producer:
        with pytest.raises(LocalProtocolError, match=r"send_raw\(record.raw, record.type\)"):
            await producer.send(well_formed, record_type=kind)
        with pytest.raises(LocalProtocolError, match="send_raw"):
            await producer.send_many([well_formed], record_type=kind)
    assert server.ingested == []


@pytest.mark.anyio
async def test_send_raw_refuses_bytes_that_are_not_laid_out_as_their_type(
    api: Any, server: FakeServer
) -> None:
    """A reader could not take them apart."""
    async with api.producer(server.url()) as producer:
        with pytest.raises(LocalProtocolError, match="0x11"):
            await producer.send_raw(b"short", RecordType.TIMESTAMPED)
    assert server.ingested == []


@pytest.mark.parametrize("part", ["value", "key", "timestamp", "timestamp_ns", "body"])
def test_a_malformed_record_fails_where_it_is_taken_apart(part: str) -> None:
    """Iteration and raw give it."""
    data = encode_record(b"\xff", RecordType.KEY_TIMESTAMPED)
    (record,) = RecordBatch("orders", 7, 1, data)
    assert record.raw == b"\xff"
    with pytest.raises(UndecodableRecord, match="offset 7 of orders"):
        getattr(record, part)


def test_opaque_bytes_are_their_value() -> None:
    """With a codec too."""
    (found,) = RecordBatch("orders", 7, 0, b"\x00\xff", opaque=True, codec=Json())
    assert found == OpaqueBytes(7, OPAQUE, b"\x00\xff", "orders")
    assert (found.value, found.raw, found.next_offset) == (b"\x00\xff", b"\x00\xff", 9)


def test_records_are_equal_by_their_stored_bytes() -> None:
    """A key of another spelling makes another record, though the value is the same."""
    other = Record(10, RecordType.KEY_VALUE, b"\x01\x00jv", "orders")
    same = Record(10, RecordType.KEY_VALUE, b"\x01\x00kv", "orders", Json())
    assert KEYED.value == other.value == b"v"
    assert other != KEYED
    assert same == KEYED
    assert hash(same) == hash(KEYED)


def test_a_record_is_no_tuple() -> None:
    """Nor equal to one."""
    assert not isinstance(KEYED, tuple)
    assert (10, RecordType.KEY_VALUE, b"\x01\x00kv", "orders") != KEYED


def test_a_pickled_record_comes_back_whole() -> None:
    """With what decodes it."""
    record = Record(10, RecordType.JSON, b"[1]", "orders", Json())
    again = pickle.loads(pickle.dumps(record))
    assert (again, again.value) == (record, [1])


def test_a_record_pickled_by_the_first_release_can_be_loaded() -> None:
    """It was a named tuple, which pickles as a call of ``__new__`` with its fields."""
    import copyreg  # noqa: PLC0415 - what such a pickle names

    fields = (10, int(RecordType.KEY_VALUE), b"\x01\x00kv", "orders")
    assert copyreg.__newobj__(Record, *fields) == KEYED  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("use", "found"),
    [
        (tuple, (10, RecordType.KEY_VALUE, b"\x01\x00kv", "orders")),
        (lambda record: record[2], b"\x01\x00kv"),
        (lambda record: record._replace(topic="t").topic, "t"),
        (lambda record: record._replace(value=b"\x00\x00w").raw, b"\x00\x00w"),
        (lambda _: Record(10, RecordType.KEY_VALUE, value=b"\x01\x00kv", topic="orders"), KEYED),
    ],
    ids=["unpack", "index", "replace", "replace-value", "value-keyword"],
)
def test_uses_as_a_tuple_warn_for_one_release(use: Any, found: Any) -> None:
    """They work, with the stored bytes where the first release had them."""
    with pytest.warns(DeprecationWarning, match="deprecated since"):
        assert use(KEYED) == found
