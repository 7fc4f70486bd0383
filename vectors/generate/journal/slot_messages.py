"""Family ``slot_message``: what stands in the files of a store-and-forward slot."""

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
)
from generate.composed import NOTES, Example, Family, used
from generate.document import document, group
from generate.qwp import captured

SPEC = {"name": "SF client", "version": "1", "revision": "2026-05-12"}
FSN = U64LE.but(limits=(0, 2**63 - 1))
NONE = 2**64 - 1
NOON_US = 1_706_918_400_000_000


def f(name: str, shape: Shape) -> Field:
    """Return a field."""
    return Field(name, shape)


def magic(letters: bytes) -> Field:
    """Return the letters that open a file or a record."""
    return f("magic", Const(Fixed(4), letters))


def record(name: str, letters: bytes, *fields: Field, reserved: int) -> Struct:
    """Return one of the two records of a file that is written in turns."""
    opening = (magic(letters), f("version", Const(U32LE, 1)))
    generation = f("generation", U64LE.but(limits=(1, 2**63 - 1)))
    closing = (f("reserved", Const(Fixed(reserved), bytes(reserved))), f("record_crc", U32LE))
    return Struct(
        name, (*opening, generation, *fields, *closing), Seal("record_crc", 0, 60, "little")
    )


SEGMENT = Struct(
    "SegmentHeader",
    (
        magic(b"SF01"),
        f("version", Const(U8, 1)),
        f("flags", U8.but(limits=(0, 1))),
        f("reserved", Const(U16LE, 0)),
        f("base_seq", FSN),
        f("created_us", U64LE),
    ),
)
FRAME = Struct(
    "SegmentFrame",
    (
        f("crc", U32LE),
        f("payload_length", Length(U32LE, "payload")),
        f("payload", Measured("payload_length")),
    ),
    Seal("crc", 4, None, "little"),
)
MANIFEST = record(
    "ManifestRecord", b"SFM1", f("head_base", FSN), f("active_base", FSN), reserved=28
)
WATERMARK = record("WatermarkRecord", b"AKW1", f("fsn", U64LE), reserved=36)
SIMPLE = Struct(
    "WatermarkSimple", (magic(b"AKW1"), f("reserved", Const(U32LE, 0)), f("fsn", U64LE))
)
FLOOR = record("FsnFloorRecord", b"FSN1", f("floor", FSN), reserved=36)
STATE = record(
    "SlotStateRecord",
    b"SLS1",
    f("head_created_us", U64LE),
    f("active_created_us", U64LE),
    f("durable_fsn", U64LE),
    f("boot", U64LE),
    f("symbols", U32LE),
    f("symbols_crc", U32LE),
    reserved=4,
)
HOLDER, SENTINEL = (
    Struct("LockHolder", (f("text", REST),)),
    Struct("FailedSentinel", (f("reason", REST),)),
)
BATCH = Struct(
    "StoredBatch",
    (
        magic(b"LWB1"),
        f("topic_number", U32LE),
        f("batch_id", U64LE),
        f("timestamp_ns", U64LE),
        f("record_count", U32LE),
        f("records", REST),
    ),
)
METADATA = Struct("SlotMetadataHeader", (magic(b"LWM1"), f("version", Const(U32LE, 1))))
IDENTITY = Struct(
    "SlotIdentity",
    (
        magic(b"LWI1"),
        f("nonce", U32LE.but(limits=(1, 2**24 - 1))),
        f("drawn_ns", U64LE),
        f("machine_id", REST),
    ),
)
TOPIC = Struct(
    "SlotTopic",
    (
        magic(b"LWT1"),
        f("topic_number", U32LE),
        f("topic_id", U32LE),
        f("created_at", U64LE),
        f("name", REST),
    ),
)


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


EXAMPLES: tuple[tuple[Struct, str, tuple[Example, ...]], ...] = (
    (
        SEGMENT,
        "6.1",
        (
            named("flagged", "A segment of a slot with a manifest.", flags=1, base_seq=126,
                  created_us=NOON_US),
            named("first", "A segment as the first clients wrote it.", flags=0, base_seq=0,
                  created_us=0),
            named("largest", "The largest numbers.", flags=1, base_seq=2**63 - 1, created_us=NONE),
        ),
    ),
    (
        FRAME,
        "6.2",
        (
            named("hello", "Five bytes.", payload=b"hello"),
            named("byte", "One byte.", payload=b"\x00"),
            named("long", "300 bytes.", payload=bytes(place % 251 for place in range(300))),
            named("empty", "No bytes, which readers bear and writers refuse.", payload=b""),
        ),
    ),
    (
        MANIFEST,
        "SF-03",
        (
            named("two", "Two live segments.", generation=2, head_base=10, active_base=20),
            named("new", "A new slot.", generation=1, head_base=0, active_base=0),
            named("largest", "The largest numbers.", generation=2**63 - 1, head_base=2**63 - 1,
                  active_base=2**63 - 1),
        ),
    ),
    (
        WATERMARK,
        "SF-03",
        (
            named("at-42", "Frames up to 42 are acknowledged.", generation=1, fsn=42),
            named("none", "None is: -1, read without its sign.", generation=3, fsn=NONE),
            named("zero", "The first frame is.", generation=2, fsn=0),
        ),
    ),
    (
        SIMPLE,
        "5.4",
        (
            named("at-3", "Frames up to 3 are acknowledged; no checksum.", fsn=3),
            named("none", "None is.", fsn=NONE),
        ),
    ),
    (FLOOR, "SF-08", (named("at-9", "No frame had number 9 or more.", generation=1, floor=9),)),
    (
        STATE,
        "SF-36",
        (
            named("two", "Two segments, all synced in this boot.", generation=1,
                  head_created_us=NOON_US, active_created_us=NOON_US + 1, durable_fsn=9,
                  boot=7, symbols=2, symbols_crc=5),
            named("nothing", "Nothing is left, nothing is known.", generation=2,
                  head_created_us=0, active_created_us=0, durable_fsn=NONE, boot=0, symbols=0,
                  symbols_crc=0),
        ),
    ),
    (HOLDER, "5.1", (named("pid", "A process.", text=b"31160\n"),
                     named("empty", "Nobody.", text=b""))),
    (SENTINEL, "5.2", (named("reason", "Why.", reason=b"gap between segments"),
                       named("empty", "No reason: that the file exists is enough.", reason=b""))),
    (
        BATCH,
        "SF-32",
        (
            named("one", "One record.", topic_number=0, batch_id=2**40 + 1, timestamp_ns=10**18,
                  record_count=1, records=bytes.fromhex("010500000068656c6c6f")),
            named("largest", "The largest numbers.", topic_number=2**32 - 1, batch_id=NONE,
                  timestamp_ns=NONE, record_count=2**32 - 1, records=b""),
        ),
    ),
    (METADATA, "SF-32", (named("one", "Letters and version."),)),
    (
        IDENTITY,
        "SF-32",
        (
            named("drawn", "A nonce.", nonce=1, drawn_ns=10**18, machine_id=b"m"),
            named("largest", "The largest nonce.", nonce=2**24 - 1, drawn_ns=NONE, machine_id=b""),
        ),
    ),
    (
        TOPIC,
        "SF-32",
        (
            named("known", "A topic that the server knows.", topic_number=1, topic_id=7,
                  created_at=1_706_918_400, name="größe".encode()),
            named("unknown", "One that it does not know yet.", topic_number=0, topic_id=2**32 - 1,
                  created_at=0, name=b"t"),
        ),
    ),
)  # fmt: skip
"""Each message, its section and its examples; the first one is the one that is spoilt."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One message of a store-and-forward slot, of QWP or of LWP: a header, a frame, a record.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is not believed; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, a `value` that must not be, or a `checksum` that does not fit.",
    ]
    groups = [
        Family("slot", "SlotMessage", section).group(struct, examples)
        for struct, section, examples in EXAMPLES
    ]
    groups += _captured()
    return document("slot_message", header, used(NOTES, groups), groups, SPEC)


def _captured() -> list[dict[str, Any]]:
    own = Family("captured-slot", "SlotMessage", "SF-02", basis="capture")
    frames = [(name, comment, bytes.fromhex(raw)) for name, comment, raw in captured.FRAMES]
    rows: tuple[tuple[Struct, list[tuple[str, str, bytes]]], ...] = (
        (
            SEGMENT,
            [
                ("active", "The segment that is written.", bytes.fromhex(captured.SEGMENT)),
                (
                    "spare",
                    "The next one, whose number is not its own yet.",
                    bytes.fromhex(captured.SPARE),
                ),
            ],
        ),
        (FRAME, frames),
        (MANIFEST, [("new", "Of a new slot.", bytes.fromhex(captured.MANIFEST))]),
        (HOLDER, [("pid", "Who holds the slot.", bytes.fromhex(captured.HOLDER))]),
    )
    return [
        group(own.kind, own.seen(struct, found), message=struct.name) | {"source": captured.SENT}
        for struct, found in rows
    ]
