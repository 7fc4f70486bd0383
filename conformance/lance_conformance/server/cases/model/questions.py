"""Questions of one frame and one answer, with the answers that are right at that moment."""

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from lance_conformance.engine.expectations import Allowed
from lance_conformance.server.cases.combined.history import compressed
from lance_conformance.server.cases.model.facts import EVERYWHERE, Facts, TopicFacts
from lance_conformance.server.consumers import commit_ack
from lance_conformance.server.expect import ack, answer, catching_up, keepalive, topic_response
from lance_conformance.wire.codes import ANY_ERROR, ErrorCode
from lance_conformance.wire.consumers import (
    CLUSTER_STATUS,
    commit_offset,
    offset_for_time,
    subscribe,
)
from lance_conformance.wire.control import (
    END_OFFSET,
    KEEPALIVE,
    LIST_TOPICS,
    TIMESTAMP,
    control,
    create_topic,
    delete_topic,
    fetch,
    get_topic,
    ingest,
    read_json,
    set_retention,
)
from lance_conformance.wire.frame import Command, Flag, Frame
from lance_conformance.wire.tlv import boundaries, record

SIZES = (0, 1, 7, 20, 20, 20, 251, 256, 4096, 70_000)
"""Bytes of a value."""
TYPES = (0x01, 0x01, 0x01, 0x05, 0x12, 0x80, 0xA5, 0xFE)
MORE_TYPES = (*TYPES, 0x06, 0x0F, 0x13, 0x7F)
"""Those that nobody has defined, too."""
KINDS = Flag.BATCH_MODE | Flag.ACK | Flag.BACKPRESSURE | Flag.KEEPALIVE | Flag.CONTROL
NULL, NULLS = 0xFF, 0.2
FEW = 9
"""Records of a batch that may be large."""
PACKED = 0.25
"""How many batches are compressed, where they may be."""
TIMES = (TIMESTAMP, TIMESTAMP + 1, 1, 2**63 + 5)
UNMENDED = 0.2
FAR = 2**62
"""Nanoseconds: a time after all records."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer.

    Attributes:
        words: What is asked, for the report.
        frame: The question.
        allowed: What may come.
        judge: Looks closer at what came.
        fault: The field in which the question is wrong on purpose.
    """

    words: str
    frame: Frame
    allowed: tuple[Allowed, ...]
    judge: Callable[[Frame], None] = lambda _: None
    fault: str = ""


Question = Callable[[Facts], Exchange | None]


# -- batches ---------------------------------------------------------------------------------------


def _payload(facts: Facts) -> tuple[bytes, int]:
    """Records of several types and sizes, and how many; in some places a Null."""
    rng, types = facts.rng, MORE_TYPES if facts.strict else TYPES
    null = record(b"", NULL) if facts.strict and rng.random() < NULLS else b""
    count = rng.choice((1, 1, 2, 3, 9, 40))
    sizes = SIZES if count < FEW else SIZES[:6]
    values = (record(rng.randbytes(rng.choice(sizes)), rng.choice(types)) for _ in range(count))
    return b"".join(values) + null, count + bool(null)


def _batch(facts: Facts, log: TopicFacts) -> Frame:
    """A batch that was not sent before; its id is small, or one that is known everywhere."""
    payload, count = _payload(facts)
    if facts.rng.random() < 0.5:
        facts.now.last += 1
        batch_id = facts.now.last
    else:
        facts.nonce += facts.rng.choice((1, 1, 256))
        batch_id = facts.nonce
    frame = ingest(log.topic.id, batch_id, [])
    frame = replace(
        frame, payload=payload, record_count=count, timestamp_ns=facts.rng.choice(TIMES)
    )
    pack = facts.mixed and facts.can("lz4") and facts.rng.random() < PACKED
    return _packed(facts, frame) if pack else frame


def _packed(facts: Facts, frame: Frame) -> Frame:
    """The same batch, compressed."""
    packed = compressed(frame)
    facts.contents[packed.payload] = frame.payload
    return packed


def store(facts: Facts) -> Exchange | None:
    """A batch is stored."""
    log = facts.log(open_only=True)
    return None if log is None else store_in(facts, log)


def store_in(facts: Facts, log: TopicFacts) -> Exchange:
    """A batch is stored in one topic."""
    frame = _mended(facts, log) or _batch(facts, log)
    facts.stored(log, frame)
    facts.sent.append(frame)
    words = f"store {frame.record_count} records in {log.topic.id}"
    return Exchange(words, frame, (ack(frame.batch_id, "4.2/batch-id"),))


def _mended(facts: Facts, log: TopicFacts) -> Frame | None:
    """The batch that was refused on this connection, without its fault and under the same id."""
    frame, facts.now.refused = facts.now.refused, None
    if frame is None or frame.topic_id != log.topic.id or facts.rng.random() < UNMENDED:
        return None
    if frame.batch_id < EVERYWHERE:
        facts.now.last = max(facts.now.last, frame.batch_id)
    else:
        facts.nonce = max(facts.nonce, frame.batch_id)
    return frame


def copy(facts: Facts) -> Exchange | None:
    """A batch of another topic, also of one that was deleted, is another batch here."""
    log = facts.log(open_only=True)
    others = [
        frame for frame in facts.sent
        if log and frame.topic_id != log.topic.id and frame.batch_id >= EVERYWHERE
    ]  # fmt: skip
    if log is None or not others:
        return None
    frame = replace(facts.rng.choice(others), topic_id=log.topic.id)
    if any(frame.batch_id == known.batch_id for known, _ in log.batches):
        return None
    facts.stored(log, frame)
    words = f"send batch {frame.batch_id:#x} of another topic to {log.topic.id}"
    return Exchange(words, frame, (ack(frame.batch_id, "4.2/all-acked"),))


def repeat(facts: Facts) -> Exchange | None:
    """A batch that was stored is sent again: stored again only where its id means another one."""
    log = facts.log(open_only=True)
    if log is None or not log.batches:
        return None
    frame, _sender = facts.rng.choice(log.batches)
    own = facts.now.known.get((log.topic.id, frame.batch_id))
    words = f"repeat batch {frame.batch_id:#x} of {log.topic.id}"
    if own is None and frame.batch_id in {batch_id for _, batch_id in facts.now.known}:
        return None
    if own is not None and own != frame:
        return None
    if own is None and frame.batch_id < EVERYWHERE:
        facts.stored(log, frame)
        facts.now.last = max(facts.now.last, frame.batch_id)
        return Exchange(words, frame, (ack(frame.batch_id, "10.4/other-producer"),))
    allowed = [ack(frame.batch_id, "10.4/retry-elsewhere")]
    if own is not None:
        allowed.append(facts.ctx.error(*ANY_ERROR, cite="10.4/retry"))
    return Exchange(words, frame, tuple(allowed))


def conflict(facts: Facts) -> Exchange | None:
    """Another batch under an id of the connection is refused."""
    log = facts.log(open_only=True)
    own = [frame for (topic, _), frame in facts.now.known.items() if log and topic == log.topic.id]
    if log is None or not own:
        return None
    payload, count = _payload(facts)
    old = facts.rng.choice(own)
    flags = old.flags & ~Flag.COMPRESSED
    frame = replace(old, payload=payload, record_count=count, flags=flags)
    if frame.payload == facts.contents.get(old.payload, old.payload):
        return None
    refused = facts.ctx.error(ErrorCode.INVALID_PAYLOAD, cite="10.4/unique")
    words = f"another batch {old.batch_id:#x} to {log.topic.id}"
    return Exchange(words, frame, (refused,), _names(facts, frame), "payload")


FAULTS: Sequence[tuple[str, Callable[[Frame], Frame]]] = (
    ("record_count", lambda frame: replace(frame, record_count=frame.record_count + 1)),
    ("record_count", lambda frame: replace(frame, record_count=0)),
    ("payload", lambda frame: replace(frame, payload=frame.payload[:-1])),
    ("payload", lambda frame: replace(frame, payload=frame.payload + bytes(3))),
    ("payload", lambda frame: replace(frame, payload=b"", record_count=0)),
    ("batch_id", lambda frame: replace(frame, batch_id=0)),
    ("flags", lambda frame: replace(frame, flags=frame.flags | Flag.ENCRYPTED)),
    ("flags", lambda frame: replace(frame, flags=frame.flags | Flag.CONTROL)),
    ("flags", lambda frame: replace(frame, flags=frame.flags | Flag.KEEPALIVE)),
    ("flags", lambda frame: replace(frame, flags=0)),
)
"""The field that is wrong, and how it becomes so."""


def refuse(facts: Facts) -> Exchange | None:
    """A batch with one fault is refused by name, and leaves nothing, not even its id."""
    log = facts.log(open_only=True)
    if log is None:
        return None
    last, nonce = facts.now.last, facts.nonce
    right = _batch(facts, log)
    facts.now.last, facts.nonce = last, nonce
    facts.now.refused = right
    field, spoil = facts.rng.choice(FAULTS)
    frame = spoil(right)
    refused = facts.ctx.error(ErrorCode.INVALID_PAYLOAD, cite="4.1/refusal")
    words = f"a batch to {log.topic.id} with a wrong {field}"
    return Exchange(words, frame, (refused,), _names(facts, frame), field)


def _names(facts: Facts, frame: Frame) -> Callable[[Frame], None]:
    """The error must name the batch."""

    def judge(reply: Frame) -> None:
        is_ingest = frame.flags & KINDS == Flag.BATCH_MODE
        if facts.strict and is_ingest and facts.ctx.dialect.errors == "json":
            details = (read_json(reply.payload) or {}).get("details") or {}
            said = details.get("batch_id") if isinstance(details, dict) else None
            facts.ctx.check(
                said == frame.batch_id, "field:details",
                f"details.batch_id must be {frame.batch_id}, not {said}",
            )  # fmt: skip

    return judge


# -- reading ---------------------------------------------------------------------------------------


def _most(rng: Random, log: TopicFacts, start: int) -> int:
    """A limit of a Fetch: around the next record, around all that is left, or far beyond."""
    ends = [end for end in log.ends if end > start]
    left = len(log.data) - start
    first = (ends[0] if ends else start + 5) - start
    near = (1, 4, 5, first - 1, first, first + 1, left // 2, left - 1, left, left + 16)
    return max(1, rng.choice((*near, 65_536, 1 << 20)))


def read(facts: Facts) -> Exchange | None:
    """Data from where a record begins: whole records, as many as are announced."""
    log = facts.log()
    if log is None or not log.data:
        return None
    start = facts.rng.choice(log.ends[:-1])
    return _read(facts, log, start, _most(facts.rng, log, start))


def inside(facts: Facts) -> Exchange | None:
    """Data from within a record."""
    log = facts.log()
    if log is None or not log.data:
        return None
    return _read(
        facts, log, facts.rng.randrange(len(log.data)), facts.rng.choice((1, 9, 300, 65_536))
    )


def _read(facts: Facts, log: TopicFacts, start: int, most: int) -> Exchange:
    frame = fetch(log.topic.id, start, most)
    rest, ends, check = log.data[start : start + most], log.ends, facts.ctx.check

    def judge(reply: Frame) -> None:
        got = facts.ctx.read(facts.now.peer, reply)
        told = f"{len(got.data)} bytes from byte {start} of {len(log.data)}"
        check(rest.startswith(got.data), "data", f"{told} are not what was stored there")
        check(got.data, "data", f"{told}, and {len(rest)} were asked for")
        after = start + len(got.data)
        check(
            got.next_offset == after,
            "field:next_offset",
            f"{told} end at {after}: {got.next_offset}",
        )
        check(
            got.bytes_returned == len(got.data),
            "field:bytes_returned",
            f"{told} are announced as {got.bytes_returned}",
        )
        if got.record_count is not None and (facts.strict or after in ends):
            right = len(boundaries(got.data)) - 1 if start in ends else 0
            check(
                got.record_count == right, "field:record_count",
                f"{told} are {right} whole records, not {got.record_count}",
            )  # fmt: skip
        if facts.strict:
            fits = any(start < end <= start + most for end in ends)
            check(after in ends or not fits, "cut", f"{told} end within a record")

    words = f"fetch {most} bytes of {log.topic.id} from {start} of {len(log.data)}"
    return Exchange(words, frame, (answer(Command.FETCH_RESPONSE, "5.9/answer"),), judge)


def at_end(facts: Facts) -> Exchange | None:
    """Nothing is at the end."""
    log = facts.log()
    if log is None or log.closed:
        return None
    end = len(log.data)
    start = facts.rng.choice((end, END_OFFSET) if facts.strict else (end,))
    check = facts.ctx.check

    def judge(reply: Frame) -> None:
        got = facts.ctx.read(facts.now.peer, reply)
        check(not got.data, "data", f"{len(got.data)} bytes came from the end")
        check(
            got.next_offset == end, "field:next_offset", f"the end is {end}, not {got.next_offset}"
        )

    frame = fetch(log.topic.id, start, 65_536)
    words = f"fetch at the end of {log.topic.id}"
    return Exchange(words, frame, (answer(Command.FETCH_RESPONSE, "5.9/at-end"),), judge)


def beyond(facts: Facts) -> Exchange | None:
    """Nothing is beyond the end."""
    log = facts.log()
    if log is None or log.closed:
        return None
    end = len(log.data)
    start = end + facts.rng.choice((1, 5, 1 << 20, 1 << 32))
    empty = answer(Command.FETCH_RESPONSE, "5.9/beyond-end")
    codes = ErrorCode.INVALID_OFFSET, ErrorCode.OFFSET_OUT_OF_RANGE
    allowed = catching_up(end), empty, facts.ctx.error(*codes, cite="5.9/beyond-end")

    def judge(reply: Frame) -> None:
        data = reply.payload[facts.ctx.dialect.fetch_header :]
        came = reply.batch_id == Command.FETCH_RESPONSE and data
        facts.ctx.check(not came, "data", f"{len(data)} bytes came from beyond the end")

    words = f"fetch beyond the end of {log.topic.id}"
    return Exchange(words, fetch(log.topic.id, start, 65_536), allowed, judge)


# -- topics ----------------------------------------------------------------------------------------


def get(facts: Facts) -> Exchange | None:
    """A topic is told as it was created and as it is now."""
    log = facts.log()
    return None if log is None else about(facts, log)


def about(facts: Facts, log: TopicFacts) -> Exchange:
    """GetTopic of one topic; what a target does not tell is another case's concern."""
    check, told, now = facts.ctx.check, log.told, _now(log) if facts.strict else {}

    def judge(reply: Frame) -> None:
        body = read_json(reply.payload) or {}
        for name, right in (now | told).items():
            said = body.get(name, None if name in told else right)
            check(said == right, f"field:{name}", f"{name} must be {right!r}, not {said!r}")

    words = f"get {log.topic.id}"
    return Exchange(words, get_topic(log.topic.id), (topic_response("5.5/get"),), judge)


def _now(log: TopicFacts) -> dict[str, object]:
    """What GetTopic may tell of a topic as it is now."""
    now: dict[str, object] = {"record_count": len(log.ends) - 1}
    if not log.closed:
        now |= {"start_offset": 0, "end_offset": len(log.data)}
    if log.limits is not None:
        now |= dict(zip(("max_age_secs", "max_bytes"), log.limits, strict=True))
    return now


def listing(facts: Facts) -> Exchange | None:
    """All topics that are there are listed, once each, and none that is not."""
    there = {log.topic.id: log.topic.name for log in facts.logs.values()}
    gone, check = set(facts.deleted), facts.ctx.check

    def judge(reply: Frame) -> None:
        rows = (read_json(reply.payload) or {}).get("topics") or []
        ids = [row.get("id") for row in rows if isinstance(row, dict)]
        for topic_id, name in there.items():
            found = [row for row in rows if isinstance(row, dict) and row.get("id") == topic_id]
            check(len(found) == 1, "field:topics", f"topic {topic_id} is listed {len(found)} times")
            check(found[0].get("name") == name, "field:name", f"{topic_id} is {name}: {found[0]}")
            if facts.mixed:
                _is_listed_as_told(facts, topic_id, found[0])
        check(not gone & set(ids), "field:topics", f"deleted topics are listed: {gone & set(ids)}")

    return Exchange("list", LIST_TOPICS, (topic_response("5.4/list"),), judge)


def _is_listed_as_told(facts: Facts, topic_id: int, row: Mapping[str, Any]) -> None:
    """What the list says of a topic is what its creation said."""
    told = next(log.told for log in facts.logs.values() if log.topic.id == topic_id)
    wrong = {name: row[name] for name in told.keys() & row.keys() if row[name] != told[name]}
    facts.ctx.check(not wrong, "field:topics", f"of topic {topic_id} {wrong} is listed: {told}")


def taken(facts: Facts) -> Exchange | None:
    """A name that is taken is refused."""
    log = facts.log()
    if log is None:
        return None
    refused = facts.ctx.error(
        ErrorCode.TOPIC_ALREADY_EXISTS, cite="12.2/topic-exists", text="exists"
    )
    return Exchange(f"create {log.topic.id} again", create_topic(log.topic.name), (refused,))


def missing(facts: Facts) -> Exchange | None:
    """Whatever is asked of a topic that is not there is refused, with the code that says so."""
    gone = facts.rng.choice(facts.deleted) if facts.deleted and facts.rng.random() < 0.7 else None
    topic = facts.ctx.unknown_topic if gone is None else gone
    consumer = facts.rng.choice(facts.consumers)
    requests = [
        ingest(topic, 1 << 30, [b"nobody"]), get_topic(topic), fetch(topic, 0, 100),
    ]  # fmt: skip
    if gone is None:
        requests.append(delete_topic(topic))
    if facts.can("retention"):
        requests.append(set_retention(topic, 1 << 30, 1 << 40))
    if facts.can("subscribe"):
        requests.append(subscribe(topic, consumer))
    if facts.can("commits") and facts.strict:
        requests.append(commit_offset(topic, consumer, 0))
    if facts.can("offset-for-time") and facts.strict:
        requests.append(offset_for_time(topic, 0))
    frame = facts.rng.choice(requests)
    codes = {ErrorCode.TOPIC_NOT_FOUND} if gone is None else {ErrorCode.TOPIC_DELETED}
    if not facts.strict:
        codes = {ErrorCode.TOPIC_NOT_FOUND, ErrorCode.TOPIC_DELETED}
    refused = facts.ctx.error(*codes, cite="12.2/topic-not-found", text="topic")
    judge = _names(facts, frame) if frame.flags & Flag.BATCH_MODE else _nothing
    return Exchange(f"{frame} of a topic that is not there", frame, (refused,), judge)


def _nothing(_: Frame) -> None:
    """There is no more to say."""


def limits(facts: Facts) -> Exchange | None:
    """Retention limits come back as they were sent."""
    log = facts.log()
    if log is None or not facts.can("retention"):
        return None
    age, size = (
        facts.rng.choice((0, 1 << 30, 1 << 33, 1 << 40)) + facts.rng.randrange(9) for _ in "ab"
    )
    age, size = (0 if each < 9 else each for each in (age, size))
    log.limits = age, size
    right = {"topic_id": log.topic.id, "max_age_secs": age, "max_bytes": size}

    def judge(reply: Frame) -> None:
        body = read_json(reply.payload) or {}
        said = {name: body.get(name) for name in right}
        facts.ctx.check(said == right, "field:limits", f"{right} was set, {said} came back")

    frame = set_retention(log.topic.id, age, size)
    return Exchange(f"limits of {log.topic.id}", frame, (topic_response("5.10/answer"),), judge)


# -- consumers and the rest ------------------------------------------------------------------------


def commit(facts: Facts) -> Exchange | None:
    """A commit is acknowledged as it was sent."""
    log = facts.log()
    if log is None or not facts.can("commits"):
        return None
    consumer, offset = facts.rng.choice(facts.consumers), facts.rng.choice(log.ends)
    log.commits[consumer] = offset
    right = commit_ack(consumer, offset, cite="5.14/committed-offset")
    words = f"commit {offset} of {log.topic.id} for {consumer:#x}"
    return Exchange(words, commit_offset(log.topic.id, consumer, offset), (right,))


def commit_beyond(facts: Facts) -> Exchange | None:
    """A commit beyond the end is refused, with the end, and changes nothing."""
    log = facts.log()
    if log is None or log.closed or not facts.can("commits"):
        return None
    end, consumer = len(log.data), facts.rng.choice(facts.consumers)
    offset = end + facts.rng.choice((1, 5, 1 << 16, 1 << 32, 1 << 63))

    def judge(reply: Frame) -> None:
        details = (read_json(reply.payload) or {}).get("details")
        said = details.get("end_offset") if isinstance(details, dict) else None
        facts.ctx.check(said == end, "field:details", f"details.end_offset must be {end}: {said}")

    refused = facts.ctx.error(ErrorCode.OFFSET_OUT_OF_RANGE, cite="5.14/beyond-end")
    words = f"commit {offset} of {log.topic.id}, which ends at {end}"
    return Exchange(words, commit_offset(log.topic.id, consumer, offset), (refused,), judge)


def time(facts: Facts) -> Exchange | None:
    """The first record is after the beginning of time, and none is after its end."""
    log = facts.log()
    if log is None or log.closed or not facts.can("offset-for-time"):
        return None
    early = facts.rng.random() < 0.5
    right = 0 if early else len(log.data)

    def judge(reply: Frame) -> None:
        said = struct.unpack("<Q", reply.payload[:8].ljust(8, b"\xff"))[0]
        facts.ctx.check(said == right, "field:offset", f"the offset is {right}, not {said}")

    frame = offset_for_time(log.topic.id, 0 if early else FAR)
    right_kind = answer(Command.OFFSET_FOR_TIME_RESPONSE, "5.2/offset-for-time")
    return Exchange(f"offset for time of {log.topic.id}", frame, (right_kind,), judge)


def ping(_: Facts) -> Exchange | None:
    """A Keepalive is answered."""
    return Exchange("ping", KEEPALIVE, (keepalive("4.3/answer"),))


def status(facts: Facts) -> Exchange | None:
    """The status is a JSON object."""
    if "cluster-status" not in facts.ctx.conditions.capabilities:
        return None

    def judge(reply: Frame) -> None:
        body: Mapping[str, Any] | None = read_json(reply.payload)
        facts.ctx.check(body, "body:not-json", "the status must be a JSON object")

    right = answer(Command.CLUSTER_STATUS_RESPONSE, "16.5/status")
    return Exchange("status", CLUSTER_STATUS, (right,), judge)


def odd(facts: Facts) -> Exchange | None:
    """A command that nobody knows, or one with a byte too many or too few, is refused."""
    log = facts.log()
    if log is None:
        return None
    right = facts.rng.choice((get_topic(log.topic.id), fetch(log.topic.id, 0, 100), LIST_TOPICS))
    frames = [control(0x7E), control(0x7E, b"x"), replace(right, payload=right.payload + b"x")]
    if right.payload:
        frames.append(replace(right, payload=right.payload[:-1]))
    refused = facts.ctx.error(ErrorCode.INVALID_PAYLOAD, cite="5.2/unknown")
    frame = facts.rng.choice(frames)
    return Exchange(f"odd {frame}", frame, (refused,), fault="payload")


DECIDED: Mapping[str, Question] = {
    "store": store, "read": read, "at_end": at_end, "beyond": beyond, "get": get,
    "listing": listing, "taken": taken, "missing": missing, "limits": limits, "commit": commit,
    "ping": ping,
}  # fmt: skip
"""Questions whose answers the document decides."""
REGISTERED: Mapping[str, Question] = {
    **DECIDED, "copy": copy, "repeat": repeat, "conflict": conflict, "refuse": refuse,
    "inside": inside,
    "time": time, "status": status, "odd": odd,
}  # fmt: skip
"""Those whose answers only the register decides, and all others."""
MIXED: Mapping[str, Question] = {**REGISTERED, "commit_beyond": commit_beyond}
"""Those of the walks that look at every field."""
BESIDE: Mapping[str, Question] = {
    name: MIXED[name]
    for name in ("get", "listing", "taken", "limits", "commit", "commit_beyond", "time", "ping",
                 "status")
}  # fmt: skip
"""Those that a subscriber asks on its connection."""
TOGETHER: Sequence[Collection[str]] = (
    ("store",), ("commit",), ("read", "at_end", "get", "listing", "beyond"),
)  # fmt: skip
"""Questions that may stand in one write: no answer depends on whether those before are done."""
TOGETHER_REGISTERED: Sequence[Collection[str]] = (
    *TOGETHER,
    ("store", "copy", "repeat", "refuse", "ping", "missing", "odd"),
    ("read", "at_end", "get", "inside", "time", "ping", "missing", "odd", "taken", "status"),
)
"""The same where the register decides that answers come in the order of receipt."""
