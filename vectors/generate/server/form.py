"""How a case for servers is written down: frames, faults and outcomes as JSON."""

import re
from typing import Any

Json = dict[str, Any]
Parts = list[Any]
"""Bytes in pieces: hexadecimal, a topic's id, or some bytes many times."""

DIALECTS = ("specified", "deployed")
LONG_RUN = re.compile(rb"(.)\1{255,}", re.DOTALL)
TIMESTAMP = 1_706_918_400_000_000_000
WIDE = frozenset({"batch_id", "timestamp_ns"})
"""Fields of 64 bits, which are decimal strings."""
TOPIC: Json = {"topic": 1}
UNKNOWN: Json = {"unknown": True}
"""Stands for the id of a topic that there is not."""


# -- bytes and frames ------------------------------------------------------------------------------


def parts(*pieces: bytes | Json) -> Parts:
    """Return bytes as JSON has them, long runs of one byte written short."""
    found: Parts = []
    for piece in pieces:
        found += _runs(piece) if isinstance(piece, bytes) else [piece]
    return found


def _runs(data: bytes) -> Parts:
    found: Parts = []
    end = 0
    for run in LONG_RUN.finditer(data):
        found += [data[end : run.start()].hex()] if run.start() > end else []
        found.append(times(run[0][:1], len(run[0])))
        end = run.end()
    return found + ([data[end:].hex()] if end < len(data) or not found else [])


def times(piece: bytes, count: int) -> Json:
    """Return some bytes many times."""
    return {"repeat": piece.hex(), "times": count}


def frame(flags: int, **fields: Any) -> Json:
    """Return a frame; fields that are not given are zero, lengths and checksums right."""
    return {"flags": flags} | {name: _plain(name, value) for name, value in fields.items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return parts(value) if name == "payload" else value.hex()
    return str(value) if name in WIDE else value


def ingest(payload: bytes | Parts | Json, count: int = 1, batch: int = 1, **fields: Any) -> Json:
    """Return an Ingest for the case's own topic."""
    given = {"batch_id": batch, "timestamp_ns": TIMESTAMP, "record_count": count}
    given |= {"topic_id": TOPIC, "payload": payload} | fields
    return frame(given.pop("flags", 0x04), **given)


def control(command: int, *payload: bytes | Json) -> Json:
    """Return a control frame."""
    if not payload:
        return frame(0x40, batch_id=command)
    return frame(0x40, batch_id=command, payload=parts(*payload))


def fetch(start: int = 0, most: int = 65536, topic: Json = TOPIC) -> Json:
    """Return a Fetch."""
    return control(0x10, topic, start.to_bytes(8, "little") + most.to_bytes(4, "little"))


KEEPALIVE = frame(0x20)
LIST_TOPICS = control(0x03)
GET_TOPIC = control(0x04, TOPIC)

# -- faults ----------------------------------------------------------------------------------------


def sets(field: str, value: Any) -> Json:
    """Return the fault of a field that has another value."""
    return {"kind": "set", "field": field, "value": _plain(field, value)}


def flips(field: str, mask: int) -> Json:
    """Return the fault of a number with some bits inverted."""
    return {"kind": "xor", "field": field, "mask": str(mask)}


def checks(field: str, *what: bytes | Json) -> Json:
    """Return the fault of a checksum that is of other bytes."""
    return {"kind": "checksum-of", "field": field, "bytes": parts(*what)}


def swaps(field: str) -> Json:
    """Return the fault of a number whose bytes stand in the other order."""
    return {"kind": "byte-order", "field": field}


def other_polynomial(field: str) -> Json:
    """Return the fault of a checksum of the other polynomial."""
    return {"kind": "other-polynomial", "field": field}


# -- outcomes --------------------------------------------------------------------------------------


def ack(batch: int = 1, cite: str = "") -> Json:
    """Return an Ack."""
    return _outcome("ack", cite, batch_id=str(batch))


def error(*codes: int, text: str = "", cite: str = "") -> Json:
    """Return an ErrorResponse: its codes where errors are JSON, words of it where they are text."""
    return _outcome("error", cite, codes=list(codes), text=text)


def keepalive(cite: str = "") -> Json:
    """Return a Keepalive."""
    return _outcome("keepalive", cite)


def topic_response(cite: str = "") -> Json:
    """Return a TopicResponse."""
    return _outcome("topic_response", cite)


def closed(cite: str = "") -> Json:
    """Return the end of the connection."""
    return _outcome("closed", cite)


def fetched(*data: bytes | Json, cite: str = "") -> Json:
    """Return a FetchResponse with this data."""
    return _outcome("fetched", cite, data=parts(*data))


QUIET: Json = {"expect": "quiet"}
"""Nothing, proven by two Keepalives that are answered."""


def _outcome(what: str, cite: str, **facts: Any) -> Json:
    return {"expect": what} | facts | ({"cite": cite} if cite else {})


# -- cases -----------------------------------------------------------------------------------------


def case(case_id: str, clause: str, title: str, **facts: Any) -> Json:
    """Return what every case has.

    Args:
        case_id: ``area/slug``.
        clause: the clause it asks about, as the kit names it.
        title: what must hold, one sentence.
        facts: ``details``, ``dialects``, ``quick``, ``pinned_only``, ``needs``, ``weight``.
    """
    return {"id": case_id, "clause": clause, "title": title} | facts


def duel(
    head: Json,
    right: Json,
    fault: Json,
    answer: Json,
    allowed: list[Json] | dict[str, list[Json]],
    **facts: Any,
) -> Json:
    """Return a frame that is answered, and its twin with one fault.

    Args:
        head: what every case has.
        right: the frame without the fault.
        fault: the fault.
        answer: what the right frame brings.
        allowed: what the wrong one may bring, by dialect where they differ.
        facts: ``stored``, what the topic then holds; ``ends``, whether a close follows.
    """
    body = {"right": right, "answer": answer, "fault": fault, "allowed": by_dialect(allowed)}
    return head | body | _stored(facts)


def exchange(head: Json, *steps: Json, **facts: Any) -> Json:
    """Return a conversation.

    Args:
        head: what every case has.
        steps: what is sent and what comes, one after another.
        facts: ``stored``, what the topic then holds.
    """
    return head | {"steps": list(steps)} | _stored(facts)


def step(send: list[Json], expect: Any, on: int = 1, **facts: Any) -> Json:
    """Return one write and what answers it.

    Args:
        send: the frames.
        expect: lists of alternatives in their order, by dialect where they differ.
        on: the connection, from 1.
        facts: ``pieces`` (sizes of writes), ``any_order``, ``quiet``.
    """
    wanted = {name: _each(answers) for name, answers in by_dialect(expect).items()}
    return {"on": on, "send": send, "expect": wanted} | facts


def _each(answers: list[Any]) -> list[list[Json]]:
    return [answer if isinstance(answer, list) else [answer] for answer in answers]


def by_dialect(value: Any) -> dict[str, Any]:
    """Return a value for each dialect, the same where none is named."""
    if isinstance(value, dict) and value.keys() <= set(DIALECTS):
        return value
    return dict.fromkeys(DIALECTS, value)


def _stored(facts: Json) -> Json:
    if "stored" in facts:
        facts = facts | {"stored": by_dialect(facts["stored"])}
    return facts
