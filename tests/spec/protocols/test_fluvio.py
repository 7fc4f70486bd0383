"""Fluvio messages as the published client and programs exchange them."""

import dataclasses
from typing import Any

import pytest

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages import fluvio
from lance_spec.messages.fluvio import ErrorCode

SC_VERSION = 19
SPU_VERSION = 24

SESSION = [
    (
        "ApiVersionsRequest",
        2,
        "0000002700120002000000010006666c7576696f0006302e31352e3200056c696e757800067838365f3634",
    ),
    (
        "WatchRequest",
        SC_VERSION,
        "0000002103ec001300000001000564756d6d79000353505500000009000000000000000000",
    ),
    (
        "WatchRequest",
        SC_VERSION,
        "0000002703ec001300000002000564756d6d790009506172746974696f6e00000009000000000000000000",
    ),
    (
        "WatchRequest",
        SC_VERSION,
        "0000002303ec001300000003000564756d6d790005546f70696300000009000000000000000000",
    ),
    (
        "ProduceRequest",
        SPU_VERSION,
        (
            "0000008400000018000000010006666c7576696f000001000005dc00000001000568656c6c6f00000001"
            "0000000000000052000000000000000000000046ffffffff02b763b5af000000000000000001a1fe6dfa33"
            "000001a1fe6dfa33ffffffffffffffffffffffffffff000000012800000001046b311668656c6c6f20776f"
            "726c640000000000"
        ),
    ),
    (
        "ProduceRequest",
        SPU_VERSION,
        (
            "0000002a00000018000000020006666c7576696f000001000005dc00000001000568656c6c6f00000000"
            "00000000"
        ),
    ),
    (
        "FetchOffsetsRequest",
        SPU_VERSION,
        "0000002303ea0018000000030006666c7576696f00000001000568656c6c6f0000000100000000",
    ),
    (
        "StreamFetchRequest",
        SPU_VERSION,
        (
            "0000002d03eb0018000000040006666c7576696f000568656c6c6f0000000000000000000000000010013a"
            "000000000000"
        ),
    ),
    (
        "UpdateOffsetsRequest",
        0,
        "0000002003ed0000000000050006666c7576696f00000001000000000000000100000001",
    ),
]
"""Requests of the published client, whole frames, captured from its sockets."""

ANSWERS = [
    (
        "ApiVersionsResponse",
        2,
        (
            "000000360000000100000000000600120000000203e9000f001303ea000f001303eb000f001303ec000f0013"
            "03ee000f00130006302e31372e33"
        ),
    ),
    (
        "WatchSpuResponse",
        SC_VERSION,
        (
            "000000580000000100035350550000004b00000000000000000000000000000001000f637573746f6d2d7370"
            "752d353030310000138900714d000000010100093132372e302e302e310000714d00093132372e302e302e31"
            "00000000"
        ),
    ),
    (
        "WatchPartitionResponse",
        SC_VERSION,
        (
            "0000006c000000020009506172746974696f6e0000005900000000000000000000000000000001000768656c"
            "6c6f2d3000001389000000010000138900000400000001000013890000000000000000000000000000000000"
            "000000000000000000000000000000000000000000000000"
        ),
    ),
    (
        "WatchTopicResponse",
        SC_VERSION,
        (
            "00000048000000030005546f7069630000003900000000000000000000000000000001000568656c6c6f0100"
            "0000010000000100000004000004000100000000000000010000138900000000"
        ),
    ),
    (
        "ProduceResponse",
        SPU_VERSION,
        (
            "000000350000000100000001000568656c6c6f000000010000000000000000000000000000ffffffffffffff"
            "ff000000000000000000000000"
        ),
    ),
    (
        "ProduceResponse",
        SPU_VERSION,
        "000000170000000200000001000568656c6c6f0000000000000000",
    ),
    (
        "FetchOffsetsResponse",
        SPU_VERSION,
        "000000290000000300000001000568656c6c6f0000000100000000000000000000000000000000000000000001",
    ),
    ("UpdateOffsetsResponse", 0, "0000000e0000000500000001000000010000"),
]
"""Answers that the published client took, whole frames."""

GATED = {
    "ApiVersionsRequest": (),
    "ApiVersionsResponse": (),
    "FetchOffsetsResponse": (),
    "UpdateOffsetsRequest": (),
    "UpdateOffsetsResponse": (),
}
"""Messages that are the same in every version."""


def body(name: str, version: int, frame: str, opening: type[Any]) -> tuple[Any, Any, bytes]:
    """The opening of a request or response, its message, and the message's bytes."""
    opened = opening.decode(fluvio.Frame.decode(bytes.fromhex(frame)).body)
    message = getattr(fluvio, name).decode(opened.body, *GATED.get(name, (version,)))
    return opened, message, opened.body


@pytest.mark.parametrize(("name", "version", "frame"), SESSION)
def test_requests_of_the_published_client_are_read(name: str, version: int, frame: str) -> None:
    """Every captured request decodes, in the version that its header states."""
    opened, message, raw = body(name, version, frame, fluvio.Request)
    assert opened.api_version == version
    assert message.encode(*GATED.get(name, (version,))) == raw


@pytest.mark.parametrize(("name", "version", "frame"), ANSWERS)
def test_answers_that_the_published_client_took_are_written(
    name: str, version: int, frame: str
) -> None:
    """Every captured answer decodes, and encodes to the bytes it came from."""
    _, message, raw = body(name, version, frame, fluvio.Response)
    assert message.encode(*GATED.get(name, (version,))) == raw


@pytest.mark.parametrize("frame", [frame for _, _, frame in SESSION])
def test_a_captured_frame_is_written_as_it_was(frame: str) -> None:
    """Frame and request header come back byte for byte."""
    opened = fluvio.Request.decode(fluvio.Frame.decode(bytes.fromhex(frame)).body)
    assert fluvio.Frame(body=opened.encode()).encode() == bytes.fromhex(frame)


@pytest.fixture
def batch() -> fluvio.Batch:
    """The batch that the published client sent."""
    _, request, _ = body(*SESSION[4], fluvio.Request)
    (topic,) = request.topics
    assert topic.name == "hello"
    (partition,) = topic.partitions
    (found,) = partition.records.batches
    assert isinstance(found, fluvio.Batch)
    return found


def test_the_captured_batch_says_what_producers_say(batch: fluvio.Batch) -> None:
    """Epochs, ids and sequence are -1; the offset is the number of records less one."""
    assert (batch.producer_id, batch.producer_epoch, batch.first_sequence) == (-1, -1, -1)
    assert (batch.partition_leader_epoch, batch.base_offset, batch.last_offset_delta) == (-1, 0, 0)


def test_the_captured_checksum_is_crc32c(batch: fluvio.Batch) -> None:
    """It covers everything behind itself, and is not IEEE CRC-32."""
    assert batch.crc == 0xB763B5AF
    assert batch.crc_ok()


def test_a_changed_batch_fails_its_checksum(batch: fluvio.Batch) -> None:
    """The offset before it may change, what stands after it may not."""
    assert dataclasses.replace(batch, base_offset=77).crc_ok()
    assert not dataclasses.replace(batch, first_timestamp=0).crc_ok()


def test_a_checksum_can_be_made(batch: fluvio.Batch) -> None:
    """A batch that was built here gets the checksum of its bytes."""
    made = dataclasses.replace(batch, records=b"")
    assert made.with_crc().crc_ok()
    assert made.with_crc().crc != batch.crc


def test_the_captured_record_has_key_and_value(batch: fluvio.Batch) -> None:
    """Records begin with their number; keys are options."""
    (record,) = fluvio.Records.decode(batch.records).records
    assert (record.key, record.value) == (b"k1", b"hello world")
    assert (record.timestamp_delta, record.offset_delta) == (0, 0)


def test_the_length_of_a_batch_counts_what_follows_it(batch: fluvio.Batch) -> None:
    """45 bytes of header follow the length before the records do."""
    wire = batch.encode()
    assert int.from_bytes(wire[8:12]) == len(wire) - 12 == 45 + len(batch.records)


def test_a_batch_with_a_schema_is_refused(batch: fluvio.Batch) -> None:
    """Its sender states a length that is four bytes short."""
    with pytest.raises(DecodeError, match=r"Batch.attributes at byte 21: expected 0 to 15, got 16"):
        fluvio.Batch.decode(batch.encode()[:21] + b"\x00\x10" + batch.encode()[23:])


@pytest.mark.parametrize("length", [44, -1, 2**31 - 1])
def test_a_batch_of_an_impossible_length_is_refused(batch: fluvio.Batch, length: int) -> None:
    """Too short for its own header, negative, or longer than what is there."""
    wire = bytearray(batch.encode())
    wire[8:12] = length.to_bytes(4, signed=True)
    with pytest.raises(DecodeError, match=r"Batch.records at byte 57"):
        fluvio.Batch.decode(wire)


def test_several_batches_of_one_partition_keep_their_order(batch: fluvio.Batch) -> None:
    """Batches follow each other up to the end of the set."""
    batches = [dataclasses.replace(batch, base_offset=number) for number in range(3)]
    wire = fluvio.RecordSet(batches=batches).encode()
    assert fluvio.RecordSet.decode(wire).batches == batches


def test_half_a_batch_at_the_end_of_a_set_is_refused(batch: fluvio.Batch) -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(DecodeError, match=r"Batch.records"):
        fluvio.RecordSet.decode(batch.encode() + batch.encode()[:-1])


@pytest.mark.parametrize(("version", "there"), [(0, False), (7, False), (8, True), (24, True)])
def test_smartmodules_are_written_from_version_8_on(version: int, there: bool) -> None:
    """Requests in versions 0 and 7 end with their topics."""
    request = fluvio.ProduceRequest(transactional_id=None, isolation=1, timeout_ms=1500, topics=[])
    assert len(request.encode(version)) == 11 + 4 * there
    assert fluvio.ProduceRequest.decode(request.encode(version), version) == request


def test_a_field_that_a_version_cannot_carry_is_not_dropped() -> None:
    """It is an error to give one, and the error says which version it needs."""
    response = fluvio.ProduceResponse(topics=[], throttle_time_ms=5)
    with pytest.raises(EncodeError, match=r"throttle_time_ms: expected 0, because version 0"):
        response.encode(0)


@pytest.mark.parametrize(
    ("version", "size"), [(0, 14), (1, 14), (2, 22), (4, 22), (5, 30), (25, 30)]
)
def test_an_answer_to_produce_grows_with_the_version(version: int, size: int) -> None:
    """The time of appending came with version 2, the start of the log with 5."""
    outcome = fluvio.Outcome(code=ErrorCode.NONE, detail=None)
    answer = fluvio.PartitionAppended(partition=0, outcome=outcome, base_offset=0)
    assert len(answer.encode(version)) == size


def test_the_consumer_of_fetch_offsets_exists_in_one_version() -> None:
    """Version 23 alone has it."""
    sizes = [len(fluvio.FetchOffsetsRequest(topics=[]).encode(v)) for v in (22, 23, 24)]
    assert sizes == [4, 5, 4]


@pytest.mark.parametrize(
    ("wire", "detail"),
    [
        ("0000", None),
        ("07d1", None),
        ("0002 0002 6f68", fluvio.ErrorText(text="oh")),
        (
            "0007 00000000000005dc 00",
            fluvio.RequestTimedOut(timeout_ms=1500, kind=fluvio.RequestKind.PRODUCE),
        ),
        (
            "0047 0000000000000003 0000000000000009",
            fluvio.OffsetEvicted(offset=3, next_available=9),
        ),
        ("0048 0001 74 00000002", fluvio.PartitionFull(topic="t", partition=2)),
        ("1772 0001 65 01 0001 6e", fluvio.SmartModuleInvalid(error="e", name="n")),
        (
            "1778 0000000000000009 0000000000000003",
            fluvio.MemoryLimitExceeded(requested=9, limit=3),
        ),
    ],
)
def test_errors_carry_the_fields_of_their_code(wire: str, detail: object) -> None:
    """A code decides what follows it."""
    outcome = fluvio.Outcome.decode(bytes.fromhex(wire))
    assert outcome.detail == detail
    assert outcome.encode() == bytes.fromhex(wire)


@pytest.mark.parametrize("code", [3, 9999, -2])
def test_an_error_without_a_rule_is_refused(code: int) -> None:
    """What follows it cannot be known, so the rest of the answer cannot be read."""
    with pytest.raises(DecodeError, match=r"Outcome.code at byte 0: expected a value of ErrorCode"):
        fluvio.Outcome.decode(code.to_bytes(2, signed=True))


def test_an_error_is_not_written_with_the_fields_of_another() -> None:
    """The mistake is found before the bytes are sent."""
    text = fluvio.ErrorText(text="no")
    with pytest.raises(EncodeError, match=r"Outcome.detail: expected None with this tag"):
        fluvio.Outcome(code=ErrorCode.NONE, detail=text).encode()
    with pytest.raises(EncodeError, match=r"Outcome.detail: expected a PartitionFull"):
        fluvio.Outcome(code=ErrorCode.PARTITION_FULL, detail=text).encode()


def test_object_types_are_exact() -> None:
    """An answer about topics is not read as one about SPUs."""
    _, _, raw = body(*ANSWERS[3], fluvio.Response)
    with pytest.raises(DecodeError, match=r"WatchSpuResponse.object_type at byte 0"):
        fluvio.WatchSpuResponse.decode(raw, SC_VERSION)


def test_a_stated_length_must_be_used_up() -> None:
    """Bytes left over inside a length are an error at the field that states it."""
    wire = bytes.fromhex("0005 546f706963 0000000a 0000000000000000 00 00")
    with pytest.raises(DecodeError, match=r"WatchRequest.watch at byte 20: expected the end"):
        fluvio.WatchRequest.decode(wire, SC_VERSION)


def test_a_partition_before_version_16_has_no_base_offset() -> None:
    """Object versions 15 to 19 differ in this alone."""
    _, update, _ = body(*ANSWERS[2], fluvio.Response)
    assert len(update.encode(19)) - len(update.encode(15)) == 8


def test_a_count_is_held_against_the_bytes_that_are_left() -> None:
    """Two thousand million topics do not fit into nothing."""
    with pytest.raises(DecodeError, match=r"ProduceResponse.topics at byte 0: expected a count"):
        fluvio.ProduceResponse.decode(bytes.fromhex("7fffffff"), SPU_VERSION)


@pytest.mark.parametrize("wire", ["ffffffff", "80000000"])
def test_a_negative_count_is_refused(wire: str) -> None:
    """Programs read it as an empty list; bytes that mean something else are not guessed at."""
    with pytest.raises(DecodeError, match=r"ProduceResponse.topics"):
        fluvio.ProduceResponse.decode(bytes.fromhex(wire), SPU_VERSION)


def test_text_must_be_utf_8() -> None:
    """The error names the byte that is not."""
    with pytest.raises(DecodeError, match=r"ErrorText.text at byte 3: expected UTF-8"):
        fluvio.ErrorText.decode(bytes.fromhex("0002 61ff"))


@pytest.mark.parametrize(
    ("delta", "wire"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_deltas_are_zigzag(delta: int, wire: str) -> None:
    """The sign is in the lowest bit, seven bits a byte, the lowest first."""
    record = fluvio.Record(attributes=0, timestamp_delta=delta, offset_delta=0, key=None, value=b"")
    assert record.encode() == bytes.fromhex(f"00 {wire} 00 00 00 00")
    assert fluvio.Record.decode(record.encode()) == record


def test_a_delta_of_eleven_bytes_is_refused() -> None:
    """Published programs read on without end."""
    with pytest.raises(DecodeError, match=r"Record.timestamp_delta at byte 1: expected an integer"):
        fluvio.Record.decode(b"\x00" + b"\x80" * 11 + b"\x00")


def test_a_delta_of_65_bits_is_refused() -> None:
    """Ten groups of seven bits hold more than fits."""
    with pytest.raises(DecodeError, match=r"Record.timestamp_delta at byte 1: .*64 bits"):
        fluvio.Record.decode(b"\x00" + b"\xff" * 9 + b"\x02\x00\x00\x00\x00")
