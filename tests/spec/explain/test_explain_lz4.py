"""Explaining compressed payloads: the LZ4 frame and the records inside."""

import lz4.frame
import pytest

from lance_spec.codec.xxhash import xxh32
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Flag
from lance_spec.explain import Explanation, Row, explain
from lance_spec.frames import encode_header

HELLO = bytes.fromhex("01 05000000 68656c6c6f")
COMPRESSED = Flag.BATCH_MODE | Flag.COMPRESSED


def ingest(payload: bytes, count: int = 1) -> bytes:
    """An Ingest frame with a compressed payload."""
    header = encode_header(SPECIFIED, COMPRESSED, payload=payload, batch_id=7, record_count=count)
    return header + payload


def row(explanation: Explanation, name: str) -> Row:
    """The first row of a field."""
    return next(each for each in explanation.rows if each.field == name)


@pytest.mark.parametrize("checked", [False, True])
def test_a_compressed_payload_is_opened(checked: bool) -> None:
    """AMB-20: the LZ4 frame field by field, and the records inside it."""
    packed = lz4.frame.compress(HELLO * 9, block_checksum=checked, content_checksum=checked)
    explanation = explain(ingest(packed, count=9))
    assert explanation.faults == ()
    assert row(explanation, "head_checksum").remark == "xxHash-32"
    titles = [each.title for each in explanation.parts]
    assert titles[-1] == "Record 8, RAW_DATA, decompressed"


@pytest.mark.parametrize(
    ("place", "field"),
    [(4, "flg"), (5, "bd"), (14, "head_checksum"), (15, "block_length"), (22, "blocks")],
)
def test_a_broken_lz4_frame_names_its_field(place: int, field: str) -> None:
    """AMB-20: reserved bits, sizes, checksums."""
    packed = bytearray(lz4.frame.compress(HELLO * 9, content_checksum=True))
    packed[place] ^= 0x82
    broken = explain(ingest(bytes(packed), count=9)).broken
    assert field in {each.field for each in broken}


def test_bytes_behind_an_lz4_frame_are_a_fault() -> None:
    """AMB-20: exactly one frame."""
    packed = lz4.frame.compress(HELLO) + b"x"
    (fault,) = explain(ingest(packed)).faults
    assert fault.startswith("extra")


def test_a_bare_block_is_noted() -> None:
    """AMB-20: servers read it, although it is no frame."""
    explanation = explain(ingest(b"\x10\0\0\0"))
    assert row(explanation, "payload").verdict == "note"


@pytest.mark.parametrize("size", [0, 4, 7, 14, 15, 18, 30])
def test_a_truncated_lz4_frame_is_a_fault(size: int) -> None:
    """AMB-20: wherever it ends."""
    packed = lz4.frame.compress(HELLO * 9)[:size]
    assert explain(ingest(packed, count=9)).faults or size < 4


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"\0" * 100, 0x85F6413C)],
)
def test_the_checksum_of_heads_is_that_of_the_reference(data: bytes, value: int) -> None:
    """LZ4 frame format: xxHash-32 with seed 0."""
    assert xxh32(data) == value
