"""The rules for every frame, each broken once."""

import sys
from dataclasses import replace

import lz4.block
import lz4.frame
import pytest

from lance_conformance.client.scripted.received_frame import FrameReader, ReceivedFrame
from lance_conformance.client.scripted.rules import broken_rules
from lance_conformance.dialect import DEPLOYED, SPECIFIED
from lance_conformance.wire.control import KEEPALIVE, control, fetch, get_topic, ingest
from lance_conformance.wire.crc import crc32c
from lance_conformance.wire.frame import MAX_PAYLOAD, Flag, Frame
from lance_conformance.wire.tlv import record

INGEST = ingest(7, 1, [b"one", b"two"])


def compressed(payload: bytes, record_count: int = INGEST.record_count) -> Frame:
    """An Ingest with the flag Compressed and this payload."""
    flags = Flag.BATCH_MODE | Flag.COMPRESSED
    return replace(INGEST, flags=flags, payload=payload, record_count=record_count)


LZ4 = lz4.frame.compress(INGEST.payload, content_checksum=True)
BLOCK = lz4.block.compress(INGEST.payload, store_size=False)
RIGHT = {
    "ingest": INGEST, "compressed": compressed(LZ4), "keepalive": KEEPALIVE,
    "fetch": fetch(7, 0, 100), "get": get_topic(7),
}  # fmt: skip
WRONG = {
    "version": replace(INGEST, version=2),
    "one-kind": replace(KEEPALIVE, flags=Flag.KEEPALIVE | Flag.CONTROL),
    "no-server-frames": Frame(flags=Flag.ACK | Flag.CONTROL, batch_id=3),
    "flags-clear": replace(INGEST, flags=Flag.BATCH_MODE | Flag.RESERVED),
    "reserved": replace(INGEST, reserved=1),
    "header-crc": replace(INGEST, header_crc=1),
    "payload-crc": replace(INGEST, payload_crc=1),
    "keepalive-zero": replace(KEEPALIVE, timestamp_ns=1),
    "control-zero": replace(get_topic(7), topic_id=7),
    "client-command": control(0x80, b"{}"),
    "control-size": control(0x10, b"short"),
    "batch-id-zero": replace(INGEST, batch_id=0),
    "timestamp": replace(INGEST, timestamp_ns=0),
    "payload-there": replace(INGEST, payload=b"", record_count=0),
    "record-chain": replace(INGEST, payload=INGEST.payload + b"\0"),
    "record-count": replace(INGEST, record_count=3),
    "reserved-type": replace(INGEST, payload=record(b"x", 0), record_count=1),
    "null-length": replace(INGEST, payload=record(b"x", 0xFF), record_count=1),
}
NOT_LZ4 = {
    "plain records": INGEST.payload,
    "a bare block": BLOCK,
    "a frame that is cut short": LZ4[:-1],
    "a frame with a wrong checksum": LZ4[:-1] + bytes([LZ4[-1] ^ 1]),
    "a frame that wants a dictionary": LZ4[:4] + bytes([LZ4[4] | 1]) + LZ4[5:],
    "a frame and another byte": LZ4 + b"\0",
    "two frames": LZ4 + LZ4,
    "a frame that is too large": lz4.frame.compress(bytes(MAX_PAYLOAD + 1)),
    "nothing": b"",
}
RECORDS = {
    "record-chain": (INGEST.payload + b"\0", 2), "record-count": (INGEST.payload, 3),
    "reserved-type": (record(b"x", 0), 1), "null-length": (record(b"x", 0xFF), 1),
}  # fmt: skip


def seen(*frames: Frame) -> list[ReceivedFrame]:
    """The frames as one connection brings them."""
    return FrameReader(1).feed(b"".join(frame.encode(crc32c) for frame in frames))


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_frame_breaks_no_rule(name: str) -> None:
    """What a right client sends is right."""
    (received,) = seen(RIGHT[name])
    assert broken_rules(received, SPECIFIED) == {}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_frame_breaks_its_rule(name: str) -> None:
    """One fault, one rule, and a sentence that says what is wrong."""
    (received,) = seen(WRONG[name])
    broken = broken_rules(received, SPECIFIED)
    assert name in broken
    assert len(broken[name]) > 5


@pytest.mark.parametrize("payload", NOT_LZ4.values(), ids=NOT_LZ4)
def test_a_compressed_batch_is_one_lz4_frame(payload: bytes) -> None:
    """Whatever else stands in one that says so breaks the rule."""
    (received,) = seen(compressed(payload))
    assert set(broken_rules(received, SPECIFIED)) - {"payload-there"} == {"compressed"}


@pytest.mark.parametrize("payload", NOT_LZ4.values(), ids=NOT_LZ4)
def test_the_kit_as_one_file_judges_compression_alike(
    payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package it reads LZ4 by itself."""
    (known,) = seen(compressed(payload))
    for module in ("lz4", "lz4.frame", "lz4.block"):
        monkeypatch.setitem(sys.modules, module, None)
    (received,) = seen(compressed(payload))
    assert bool(received.closed)
    assert received.opened == known.opened
    assert seen(compressed(LZ4))[0].opened.payload == INGEST.payload


@pytest.mark.parametrize("name", RECORDS)
def test_records_in_a_compressed_batch_keep_the_rules(name: str) -> None:
    """Compression hides no wrong record."""
    payload, count = RECORDS[name]
    (received,) = seen(compressed(lz4.frame.compress(payload), record_count=count))
    assert set(broken_rules(received, SPECIFIED)) == {name}


def test_the_records_of_a_bare_block_are_known() -> None:
    """It is a wrong payload, but the other rules and cases go on with its records."""
    (received,) = seen(compressed(BLOCK))
    assert received.opened.payload == INGEST.payload


def test_the_other_polynomial_breaks_a_rule() -> None:
    """Checksums are those of the dialect in force."""
    (received,) = seen(INGEST)
    assert set(broken_rules(received, DEPLOYED)) == {"header-crc", "payload-crc"}


def test_an_id_with_other_content_breaks_a_rule() -> None:
    """The same batch may come again, another one under its id may not."""
    again = seen(INGEST, INGEST)[-1]
    other = seen(INGEST, replace(INGEST, payload=record(b"other"), record_count=1))[-1]
    assert broken_rules(again, SPECIFIED) == {}
    assert set(broken_rules(other, SPECIFIED)) == {"batch-id-unique"}


@pytest.mark.parametrize("cut", [1, 43, 44, 60])
def test_frames_are_read_across_any_cut(cut: int) -> None:
    """However the bytes arrive, the frames are the same."""
    data = INGEST.encode(crc32c) + KEEPALIVE.encode(crc32c)
    reader = FrameReader(1)
    found = reader.feed(data[:cut]) + reader.feed(data[cut:])
    assert [received.data for received in found] == [data[:-44], data[-44:]]


def test_bytes_that_are_no_frame_end_the_reading() -> None:
    """And so does a length that nothing can have: nothing is waited for."""
    noise, huge = FrameReader(1), FrameReader(2)
    assert noise.feed(b"GET / HTTP/1.1\r\n" * 4) == []
    assert huge.feed(replace(INGEST, payload_length=2**32 - 1).encode(crc32c)) == []
    assert "magic" in noise.lost
    assert "4294967295" in huge.lost
