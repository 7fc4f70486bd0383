"""Family ``rustlog_message``: the binary messages of RustLog, as its broker speaks them (RL-01)."""

from collections.abc import Iterable
from typing import Any

from generate.codec.cursor import Shape
from generate.codec.nested import Field, Many, Maybe, Nested, Struct
from generate.codec.shapes import FLAG, U8, U16, U32, U64, Blob, Const, Length, Measured
from generate.composed import NOTES, Example, Family, used
from generate.document import document, group
from generate.rustlog import captured

SPEC = {"name": "RustLog specification", "version": "1", "revision": "binary dialect, RL-01"}
MAX_FRAME = 10_485_760
STRING, BYTES = Blob(U16, text=True), Blob(U32)
TOPIC, GROUP, PARTITION = Field("topic", STRING), Field("group", STRING), Field("partition", U32)
OFFSET, SUCCESS = Field("offset", U64), Field("success", FLAG)
RECORDS, WATERMARK = Field("records", Many(U32, BYTES)), Field("high_watermark", U64)
HELLO = [b"hello", b"from", b"rustlog"]
DEMO: dict[str, Any] = {"topic": "demo", "partition": 0}
MAX32, MAX64 = 2**32 - 1, 2**64 - 1


def tagged(name: str, code: int, *fields: Field) -> Struct:
    """Return a message that opens with a byte for its type."""
    return Struct(name, (Field("type", Const(U8, code)), *fields))


def field(name: str, shape: Shape) -> Field:
    """Return a field of one message only."""
    return Field(name, shape)


FRAME = Struct(
    "Frame",
    (
        field("length", Length(U32.but(limits=(1, MAX_FRAME)), "payload")),
        field("payload", Measured("length")),
    ),
)
LISTED = Struct("ListedTopic", (TOPIC, field("partitions", U32)))
DESCRIBED = Struct("DescribedPartition", (PARTITION, WATERMARK))
PRODUCE = tagged("ProduceRequest", 1, TOPIC, PARTITION, RECORDS)
PRODUCED = tagged("ProduceResponse", 1, field("base_offset", U64), field("record_count", U32))
FETCH = tagged("FetchRequest", 2, GROUP, TOPIC, PARTITION, OFFSET, field("max_bytes", U32))
FETCHED = tagged("FetchResponse", 2, RECORDS, field("next_offset", U64))
COMMIT = tagged("OffsetCommitRequest", 3, GROUP, TOPIC, PARTITION, OFFSET)
COMMITTED = tagged("OffsetCommitResponse", 3, SUCCESS)
ASK = tagged("OffsetFetchRequest", 4, GROUP, TOPIC, PARTITION)
ASKED = tagged("OffsetFetchResponse", 4, field("offset", Maybe(U64)))
CREATE = tagged("CreateTopicRequest", 5, TOPIC, field("partitions", U32))
CREATED = tagged("CreateTopicResponse", 5, SUCCESS)
LIST = tagged("ListTopicsRequest", 6)
LISTING = tagged("ListTopicsResponse", 6, field("topics", Many(U32, Nested(LISTED))))
DESCRIBE = tagged("DescribeTopicRequest", 7, TOPIC)
DESCRIPTION = tagged(
    "DescribeTopicResponse",
    7,
    TOPIC,
    field("partition_count", U32),
    field("partitions", Many(U32, Nested(DESCRIBED))),
)
DESCRIBE_ONE = tagged("DescribePartitionRequest", 8, TOPIC, PARTITION)
DESCRIPTION_OF_ONE = tagged("DescribePartitionResponse", 8, TOPIC, PARTITION, WATERMARK)
METRICS = tagged("MetricsRequest", 9)
MEASURES = tagged("MetricsResponse", 9, field("text", Blob(U32, text=True)))
PING = tagged("Ping", 0xFF)
ERROR = tagged("ErrorResponse", 0xFE, field("code", U16), field("message", STRING))

ERRORS = (
    (1, "Frame error: invalid protocol: zero-length frame"),
    (1, "Frame error: frame too large: 10485761 bytes (max: 10485760)"),
    (1, "Internal error: failed to access partition registry"),
    (2, "Decode error: unknown request type: 123"),
    (2, "Decode error: decode error: empty buffer"),
    (2, "Decode error: decode error: truncated topic"),
    (3, "Partition not found: topic=demo, partition=9"),
    (4, "Fetch failed: disk"),
    (5, "Offset commit failed: disk"),
    (10, "Topic or partition does not exist: topic=demo, partition=9"),
    (11, "Topic 'demo' already exists"),
    (12, "Invalid partition count: 0"),
    (13, "DescribeTopic failed: Topic 'demo' not found"),
    (14, "DescribePartition failed: Partition 9 not found in topic 'demo'"),
    (500, "Failed to write record: disk"),
    (500, "Failed to list topics"),
)
"""Codes and texts of the published broker."""


SEEN = {
    "Trailing": NOTES["Trailing"]
    | {"seenIn": ["The published broker ignores bytes after a valid message."]}
}
"""Notes on what the published broker does."""


def named(name: str, comment: str, /, **value: Any) -> Example:
    """Return an example."""
    return Example(name, comment, value)


REST_OF_IT: Any = {"offset": 2**40 + 3, "max_bytes": 2**20}
EXAMPLES: tuple[tuple[Struct, tuple[Example, ...]], ...] = (
    (
        FRAME,
        (
            named("ping", "A Ping in its frame.", payload=b"\xff"),
            named("json", "A frame whose payload is JSON.", payload=b'{"OffsetFetch":{}}'),
            named("white", "White space before the JSON.", payload=b" \n{}"),
            named("long", "A length that needs two bytes.", payload=b"x" * 300),
        ),
    ),
    (
        PRODUCE,
        (
            named("three", "Three records.", **DEMO, records=HELLO),
            named("none", "No record; it is answered with offset 0.", **DEMO, records=[]),
            named("empty", "Records without bytes, which are stored.", **DEMO, records=[b"", b""]),
            named("utf-8", "A name beyond ASCII.", topic="größe", partition=MAX32, records=[b"a"]),
            named(
                "unnamed",
                "A topic without a name, which can be created.",
                topic="",
                partition=0,
                records=[b"\xff\x00"],
            ),
        ),
    ),
    (
        PRODUCED,
        (
            named("three", "Three records from the start.", base_offset=0, record_count=3),
            named("largest", "The largest numbers.", base_offset=MAX64, record_count=MAX32),
        ),
    ),
    (
        FETCH,
        (
            named("group", "A group's next records.", group="g1", **DEMO, **REST_OF_IT),
            named("no-group", "Records from an offset.", group="", **DEMO, **REST_OF_IT),
            named("nothing", "No bytes at all.", group="", **DEMO, offset=0, max_bytes=0),
            named(
                "largest",
                "The largest numbers.",
                group="g" * 300,
                topic="t",
                partition=MAX32,
                offset=MAX64,
                max_bytes=MAX32,
            ),
        ),
    ),
    (
        FETCHED,
        (
            named(
                "three",
                "Three records, without offsets of their own.",
                records=HELLO,
                next_offset=3,
            ),
            named(
                "none",
                "The end of the log: the offset that was asked for.",
                records=[],
                next_offset=2**40,
            ),
            named("empty", "Records without bytes.", records=[b"", b""], next_offset=MAX64),
        ),
    ),
    (
        COMMIT,
        (
            named("three", "Up to offset 3.", group="g1", **DEMO, offset=3),
            named("largest", "The largest offset.", group="", topic="", partition=0, offset=MAX64),
        ),
    ),
    (COMMITTED, (named("yes", "Done.", success=True), named("no", "Not done.", success=False))),
    (ASK, (named("group", "How far a group is.", group="g1", **DEMO),)),
    (
        ASKED,
        (
            named("one", "An offset.", offset=3),
            named("zero", "Offset 0, which is not none.", offset=0),
            named("none", "Nothing was committed.", offset=None),
            named("largest", "The largest offset.", offset=MAX64),
        ),
    ),
    (
        CREATE,
        (
            named("demo", "Two partitions.", topic="demo", partitions=2),
            named("none", "No partition, which is refused later.", topic="demo", partitions=0),
        ),
    ),
    (CREATED, (named("yes", "Done.", success=True), named("no", "Not done.", success=False))),
    (
        LIST,
        (
            named(
                "all",
                "No fields.",
            ),
        ),
    ),
    (
        LISTED,
        (named("demo", "One topic.", topic="demo", partitions=2),),
    ),
    (
        LISTING,
        (
            named(
                "two",
                "Two topics, by name.",
                topics=[{"topic": "demo", "partitions": 2}, {"topic": "events", "partitions": 1}],
            ),
            named("none", "No topic.", topics=[]),
        ),
    ),
    (DESCRIBE, (named("demo", "One topic.", topic="demo"),)),
    (DESCRIBED, (named("first", "One partition.", partition=0, high_watermark=2**33),)),
    (
        DESCRIPTION,
        (
            named(
                "two",
                "Two partitions.",
                topic="demo",
                partition_count=2,
                partitions=[
                    {"partition": 0, "high_watermark": 0},
                    {"partition": 1, "high_watermark": MAX64},
                ],
            ),
            named(
                "none",
                "A count without partitions.",
                topic="demo",
                partition_count=7,
                partitions=[],
            ),
        ),
    ),
    (DESCRIBE_ONE, (named("first", "One partition.", **DEMO),)),
    (DESCRIPTION_OF_ONE, (named("first", "One partition.", **DEMO, high_watermark=2**33),)),
    (METRICS, (named("all", "No fields."),)),
    (
        MEASURES,
        (
            named("help", "One line.", text="# HELP messages_produced_total Messages\n"),
            named("none", "No text.", text=""),
        ),
    ),
    (PING, (named("ping", "No fields; the answer is the same."),)),
    (
        ERROR,
        tuple(
            named(f"text-{place}", f"Code {code} with its text.", code=code, message=text)
            for place, (code, text) in enumerate(ERRORS)
        ),
    ),
)
"""Each message with its examples; the first is the one that is spoilt."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One binary message of RustLog, with the byte for its type, or a frame around one.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is refused; `reason`, `field` and `offset` say why: it is `short`,",
        "has `trailing` bytes, or a `value` that must not be.",
    ]
    family = Family("rustlog", "RustlogMessage", "RL-01", lenient="RL-01")
    groups = [family.group(struct, examples) for struct, examples in EXAMPLES]
    groups += [_captured(FRAME, captured.FRAMES)]
    groups += [_captured(struct, captured.FRAMES) for struct, _ in EXAMPLES[1:]]
    groups = [each for each in groups if each["tests"]]
    notes = used(NOTES | SEEN, groups)
    return document("rustlog_message", header, notes, groups, SPEC)


def _captured(struct: Struct, frames: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """Return captured frames, or the messages of one kind inside them."""
    family = Family("captured-rustlog", "RustlogMessage", "RL-01", basis="capture")
    rows = [
        (f"{message}-{name}", f"{message}, in its frame.", bytes.fromhex(raw))
        if struct is FRAME
        else (name, f"{message}, as it was sent.", bytes.fromhex(raw)[4:])
        for message, name, raw in frames
        if struct is FRAME or message == struct.name
    ]
    found = group(family.kind, family.seen(struct, rows), message=struct.name)
    return found | {"source": captured.SEEN}
