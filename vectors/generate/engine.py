"""Family ``engine_message``: what storage engines write beside records, and send each other."""

from collections.abc import Iterator
from typing import Any

from generate.document import Test, document, group
from generate.layouts import NOTES, Layout, Maker, Slot, Value, examples, reject
from generate.wire import record, u16, u32

SIDECAR_HEADER = Layout(
    "SidecarHeader",
    "AMB-14",
    (
        Slot("magic", const=b"LNCBATCH"),
        Slot("version", const=u16(1)),
        Slot("flags", const=u16(0)),
        Slot("topic_id", 4),
        Slot("base_offset", 8),
        Slot("base_record", 8),
        Slot("created_ns", 8),
        Slot("reserved", const=bytes(20)),
        Slot("header_crc", 4),
    ),
    guarded=60,
)
SIDECAR_ENTRY = Layout(
    "SidecarEntry",
    "AMB-14",
    (
        Slot("relative_offset", 8),
        Slot("stored_length", 4),
        Slot("record_count", 4),
        Slot("batch_id", 8),
        Slot("client_timestamp_ns", 8),
        Slot("server_time_ns", 8),
        Slot("durable_end", 8),
        Slot("stored_crc", 4),
        Slot("flags", 4),
        Slot("reserved", const=u32(0)),
        Slot("entry_crc", 4),
    ),
    guarded=60,
)
NUMBERS = (
    SIDECAR_HEADER,
    SIDECAR_ENTRY,
    Layout("SortKey", "AMB-16", (Slot("node_actor_sequence", 8), Slot("timestamp_ns", 8))),
    Layout(
        "SparseIndexEntry",
        "AMB-15",
        (Slot("node_actor_sequence", 8), Slot("timestamp_ns", 8), Slot("offset", 8)),
    ),
    Layout("SecondaryIndexEntry", "AMB-15", (Slot("server_time_ns", 8), Slot("offset", 8))),
    Layout(
        "PublishedIndexEntry",
        "AMB-15",
        (Slot("hlc_timestamp", 8), Slot("node_sequence", 8), Slot("offset", 8)),
    ),
    Layout("AssignedTopic", "AMB-38", (Slot("topic_id", 4), Slot("offset", 8))),
)
"""Messages of numbers and constants only."""

WAL_ENTRY = Layout(
    "WalEntry", "AMB-47", (Slot("length", 4, measures="batch"), Slot("batch", measured=True))
)
WAL_END = Layout("WalEnd", "AMB-47", (Slot("length", const=u32(0)),))
REPLICATED_WRITE = Layout(
    "ReplicatedWrite",
    "AMB-48",
    (
        Slot("topic_id", 4),
        Slot("global_offset", 8),
        Slot("segment_name_length", 2, measures="segment_name"),
        Slot("segment_name", measured=True),
        Slot("write_offset", 8),
        Slot("flags", 1),
        Slot("data"),
    ),
)

NAME = b"100_1706918400000000000.lnc"
HELLO = record(b"hello")


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One message as bytes: of a sidecar, an index, a write-ahead log, or between engines.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is not believed; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, a `value` that must not be, or a `checksum` that does not fit.",
    ]
    groups = [_group(each.name, list(_numbers(each))) for each in NUMBERS]
    groups += [
        _group("WalEntry", list(_wal_entry())),
        _group("WalEnd", list(_wal_end())),
        _group("ReplicatedWrite", list(_replicated())),
    ]
    return document("engine_message", header, NOTES, groups)


def _group(message: str, tests: list[Test]) -> dict[str, Any]:
    return group("EngineMessage", tests, message=message)


def _numbers(layout: Layout) -> Iterator[Test]:
    maker = Maker(layout, f"engine-{layout.name}", reject)
    values: dict[str, Value] = {}
    for name, comment, values in examples(layout):
        yield maker.valid(name, comment, values)
    yield from maker.faults("numbers", values)


def _wal_entry() -> Iterator[Test]:
    maker = Maker(WAL_ENTRY, "engine-WalEntry", reject)
    yield maker.valid("hello", "A batch of one record.", {"batch": HELLO})
    yield maker.valid("byte", "The smallest batch.", {"batch": b"\x01"})
    yield maker.valid("long", "A batch of 300 bytes.", {"batch": record(b"x" * 295)})
    yield from maker.faults("hello", {"batch": HELLO})
    data = WAL_ENTRY.encode({"batch": HELLO})
    for name, length, reason, field, offset, flag in (
        ("states-0", 0, "value", "length", 0, "Bounds"),
        ("states-9", 9, "trailing", "", 13, "Length"),
        ("states-11", 11, "short", "batch", 4, "Length"),
        ("states-4-gib", 2**32 - 1, "value", "length", 0, "Bounds"),
        ("states-over-limit", 2**24 + 6, "value", "length", 0, "Bounds"),
    ):
        comment = f"The length says {length}, the batch has 10 bytes."
        outcome = reject(reason, field, offset)
        yield maker.splice(
            "hello", name, comment, data=data, at=0, insert=u32(length), outcome=outcome, flag=flag
        )
    yield _grown(maker, data)


def _grown(maker: Maker, data: bytes) -> Test:
    """An entry is read by itself: the next one is not a part of it."""
    test = next(each for each in maker.faults("hello", {"batch": HELLO}))
    outcome = reject("trailing", "", len(data))
    fault = {"kind": "append", "bytes": u32(0).hex()}
    return test | {
        "id": "engine-WalEntry-and-the-end",
        "comment": "The end of the log follows, which is a message of its own.",
        "bytes": (data + u32(0)).hex(),
        "fault": fault,
        "outcome": outcome,
        "flags": ["Trailing"],
    }


def _wal_end() -> Iterator[Test]:
    maker = Maker(WAL_END, "engine-WalEnd", reject)
    yield maker.valid("end", "Four bytes of zeros.", {})
    yield from maker.faults("end", {})


def _replicated() -> Iterator[Test]:
    maker = Maker(REPLICATED_WRITE, "engine-ReplicatedWrite", reject)
    write: dict[str, Value] = {
        "topic_id": 7,
        "global_offset": 1034,
        "segment_name": NAME,
        "write_offset": 24,
        "flags": 0,
        "data": HELLO,
    }
    yield maker.valid("write", "One record at byte 24 of a segment.", write)
    new = write | {"flags": 2, "write_offset": 0}
    yield maker.valid("new-segment", "The first write to a segment.", new)
    yield maker.valid("rotate", "The last write to a segment.", write | {"flags": 1})
    yield maker.valid("both", "The only write to a segment.", new | {"flags": 3})
    yield maker.valid("empty", "No data, only a rotation.", write | {"flags": 1, "data": b""})
    yield maker.valid("longest-name", "A name of 255 bytes.", write | {"segment_name": b"n" * 255})
    ends: dict[str, Value] = {"topic_id": 2**32 - 1, "global_offset": 2**64 - 1}
    yield maker.valid("largest", "The largest numbers.", write | ends)
    yield from maker.faults("write", write)
    data = REPLICATED_WRITE.encode(write)
    for name, length, reason, field, offset, flag in (
        ("name-of-0", 0, "value", "segment_name_length", 12, "Bounds"),
        ("name-of-256", 256, "value", "segment_name_length", 12, "Bounds"),
        ("name-of-255", 255, "short", "segment_name", 14, "Length"),
    ):
        comment = f"The name's length says {length}, the name has {len(NAME)} bytes."
        outcome = reject(reason, field, offset)
        yield maker.splice(
            "write", name, comment, data=data, at=12, insert=u16(length), outcome=outcome, flag=flag
        )
