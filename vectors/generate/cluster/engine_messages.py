"""Family ``engine_message``: what storage engines write beside records, and send each other."""

from typing import Any

from generate.codec.cursor import Shape
from generate.codec.nested import Field, Seal, Struct
from generate.codec.shapes import (
    REST,
    U8,
    U16LE,
    U32LE,
    U64LE,
    Const,
    Fixed,
    Length,
    Measured,
    Num,
)
from generate.codec.wire import crc, record
from generate.composed import NOTES, Example, Family, used
from generate.document import document

MAX_BATCH = 2**24 + 5


def numbers(name: str, **sizes: Num) -> Struct:
    """Return a message of numbers."""
    return Struct(name, tuple(Field(each, size) for each, size in sizes.items()))


def f(name: str, shape: Shape) -> Field:
    """Return a field."""
    return Field(name, shape)


SIDECAR_HEADER = Struct(
    "SidecarHeader",
    (
        f("magic", Const(Fixed(8), b"LNCBATCH")),
        f("version", Const(U16LE, 1)),
        f("flags", Const(U16LE, 0)),
        f("topic_id", U32LE),
        f("base_offset", U64LE),
        f("base_record", U64LE),
        f("created_ns", U64LE),
        f("reserved", Const(Fixed(20), bytes(20))),
        f("header_crc", U32LE),
    ),
    Seal("header_crc", 0, 60, "little"),
)
SIDECAR_ENTRY = Struct(
    "SidecarEntry",
    (
        f("relative_offset", U64LE),
        f("stored_length", U32LE),
        f("record_count", U32LE),
        f("batch_id", U64LE),
        f("client_timestamp_ns", U64LE),
        f("server_time_ns", U64LE),
        f("durable_end", U64LE),
        f("stored_crc", U32LE),
        f("flags", U32LE),
        f("reserved", Const(U32LE, 0)),
        f("entry_crc", U32LE),
    ),
    Seal("entry_crc", 0, 60, "little"),
)
NUMBERS = (
    ("AMB-14", SIDECAR_HEADER),
    ("AMB-14", SIDECAR_ENTRY),
    ("AMB-16", numbers("SortKey", node_actor_sequence=U64LE, timestamp_ns=U64LE)),
    (
        "AMB-15",
        numbers("SparseIndexEntry", node_actor_sequence=U64LE, timestamp_ns=U64LE, offset=U64LE),
    ),
    ("AMB-15", numbers("SecondaryIndexEntry", server_time_ns=U64LE, offset=U64LE)),
    (
        "AMB-15",
        numbers("PublishedIndexEntry", hlc_timestamp=U64LE, node_sequence=U64LE, offset=U64LE),
    ),
)
"""Row and layout of messages of numbers and constants only."""

WAL_ENTRY = Struct(
    "WalEntry",
    (
        f("length", Length(U32LE.but(limits=(1, MAX_BATCH)), "batch")),
        f("batch", Measured("length")),
    ),
)
WAL_END = Struct("WalEnd", (f("length", Const(U32LE, 0)),))
LOG_MAGIC = Const(Fixed(4), b"LWAL")
WAL_GENERATION = Struct(
    "WalGeneration",
    (f("magic", LOG_MAGIC), f("crc", U32LE), f("file_id", Fixed(8)), f("generation", U64LE)),
)
WAL_FRAME = Struct(
    "WalFrame",
    (
        f("magic", LOG_MAGIC),
        f("length", Length(U32LE.but(limits=(32, 64 << 20)), "body")),
        f("crc", U32LE),
        f("body", Measured("length")),
    ),
)
WAL_COMMIT = Struct(
    "WalCommit",
    (
        f("file_id", Fixed(8)),
        f("generation", U64LE),
        f("index", U64LE),
        f("number", U64LE),
        f("writes", REST),
    ),
)
WAL_WRITE = Struct(
    "WalWrite",
    (
        f("kind", U8.but(limits=(0, 1))),
        f("name_length", Length(U16LE, "name")),
        f("length", Length(U32LE, "data")),
        f("offset", U64LE),
        f("name", Measured("name_length")),
        f("data", Measured("length")),
    ),
)
REPLICATED_WRITE = Struct(
    "ReplicatedWrite",
    (
        f("topic_id", U32LE),
        f("global_offset", U64LE),
        f("segment_name_length", Length(U16LE.but(limits=(1, 255)), "segment_name")),
        f("segment_name", Measured("segment_name_length")),
        f("write_offset", U64LE),
        f("flags", U8),
        f("data", REST),
    ),
)

HELLO = record(b"hello")
WRITE: dict[str, Any] = {
    "topic_id": 7,
    "global_offset": 1034,
    "segment_name": b"100_1706918400000000000.lnc",
    "write_offset": 24,
    "flags": 0,
    "data": HELLO,
}
NEW: dict[str, Any] = WRITE | {"flags": 2, "write_offset": 0}
LARGEST: dict[str, Any] = WRITE | {"topic_id": 2**32 - 1, "global_offset": 2**64 - 1}


FILE_ID = bytes(range(0xA0, 0xA8))
SEGMENT = b"segments/7/0_1706918400000000000.lnc"
LOGGED: dict[str, Any] = {"kind": 0, "offset": 24, "name": SEGMENT, "data": HELLO}
REMOVED: dict[str, Any] = {"kind": 1, "offset": 0, "name": b"segments/7", "data": b""}


def checksum(data: bytes) -> int:
    """Return the CRC32C of some bytes."""
    return crc("crc32c", data)


def wal_write(value: dict[str, Any]) -> bytes:
    """Return a write as it stands in a commit."""
    return b"".join(
        (
            value["kind"].to_bytes(1, "little"),
            len(value["name"]).to_bytes(2, "little"),
            len(value["data"]).to_bytes(4, "little"),
            value["offset"].to_bytes(8, "little"),
            value["name"],
            value["data"],
        )
    )


COMMIT: dict[str, Any] = {
    "file_id": FILE_ID,
    "generation": 3,
    "index": 1,
    "number": 41,
    "writes": wal_write(LOGGED),
}
COMMIT_BYTES = b"".join(
    (
        FILE_ID,
        *(COMMIT[name].to_bytes(8, "little") for name in ("generation", "index", "number")),
        COMMIT["writes"],
    )
)


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


OTHERS: tuple[tuple[str, Struct, tuple[Example, ...]], ...] = (
    (
        "AMB-47",
        WAL_ENTRY,
        (
            named("hello", "A batch of one record.", batch=HELLO),
            named("byte", "The smallest batch.", batch=b"\x01"),
            named("long", "A batch of 300 bytes.", batch=record(b"x" * 295)),
        ),
    ),
    ("AMB-47", WAL_END, (named("end", "Four bytes of zeros."),)),
    (
        "AMB-50",
        WAL_GENERATION,
        (
            named(
                "third",
                "The third use of a file; the checksum is of the two fields after it.",
                crc=checksum(FILE_ID + (3).to_bytes(8, "little")),
                file_id=FILE_ID,
                generation=3,
            ),
        ),
    ),
    (
        "AMB-50",
        WAL_FRAME,
        (
            named(
                "commit",
                "A commit of one write, with its checksum.",
                crc=checksum(COMMIT_BYTES),
                body=COMMIT_BYTES,
            ),
            named(
                "empty",
                "The smallest body: a commit without a write.",
                crc=checksum(COMMIT_BYTES[:32]),
                body=COMMIT_BYTES[:32],
            ),
        ),
    ),
    (
        "AMB-50",
        WAL_COMMIT,
        (
            named("one", "One write.", **COMMIT),
            named(
                "two",
                "A write and a removal, back to back.",
                **COMMIT | {"writes": wal_write(LOGGED) + wal_write(REMOVED)},
            ),
        ),
    ),
    (
        "AMB-50",
        WAL_WRITE,
        (
            named("write", "A record at byte 24 of the segment that is open.", **LOGGED),
            named("removal", "The removal of a topic's folder.", **REMOVED),
            named("far", "A write at the largest offset.", **LOGGED | {"offset": 2**64 - 1}),
        ),
    ),
    (
        "AMB-48",
        REPLICATED_WRITE,
        (
            named("write", "One record at byte 24 of a segment.", **WRITE),
            named("new-segment", "The first write to a segment.", **NEW),
            named("rotate", "The last write to a segment.", **WRITE | {"flags": 1}),
            named("both", "The only write to a segment.", **NEW | {"flags": 3}),
            named("empty", "No data, only a rotation.", **WRITE | {"flags": 1, "data": b""}),
            named("longest-name", "A name of 255 bytes.", **WRITE | {"segment_name": b"n" * 255}),
            named("largest", "The largest numbers.", **LARGEST),
        ),
    ),
)
"""Row, layout and examples of messages whose length varies."""


def examples(struct: Struct) -> tuple[Example, ...]:
    """Return values of a message of numbers: others, zeros, and the largest."""
    sizes = [
        (each.name, each.shape.size)
        for each in struct.fields
        if isinstance(each.shape, Num) and not (struct.seal and each.name == struct.seal.name)
    ]
    others = {name: distinct(place, size) for place, (name, size) in enumerate(sizes)}
    return (
        Example("numbers", "Other bytes everywhere.", others),
        Example("zeros", "Zero in every field.", dict.fromkeys(others, 0)),
        Example(
            "ones",
            "The largest number in every field.",
            {name: 256**size - 1 for name, size in sizes},
        ),
    )


def distinct(place: int, size: int) -> int:
    """Return a number whose bytes differ from each other and from those of other fields."""
    return int.from_bytes(bytes((0x10 * (place + 1) + byte) & 0xFF for byte in range(size)), "big")


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One message as bytes: of a sidecar, an index, a write-ahead log, or between engines.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is not believed; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, a `value` that must not be, or a `checksum` that does not fit.",
    ]
    everything = [*((row, each, examples(each)) for row, each in NUMBERS), *OTHERS]
    groups = [
        Family("engine", "EngineMessage", row).group(struct, found)
        for row, struct, found in everything
    ]
    return document("engine_message", header, used(NOTES, groups), groups)
