"""Slots that other and older clients wrote, byte by byte."""

import contextlib
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_sdk.journal import Journal, JournalConfig, Problem, SlotKind, SlotUnreadable
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_sdk.journal.types import lost_in
from lance_spec.checksum import CRC32C

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(kind=SlotKind.QWP, segment_bytes=160, background=False)


def segment(number: int) -> Path:
    """Path of a segment by its generation."""
    return SLOT / f"sf-{number:016x}.sfa"


def open_slot(disk: ForgetfulDisk) -> tuple[dict[int, bytes], tuple[Problem, ...]]:
    """Recover a slot: what it delivers, and what was wrong."""
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        return dict(journal.read_from(journal.acked_fsn + 1)), journal.problems


def encode_record(magic: bytes, generation: int, first: int, second: int = 0) -> bytes:
    """A record of the files that are written in turns, as SF-03 lays it out."""
    body = struct.pack("<4sIQQQ28x", magic, 1, generation, first, second)
    return body + struct.pack("<I", CRC32C(body))


def frame(payload: bytes) -> bytes:
    """A frame as SF client section 6.2 lays it out."""
    body = struct.pack("<I", len(payload)) + payload
    return struct.pack("<I", CRC32C(body)) + body


def sfa(base: int, *payloads: bytes, flags: int = 0, size: int = 256) -> bytes:
    """A segment as SF client section 6.1 lays it out."""
    header = struct.pack("<4sBBHQQ", b"SF01", 1, flags, 0, base, 1_700_000_000_000_000)
    return (header + b"".join(map(frame, payloads))).ljust(size, b"\0")


def dual(record: bytes, place: int = 4096) -> bytes:
    """A side file with one record."""
    return bytes(place) + record + bytes(8192 - place - 64)


def foreign(**files: bytes) -> ForgetfulDisk:
    """A slot that another client left."""
    disk = ForgetfulDisk()
    names = {"manifest": "sf-manifest.bin", "watermark": ".ack-watermark"}
    for name, data in files.items():
        disk.put(SLOT / names.get(name, name.replace("_", "-") + ".sfa"), data)
    return disk


def test_a_slot_of_the_first_clients_is_read() -> None:
    """Flags 0, no manifest, no watermark, a name without a number."""
    disk = foreign(sf_initial=sfa(0, b"a", b"b"), sf_0000000000000001=sfa(2, b"c"))
    assert open_slot(disk) == ({0: b"a", 1: b"b", 2: b"c"}, ())


@pytest.mark.parametrize(
    "watermark",
    [
        b"AKW1" + struct.pack("<Iq", 0, 1),
        encode_record(b"AKW1", 1, 1) + bytes(64),
        bytes(64) + encode_record(b"AKW1", 1, 1),
        dual(encode_record(b"AKW1", 1, 1)),
    ],
    ids=["16 bytes", "128 bytes", "128 bytes, second", "8192 bytes"],
)
def test_every_form_of_the_watermark_is_honoured(watermark: bytes) -> None:
    """SF-03: and after opening it has the document's form."""
    disk = foreign(sf_0000000000000000=sfa(0, b"a", b"b", b"c"), watermark=watermark)
    assert open_slot(disk) == ({2: b"c"}, ())
    assert disk.content(SLOT / ".ack-watermark") == b"AKW1" + struct.pack("<Iq", 0, 1)


def test_a_blank_watermark_of_16_bytes_says_nothing() -> None:
    """A file that was created and never written is not damage."""
    disk = foreign(sf_0000000000000000=sfa(0, b"a"), watermark=bytes(16))
    assert open_slot(disk) == ({0: b"a"}, ())


def test_a_watermark_of_nothing_acknowledged_is_read() -> None:
    """-1 is written as two's complement."""
    disk = foreign(
        sf_0000000000000000=sfa(0, b"a"), watermark=dual(encode_record(b"AKW1", 1, 2**64 - 1))
    )
    assert open_slot(disk) == ({0: b"a"}, ())


@pytest.mark.parametrize("fsn", [3, 1000, 2**63, 2**64 - 2])
def test_a_watermark_above_the_last_frame_is_not_believed(fsn: int) -> None:
    """SF client section 5.4: it would drop everything; sending twice is the lesser evil."""
    disk = foreign(
        sf_0000000000000000=sfa(0, b"a", b"b", b"c"), watermark=dual(encode_record(b"AKW1", 1, fsn))
    )
    frames, problems = open_slot(disk)
    assert frames == {0: b"a", 1: b"b", 2: b"c"}
    assert "it is ignored" in problems[0].text


def test_a_slot_of_current_clients_is_read() -> None:
    """Manifest, flags 1, a trimmed head and a spare with a stale base (SF-01)."""
    disk = foreign(
        sf_0000000000000001=sfa(42, b"a", b"b", flags=1),
        sf_0000000000000002=sfa(44, b"c", flags=1),
        sf_0000000000000003=sfa(43, flags=1),
        manifest=dual(encode_record(b"SFM1", 1, 42, 44)),
        watermark=dual(encode_record(b"AKW1", 1, 42)),
    )
    assert open_slot(disk) == ({43: b"b", 44: b"c"}, ())
    assert "sf-0000000000000003.sfa" not in disk.names(SLOT)


def test_a_segment_that_the_manifest_gave_up_and_the_watermark_covers_is_not_sent_again() -> None:
    """The manifest moved, the process died before it deleted the file."""
    disk = foreign(
        watermark=dual(encode_record(b"AKW1", 1, 0)),
        sf_0000000000000000=sfa(0, b"old", flags=1),
        sf_0000000000000001=sfa(1, b"new", flags=1),
        manifest=dual(encode_record(b"SFM1", 1, 1, 1)),
    )
    assert open_slot(disk) == ({1: b"new"}, ())


def test_a_segment_below_the_manifest_is_sent_where_no_watermark_covers_it() -> None:
    """The manifest may be about frames of these numbers that another writer had."""
    disk = foreign(
        sf_0000000000000000=sfa(0, b"old", flags=1),
        sf_0000000000000001=sfa(1, b"new", flags=1),
        manifest=dual(encode_record(b"SFM1", 1, 1, 1)),
    )
    assert open_slot(disk) == ({0: b"old", 1: b"new"}, ())


def test_a_manifest_of_128_bytes_is_read() -> None:
    """The form of mid-2026."""
    record = encode_record(b"SFM1", 1, 1, 1)
    disk = foreign(
        sf_0000000000000000=sfa(0, b"old", flags=1),
        sf_0000000000000001=sfa(1, b"new", flags=1),
        manifest=bytes(64) + record,
        watermark=bytes(64) + encode_record(b"AKW1", 1, 0),
    )
    assert open_slot(disk) == ({1: b"new"}, ())
    assert len(disk.content(SLOT / "sf-manifest.bin")) == 8192


def test_an_empty_frame_is_tolerated() -> None:
    """SF-21: never written here, read all the same."""
    disk = foreign(sf_0000000000000000=sfa(0, b"", b"a"))
    assert open_slot(disk) == ({0: b"", 1: b"a"}, ())


@pytest.mark.parametrize(
    ("change", "byte"),
    [
        (lambda data: data[:4] + b"\2" + data[5:], 4),
        (lambda data: data[:5] + b"\2" + data[6:], 5),
        (lambda data: data[:6] + b"\1" + data[7:], 6),
    ],
    ids=["version", "flags", "reserved"],
)
def test_a_newer_format_is_refused_and_left_alone(
    change: Callable[[bytes], bytes], byte: int
) -> None:
    """SF-02: nothing is renamed, and the error names file and byte."""
    data = change(sfa(0, b"a"))
    disk = foreign(sf_0000000000000000=data)
    with pytest.raises(SlotUnreadable, match=f"{segment(0)} at byte {byte}.*newer client"):
        Journal.open(SLOT, CONFIG, files=disk)
    assert disk.content(segment(0)) == data
    assert not disk.locked


def test_segments_that_claim_the_same_numbers_are_refused() -> None:
    """There is no telling which frames came first."""
    disk = foreign(sf_0000000000000000=sfa(0, b"a", b"b"), sf_0000000000000001=sfa(1, b"c", b"d"))
    with pytest.raises(SlotUnreadable, match=r"starts at frame 1, but .* holds 0 to 1"):
        Journal.open(SLOT, CONFIG, files=disk)


@pytest.mark.parametrize(("kind", "other"), [("QWP", "LWP"), ("LWP", "QWP")])
def test_a_slot_of_another_protocol_is_refused(kind: str, other: str) -> None:
    """SF-31: QWP frames never go to an LWP server, nor the other way round."""
    disk = ForgetfulDisk()
    config = JournalConfig(kind=SlotKind[kind], background=False)
    with Journal.open(SLOT, config, files=disk) as journal:
        journal.append(b"waits")
    with pytest.raises(SlotUnreadable, match=f"slot of kind {kind}, not {other}"):
        Journal.open(SLOT, JournalConfig(kind=SlotKind[other], background=False), files=disk)


MANIFEST = dual(encode_record(b"SFM1", 1, 0, 1))


def numbered(disk: ForgetfulDisk) -> set[str]:
    """Return the names of the segments on a disk."""
    return {name for name in disk.names(SLOT) if name.endswith(".sfa")}


def test_no_segment_of_ours_has_number_0() -> None:
    """A published client may empty a file of that name when it opens a slot (SF-40)."""
    disk = ForgetfulDisk()
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        for number in range(40):
            journal.append(b"%02d" % number)
    assert len(numbered(disk)) > 2
    assert segment(0).name not in numbered(disk)


@pytest.mark.parametrize("flags", [0, 1])
def test_a_segment_of_number_0_with_frames_gets_the_next_number(
    flags: int,
) -> None:
    """Whoever wrote them; they keep their numbers (SF-40)."""
    files = {"sf_0000000000000000": sfa(0, b"a", flags=flags), "sf_0000000000000001": sfa(1, b"b")}
    disk = foreign(**files, **({"manifest": MANIFEST} if flags else {}))
    for _ in range(2):
        with Journal.open(SLOT, CONFIG, files=disk) as journal:
            assert list(journal.read_from(0)) == [(0, b"a"), (1, b"b")]
            assert journal.problems == ()
        assert segment(0).name not in numbered(disk)
        assert segment(2).name in numbered(disk)


@pytest.mark.parametrize("steps", range(12))
def test_a_kill_while_number_0_gets_its_name_loses_nothing(steps: int) -> None:
    """The next opening finds the same frames."""
    disk = foreign(sf_0000000000000000=sfa(0, b"a", b"b"))
    disk.cut_power_after(steps)
    with contextlib.suppress(PowerCut):
        Journal.open(SLOT, CONFIG, files=disk)
    for left in (disk.killed(), disk.power_lost(), disk.power_lost(random.Random(steps))):
        with Journal.open(SLOT, CONFIG, files=left) as journal:
            assert list(journal.read_from(0)) == [(0, b"a"), (1, b"b")]


def test_a_loss_of_power_at_the_end_of_a_renamed_segment_is_no_missing_file() -> None:
    """It had number 0, so no file can have been deleted between it and number 1."""
    short = sfa(0, b"a", b"b", flags=1)[:-1].replace(b"b", b"\0")
    disk = foreign(
        sf_0000000000000002=short,
        sf_0000000000000001=sfa(2, b"c", flags=1),
        manifest=dual(encode_record(b"SFM1", 1, 0, 2)),
    )
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert [payload for _, payload in journal.read_from(0)][:1] == [b"a"]
        assert lost_in(journal.problems) == 1


def test_a_segment_without_a_number_gets_one_and_number_0_behind_it_another() -> None:
    """As the Go client names its first two segments (SF-40)."""
    disk = foreign(sf_initial=sfa(0, b"a"), sf_0000000000000000=sfa(1, b"b"))
    for _ in range(2):
        assert open_slot(disk) == ({0: b"a", 1: b"b"}, ())
    assert numbered(disk) == {segment(1).name, segment(2).name}


def test_number_0_without_frames_gets_a_number_before_ours_go_in() -> None:
    """Its client may empty a file of this name when it opens the slot again (SF-40)."""
    manifest = dual(encode_record(b"SFM1", 1, 0, 0))
    disk = foreign(sf_0000000000000000=sfa(0, flags=1), manifest=manifest)
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        journal.append(b"ours")
        assert numbered(disk) == {segment(1).name}


def test_a_loss_of_power_after_another_clients_first_segment_is_no_missing_file() -> None:
    """Our journal gave it a number, and leaves none out behind it."""
    disk = foreign(sf_initial=sfa(0, b"a"))
    journal = Journal.open(SLOT, CONFIG, files=disk)
    for number in range(5):
        journal.append(b"%040d" % number)
    disk = disk.killed()
    first, second = sorted(numbered(disk))[:2]
    data = disk.content(SLOT / first)
    end = data.rindex(b"0" * 39) - 8
    disk.put(SLOT / first, data[:end] + bytes(len(data) - end))
    with Journal.open(SLOT, CONFIG, files=disk) as journal:
        assert lost_in(journal.problems) == 1
    assert {first, second} <= numbered(disk)
