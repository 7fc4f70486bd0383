"""Typed values make the round trip, by record and by producer (LWP section 8)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from lance_sdk.errors import (
    ConfigError,
    LocalProtocolError,
    UndecodableRecord,
    UnsafeRecordType,
)
from lance_sdk.testing import FakeServer
from lance_sdk.values import Protobuf, Raw
from lance_spec.enums import RecordType

pytestmark = pytest.mark.anyio

WHEN = datetime(2026, 1, 31, 12, 30, 15, 123456, tzinfo=UTC)
WHEN_NS = 1_769_862_615_123_456_000


async def roundtrip(api: Any, server: FakeServer, sent: list[Any], **options: Any) -> list[Any]:
    """Send (value, keywords) pairs and return the records."""
    async with api.producer(server.url(), **options) as producer:
        for value, keywords in sent:
            await producer.send(value, **keywords)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        return [record async for record in consumer]


@pytest.mark.parametrize(
    ("values", "value", "record_type"),
    [
        ("raw", b"\x00\xff", RecordType.RAW_DATA),
        ("text", "naïve", RecordType.RAW_DATA),
        ("json", {"id": 7, "tags": ["a", None], "ü": 1.5}, RecordType.JSON),
        ("msgpack", {"id": 7, "raw": b"\x00", "when": WHEN}, RecordType.MESSAGE_PACK),
        ("avro", b"Obj\x01", RecordType.AVRO),
        (Protobuf(StringValue), StringValue(value="x"), RecordType.PROTOBUF),
        (Raw(0x80), b"mine", 0x80),
    ],
    ids=str,
)
async def test_a_codec_writes_and_reads_its_values(
    api: Any, server: FakeServer, values: Any, value: Any, record_type: int
) -> None:
    """With a key and without, one by one and in bulk; the types on the wire are LWP's."""
    async with api.producer(server.url(), values=values) as producer:
        await producer.send(value)
        await producer.send(value, key="k")
        await producer.send_many([value, None, value])
    options = {"values": values, "stop_at_end": True}
    async with api.consumer(server.url(), **options) as consumer:
        assert [found async for found in consumer.values()] == [value, value, value, None, value]
        await consumer.seek("beginning")
        types = [record.type async for record in consumer]
    null = RecordType.NULL
    assert types == [record_type, RecordType.KEY_VALUE, record_type, null, record_type]


async def test_keys_and_times_stand_before_the_value(api: Any, server: FakeServer) -> None:
    """One, the other, both, neither (LWP section 8.3)."""
    plain, keyed, timed, both = await roundtrip(
        api,
        server,
        [
            (b"v", {}),
            (b"v", {"key": "kü"}),
            (b"v", {"timestamp": WHEN}),
            (b"v", {"key": b"\xff", "timestamp": WHEN_NS}),
        ],
    )
    assert (plain.key, plain.timestamp_ns, plain.timestamp, plain.body) == (None, None, None, b"v")
    assert (keyed.type, keyed.key, keyed.body) == (RecordType.KEY_VALUE, "kü".encode(), b"v")
    assert (timed.type, timed.timestamp, timed.body) == (RecordType.TIMESTAMPED, WHEN, b"v")
    assert (both.type, both.key, both.timestamp_ns) == (0x12, b"\xff", WHEN_NS)
    assert both.next_offset == both.offset + 5 + len(both.raw)


@pytest.mark.parametrize("keywords", [{"key": "k"}, {"timestamp": 7}, {"key": "k", "timestamp": 7}])
async def test_a_tombstone_keeps_its_key_and_time(
    api: Any, server: FakeServer, keywords: dict[str, Any]
) -> None:
    """After them an empty payload is one, also where it was sent as no bytes (AMB-56)."""
    records = await roundtrip(api, server, [(None, keywords), (b"", keywords)])
    assert [(r.is_tombstone, r.value, r.decode(), r.body) for r in records] == [
        (True, None, None, b"")
    ] * 2
    assert {record.key for record in records} == {b"k" if "key" in keywords else None}
    assert {record.timestamp_ns for record in records} == {keywords.get("timestamp")}


async def test_records_decode_by_their_types(api: Any, server: FakeServer) -> None:
    """Without values= the type on the wire decides; bytes where it says no more."""
    sent = [
        ({"a": 1}, {"record_type": RecordType.JSON}),
        ({"a": 1}, {"record_type": RecordType.MESSAGE_PACK}),
        (b"{}", {"record_type": RecordType.JSON}),
        (StringValue(value="x"), {}),
        (None, {}),
        (b"x", {"record_type": 0xFE}),
    ]
    records = await roundtrip(api, server, sent)
    message = StringValue(value="x").SerializeToString()
    assert [record.decode() for record in records] == [{"a": 1}, {"a": 1}, {}, message, None, b"x"]
    assert records[0].json() == {"a": 1}
    assert records[4].is_tombstone
    assert records[0].text() == '{"a":1}'


@pytest.mark.parametrize(
    ("value", "keywords", "complaint"),
    [
        (None, {"record_type": 1}, "no type of its own"),
        (None, {"key": "k", "record_type": 255}, "record_type=0xff has no room"),
        (b"v", {"key": "k", "record_type": RecordType.JSON}, "record_type=0x02 has no room"),
        (b"v", {"key": "k" * 65536}, "room for 65535"),
        (b"v", {"timestamp": -1}, "expected 0 to"),
        (b"v", {"timestamp": 2**64}, "expected 0 to"),
        (b"v", {"timestamp": WHEN.replace(tzinfo=None)}, "no time zone"),
        (b"v", {"record_type": RecordType.KEY_VALUE}, "pass key= and timestamp="),
        (b"\x01\x00kv", {"record_type": RecordType.KEY_VALUE}, "send_raw"),
    ],
)
async def test_what_lwp_has_no_room_for_is_refused(
    api: Any, server: FakeServer, value: Any, keywords: dict[str, Any], complaint: str
) -> None:
    """Before anything is sent."""
    async with api.producer(server.url()) as producer:
        with pytest.raises(LocalProtocolError, match=complaint):
            await producer.send(value, **keywords)
    assert server.ingested == []


@pytest.mark.parametrize(
    ("options", "value", "complaint"),
    [
        ({}, "text", "values='text'"),
        ({}, {"a": 1}, "values='json'"),
        ({"values": "text"}, b"x", "takes text"),
        ({"values": "json"}, b"x", "not JSON serializable"),
        ({"values": Protobuf(StringValue)}, b"x", "takes messages of its class"),
    ],
)
async def test_values_of_the_wrong_kind_are_type_errors(
    api: Any, server: FakeServer, options: dict[str, Any], value: Any, complaint: str
) -> None:
    """With what would take them."""
    async with api.producer(server.url(), **options) as producer:
        with pytest.raises(TypeError, match=complaint):
            await producer.send(value)
        with pytest.raises(TypeError, match=complaint):
            await producer.send_many([value])


async def test_json_has_no_nan(api: Any, server: FakeServer) -> None:
    """It is refused when it is sent, not when somebody else reads it."""
    async with api.producer(server.url(), values="json") as producer:
        with pytest.raises(ValueError, match="not JSON compliant"):
            await producer.send(float("nan"))


async def test_an_undecodable_record_stops_nobody(api: Any, server: FakeServer) -> None:
    """It is raised with its record, and the next loop goes on after it."""
    await roundtrip(api, server, [(b"1", {}), (b"no json", {}), (b"3", {})])
    async with api.consumer(server.url(), values="json", stop_at_end=True) as consumer:
        values = consumer.values()
        found = [await anext(values)]
        with pytest.raises(UndecodableRecord, match="offset 6 of orders") as caught:
            await anext(values)
        found += [value async for value in consumer.values()]
    assert found == [1, 3]
    assert caught.value.record.raw == b"no json"


async def test_a_keyed_record_that_is_none_says_where(api: Any, server: FakeServer) -> None:
    """Others may have written it."""
    server.topics.append(1, b"\x10\x01\x00\x00\x00\x09")
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        (record,) = [record async for record in consumer]
    with pytest.raises(UndecodableRecord, match="offset 0"):
        record.key  # noqa: B018 - reading it is the test


async def test_unknown_codecs_are_refused(api: Any, server: FakeServer) -> None:
    """By name and by object."""
    for values in ("yaml", 7, Raw):
        with pytest.raises(ConfigError, match="'json'"):
            api.producer(server.url(), values=values)


async def test_a_tombstone_is_not_sent_where_it_is_unsafe(api: Any, deployed: FakeServer) -> None:
    """AMB-13 holds for every way to send one."""
    async with api.producer(deployed.url()) as producer:
        with pytest.raises(UnsafeRecordType, match="AMB-13"):
            await producer.send(None)
        with pytest.raises(UnsafeRecordType):
            await producer.send_many([b"x", None])
