"""Answers as bytes: right ones, and ones that are wrong in exactly what a script says."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_conformance.client.scripted.model import Model, fetch_payload
from lance_conformance.client.scripted.script import (
    BATCH,
    ELSEWHERE,
    HERE,
    Answer,
    Change,
    Other,
    Plus,
    Refuse,
    Swapped,
    Xor,
)
from lance_conformance.dialect import Dialect
from lance_conformance.wire.frame import Frame

_FETCHED = struct.Struct("<QII")
_FETCHED_NAMES = ("next_offset", "returned", "count")


def encode(step: Answer, right: Frame, request: Frame, dialect: Dialect) -> bytes:
    """The bytes of one answer.

    Args:
        step: How it departs from the right one.
        right: The right one.
        request: The frame it answers.
        dialect: The dialect in force.
    """
    payload = _flipped(_payload(step, right.payload, request), step.flipped)
    return faulty(replace(right, payload=payload), step.header, dialect)


def faulty(frame: Frame, header: Mapping[str, Change], dialect: Dialect) -> bytes:
    """The bytes of a frame in which some header fields are replaced."""
    changes = {name: _value(name, frame, how, dialect) for name, how in header.items()}
    return replace(frame, **changes).encode(dialect.compute)


def _flipped(payload: bytes, bits: Sequence[int]) -> bytes:
    changed = bytearray(payload)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _payload(step: Answer, right: bytes, request: Frame) -> bytes:
    if step.payload is not None:
        return step.payload
    if step.body is not None:
        return _with_body(right, step.body) if right.startswith(b"{") else right
    if step.data is not None:
        (start,) = struct.unpack_from("<Q", request.payload, 4)
        right = fetch_payload(start, step.data)
    if step.fetched is None or len(right) < _FETCHED.size:
        return right
    return _with_fetched(right, step.fetched)


def _with_body(right: bytes, changes: Mapping[str, Any]) -> bytes:
    body = {**json.loads(right), **changes}
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def _with_fetched(right: bytes, changes: Mapping[str, Change]) -> bytes:
    fields = dict(zip(_FETCHED_NAMES, _FETCHED.unpack_from(right), strict=True))
    fields |= {name: _changed(fields[name], how) for name, how in changes.items()}
    return _FETCHED.pack(*fields.values()) + right[_FETCHED.size :]


def _changed(right: int, how: Change) -> int:
    if isinstance(how, Xor):
        return right ^ how.mask
    if isinstance(how, Plus):
        return right + how.number
    assert isinstance(how, int), how
    return how


def _value(name: str, frame: Frame, how: Change, dialect: Dialect) -> Any:
    if isinstance(how, bytes):
        return how
    if isinstance(how, Other):
        covered = frame.prefix if name == "header_crc" else frame.payload
        return dialect.other_checksum(covered)
    if isinstance(how, Swapped):
        right = _right_value(name, frame, dialect)
        return int.from_bytes(right.to_bytes(4, "little"), "big")
    return _changed(_right_value(name, frame, dialect), how)


def _right_value(name: str, frame: Frame, dialect: Dialect) -> int:
    derived = {
        "header_crc": lambda: dialect.compute(frame.prefix),
        "payload_crc": lambda: frame.right_payload_crc(dialect.compute),
        "payload_length": lambda: len(frame.payload),
    }
    return derived[name]() if name in derived else int(getattr(frame, name))


def frame_of(step: Refuse, model: Model, batch_id: int, here: str, elsewhere: str) -> Frame:
    """The ErrorResponse of a refusal.

    Args:
        step: The refusal.
        model: Knows the form.
        batch_id: The batch it is about.
        here: The address of this server.
        elsewhere: The address of the well-behaved server.
    """
    stands_for = {BATCH: batch_id, HERE: here, ELSEWHERE: elsewhere}
    details = {
        name: stands_for.get(value, value) if isinstance(value, str) else value
        for name, value in step.details.items()
    }
    text = step.text.replace(HERE, here).replace(ELSEWHERE, elsewhere)
    return model.error(step.code, text, details)
