"""The bytes of a slot, by hand: segments, side files, and the codec that reads them."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_sdk.journal import Durability, Journal, JournalConfig, SlotKind
from lance_sdk.journal._slot.layout import generation_of
from lance_sdk.journal._slot.side_files import select, select_watermark
from lance_sdk.journal._slot.storage import _BASE_SEQ, _FOLD
from lance_sdk.journal.testing import ForgetfulDisk
from lance_spec.checksum import CRC32C
from lance_spec.grammar.store_forward import GRAMMAR
from lance_spec.ir.lowering import lower
from lance_spec.messages import store_forward
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentFrame,
    SegmentHeader,
    SlotIdentity,
    SlotStateRecord,
    SlotTopic,
    StoredBatch,
    WatermarkRecord,
    WatermarkSimple,
)
from lance_spec.strategies.frames import values

SLOT = Path("/disk/slot")
FIRST_QWP_MESSAGE = bytes.fromhex(
    "51575031 01 08 0100 27000000 0001024130 0174 01 03 0373796d09 017605 000a"
    "0000 000000000000000000 0000401e18240a0600"
)
"""A minimal QWP message of one row: 51 bytes."""


def written(kind: SlotKind, *payloads: bytes) -> ForgetfulDisk:
    """Return a disk with a slot that a journal wrote and closed."""
    disk = ForgetfulDisk()
    config = JournalConfig(
        kind=kind, segment_bytes=4096, background=False, durability=Durability.FLUSH
    )
    clock = 1_700_000_000.0
    with Journal.open(SLOT, config, files=disk, wall_clock=lambda: clock) as journal:
        for each in payloads:
            journal.append(each)
    return disk


def test_a_segment_is_header_frames_and_zeros() -> None:
    """SF client sections 6.1 and 6.2, byte by byte."""
    content = written(SlotKind.QWP, b"abc", b"\xff").content(SLOT / "sf-0000000000000001.sfa")
    assert content[:24].hex(" ", -4) == "53463031 01010000 00000000 00000000 00401e18 240a0600"
    first, second = content[24:35], content[35:44]
    assert first == struct.pack("<II", CRC32C(b"\x03\0\0\0abc"), 3) + b"abc"
    assert second == struct.pack("<II", CRC32C(b"\x01\0\0\0\xff"), 1) + b"\xff"
    assert content[44:] == bytes(4096 - 44)


def test_the_checksum_of_a_frame_is_a_known_one() -> None:
    """CRC-32C over length and payload: a frame of nine digits, computed by hand."""
    frame = SegmentFrame(CRC32C(b"\x09\x00\x00\x00" + b"123456789"), b"123456789")
    assert CRC32C(b"123456789") == 0xE3069283
    assert frame.encode()[4:] == b"\x09\x00\x00\x00" + b"123456789"


def test_the_manifest_record_is_the_one_other_clients_write() -> None:
    """SF-03: bases 10 and 20 in generation 1 have a known checksum."""
    record = ManifestRecord(1, 10, 20).with_crc().encode()
    assert record[:32].hex(" ", -4) == (
        "53464d31 01000000 01000000 00000000 0a000000 00000000 14000000 00000000"
    )
    assert record[32:60] == bytes(28)
    assert struct.unpack("<I", record[60:])[0] == 0xFA7A1B86


def test_the_watermark_record_is_the_one_other_clients_write() -> None:
    """SF-03: an acknowledgement of 42 in generation 1 has a known checksum."""
    record = WatermarkRecord(1, 42).with_crc().encode()
    assert record[:24].hex(" ", -4) == "414b5731 01000000 01000000 00000000 2a000000 00000000"
    assert struct.unpack("<I", record[60:])[0] == 0x7E5081BA


def test_the_first_generation_stands_in_the_second_half() -> None:
    """A record goes to byte 0 or 4096 by the lowest bit of its generation."""
    disk = ForgetfulDisk()
    config = JournalConfig(segment_bytes=4096, background=False)
    journal = Journal.open(SLOT, config, files=disk)
    journal.append(b"x")
    list(journal.read_from(0))
    manifest = disk.content(SLOT / "sf-manifest.bin")
    assert len(manifest) == 8192
    assert manifest[4096:4100] == b"SFM1"
    assert select(manifest, ManifestRecord).record is not None


def test_the_side_files_of_a_journal_are_records_of_the_grammar() -> None:
    """Manifest, floor, state and watermark hold what the generated codec writes."""
    disk = ForgetfulDisk()
    config = JournalConfig(segment_bytes=4096, background=False)
    with Journal.open(SLOT, config, files=disk, wall_clock=lambda: 1.0) as journal:
        journal.append(b"x")
        journal.append(b"y")
        list(journal.read_from(0))
        journal.ack(0)
        journal.sync()
        assert disk.content(SLOT / ".ack-watermark") == WatermarkSimple(0).encode()
    for name, record in (
        ("sf-manifest.bin", ManifestRecord(1, 0, 0)),
        (".next-fsn", FsnFloorRecord(1, 2)),
        (".slot-state", SlotStateRecord(1, 1_000_000, 1_000_000, 1, 1, 0, 0)),
    ):
        found = select(disk.content(SLOT / name), type(record)).record
        assert found is not None
        assert found == replace(record, generation=found.generation).with_crc()


@settings(max_examples=50, deadline=None)
@given(payloads=st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=5))
def test_a_segment_is_what_the_generated_codec_writes(payloads: list[bytes]) -> None:
    """Header and frames equal the codec's bytes, so a field that moves in the grammar is seen."""
    content = written(SlotKind.LWP, *payloads).content(SLOT / "sf-0000000000000000.sfl")
    crcs = [CRC32C(len(each).to_bytes(4, "little") + each) for each in payloads]
    header = SegmentHeader(1, 0, 1_700_000_000_000_000).encode()
    frames = [SegmentFrame(crc, each).encode() for crc, each in zip(crcs, payloads, strict=True)]
    assert content == b"".join((header, *frames)).ljust(4096, b"\0")


def test_the_numbers_of_a_folded_segment_are_what_the_generated_codec_writes() -> None:
    """What is written over the header's end and the first frame's begin lies where they lie."""
    header = SegmentHeader(1, 77, 5).encode()
    frame = SegmentFrame(9, bytes(3)).encode()
    assert _FOLD.pack(77, 5, 9, 3) == (header + frame)[_BASE_SEQ : _BASE_SEQ + _FOLD.size]


@pytest.mark.parametrize("declaration", GRAMMAR.messages, ids=lambda each: each.name)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_generated_codec_is_the_grammar(declaration: object, data: st.DataObject) -> None:
    """Every message of the family encodes as `construct` builds it, and reads it back."""
    message = lower(declaration)  # type: ignore[arg-type]  # parametrized with declarations
    drawn = data.draw(values(message))
    codec = getattr(store_forward, message.name)
    built = declaration.construct().build(drawn)  # type: ignore[attr-defined]
    assert codec(**drawn).encode() == built
    assert codec.decode(built) == codec(**drawn)


def test_the_simple_watermark_is_read() -> None:
    """SF client section 5.4: 16 bytes, magic, reserved, number."""
    data = bytes.fromhex("414b5731 00000000 1200000000000000")
    assert WatermarkSimple.decode(data).fsn == 18
    record = select_watermark(data).record
    assert record is not None
    assert record.fsn == 18


def test_two_records_back_to_back_are_read() -> None:
    """Clients of mid-2026 kept both records in 128 bytes; the higher generation holds."""
    data = b"".join(WatermarkRecord(*each).with_crc().encode() for each in ((4, 7), (5, 9)))
    record = select_watermark(data).record
    assert record is not None
    assert record.fsn == 9


def test_of_two_records_the_valid_one_holds() -> None:
    """A newer record that was cut short does not hide the older one, and is told of."""
    torn = bytearray(ManifestRecord(6, 5, 6).with_crc().encode())
    torn[20] ^= 1
    data = bytes(torn) + ManifestRecord(5, 1, 2).with_crc().encode()
    found = select(data, ManifestRecord)
    assert found.record is not None
    assert found.record.head_base == 1
    assert "checksum" in found.damage


def test_a_stored_batch_is_its_fields_and_its_records() -> None:
    """SF-32: 28 bytes before the records."""
    batch = StoredBatch(3, 0xABCDEF0000000001, 1_700_000_000_000_000_000, 1, b"\x01\x01\0\0\0x")
    assert batch.encode().hex(" ", -4) == (
        "4c574231 03000000 01000000 00efcdab 00002a36 fe9c9717 01000000 01010000 0078"
    )


def test_slot_metadata_entries_end_with_their_text() -> None:
    """SF-32: identity and topic entries keep their name to the end of their frame."""
    identity = SlotIdentity(0xABCDEF, 5, b"machine")
    topic = SlotTopic(1, 2**32 - 1, 0, b"orders")
    assert identity.encode()[:8] == b"LWI1\xef\xcd\xab\0"
    assert topic.encode() == b"LWT1\1\0\0\0\xff\xff\xff\xff" + bytes(8) + b"orders"


@pytest.mark.parametrize(
    ("name", "generation"),
    {
        "sf-0000000000000003.sfa": 3,
        "sf-00000000000000ff.sfl": 255,
        "sf-0000000000000007.sfa.corrupt": 7,
        "sf-initial.sfa": None,
        ".lock": None,
    }.items(),
)
def test_generations_are_read_from_names(name: str, generation: int | None) -> None:
    """SF-24: quarantined files count, the legacy name has none."""
    assert generation_of(name) == generation


def test_a_qwp_message_is_stored_as_it_is() -> None:
    """The journal adds a frame header and changes no byte of the message."""
    assert len(FIRST_QWP_MESSAGE) == 51
    content = written(SlotKind.QWP, FIRST_QWP_MESSAGE).content(SLOT / "sf-0000000000000001.sfa")
    assert content[32 : 32 + 51] == FIRST_QWP_MESSAGE
