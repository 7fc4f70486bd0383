"""The order in which things reach the disk, for readers that are stricter than this one."""

from contextlib import suppress
from pathlib import Path

import pytest

from lance_sdk.journal import Durability, Journal, JournalConfig, SlotKind
from lance_sdk.journal._slot.side_files import select
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_spec.messages.store_forward import ManifestRecord, SegmentHeader

SLOT = Path("/disk/slot")
CONFIG = JournalConfig(
    kind=SlotKind.QWP,
    segment_bytes=256,
    max_total_bytes=1 << 16,
    durability=Durability.FLUSH,
    background=False,
    synced_before_trim=(".symbol-dict", ".not-there"),
)


def manifest(disk: ForgetfulDisk) -> ManifestRecord:
    """Return what the manifest says."""
    record = select(disk.content(SLOT / "sf-manifest.bin"), ManifestRecord).record
    assert record is not None
    return record


def bases(disk: ForgetfulDisk) -> set[int]:
    """Return the base of every segment that has a header."""
    contents = (disk.content(SLOT / name) for name in disk.names(SLOT) if name.endswith(".sfa"))
    return {SegmentHeader.decode(each[:24]).base_seq for each in contents if each[0]}


def filled(disk: ForgetfulDisk) -> Journal:
    """A flushed slot of three segments with seven frames each but the last."""
    journal = Journal.open(SLOT, CONFIG, files=disk)
    for _ in range(17):
        journal.append(bytes(24))
    journal.flush()
    for _ in journal.read_from(0):
        pass
    return journal


def test_a_flush_leaves_a_manifest_that_names_the_newest_segment() -> None:
    """Clients that take frames after the active segment for damage can read the slot."""
    disk = ForgetfulDisk()
    journal = filled(disk)
    after = disk.power_lost()
    assert manifest(after).active_base == max(bases(after)) == 14
    assert manifest(after).head_base == 0
    journal.close()


@pytest.mark.parametrize("steps", range(14))
def test_the_manifest_on_disk_never_names_a_segment_that_is_gone(steps: int) -> None:
    """A segment is given up on disk before its file is deleted."""
    disk = ForgetfulDisk()
    journal = filled(disk)
    journal.ack(14)
    disk.cut_power_after(steps)
    with suppress(PowerCut):
        journal.maintain()
    for after in (disk.power_lost(), disk.killed()):
        assert manifest(after).head_base in bases(after)
        assert manifest(after).active_base in bases(after)


def test_a_trim_makes_acknowledgements_durable() -> None:
    """Before segments go, the watermark is on disk, so that nothing is sent twice for it."""
    disk = ForgetfulDisk()
    journal = filled(disk)
    journal.ack(8)
    journal.maintain()
    assert 0 not in bases(disk)
    with Journal.open(SLOT, CONFIG, files=disk.power_lost()) as recovered:
        assert recovered.acked_fsn == 8


def test_a_trim_syncs_what_the_transport_needs_beside_it() -> None:
    """SF-04: a symbol dictionary must not be lost after the frames that defined its entries."""
    disk = ForgetfulDisk()
    journal = filled(disk)
    disk.put(SLOT / ".symbol-dict", bytes(8))
    disk.open(SLOT / ".symbol-dict", writable=True).write(0, b"SYD1")
    assert disk.power_lost().content(SLOT / ".symbol-dict") == bytes(8)
    journal.ack(8)
    journal.maintain()
    assert disk.power_lost().content(SLOT / ".symbol-dict") == b"SYD1\0\0\0\0"


def test_sealed_segments_are_synced_in_memory_durability_too() -> None:
    """Maintenance does it, so that a machine crash takes the newest frames and no others."""
    disk = ForgetfulDisk()
    config = JournalConfig(segment_bytes=256, max_total_bytes=1 << 16, background=False)
    journal = Journal.open(SLOT, config, files=disk)
    for _ in range(17):
        journal.append(bytes(24))
    journal.maintain()
    assert journal.durable_fsn == 13
    with Journal.open(SLOT, config, files=disk.power_lost()) as recovered:
        assert [fsn for fsn, _ in recovered.read_from(0)] == list(range(14))


def test_acknowledged_segments_are_deleted_without_having_been_synced() -> None:
    """While the server keeps up, memory durability costs the disk nothing for the frames."""
    disk = ForgetfulDisk()
    config = JournalConfig(segment_bytes=256, max_total_bytes=1 << 16, background=False)
    journal = Journal.open(SLOT, config, files=disk)
    for _ in range(17):
        journal.append(bytes(24))
    for _ in journal.read_from(0):
        pass
    journal.ack(16)
    journal.maintain()
    assert journal.stats().syncs == 0
