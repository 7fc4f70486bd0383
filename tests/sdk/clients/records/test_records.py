"""What a producer takes and to which topic it goes, on three clients."""

from typing import Any

import pytest

from lance_sdk.errors import (
    RecordTooLarge,
    TopicNotFound,
    UnsafeRecordType,
)
from lance_sdk.testing import FakeServer
from lance_spec.enums import Command, RecordType
from lance_spec.limits import MAX_RECORD_VALUE
from lance_spec.records import decode_records

pytestmark = pytest.mark.anyio


async def test_record_types_travel(api: Any, server: FakeServer) -> None:
    """Each record keeps its TLV type."""
    async with api.producer(server.url()) as producer:
        await producer.send(b"{}", record_type=RecordType.JSON)
        await producer.send(b"raw")
        await producer.send(b"", record_type=RecordType.NULL)
        await producer.send_many([b"x"], record_type=0x80)
    assert decode_records(server.topics.log(1)) == [
        (2, b"{}"),
        (1, b"raw"),
        (0xFF, b""),
        (0x80, b"x"),
    ]


async def test_types_that_a_deployed_server_cannot_keep_are_refused(
    api: Any, deployed: FakeServer
) -> None:
    """Its recovery cuts the log at them (AMB-13)."""
    async with api.producer(deployed.url()) as producer:
        with pytest.raises(UnsafeRecordType, match="allow_unsafe_types"):
            await producer.send(b"", record_type=RecordType.NULL)
        with pytest.raises(UnsafeRecordType):
            await producer.send_many([b""], record_type=0)
    async with api.producer(deployed.url(), allow_unsafe_types=True) as producer:
        await producer.send(b"", record_type=RecordType.NULL)
    assert deployed.topics.log(1) == b"\xff\0\0\0\0"


@pytest.mark.parametrize("record_type", [0, -1, 256, 1.0, "1"])
async def test_types_that_are_none_are_refused(
    api: Any, server: FakeServer, record_type: Any
) -> None:
    """0x00 is reserved (LWP section 8.2), the rest is not a byte; the producer goes on working."""
    async with api.producer(server.url()) as producer:
        with pytest.raises(UnsafeRecordType):
            await producer.send(b"x", record_type=record_type)
        with pytest.raises(UnsafeRecordType):
            await producer.send_many([b"x"], record_type=record_type)
        await producer.send(b"good")
    assert server.records() == [b"good"]


async def test_a_tombstone_has_no_value(api: Any, server: FakeServer) -> None:
    """Length must be 0 (LWP section 8.2)."""
    async with api.producer(server.url()) as producer:
        with pytest.raises(UnsafeRecordType, match="a tombstone has no value"):
            await producer.send(b"x", record_type=RecordType.NULL)
        with pytest.raises(UnsafeRecordType, match="a tombstone has no value"):
            await producer.send_many([b"x"], record_type=RecordType.NULL)


async def test_values_are_bytes(api: Any, server: FakeServer) -> None:
    """Any buffer is taken, and copied at once; text is refused with a hint."""
    changing = bytearray(b"before")
    async with api.producer(server.url()) as producer:
        await producer.send(changing)
        changing[:] = b"after!"
        await producer.send(memoryview(b"view"))
        with pytest.raises(TypeError, match=r"value\.encode\(\)"):
            await producer.send("text")
        with pytest.raises(TypeError, match="not int"):
            await producer.send_many([b"x", 5])
    assert server.records() == [b"before", b"view"]


async def test_records_over_the_limit_are_refused_before_they_are_sent(
    api: Any, server: FakeServer
) -> None:
    """LWP section 8.7; the producer goes on."""
    async with api.producer(server.url()) as producer:
        with pytest.raises(RecordTooLarge, match="16777216"):
            await producer.send(bytes(MAX_RECORD_VALUE + 1))
        await producer.send(b"fits")
    assert server.records() == [b"fits"]


async def test_the_largest_record_is_delivered(api: Any, server: FakeServer) -> None:
    """16 MiB in one frame of 16 MiB and 5 bytes (AMB-32)."""
    async with api.producer(server.url()) as producer:
        await (await producer.send(bytes(MAX_RECORD_VALUE))).result(timeout=60)
    assert [len(frame.payload) for frame in server.ingested] == [MAX_RECORD_VALUE + 5]


async def test_a_missing_topic_says_how_to_create_it(api: Any, server: FakeServer) -> None:
    """Opening fails at once, with the command to run."""
    with pytest.raises(TopicNotFound, match="lwp topics create absent --url lance://127"):
        async with api.producer(server.url("absent")):
            pytest.fail("it must not open")


async def test_a_missing_topic_is_created_on_request(api: Any, server: FakeServer) -> None:
    """create_topic=True, in code or in the URL."""
    async with api.producer(server.url("absent"), create_topic=True) as producer:
        await producer.send(b"a")
    async with api.producer(server.url("another", create_topic="true")) as producer:
        await producer.send(b"b")
    assert (server.records(2), server.records(3)) == ([b"a"], [b"b"])


async def test_a_topic_can_be_addressed_by_number(api: Any, server: FakeServer) -> None:
    """?topic_id=1, and 0 for the default topic (LWP section 6.1)."""
    base = server.url("")
    async with api.producer(f"{base}?topic_id=1") as producer:
        await producer.send(b"one")
    async with api.producer(f"{base}?topic_id=0") as producer:
        await producer.send(b"zero")
    assert (server.records(1), server.records(0)) == ([b"one"], [b"zero"])


async def test_an_empty_bulk_is_nothing(api: Any, server: FakeServer) -> None:
    """No frame, no wait."""
    async with api.producer(server.url()) as producer:
        assert await (await producer.send_many([])) == 0
    assert Command.FETCH.name not in server.frames
    assert server.ingested == []
