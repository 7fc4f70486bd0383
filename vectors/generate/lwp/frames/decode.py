"""Family ``frame_decode``: one frame as bytes, and what a receiver does with it."""

from typing import Any

from generate.codec.wire import HEADER, Frame, record, u16, u32, u64
from generate.document import ACCEPT, Test, document, group, shown
from generate.lwp.frames import captured
from generate.lwp.frames.faults import Maker
from generate.lwp.frames.notes import NOTES

HELLO, WORLD = record(b"hello"), record(b"world")
MAX64, MAX32 = 2**64 - 1, 2**32 - 1
NOON = 1_706_918_400_000_000_000
"""3 February 2024 in nanoseconds, the moment the specification's examples use."""

LZ4_HELLO = bytes.fromhex("04224d18 6040 82 0a000080 0105000000 68656c6c6f 00000000")
"""One LZ4 frame whose one block is stored uncompressed: a record that says hello."""

DIALECTS = {
    "specified": {"checksum": "crc32c", "maxPayload": 2**24 + 5, "strict": True},
    "deployed": {"checksum": "ieee", "maxPayload": 2**24, "strict": False},
}


def _ingest(payload: bytes, count: int, **fields: int) -> dict[str, Any]:
    given = {"flags": 0x04, "batch_id": 1, "timestamp_ns": NOON, "topic_id": 1}
    return given | {"record_count": count, "payload": payload} | fields


def _control(command: int, payload: bytes = b"") -> dict[str, Any]:
    return {"flags": 0x40, "batch_id": command, "payload": payload}


JSON_ERROR = b'{"code":16,"message":"Topic 42 not found"}'
JSON_TOPIC = b'{"created_at":1706918400,"id":1,"name":"my-events"}'

VALID = """
keepalive               KEEPALIVE     4.3/form        A Keepalive.
backpressure            BACKPRESSURE  4.4/form        A Backpressure.
ack                     ACK           4.2/form        The Ack of batch 1.
ack-max                 ACK           4.2/form        The Ack of the largest batch id.
ingest                  INGEST        4.1/form        A batch of one record.
ingest-two              INGEST        8.6/example     The two records of LWP section 8.6.
ingest-default-topic    INGEST        6.4/default     A batch for topic 0.
ingest-largest-topic    INGEST        3.2/topic-id    A batch for the largest topic id.
ingest-largest-batch-id INGEST        3.2/batch-id    A batch with the largest id.
ingest-time-0           INGEST        3.2/timestamp   A batch from the epoch.
ingest-time-max         INGEST        3.2/timestamp   A batch from the last moment there is.
ingest-empty-record     INGEST        8.1/length      A record without a value.
ingest-compressed       INGEST        4.1/flags       A batch in one LZ4 frame.
list-topics             CONTROL       5.4/form        ListTopics, which has no payload.
create-topic            CONTROL       5.3/form        CreateTopic as in LWP section 5.3.
get-topic               CONTROL       5.5/form        GetTopic of topic 1.
create-with-retention   CONTROL       5.11/form       A topic that keeps a day.
cluster-status          CONTROL       16.5/form       GetClusterStatus.
fetch                   CONTROL       5.8/form        Fetch of topic 1 from its start.
fetch-end               CONTROL       AMB-06/end      Fetch at 2^64-1, which asks for the end.
fetch-response          CONTROL       5.9/form        An answer with one record.
catching-up             CONTROL       AMB-18/form     CatchingUp at offset 10.
subscribe               CONTROL       5.12/form       Subscribe to topic 1.
unsubscribe             CONTROL       5.13/form       Unsubscribe from topic 1.
commit-offset           CONTROL       5.14/form       A commit at offset 10.
topic-response          CONTROL       5.3/response    A TopicResponse.
error-json              CONTROL       12.1/form       An ErrorResponse in JSON.
error-text              CONTROL       5.7/form        An ErrorResponse in text.
unknown-command         CONTROL       5.1/command     A command nobody knows; its frame is sound.
"""
"""Id, kind, clause and comment of each valid frame."""

FIELDS: dict[str, dict[str, Any]] = {
    "keepalive": {"flags": 0x20},
    "backpressure": {"flags": 0x10},
    "ack": {"flags": 0x08, "batch_id": 1},
    "ack-max": {"flags": 0x08, "batch_id": MAX64},
    "ingest": _ingest(HELLO, 1),
    "ingest-two": _ingest(HELLO + WORLD, 2),
    "ingest-default-topic": _ingest(HELLO, 1, topic_id=0),
    "ingest-largest-topic": _ingest(HELLO, 1, topic_id=MAX32),
    "ingest-largest-batch-id": _ingest(HELLO, 1, batch_id=MAX64),
    "ingest-time-0": _ingest(HELLO, 1, timestamp_ns=0),
    "ingest-time-max": _ingest(HELLO, 1, timestamp_ns=MAX64),
    "ingest-empty-record": _ingest(record(b""), 1),
    "ingest-compressed": _ingest(LZ4_HELLO, 1, flags=0x05),
    "list-topics": _control(0x03),
    "create-topic": _control(0x01, b"my-events"),
    "get-topic": _control(0x04, u32(1)),
    "create-with-retention": _control(0x06, u16(6) + b"events" + u64(86400) + u64(0)),
    "cluster-status": _control(0x07),
    "fetch": _control(0x10, u32(1) + u64(0) + u32(65536)),
    "fetch-end": _control(0x10, u32(1) + u64(MAX64) + u32(0)),
    "fetch-response": _control(0x11, u64(10) + u32(10) + u32(1) + HELLO),
    "catching-up": _control(0x12, u64(10)),
    "subscribe": _control(0x20, u32(1) + u64(0) + u32(65536) + u64(7)),
    "unsubscribe": _control(0x21, u32(1) + u64(7)),
    "commit-offset": _control(0x22, u32(1) + u64(7) + u64(10)),
    "topic-response": _control(0x80, JSON_TOPIC),
    "error-json": _control(0xFF, JSON_ERROR),
    "error-text": _control(0xFF, b"Topic not found"),
    "unknown-command": _control(0x7F, b"?"),
}
"""The fields of each, as far as they are not 0."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "One frame as bytes, and what a receiver of its dialect does with it.",
        "accept: it is read as `fields`.",
        "close: the connection ends, for `reason`; if there is a `code`, an error goes first.",
        "error: it is answered with `code`.",
        "wait: it is the beginning of a frame, and `missing` more bytes are needed to go on.",
    ]
    groups = [*(_group(name, facts) for name, facts in DIALECTS.items()), _captured()]
    return document("frame_decode", header, NOTES, groups)


def _group(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    algorithm = facts["checksum"]
    frames = {each: Frame(algorithm=algorithm, **fields) for each, fields in FIELDS.items()}
    rows = [row.split(maxsplit=3) for row in VALID.strip().splitlines()]
    tests = [_valid(name, frames[row[0]], *row) for row in rows]
    maker = Maker(name, algorithm, facts["strict"], facts["maxPayload"], frames)
    tests += maker.everything()
    return group("FrameDecode", tests, receiver="any", dialect={"name": name, **facts})


def _captured() -> dict[str, Any]:
    """Return frames of the published client, which speaks the deployed dialect."""
    facts = {"name": "deployed", **DIALECTS["deployed"]}
    tests = [_seen(*row) for row in captured.FRAMES]
    found = group("FrameDecode", tests, receiver="any", dialect=facts)
    return found | {"source": captured.SENT}


def _seen(name: str, kind: str, clause: str, raw: str) -> Test:
    data, values, place = bytes.fromhex(raw), {}, 0
    for each, size in HEADER:
        part, place = data[place : place + size], place + size
        values[each] = part if each == "magic" else int.from_bytes(part, "little")
    again = Frame(
        algorithm="ieee",
        payload=data[place:],
        **{each: values[each] for each in ("flags", "batch_id", "timestamp_ns", "record_count")},
        topic_id=values["topic_id"],
    )
    assert again.encode() == data, name
    return _valid(
        "captured-lwp", again, name, kind, clause, "As the published client sends it."
    ) | {"basis": "capture"}


def _valid(dialect: str, frame: Frame, *row: str) -> Test:
    name, kind, clause, comment = row
    return {
        "id": f"{dialect}-{name}",
        "comment": comment,
        "clause": clause,
        "level": "MUST",
        "basis": "decision" if clause.startswith("AMB") else "table",
        "bytes": frame.encode().hex(),
        "fields": {"kind": kind, **shown(frame.values())},
        "result": "valid",
        "outcome": ACCEPT,
        "flags": [],
    }
