"""RustLog messages as its broker and clients exchange them."""

import json
from typing import Any

import jsonschema
import pytest

from lance_spec import schemas
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages import rustlog

RECORDS = [b"hello", b"from", b"rustlog"]
DEMO = {"topic": "demo", "partition": 0}
CAPTURED: list[tuple[str, Any]] = [
    ("00000001ff", rustlog.Ping()),
    ("0000000b05000464656d6f00000002", rustlog.CreateTopicRequest(topic="demo", partitions=2)),
    ("000000020501", rustlog.CreateTopicResponse(success=True)),
    (
        "00000020fe000b001b546f706963202764656d6f2720616c726561647920657869737473",
        rustlog.ErrorResponse(
            code=rustlog.ErrorCode.TOPIC_ALREADY_EXISTS, message="Topic 'demo' already exists"
        ),
    ),
    ("0000000106", rustlog.ListTopicsRequest()),
    (
        "0000001b0600000002000464656d6f0000000200066576656e747300000001",
        rustlog.ListTopicsResponse(
            topics=[
                rustlog.ListedTopic(topic="demo", partitions=2),
                rustlog.ListedTopic(topic="events", partitions=1),
            ]
        ),
    ),
    (
        (
            "0000002b01000464656d6f00000000000000030000000568656c6c6f0000000466726f6d"
            "00000007727573746c6f67"
        ),
        rustlog.ProduceRequest(**DEMO, records=RECORDS),
    ),
    (
        "0000000d01000000000000000000000003",
        rustlog.ProduceResponse(base_offset=0, record_count=3),
    ),
    (
        "00000019020000000464656d6f00000000000000000000000000100000",
        rustlog.FetchRequest(group="", **DEMO, offset=0, max_bytes=1048576),
    ),
    (
        (
            "0000002902000000030000000568656c6c6f0000000466726f6d00000007727573746c6f67"
            "0000000000000003"
        ),
        rustlog.FetchResponse(records=RECORDS, next_offset=3),
    ),
    (
        "0000001b0200026731000464656d6f00000000000000000000000000100000",
        rustlog.FetchRequest(group="g1", **DEMO, offset=0, max_bytes=1048576),
    ),
    (
        "0000000d02000000000000000000000000",
        rustlog.FetchResponse(records=[], next_offset=0),
    ),
    ("0000000f0400026731000464656d6f00000000", rustlog.OffsetFetchRequest(group="g1", **DEMO)),
    ("000000020400", rustlog.OffsetFetchResponse(offset=None)),
    ("0000000a04010000000000000000", rustlog.OffsetFetchResponse(offset=0)),
    (
        "000000170300026731000464656d6f000000000000000000000003",
        rustlog.OffsetCommitRequest(group="g1", **DEMO, offset=3),
    ),
    ("000000020301", rustlog.OffsetCommitResponse(success=True)),
    ("0000000707000464656d6f", rustlog.DescribeTopicRequest(topic="demo")),
    (
        ("0000002707000464656d6f0000000200000002000000000000000000000000000000010000000000000000"),
        rustlog.DescribeTopicResponse(
            topic="demo",
            partition_count=2,
            partitions=[
                rustlog.DescribedPartition(partition=0, high_watermark=0),
                rustlog.DescribedPartition(partition=1, high_watermark=0),
            ],
        ),
    ),
    ("0000000b08000464656d6f00000000", rustlog.DescribePartitionRequest(**DEMO)),
    (
        "0000001308000464656d6f000000000000000000000000",
        rustlog.DescribePartitionResponse(**DEMO, high_watermark=0),
    ),
    ("0000000109", rustlog.MetricsRequest()),
]
"""What the published client and broker sent each other, whole frames."""


@pytest.mark.parametrize(("wire", "message"), CAPTURED)
def test_captured_frames_are_read(wire: str, message: Any) -> None:
    """Every captured frame holds the message it was seen to be."""
    payload = rustlog.Frame.decode(bytes.fromhex(wire)).payload
    assert type(message).decode(payload) == message


@pytest.mark.parametrize(("wire", "message"), CAPTURED)
def test_captured_frames_are_written(wire: str, message: Any) -> None:
    """Every message becomes the frame that was captured."""
    assert rustlog.Frame(payload=message.encode()).encode() == bytes.fromhex(wire)


def test_a_frame_without_payload_is_refused() -> None:
    """The broker closes the connection on it."""
    with pytest.raises(DecodeError, match=r"Frame.length at byte 0: expected 1 to 10485760, got 0"):
        rustlog.Frame.decode(bytes(4))
    with pytest.raises(EncodeError, match=r"Frame.length: expected an integer from 1"):
        rustlog.Frame(payload=b"").encode()


def test_a_frame_beyond_10_mib_is_refused_by_its_length_alone() -> None:
    """Nothing is allocated for it."""
    with pytest.raises(DecodeError, match=r"Frame.length at byte 0: expected 1 to 10485760"):
        rustlog.Frame.decode((10_485_761).to_bytes(4))


def test_another_type_is_refused() -> None:
    """Each message opens with its own type."""
    with pytest.raises(DecodeError, match=r"Ping.type at byte 0: expected 255, got 9"):
        rustlog.Ping.decode(b"\x09")


def test_json_is_no_binary_message() -> None:
    """The brace of the JSON dialect is no type of the binary one."""
    with pytest.raises(DecodeError, match=r"ProduceRequest.type at byte 0: expected 1, got 123"):
        rustlog.ProduceRequest.decode(b'{"Produce":{}}')


def test_the_number_of_records_is_bounded_by_the_frame() -> None:
    """The broker trusts it and allocates; this codec does not."""
    wire = bytes.fromhex("01 0001 74 00000000 ffffffff")
    with pytest.raises(DecodeError, match=r"ProduceRequest.records at byte 8: expected a count"):
        rustlog.ProduceRequest.decode(wire)


def test_an_error_with_an_unknown_code_is_read() -> None:
    """Nothing depends on it, so a client can still show the text."""
    error = rustlog.ErrorResponse(code=999, message="new")
    assert rustlog.ErrorResponse.decode(error.encode()) == error


def test_a_presence_byte_is_0_or_1() -> None:
    """Anything else is damage."""
    with pytest.raises(DecodeError, match=r"OffsetFetchResponse.offset at byte 1: expected 0 or 1"):
        rustlog.OffsetFetchResponse.decode(b"\x04\x02")


JSON_REQUESTS = [
    '{"Produce":{"topic":"orders","partition":0,"records":[[98,121,116,101,115],[109,111,114,101]]}}',
    (
        '{"Fetch":{"topic":"orders","partition":0,"offset":1000,"max_bytes":1048576,'
        '"group_id":"order-processor"}}'
    ),
    '{"Fetch":{"topic":"orders","partition":0,"offset":100,"max_bytes":1048576,"group_id":null}}',
    '{"Fetch":{"topic":"orders","partition":0,"offset":100,"max_bytes":1048576}}',
    '{"OffsetCommit":{"topic":"orders","partition":0,"group_id":"order-processor","offset":1500}}',
    '{"OffsetFetch":{"topic":"orders","partition":0,"group_id":"order-processor"}}',
]
JSON_RESPONSES = [
    '{"Produce":{"offsets":[1000,1001,1002]}}',
    '{"Fetch":{"records":[{"offset":1000,"payload":[98,121]}],"next_offset":1002}}',
    '{"OffsetCommit":{"success":true}}',
    '{"OffsetFetch":{"offset":1500}}',
    '{"OffsetFetch":{"offset":null}}',
    '{"Error":{"message":"partition not found: topic=orders, partition=99"}}',
]


@pytest.mark.parametrize(
    ("schema", "text"),
    [("rustlog_request", text) for text in JSON_REQUESTS]
    + [("rustlog_response", text) for text in JSON_RESPONSES],
)
def test_the_json_dialect_has_a_schema(schema: str, text: str) -> None:
    """Every example of the written specification fits."""
    jsonschema.validate(json.loads(text), schemas.load(schema))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"Ping":{}}',
        '{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g"},"Produce":{}}',
        '{"OffsetFetch":{"topic":"t","partition":-1,"group_id":"g"}}',
        '{"OffsetFetch":{"topic":"t","group_id":"g"}}',
        '{"Produce":{"topic":"t","partition":0,"records":["text"]}}',
        '{"Produce":{"topic":"t","partition":0,"records":[[256]]}}',
    ],
)
def test_other_json_is_refused(text: str) -> None:
    """No variant, two variants, numbers out of range, members that are missing."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(text), schemas.load("rustlog_request"))
