"""Family ``control_payload``: payloads of control commands."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import u16, u32, u64
from generate.document import ACCEPT, Test, document, error, group, note, shown

NOTES = {
    "Short": note(
        "EDGE_CASE",
        "The payload ends inside a field.",
        "A server that fills in zeros deletes or reads topic 0.",
        "5.1",
    ),
    "Trailing": note(
        "EDGE_CASE",
        "Bytes follow the message.",
        "A server that ignores them accepts messages of versions it does not know.",
        "5.1",
    ),
    "WideNameLength": note(
        "KNOWN_BUG",
        "The name length has 32 bits, as the samples of LWP section 14.4 write it.",
        "A server that reads 16 bits finds a name that starts with two zero bytes.",
        "5.11",
    ),
    "WrongNameLength": note(
        "MODIFIED_PARAMETER",
        "The name length is not the length of the name.",
        "A server that does not notice takes part of a number for the name.",
        "5.11",
    ),
    "NotATruthValue": note(
        "EDGE_CASE",
        "A byte that should be 0 or 1 is neither.",
        "Clients that test for 1 and clients that test for 0 disagree on being let in.",
        "AMB-11",
    ),
}

NAME = "Über-1".encode()
MAX32, MAX64 = 2**32 - 1, 2**64 - 1

TOPIC_ID = ("topic_id", 4)
SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "DeleteTopic": (TOPIC_ID,),
    "GetTopic": (TOPIC_ID,),
    "SetRetention": (TOPIC_ID, ("max_age_secs", 8), ("max_bytes", 8)),
    "Fetch": (TOPIC_ID, ("start_offset", 8), ("max_bytes", 4)),
    "CatchingUp": (("current_max_offset", 8),),
    "Subscribe": (TOPIC_ID, ("start_offset", 8), ("max_batch_bytes", 4), ("consumer_id", 8)),
    "Unsubscribe": (TOPIC_ID, ("consumer_id", 8)),
    "CommitOffset": (TOPIC_ID, ("consumer_id", 8), ("offset", 8)),
    "SubscribeAck": (("consumer_id", 8), ("offset", 8)),
    "CommitAck": (("consumer_id", 8), ("offset", 8)),
    "OffsetForTime": (TOPIC_ID, ("time_ns", 8)),
    "OffsetForTimeResponse": (("offset", 8),),
    "BatchTimes": (TOPIC_ID, ("start_offset", 8), ("end_offset", 8)),
}
"""Fields and sizes of the messages whose length is fixed (LWP sections 5.5 to 5.14)."""

COMMANDS = {
    "CreateTopic": (0x01, "5.3"),
    "DeleteTopic": (0x02, "5.6"),
    "ListTopics": (0x03, "5.4"),
    "GetTopic": (0x04, "5.5"),
    "SetRetention": (0x05, "5.10"),
    "CreateTopicWithRetention": (0x06, "5.11"),
    "GetClusterStatus": (0x07, "16.5"),
    "Authenticate": (0x08, "AMB-11"),
    "AuthenticateResponse": (0x09, "AMB-11"),
    "Fetch": (0x10, "5.8"),
    "CatchingUp": (0x12, "AMB-18"),
    "Subscribe": (0x20, "5.12"),
    "Unsubscribe": (0x21, "5.13"),
    "CommitOffset": (0x22, "5.14"),
    "SubscribeAck": (0x23, "5.12"),
    "CommitAck": (0x24, "5.14"),
    "OffsetForTime": (0x70, "AMB-37"),
    "OffsetForTimeResponse": (0x71, "AMB-37"),
    "CreatePartitionedTopic": (0x72, "AMB-59"),
    "AddPartitions": (0x73, "AMB-59"),
    "DeletePartitionedTopic": (0x74, "AMB-59"),
    "BatchTimes": (0x75, "AMB-61"),
    "BatchTimesResponse": (0x76, "AMB-61"),
    "TopicResponse": (0x80, "5.3"),
    "ClusterStatusResponse": (0x81, "AMB-11"),
    "ErrorResponse": (0xFF, "5.7"),
}
"""Code and section of each command."""

VARIABLE: tuple[tuple[str, str, str, bytes, dict[str, int | bytes | bool]], ...] = (
    ("CreateTopic", "plain", "The name of LWP section 5.3.", b"my-events", {"name": b"my-events"}),
    ("CreateTopic", "utf-8", "A name beyond ASCII.", NAME, {"name": NAME}),
    ("CreateTopic", "longest", "255 bytes.", b"n" * 255, {"name": b"n" * 255}),
    (
        "CreateTopicWithRetention",
        "plain",
        "A topic that keeps a day and a gigabyte.",
        u16(6) + b"events" + u64(86400) + u64(2**30),
        {"name": b"events", "max_age_secs": 86400, "max_bytes": 2**30},
    ),
    (
        "CreateTopicWithRetention",
        "no-limits",
        "A topic without limits.",
        u16(1) + b"n" + u64(0) + u64(0),
        {"name": b"n", "max_age_secs": 0, "max_bytes": 0},
    ),
    (
        "CreateTopicWithRetention",
        "longest",
        "255 bytes of name and the largest limits.",
        u16(255) + b"n" * 255 + u64(MAX64) + u64(MAX64),
        {"name": b"n" * 255, "max_age_secs": MAX64, "max_bytes": MAX64},
    ),
    (
        "CreatePartitionedTopic",
        "plain",
        "Eight partitions that keep a day and a gigabyte each.",
        u16(6) + b"orders" + u32(8) + b"\x01" + u64(86400) + u64(2**30),
        {
            "name": b"orders",
            "partitions": 8,
            "partitioner": 1,
            "max_age_secs": 86400,
            "max_bytes": 2**30,
        },
    ),
    (
        "CreatePartitionedTopic",
        "siphash",
        "Keys go where Fluvio's clients put them.",
        u16(1) + b"n" + u32(1) + b"\x02" + u64(0) + u64(0),
        {"name": b"n", "partitions": 1, "partitioner": 2, "max_age_secs": 0, "max_bytes": 0},
    ),
    (
        "AddPartitions",
        "plain",
        "Sixteen from now on.",
        u16(6) + b"orders" + u32(16),
        {"name": b"orders", "partitions": 16},
    ),
    ("DeletePartitionedTopic", "plain", "All of it.", b"orders", {"name": b"orders"}),
    ("ListTopics", "plain", "No payload.", b"", {}),
    ("GetClusterStatus", "plain", "No payload.", b"", {}),
    ("Authenticate", "plain", "A token.", b"secret", {"token": b"secret"}),
    ("Authenticate", "empty", "No token.", b"", {"token": b""}),
    ("AuthenticateResponse", "yes", "Accepted.", b"\x01ok", {"ok": True, "message": b"ok"}),
    ("AuthenticateResponse", "no", "Refused.", b"\x00no", {"ok": False, "message": b"no"}),
    ("AuthenticateResponse", "silent", "No message.", b"\x01", {"ok": True, "message": b""}),
    (
        "BatchTimesResponse",
        "plain",
        "Two batches, and nothing more to ask for.",
        u64(600) + u32(32) + u64(0) + u64(10**18) + u64(300) + u64(10**18 + 1),
        {
            "next_offset": 600,
            "bytes_returned": 32,
            "times": u64(0) + u64(10**18) + u64(300) + u64(10**18 + 1),
        },
    ),
    (
        "BatchTimesResponse",
        "empty",
        "No batch in the range.",
        u64(MAX64) + u32(0),
        {"next_offset": MAX64, "bytes_returned": 0, "times": b""},
    ),
    ("TopicResponse", "plain", "A deletion.", b'{"deleted":1}', {"body": b'{"deleted":1}'}),
    ("ClusterStatusResponse", "plain", "An object.", b"{}", {"body": b"{}"}),
    ("ErrorResponse", "text", "Text.", b"Unknown topic", {"body": b"Unknown topic"}),
)
"""Message, name, comment, bytes and fields of the messages whose length varies."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The payload of a control command as bytes.",
        "A valid one is read as `fields`, exactly to its end.",
        "An invalid one is answered with `code` by a strict receiver; `field` and `offset` say",
        "where it stops making sense.",
    ]
    groups = [
        group("ControlPayload", _tests(name), message=name, command=COMMANDS[name][0])
        for name in COMMANDS
    ]
    return document("control_payload", header, NOTES, groups)


def _tests(message: str) -> list[Test]:
    tests = list(_fixed(message)) if message in SIZES else list(_variable(message))
    return [*tests, *_special(message)]


def _fixed(message: str) -> Iterator[Test]:
    fields = SIZES[message]
    data = b""
    for name, values, comment in (
        ("zeros", [0] * len(fields), "Zero in every field."),
        ("ones", [256**size - 1 for _, size in fields], "The largest number in every field."),
        (
            "numbers",
            [_distinct(i, n) for i, (_, n) in enumerate(fields)],
            "Other bytes everywhere.",
        ),
    ):
        pairs = zip(fields, values, strict=True)
        data = b"".join(value.to_bytes(size, "little") for (_, size), value in pairs)
        given = {field: value for (field, _), value in zip(fields, values, strict=True)}
        yield _valid(message, name, comment, data, given)
    yield from _cuts(message, "numbers", data)
    yield _trailing(message, "numbers", data)


def _distinct(place: int, size: int) -> int:
    """A number whose bytes differ from each other and from those of other fields."""
    return int.from_bytes(bytes(0x10 * (place + 1) + byte for byte in range(size)), "big")


def _cuts(message: str, pair: str, data: bytes) -> Iterator[Test]:
    """Cut a message before each field and inside it."""
    start = 0
    for field, size in SIZES[message]:
        for length in dict.fromkeys((start, start + size - 1)):
            yield _cut(message, pair, data, length, field=field, offset=start)
        start += size


def _cut(message: str, pair: str, data: bytes, length: int, *, field: str, offset: int) -> Test:
    comment = f"The first {length} of {len(data)} bytes."
    fault = {"kind": "truncate", "length": length}
    test = _test(message, f"cut-at-{length}", comment, data[:length])
    return test | _invalid(message, pair, fault, error(4, field, offset), "Short")


def _trailing(message: str, pair: str, data: bytes) -> Test:
    fault = {"kind": "append", "bytes": "00"}
    test = _test(message, f"{pair}-and-a-byte", "One byte after the message.", data + b"\0")
    return test | _invalid(message, pair, fault, error(4, "", len(data)), "Trailing")


def _variable(message: str) -> Iterator[Test]:
    for of, name, comment, data, fields in VARIABLE:
        if of == message:
            yield _valid(message, name, comment, data, fields)


def _special(message: str) -> Iterator[Test]:
    if message in {"ListTopics", "GetClusterStatus"}:
        yield _trailing(message, "plain", b"")
    if message == "AuthenticateResponse":
        yield _cut(message, "yes", b"\x01ok", 0, field="ok", offset=0)
        fault = {"kind": "splice", "offset": 0, "remove": 1, "insert": "02"}
        test = _test(message, "ok-is-2", "Neither 0 nor 1.", b"\x02ok")
        yield test | _invalid(message, "yes", fault, error(4, "ok", 0), "NotATruthValue")
    if message == "CreateTopicWithRetention":
        yield from _named(message)
    if message in CUT:
        yield from _cut_in_fields(message)


def _named(message: str) -> Iterator[Test]:
    whole = next(row[3] for row in VARIABLE if row[:2] == (message, "plain"))
    for length, field, offset in (
        (0, "name_length", 0),
        (1, "name_length", 0),
        (2, "name", 2),
        (7, "name", 2),
        (8, "max_age_secs", 8),
        (15, "max_age_secs", 8),
        (16, "max_bytes", 16),
        (23, "max_bytes", 16),
    ):
        yield _cut(message, "plain", whole, length, field=field, offset=offset)
    yield _trailing(message, "plain", whole)
    for name, insert, remove, outcome, flag, comment in (
        ("wide-length", u32(6), 2, error(4, "", 24), "WideNameLength", "A 32-bit name length."),
        ("length-5", u16(5), 2, error(4, "", 23), "WrongNameLength", "One too small."),
        ("length-7", u16(7), 2, error(4, "max_bytes", 17), "WrongNameLength", "One too large."),
        ("length-max", u16(65535), 2, error(4, "name", 2), "WrongNameLength", "Far too large."),
    ):
        fault = {"kind": "splice", "offset": 0, "remove": remove, "insert": insert.hex()}
        test = _test(message, name, comment, insert + whole[remove:])
        yield test | _invalid(message, "plain", fault, outcome, flag)


CUT: dict[str, tuple[tuple[int, str, int], ...]] = {
    "CreatePartitionedTopic": (
        (0, "name_length", 0),
        (1, "name_length", 0),
        (7, "name", 2),
        (8, "partitions", 8),
        (11, "partitions", 8),
        (12, "partitioner", 12),
        (13, "max_age_secs", 13),
        (20, "max_age_secs", 13),
        (21, "max_bytes", 21),
        (28, "max_bytes", 21),
    ),
    "AddPartitions": (
        (1, "name_length", 0),
        (7, "name", 2),
        (8, "partitions", 8),
        (11, "partitions", 8),
    ),
    "BatchTimesResponse": (
        (0, "next_offset", 0),
        (7, "next_offset", 0),
        (8, "bytes_returned", 8),
        (11, "bytes_returned", 8),
        (12, "times", 12),
        (43, "times", 12),
    ),
}
"""Where messages with a part of any length are cut, and the field that is cut then."""


def _cut_in_fields(message: str) -> Iterator[Test]:
    whole = next(row[3] for row in VARIABLE if row[:2] == (message, "plain"))
    for length, field, offset in CUT[message]:
        yield _cut(message, "plain", whole, length, field=field, offset=offset)
    yield _trailing(message, "plain", whole)


def _invalid(
    message: str, pair: str, fault: dict[str, Any], outcome: dict[str, Any], flag: str
) -> Test:
    return {
        "basis": "decision",
        "pairOf": f"control-{message}-{pair}",
        "fault": fault,
        "result": "invalid",
        "outcome": outcome,
        "flags": [flag],
    }


def _valid(
    message: str, name: str, comment: str, data: bytes, fields: dict[str, int | bytes | bool]
) -> Test:
    sizes = SIZES.get(message, (("max_age_secs", 8), ("max_bytes", 8), ("next_offset", 8)))
    wide = [field for field, size in sizes if size == 8]
    return _test(message, name, comment, data) | {
        "fields": shown(fields, wide),
        "result": "valid",
        "outcome": ACCEPT,
    }


def _test(message: str, name: str, comment: str, data: bytes) -> Test:
    return {
        "id": f"control-{message}-{name}",
        "comment": comment,
        "clause": f"{COMMANDS[message][1]}/{message}",
        "level": "MUST",
        "basis": "table",
        "bytes": data.hex(),
        "flags": [],
    }
