"""Messages of other systems are explained field by field, as far as they make sense."""

import dataclasses
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec import __main__ as command
from lance_spec.explain import Explanation, Row, explain_message
from lance_spec.fluvio.batches import Compression, FluvioRecord, pack_batches
from lance_spec.ir.families import composed_messages
from lance_spec.messages import fluvio

BATCH = fluvio.Batch(
    base_offset=0,
    partition_leader_epoch=-1,
    attributes=0,
    last_offset_delta=-1,
    first_timestamp=0,
    max_time_stamp=0,
    producer_id=-1,
    producer_epoch=-1,
    first_sequence=-1,
    records=fluvio.Records(records=[]).encode(),
).with_crc()


def produce(batch: fluvio.Batch) -> bytes:
    """A request with two topics, the first with one batch."""
    partition = fluvio.ProducePartition(partition=3, records=fluvio.RecordSet(batches=[batch]))
    topics = [
        fluvio.ProduceTopic(name="orders", partitions=[partition]),
        fluvio.ProduceTopic(name="empty", partitions=[]),
    ]
    request = fluvio.ProduceRequest(
        transactional_id=None, isolation=1, timeout_ms=1500, topics=topics
    )
    return request.encode(24)


def row(explanation: Explanation, field: str) -> Row:
    """The row of a field."""
    (found,) = [each for each in explanation.rows if each.field == field]
    return found


def test_fields_of_lists_are_numbered() -> None:
    """A path says which of several values is meant."""
    explained = explain_message("fluvio.ProduceRequest", produce(BATCH), 24)
    assert row(explained, "topics").value == "2 values"
    assert row(explained, "topics[0].name").value == "'orders'"
    assert row(explained, "topics[1].name").value == "'empty'"
    assert row(explained, "topics[0].partitions[0].partition").value == "3"


def test_rows_follow_the_bytes() -> None:
    """Hexadecimal and offset are those of the field."""
    wire = produce(BATCH)
    explained = explain_message("fluvio.ProduceRequest", wire, 24)
    magic = row(explained, "topics[0].partitions[0].records.batches[0].magic")
    assert (magic.hex, wire[magic.offset]) == ("02", 2)
    for part in explained.parts:
        assert [each.offset for each in part.rows] == sorted(each.offset for each in part.rows)


def test_a_length_stands_before_what_it_measures() -> None:
    """A row of something with fields shows only its own bytes."""
    explained = explain_message("fluvio.ProduceRequest", produce(BATCH), 24)
    records = row(explained, "topics[0].partitions[0].records")
    assert (records.hex, records.value) == ("00 00 00 3d", "RecordSet")


@pytest.mark.parametrize(("offset", "verdict"), [(0, "ok"), (77, "ok")])
def test_a_right_checksum_is_said_to_be_right(offset: int, verdict: str) -> None:
    """The offset before it may be anything."""
    batch = dataclasses.replace(BATCH, base_offset=offset)
    explained = explain_message("fluvio.Batch", batch.encode())
    assert explained.faults == ()
    explained = explain_message("fluvio.ProduceRequest", produce(batch), 24)
    assert row(explained, "topics[0].partitions[0].records.batches[0].crc").verdict == verdict


def test_a_wrong_checksum_is_a_fault() -> None:
    """It is named like every other field."""
    wrong = produce(dataclasses.replace(BATCH, crc=BATCH.crc ^ 1))
    (fault,) = explain_message("fluvio.ProduceRequest", wrong, 24).faults
    assert fault.startswith("topics[0].partitions[0].records.batches[0].crc at byte ")


def packed(compression: Compression) -> fluvio.Batch:
    """A batch with two records."""
    records = [FluvioRecord(b"one", b"key", 1000), FluvioRecord(b"two", None, 1005)]
    return next(iter(pack_batches(records, 0, compression)))


@pytest.mark.parametrize("compression", Compression)
def test_the_records_of_a_batch_are_explained(compression: Compression) -> None:
    """Field by field, decompressed where they are compressed (FLV-01)."""
    if compression in {Compression.SNAPPY, Compression.ZSTD}:
        pytest.importorskip("cramjam", reason="Snappy and Zstandard take the extra fluvio")
    explained = explain_message("fluvio.ProduceRequest", produce(packed(compression)), 24)
    path = "topics[0].partitions[0].records.batches[0].records"
    assert row(explained, f"{path}.count").value == "2 values"
    assert row(explained, f"{path}[0].key").value == "'key'"
    assert row(explained, f"{path}[1].value").value == "'two'"
    assert row(explained, f"{path}[1].timestamp_delta").value == "5"
    assert explained.faults == ()
    decompressed = explained.parts[1].title.endswith(f"{compression.name}, decompressed")
    assert decompressed == (compression is not Compression.NONE)


def test_records_that_are_not_compressed_stand_where_they_are() -> None:
    """Offsets are those of the message."""
    wire = produce(packed(Compression.NONE))
    explained = explain_message("fluvio.ProduceRequest", wire, 24)
    value = row(explained, "topics[0].partitions[0].records.batches[0].records[0].value")
    assert wire[value.offset :].startswith(b"\x06one")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"attributes": 1}, "expected records compressed with gzip"),
        ({"attributes": 5}, "expected compression 0 to 4, got 5"),
        ({"records": b"\0\0\0\x02\x0c"}, "records.count at byte 57"),
        (
            {"records": packed(Compression.NONE).records + b"!"},
            "expected the end of fluvio.Records",
        ),
    ],
    ids=["not gzip", "no compression", "count", "bytes behind"],
)
def test_what_is_wrong_with_records_is_said(change: dict[str, Any], fault: str) -> None:
    """The fault names them, and what was expected."""
    batch = dataclasses.replace(packed(Compression.NONE), **change).with_crc()
    assert any(fault in each for each in explain_message("fluvio.Batch", batch.encode()).faults)


def test_a_batch_with_fewer_records_than_it_says_is_odd() -> None:
    """Servers filter records out and leave the header as it was."""
    batch = dataclasses.replace(packed(Compression.NONE), last_offset_delta=9).with_crc()
    explained = explain_message("fluvio.Batch", batch.encode())
    assert row(explained, "records.count").verdict == "note"
    assert explained.faults == ()


def test_records_of_a_missing_codec_are_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the command that brings it."""
    pytest.importorskip("cramjam", reason="the batch is made with it")
    wire = packed(Compression.ZSTD).encode()
    monkeypatch.setitem(sys.modules, "cramjam", None)
    explained = explain_message("fluvio.Batch", wire)
    assert "pip install 'lance-sdk[fluvio]'" in row(explained, "records.count").remark


def test_the_first_broken_field_is_named() -> None:
    """What stood before it is still explained."""
    explained = explain_message("fluvio.ProduceRequest", produce(BATCH)[:34], 24)
    assert explained.faults == (
        (
            "topics[0].partitions[0].records at byte 27: expected 61 bytes, got 3 before the end "
            "(Fluvio reference, PartitionProduceData Structure)"
        ),
    )
    assert row(explained, "timeout_ms").value == "1500"


def test_bytes_behind_a_message_are_a_fault() -> None:
    """They are shown."""
    explained = explain_message("rustlog.Ping", b"\xff\x01\x02")
    assert row(explained, "extra").hex == "01 02"
    assert explained.faults == ("extra at byte 1: expected the end of rustlog.Ping",)


def test_a_version_of_another_layout_is_a_fault() -> None:
    """There is no field to blame then."""
    (fault,) = explain_message("fluvio.WatchRequest", b"", 3).faults
    assert fault == "WatchRequest at byte 0: expected version 15 or later, got version 3"


def test_an_unknown_message_is_refused() -> None:
    """A misspelt name is the caller's mistake."""
    with pytest.raises(KeyError, match="fluvio"):
        explain_message("kafka.Produce", b"")
    with pytest.raises(KeyError, match="Prodcue"):
        explain_message("fluvio.Prodcue", b"")


def test_the_command_line_explains_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """A message is named, with the version of its protocol."""
    wire = produce(BATCH).hex()
    arguments = ["explain", "--message", "fluvio.ProduceRequest", "--version", "24", wire]
    assert command.main(arguments) == 0
    assert "topics[1].name" in capsys.readouterr().out


def test_the_command_line_names_the_messages_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt name ends with code 2 and a sentence."""
    assert command.main(["explain", "--message", "fluvio.Prodcue", "00"]) == 2
    assert "Prodcue" in capsys.readouterr().err


def test_long_explanations_are_cut() -> None:
    """The title says how much is not shown."""
    explained = explain_message("fluvio.ProduceRequest", produce(BATCH), 24, most=3)
    assert len(explained.parts[0].rows) == 3
    assert explained.parts[0].title.endswith("fields not shown")


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(list(composed_messages())),
    noise=st.binary(max_size=80),
    version=st.integers(0, 25),
)
def test_anything_can_be_explained(name: str, noise: bytes, version: int) -> None:
    """Noise gives rows and faults, never an exception; it prints."""
    assert str(explain_message(name, noise, version))
