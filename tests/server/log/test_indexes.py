"""The sparse indexes of closed segments (AMB-15, AMB-16)."""

from lance_server.log.log_manager import LogOptions
from lance_server.log.segments.indexes import encode_secondary, encode_sparse
from lance_server.testing import LogDriver, MemoryStorage
from lance_spec.codec.packing import NODE_ACTOR_SEQUENCE
from lance_spec.messages.engine import SecondaryIndexEntry, SidecarEntry, SparseIndexEntry

MS = 1_000_000


def entry(offset: int, records: int, time_ns: int) -> SidecarEntry:
    """Return a sidecar's entry with what an index looks at."""
    return SidecarEntry(offset, 10, records, 1, 1, time_ns, 0, 0, 0)


def sparse(data: bytes) -> list[SparseIndexEntry]:
    """Return the entries of a primary index."""
    return [SparseIndexEntry.decode(data[at : at + 24]) for at in range(0, len(data), 24)]


def secondary(data: bytes) -> list[SecondaryIndexEntry]:
    """Return the entries of a secondary index."""
    return [SecondaryIndexEntry.decode(data[at : at + 16]) for at in range(0, len(data), 16)]


def test_the_sparse_index_has_an_entry_for_every_4096_records() -> None:
    """The first batch, and each first one that begins 4,096 records or more after the last."""
    entries = [entry(number * 10, 1000, 5 * MS) for number in range(12)]
    assert [each.offset for each in sparse(encode_sparse(entries, 0, 3))] == [0, 50, 100]


def test_a_sort_key_holds_time_node_and_record_number() -> None:
    """The sequence is the number of the batch's first record in its topic."""
    (only,) = sparse(encode_sparse([entry(0, 7, 42)], 900, 3))
    assert only.timestamp_ns == 42
    assert NODE_ACTOR_SEQUENCE.unpack(only.node_actor_sequence) == {
        "node": 3,
        "actor": 0,
        "sequence": 900,
    }


def test_the_secondary_index_has_an_entry_for_every_ten_milliseconds() -> None:
    """The first batch of each bucket in which there is one."""
    times = [0, 3 * MS, 10 * MS, 12 * MS, 55 * MS]
    entries = [entry(number * 10, 1, time_ns) for number, time_ns in enumerate(times)]
    found = secondary(encode_secondary(entries))
    assert [(each.server_time_ns, each.offset) for each in found] == [
        (0, 0),
        (10 * MS, 20),
        (55 * MS, 40),
    ]


def test_closed_segments_get_their_indexes_and_the_active_one_does_not() -> None:
    """Maintenance writes them."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=50, compaction=None))
    for number in range(3):
        log.store([bytes(60)], batch_id=number + 1)
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()
    names = [path.name for path in disk.files()]
    closed = sorted(name.split("-")[0] for name in names if name.endswith(".lnc") and "-" in name)
    assert len(closed) == 2
    assert sorted(n.removesuffix(".sparse.idx") for n in names if ".sparse." in n) == closed
    assert sorted(n.removesuffix(".secondary.idx") for n in names if ".secondary." in n) == closed


def test_without_its_indexes_a_log_opens_as_well() -> None:
    """They are derived and may be removed."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=50))
    for number in range(3):
        log.store([bytes(60)], batch_id=number + 1)
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()
    log.close()
    for path in disk.files():
        if path.suffix == ".idx":
            disk.remove(path)
    assert LogDriver(disk).engine.report.findings == []


def test_an_end_waits_for_no_indexes() -> None:
    """What upkeep has not begun by then is for the next start."""
    disk = MemoryStorage()
    log = LogDriver(disk, options=LogOptions(segment_size=50, compaction=None))
    for number in range(3):
        log.store([bytes(60)], batch_id=number + 1)
    log.engine.upkeep.visit(log.engine.topic(0))
    log.close()
    assert not [path for path in disk.files() if path.suffix == ".idx"]
    again = LogDriver(disk, options=LogOptions(compaction=None))
    again.engine.upkeep.visit(again.engine.topic(0))
    again.scheduler.run_all()
    assert len([path for path in disk.files() if path.suffix == ".idx"]) == 2 * 3


def test_a_start_leaves_indexes_that_are_there_alone() -> None:
    """They fit, since a closed segment does not change; who doubts it has `reindex`."""
    disk = MemoryStorage()
    options = LogOptions(segment_size=50, compaction=None)
    log = LogDriver(disk, options=options)
    for number in range(4):
        log.store([bytes(60)], batch_id=number + 1)
    log.engine.upkeep.visit(log.engine.topic(0))
    log.scheduler.run_all()
    log.close()
    first, second = sorted(path for path in disk.files() if path.suffix == ".idx")[:2]
    third, fourth = sorted(path for path in disk.files() if path.suffix == ".idx")[2:4]
    assert first.name.split(".")[0] == second.name.split(".")[0]
    disk.poke(first, b"marked")
    disk.poke(third, b"marked")
    disk.remove(fourth)
    again = LogDriver(disk, options=options)
    again.engine.upkeep.visit(again.engine.topic(0))
    again.scheduler.run_all()
    assert disk.peek(first) == b"marked", "both were there"
    assert disk.peek(third) != b"marked", "one was gone: both are written"
    assert fourth in disk.files()
