"""Explaining files, captures and messages that have to be named."""

import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_spec.checksum import CRC32C
from lance_spec.dialect import SPECIFIED
from lance_spec.disk.wal_frames import (
    GUARD,
    SECTOR,
    Use,
    encode_frame,
    encode_removal,
    encode_write,
)
from lance_spec.enums import Command, Flag
from lance_spec.explain import (
    Explanation,
    Row,
    UnknownFormError,
    explain_any,
    forms,
    is_known_name,
)
from lance_spec.frames import encode_control, encode_header, encode_keepalive
from lance_spec.ir.families import composed_messages, messages
from lance_spec.messages import fluvio, qwp, rustlog
from lance_spec.messages.engine import SidecarEntry, SidecarHeader, SparseIndexEntry, WalEntry
from lance_spec.messages.lwp import Fetch
from lance_spec.messages.store_forward import (
    ManifestRecord,
    SegmentFrame,
    SegmentHeader,
    SlotIdentity,
    SlotMetadataHeader,
    StoredBatch,
    WatermarkRecord,
    WatermarkSimple,
)
from lance_spec.strategies.frames import encoded

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # the folder is no package
from _captures import UPGRADE, dialogue, web_socket, write_pcap, write_pcapng

HELLO = bytes.fromhex("01 05000000 68656c6c6f")
QWP_MESSAGE = bytes.fromhex(
    "51575031 01 08 0100 27000000 00 01 02 4130 01 74 01 03 03 73796d 09 01 76 05 00 0a"
    " 00 00 00 0000000000000000 00 00401e18240a0600"
)
"""What a published sender sent for one row."""


def row(explanation: Explanation, field: str) -> Row:
    """The first row of a field."""
    return next(each for each in explanation.rows if each.field == field)


def titles(explanation: Explanation) -> list[str]:
    """The titles of all parts."""
    return [each.title for each in explanation.parts]


def framed(payload: bytes) -> bytes:
    """A frame of a segment of a slot."""
    length = struct.pack("<I", len(payload))
    return SegmentFrame(crc=CRC32C(length + payload), payload=payload).encode()


BATCH = StoredBatch(topic_number=1, batch_id=2, timestamp_ns=3, record_count=1, records=HELLO)
SEGMENT = SegmentHeader(flags=0, base_seq=7, created_us=0).encode()


def test_a_segment_of_a_slot_is_taken_apart_to_its_records() -> None:
    """SF-32: header, frames with their checksums, batches, records, and the space behind."""
    data = SEGMENT + framed(BATCH.encode()) + framed(BATCH.encode()) + bytes(64)
    explanation = explain_any(data)
    assert explanation.faults == ()
    assert titles(explanation)[0].startswith("sf-segment")
    assert titles(explanation)[-1] == "After the last frame, 64 bytes"
    assert [each.remark for each in explanation.rows if each.field == "crc"] == ["crc32c"] * 2
    assert row(explanation, "value").value == "'hello'"


def test_a_flipped_bit_in_a_segment_names_the_checksum() -> None:
    """The frame that is damaged is known by its number and place."""
    data = bytearray(SEGMENT + framed(BATCH.encode()) + bytes(8))
    data[-20] ^= 1
    assert "crc" in {each.field for each in explain_any(bytes(data)).broken}


def test_a_torn_tail_is_noted() -> None:
    """SF-20: bytes after the last frame that are no zeros."""
    explanation = explain_any(SEGMENT + framed(b"x") + bytes(8) + b"rest")
    assert row(explanation, "free").verdict == "note"


def test_frames_of_qwp_slots_are_messages() -> None:
    """A .sfa segment holds complete QWP messages."""
    explanation = explain_any(SEGMENT + framed(QWP_MESSAGE))
    assert explanation.faults == ()
    assert row(explanation, "tables[0].columns[1].name").value == "'v'"


def test_slot_metadata_holds_identities() -> None:
    """SF-32: whose batch ids a slot uses."""
    identity = SlotIdentity(nonce=5, drawn_ns=0, machine_id=b"m").encode()
    explanation = explain_any(SlotMetadataHeader().encode() + framed(identity))
    assert (explanation.faults, row(explanation, "nonce").value) == ((), "5")


@pytest.mark.parametrize("place", [0, 1])
def test_side_files_hold_two_records(place: int) -> None:
    """SF-03: one may never have been written, whichever it is."""
    record = WatermarkRecord(generation=1 + place, fsn=9).with_crc().encode()
    data = bytearray(8192)
    data[4096 * place : 4096 * place + 64] = record
    explanation = explain_any(bytes(data))
    assert explanation.faults == ()
    assert row(explanation, "fsn").value == "9"
    assert row(explanation, "record").value == "64 bytes"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (ManifestRecord(generation=1, head_base=1, active_base=1).encode() * 2, "record_crc"),
        (WatermarkRecord(generation=1, fsn=1).with_crc().encode(), "file"),
    ],
)
def test_broken_side_files_are_faults(data: bytes, fault: str) -> None:
    """SF-03: checksums and sizes."""
    assert {each.field for each in explain_any(data).broken} == {fault}


def test_the_first_form_of_the_watermark_is_read() -> None:
    """SF-03: 16 bytes without a checksum."""
    explanation = explain_any(WatermarkSimple(fsn=3).encode())
    assert (explanation.faults, row(explanation, "fsn").value) == ((), "3")


def symbols(*names: str) -> bytes:
    """A chunk of a symbol dictionary."""
    entries = qwp.Symbols(symbols=list(names)).encode()
    return qwp.SymbolChunk(entry_count=len(names), entries=entries).with_crc().encode()


def test_a_symbol_dictionary_is_a_row_of_chunks() -> None:
    """SF-04: each with its checksum."""
    data = qwp.SymbolDictionaryHeader().encode() + symbols("a", "b") + symbols("c")
    explanation = explain_any(data)
    assert explanation.faults == ()
    assert titles(explanation)[-1] == "SymbolChunk 1 at byte 18"
    broken = explain_any(data[:-1] + b"x")
    assert [each.field for each in broken.broken] == ["crc"]


def test_the_published_chunk_is_read() -> None:
    """SF-04: as a published client wrote it."""
    assert symbols("A0") == bytes.fromhex("01 03 02 4130 6fd5788c")


def test_a_sidecar_is_a_row_of_entries() -> None:
    """AMB-14: the checksum of each is judged."""
    header = SidecarHeader(topic_id=1, base_offset=0, base_record=0, created_ns=0).with_crc()
    entry = SidecarEntry(
        relative_offset=0,
        stored_length=10,
        record_count=1,
        batch_id=2,
        client_timestamp_ns=3,
        server_time_ns=4,
        stored_crc=5,
        flags=0,
        durable_end=0,
    ).with_crc()
    data = header.encode() + entry.encode() * 2
    explanation = explain_any(data)
    assert (explanation.faults, titles(explanation)[-1]) == ((), "SidecarEntry 1 at byte 128")
    (broken,) = explain_any(data[:-1] + b"\xff").broken
    assert broken.field == "entry_crc"


@pytest.mark.parametrize(
    ("name", "data", "title"),
    [
        ("7_8.lnc", HELLO * 2, "Record 1, RAW_DATA"),
        (
            "1.sparse.idx",
            SparseIndexEntry(node_actor_sequence=1, timestamp_ns=2, offset=3).encode() * 2,
            "SparseIndexEntry 1 at byte 24",
        ),
        ("0_1.idx", bytes(48), "PublishedIndexEntry 1 at byte 24"),
        ("0_1.sidx", bytes(32), "SecondaryIndexEntry 1 at byte 16"),
        ("a.wal", WalEntry(batch=HELLO).encode() + bytes(4), "WalEnd at byte 14"),
        ("slot/.lock.pid", b"1234\n", "LockHolder at byte 0"),
    ],
)
def test_names_tell_what_bytes_do_not(name: str, data: bytes, title: str) -> None:
    """Logs, indexes and notes have no mark of their own."""
    assert is_known_name(name)
    explanation = explain_any(data, file_name=name)
    assert (explanation.faults, titles(explanation)[-1]) == ((), title)


def wal_file(use: Use, *commits: bytes) -> bytes:
    """Return a file of this server's write-ahead log, with room behind the commits."""
    head = GUARD.ljust(SECTOR, b"\0") + use.encode().ljust(SECTOR, b"\0")
    return head + b"".join(commits) + bytes(60)


def test_this_servers_write_ahead_log_is_taken_apart() -> None:
    """AMB-50: down to each write; what an earlier use of the file left is not a commit."""
    use, name = Use(b"12345678", 2), b"segments/1/0_1.lnc"
    commit = encode_frame(use, 1, 5, [*encode_write(name, 0, HELLO), *encode_removal(b"x")])
    old = encode_frame(use._replace(generation=1), 2, 3, encode_write(name, 9, HELLO))
    explanation = explain_any(wal_file(use, commit, old), file_name="wal/0.wal")
    assert explanation.faults == ()
    assert [each.partition(" at")[0] for each in titles(explanation)[1:]] == [
        "RedoEntry", "WalGeneration", "WalFrame 0", "WalCommit", "WalWrite 0", "WalWrite 1",
        f"After the last commit, {len(old) + 60} bytes",
    ]  # fmt: skip


def test_damage_in_a_write_ahead_log_is_shown() -> None:
    """The checksum of a commit is judged, and that of the generation."""
    use = Use(b"12345678", 2)
    data = bytearray(wal_file(use, encode_frame(use, 1, 5, encode_write(b"a", 0, HELLO))))
    data[-61] ^= 1
    data[SECTOR + 4] ^= 1
    broken = explain_any(bytes(data), file_name="0.wal").broken
    assert [each.field for each in broken] == ["crc", "crc"]


def test_a_log_that_is_written_may_end_inside_a_record() -> None:
    """That is a note; in frames it is a fault."""
    assert explain_any(HELLO[:-1], file_name="7_8.lnc").faults == ()


Write = Callable[[Path, list[bytes]], None]
CAPTURES = pytest.mark.parametrize("write", [write_pcap, write_pcapng])


@CAPTURES
def test_frames_in_a_capture_are_explained_side_by_side(write: Write, tmp_path: Path) -> None:
    """Both sides, cut anywhere, with who spoke."""
    fetch = Fetch(topic_id=1, start_offset=0, max_bytes=10).encode()
    asked = encode_control(SPECIFIED, Command.FETCH, fetch)
    turns = [(True, asked[:9]), (True, asked[9:]), (False, encode_keepalive(SPECIFIED))]
    write(tmp_path / "c", dialogue(40000, 1992, turns))
    explanation = explain_any((tmp_path / "c").read_bytes())
    assert explanation.faults == ()
    assert titles(explanation)[0].startswith("Conversation 1, 127.0.0.1:40000 to 127.0.0.1:1992")
    assert "From the client: Fetch payload" in titles(explanation)
    assert titles(explanation)[-1].startswith("From the server: Frame 1 at byte 0: KEEPALIVE")


def test_a_fault_in_a_capture_is_found(tmp_path: Path) -> None:
    """The bytes after it cannot be frames any more."""
    broken = bytearray(encode_keepalive(SPECIFIED))
    broken[9] ^= 1
    write_pcap(tmp_path / "c", dialogue(40000, 1992, [(True, bytes(broken))]))
    (row_,) = explain_any((tmp_path / "c").read_bytes()).broken
    assert row_.field == "header_crc"


def test_packets_out_of_order_and_twice_are_put_in_order(tmp_path: Path) -> None:
    """As networks deliver them."""
    frame = encode_header(SPECIFIED, Flag.BATCH_MODE, payload=HELLO, batch_id=1, record_count=1)
    packets = dialogue(40000, 1992, [(True, b"".join((frame, HELLO))[:n]) for n in (0, 54)])
    first, second, third = dialogue(
        40000, 1992, [(True, frame[:10]), (True, frame[10:]), (True, HELLO)]
    )
    write_pcap(tmp_path / "c", [first, third, second, third, packets[1]])
    explanation = explain_any((tmp_path / "c").read_bytes())
    assert explanation.faults == ()
    assert row(explanation, "value").value == "'hello'"


def fluvio_frame(message: fluvio.Request | fluvio.Response) -> bytes:
    """A frame of Fluvio."""
    return fluvio.Frame(body=message.encode()).encode()


ASKED = fluvio.Request(
    api_key=1002,
    api_version=23,
    correlation_id=1,
    client_id="c",
    body=fluvio.FetchOffsetsRequest(topics=[], consumer_id="me").encode(23),
)
ANSWERED = fluvio.Response(correlation_id=1, body=fluvio.FetchOffsetsResponse(topics=[]).encode())


@pytest.mark.parametrize("port", [9005, 12345])
def test_fluvio_is_explained_in_the_version_of_each_request(port: int, tmp_path: Path) -> None:
    """FLV-01: responses are read as their requests were, on any port."""
    turns = [(True, fluvio_frame(ASKED)), (False, fluvio_frame(ANSWERED))]
    write_pcap(tmp_path / "c", dialogue(40000, port, turns))
    explanation = explain_any((tmp_path / "c").read_bytes())
    assert explanation.faults == ()
    assert row(explanation, "consumer_id").value == "'me'"
    assert titles(explanation)[-1] == "FetchOffsets response, version 23"


@pytest.mark.parametrize(
    ("turns", "remark"),
    [
        ([(False, fluvio_frame(ANSWERED))], "its request was not captured"),
        ([(True, b"\xff\xff\xff\xff")], "expected 0 to 134217728, got 4294967295"),
        ([(True, fluvio_frame(ASKED)[:-1])], "the capture ends inside it, after 23 bytes"),
    ],
)
def test_what_is_wrong_with_frames_of_fluvio_is_said(
    turns: list[tuple[bool, bytes]], remark: str, tmp_path: Path
) -> None:
    """Lengths, and what the capture does not have."""
    write_pcap(tmp_path / "c", dialogue(40000, 9005, turns))
    remarks = {each.remark for each in explain_any((tmp_path / "c").read_bytes()).rows}
    assert remark in remarks


def test_both_dialects_of_rustlog_are_explained(tmp_path: Path) -> None:
    """RL-01: binary messages field by field, JSON as it stands."""
    ping = rustlog.Frame(payload=rustlog.Ping().encode()).encode()
    listing = rustlog.Frame(payload=b'{"ListTopics":{}}').encode()
    odd = rustlog.Frame(payload=b"\x0b").encode()
    write_pcap(tmp_path / "c", dialogue(40000, 9092, [(True, ping), (True, listing), (False, odd)]))
    explanation = explain_any((tmp_path / "c").read_bytes())
    assert row(explanation, "json").value == """'{"ListTopics":{}}'"""
    assert explanation.faults == ("type at byte 0: expected the type of a message (RL-01)",)


def test_qwp_is_explained_inside_its_web_socket(tmp_path: Path) -> None:
    """The upgrade, messages of the sender, answers of the server, and how it ends."""
    taken = qwp.OkResponse(wire_sequence=0, tables=[]).encode()
    turns = [
        (True, UPGRADE[0]),
        (False, UPGRADE[1]),
        (True, web_socket(QWP_MESSAGE, masked=True)),
        (False, web_socket(taken, masked=False)),
        (False, b"\x88\x05\x03\xe9why"),
    ]
    write_pcap(tmp_path / "c", dialogue(40000, 9000, turns))
    explanation = explain_any((tmp_path / "c").read_bytes())
    assert explanation.faults == ()
    assert row(explanation, "X-QWP-Max-Version").value == "'1'"
    assert row(explanation, "tables[0].name").value == "'t'"
    remarks = [each.remark for each in explanation.rows if each.field == "frame"]
    assert remarks[-1] == "code 1001 GOING_AWAY, 'why'"


def test_a_count_of_tables_that_is_wrong_is_a_fault() -> None:
    """The header of a QWP message says how many its payload holds."""
    wrong = QWP_MESSAGE[:6] + b"\x02" + QWP_MESSAGE[7:]
    (broken,) = explain_any(wrong).broken
    assert (broken.field, broken.remark) == ("table_count", "the payload holds 1")


@pytest.mark.parametrize("form", [*messages(), *composed_messages(), *forms()])
def test_every_form_can_be_named(form: str) -> None:
    """Whatever the bytes are, there is an answer that prints."""
    assert str(explain_any(b"\x01\x02\x03", form=form, version=19))


def test_an_unknown_form_is_refused_with_what_there_is() -> None:
    """The error of a misspelt name helps to spell it."""
    with pytest.raises(UnknownFormError, match="sparse-index"):
        explain_any(b"x", form="index")
    with pytest.raises(UnknownFormError, match=r"name the message, for example fluvio\.Frame"):
        explain_any(b"x", form="fluvio")


def test_the_first_broken_field_stands_in_json() -> None:
    """With its rule, for programs."""
    broken = explain_any(b"LANX" + bytes(40)).to_json()["firstBroken"]
    assert (broken["field"], broken["section"]) == ("magic", "LWP section 3.2")


MAGICS = [b"SF01", b"LNCBATCH", b"SFM1", b"AKW1", b"SYD1", b"LWM1", b"QWP1", b"LANC", b"\x04\x22"]
HEADS = [b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x65\0\0\0", b"\x0a\x0d\x0d\x0a\x1c\0\0\0", b""]


@settings(max_examples=150)
@given(
    head=st.sampled_from([*MAGICS, *HEADS]),
    noise=st.binary(max_size=300) | encoded("SegmentFrame") | encoded("SidecarHeader"),
    name=st.sampled_from(["", "a.lnc", ".failed", "b.wal", "c.secondary.idx"]),
)
def test_noise_never_raises(head: bytes, noise: bytes, name: str) -> None:
    """Files and captures that are damaged give rows and faults."""
    explanation = explain_any(head + noise, file_name=name)
    assert str(explanation)
    assert explanation.to_json()
