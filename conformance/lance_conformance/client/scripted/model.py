"""The well-behaved server: what a script departs from."""

import json
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lance_conformance.dialect import Dialect
from lance_conformance.wire.control import END_OFFSET, KEEPALIVE, control
from lance_conformance.wire.frame import Flag, Frame
from lance_conformance.wire.tlv import boundaries, record

TOPIC_ID = 7
TOPIC_NAME = "kit-topic"
CREATED_AT = 1_706_918_400
TOKEN = "kit-token-9f"  # noqa: S105 - sent to nobody but this server
CODES = {
    "create": 0x01, "delete": 0x02, "list": 0x03, "get": 0x04, "retention": 0x05,
    "create-limited": 0x06, "status": 0x07, "auth": 0x08, "fetch": 0x10, "subscribe": 0x20,
    "unsubscribe": 0x21, "commit": 0x22,
}  # fmt: skip
"""The commands that the server knows, by the names of triggers."""
NAMES = {code: name for name, code in CODES.items()}
TOPIC_RESPONSE, ERROR_RESPONSE, FETCH_RESPONSE = 0x80, 0xFF, 0x11
SUBSCRIBE_ACK, COMMIT_ACK, AUTH_RESPONSE, STATUS_RESPONSE = 0x23, 0x24, 0x09, 0x81
UNKNOWN_COMMAND = 0x04
_END = END_OFFSET.to_bytes(8, "little")
_CONTROL, _KEEPALIVE, _BATCH_MODE = int(Flag.CONTROL), int(Flag.KEEPALIVE), int(Flag.BATCH_MODE)


def trigger_of(frame: Frame) -> str:
    """What a client's frame is called in scripts; empty for what no client sends."""
    if frame.flags & _CONTROL:
        asks_for_the_end = frame.batch_id == CODES["fetch"] and frame.payload[4:12] == _END
        return "tail" if asks_for_the_end else NAMES.get(frame.batch_id, "")
    if frame.flags & _KEEPALIVE:
        return "keepalive"
    return "ingest" if frame.flags & _BATCH_MODE else ""


@dataclass(slots=True)
class Model:
    """What the server knows; one for each case.

    Args:
        dialect: The dialect it speaks.
        records: What the topic holds at the beginning.
        topic_id: Its id.
        base: The offset of its first record.
        torn: Each FetchResponse has one record, and so many bytes of the next one.
        cuts: Each FetchResponse has as many bytes as were asked for, wherever that is.

    Attributes:
        log: The topic's data, from the base on.
        batches: Ids and contents of batches that are stored, so that none is stored twice.
        topics: Names by id.
        committed: Where each consumer stopped.
    """

    dialect: Dialect
    records: Sequence[tuple[int, bytes]] = ()
    topic_id: int = TOPIC_ID
    base: int = 0
    torn: int = 0
    cuts: bool = False
    log: bytes = b""
    batches: set[tuple[int, int, bytes]] = field(default_factory=set)
    topics: dict[int, str] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        """Fill the topic."""
        self.log = b"".join(record(value, kind) for kind, value in self.records)
        self.topics[self.topic_id] = TOPIC_NAME

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.base + len(self.log)

    def answer(self, frame: Frame) -> list[Frame]:
        """The right answer to a client's frame."""
        name = trigger_of(frame)
        if name == "keepalive":
            return [KEEPALIVE]
        if name == "ingest":
            return [self._ingest(frame)]
        handler = _HANDLERS.get(name)
        if handler is None:
            return [self.error(UNKNOWN_COMMAND, "Invalid command")]
        try:
            return handler(self, frame.payload)
        except (struct.error, UnicodeDecodeError):
            return [self.error(UNKNOWN_COMMAND, "Invalid payload")]

    def error(self, code: int, text: str, details: Mapping[str, Any] | None = None) -> Frame:
        """An ErrorResponse in the form of the dialect (AMB-10)."""
        if self.dialect.errors == "text":
            return control(ERROR_RESPONSE, text.encode())
        body: dict[str, Any] = {"code": code, "message": text}
        return _json(ERROR_RESPONSE, body | ({"details": dict(details)} if details else {}))

    def _ingest(self, frame: Frame) -> Frame:
        key = (frame.batch_id, frame.topic_id, frame.payload)
        if key not in self.batches:
            self.batches.add(key)
            self.log += frame.payload
        return Frame(flags=Flag.ACK, batch_id=frame.batch_id)

    def body(self, topic_id: int) -> dict[str, Any]:
        """What the server tells of a topic."""
        body: dict[str, Any] = {"id": topic_id, "name": self.topics[topic_id]}
        return body | {"created_at": CREATED_AT}

    def fetched(self, start: int, max_bytes: int) -> bytes:
        """The payload of a FetchResponse: whole records, or a part of one that is too large."""
        start = max(start, self.base)
        if self.cuts:
            return self._cut(start, start + max_bytes)
        data = self.log[start - self.base : start - self.base + max_bytes]
        ends = boundaries(data)
        end = ends[-1] if not self.torn or len(ends) == 1 else ends[1] + self.torn
        return fetch_payload(start, data[:end] or data)

    def pushes(self, topic: int, start: int, max_bytes: int) -> Iterator[Frame]:
        """What a subscription brings from an offset to the end; nothing of no bytes at a time."""
        start = max(start, self.base)
        while max_bytes and start < self.end:
            starts, most = self.record_starts(), start - self.base + max_bytes
            last = starts[bisect_right(starts, most) - 1] + self.base
            end = last if last > start else start + max_bytes
            yield _pushed(self._cut(start, end), topic)
            start = end

    def first_pushes(self, request: Frame, answer: Frame) -> Iterator[Frame]:
        """What comes with the right answer to a Subscribe; nothing with any other answer."""
        if answer.batch_id != SUBSCRIBE_ACK or self.dialect.name == "deployed":
            return
        topic, _, max_bytes, _ = struct.unpack("<IQIQ", request.payload)
        yield from self.pushes(topic, int.from_bytes(answer.payload[8:], "little"), max_bytes)

    def _cut(self, start: int, end: int) -> bytes:
        """The payload of a FetchResponse from one byte to another, which may be inside records."""
        starts, first, last = self.record_starts(), start - self.base, end - self.base
        data = self.log[first:last]
        at = bisect_left(starts, first)
        whole = bisect_right(starts, first + len(data)) - at - 1
        count = whole if starts[at : at + 1] == [first] else 0
        return struct.pack("<QII", start + len(data), len(data), count) + data

    def record_starts(self) -> Sequence[int]:
        """Where the records of the log begin and the last one ends, as far as it has grown."""
        known = self._starts
        if known[-1] != len(self.log):
            known += [known[-1] + end for end in boundaries(self.log[known[-1] :])[1:]]
        return known

    def _taken(self, name: str) -> int | None:
        return next((known for known, taken in self.topics.items() if taken == name), None)

    def create(self, name: str) -> int | None:
        """A new topic's id, None when the name is taken in a dialect that says so."""
        known = self._taken(name)
        if known is not None:
            return None if self.dialect.errors == "json" else known
        self.topics[max(self.topics) + 1] = name
        return max(self.topics)


def fetch_payload(start: int, data: bytes) -> bytes:
    """A FetchResponse payload of whole records (section 5.9)."""
    count = len(boundaries(data)) - 1
    return struct.pack("<QII", start + len(data), len(data), count) + data


def push(offset: int, data: bytes, topic: int) -> Frame:
    """A FetchResponse that a subscription brings (AMB-21)."""
    return _pushed(fetch_payload(offset, data), topic)


def _pushed(payload: bytes, topic: int) -> Frame:
    return Frame(flags=Flag.CONTROL, batch_id=FETCH_RESPONSE, topic_id=topic, payload=payload)


def _json(command: int, body: Mapping[str, Any]) -> Frame:
    return control(command, json.dumps(body).encode())


def _create(model: Model, payload: bytes) -> list[Frame]:
    topic_id = model.create(payload.decode())
    if topic_id is None:
        return [model.error(0x11, f"Topic '{payload.decode()}' already exists")]
    return [_json(TOPIC_RESPONSE, model.body(topic_id))]


def _create_limited(model: Model, payload: bytes) -> list[Frame]:
    (size,) = struct.unpack_from("<H", payload)
    age, limit = struct.unpack_from("<QQ", payload, 2 + size)
    topic_id = model.create(payload[2 : 2 + size].decode())
    if topic_id is None:
        return [model.error(0x11, "Topic 'it' already exists")]
    body = model.body(topic_id) | {"max_age_secs": age, "max_bytes": limit}
    return [_json(TOPIC_RESPONSE, body)]


def _list(model: Model, _payload: bytes) -> list[Frame]:
    return [_json(TOPIC_RESPONSE, {"topics": [model.body(each) for each in model.topics]})]


def _topic_of(payload: bytes) -> int:
    number: int = struct.unpack_from("<I", payload)[0]
    return number


def _get(model: Model, payload: bytes) -> list[Frame]:
    topic_id = _topic_of(payload)
    if topic_id not in model.topics:
        return [model.error(0x10, "Topic not found")]
    return [_json(TOPIC_RESPONSE, model.body(topic_id))]


def _delete(model: Model, payload: bytes) -> list[Frame]:
    topic_id = _topic_of(payload)
    if model.topics.pop(topic_id, None) is None:
        return [model.error(0x10, "Topic not found")]
    return [_json(TOPIC_RESPONSE, {"deleted": topic_id})]


def _retention(model: Model, payload: bytes) -> list[Frame]:
    topic_id, age, limit = struct.unpack("<IQQ", payload)
    if topic_id not in model.topics:
        return [model.error(0x10, "Topic not found")]
    return [_json(TOPIC_RESPONSE, {"topic_id": topic_id, "max_age_secs": age, "max_bytes": limit})]


def _status(_model: Model, _payload: bytes) -> list[Frame]:
    body = {"is_leader": True, "node_count": 1, "healthy_nodes": 1, "quorum_available": True}
    return [_json(STATUS_RESPONSE, body)]


def _auth(_model: Model, payload: bytes) -> list[Frame]:
    accepted = payload == TOKEN.encode()
    return [control(AUTH_RESPONSE, b"\x01" if accepted else b"\x00Invalid token")]


def _fetch(model: Model, payload: bytes) -> list[Frame]:
    topic_id, start, max_bytes = struct.unpack("<IQI", payload)
    end = model.end
    if topic_id not in model.topics:
        return [model.error(0x10, "Topic not found")]
    if start in {END_OFFSET, end}:
        return [control(FETCH_RESPONSE, fetch_payload(end, b""))]
    if start > end:
        return [control(0x12, struct.pack("<Q", end))]
    return [control(FETCH_RESPONSE, model.fetched(start, max_bytes))]


def _subscribe(model: Model, payload: bytes) -> list[Frame]:
    topic_id, start, _, consumer = struct.unpack("<IQIQ", payload)
    if topic_id not in model.topics:
        return [model.error(0x10, "Topic not found")]
    start = model.committed.get(consumer, 0) if start == 0 else min(start, model.end)
    return [control(SUBSCRIBE_ACK, struct.pack("<QQ", consumer, start))]


def _unsubscribe(_model: Model, payload: bytes) -> list[Frame]:
    _topic_id, consumer = struct.unpack("<IQ", payload)
    return [Frame(flags=Flag.ACK, batch_id=consumer)]


def _commit(model: Model, payload: bytes) -> list[Frame]:
    _topic_id, consumer, offset = struct.unpack("<IQQ", payload)
    model.committed[consumer] = offset
    return [control(COMMIT_ACK, struct.pack("<QQ", consumer, offset))]


_HANDLERS = {
    "create": _create, "create-limited": _create_limited, "list": _list, "get": _get,
    "delete": _delete, "retention": _retention, "status": _status, "auth": _auth,
    "fetch": _fetch, "tail": _fetch, "subscribe": _subscribe, "unsubscribe": _unsubscribe,
    "commit": _commit,
}  # fmt: skip
