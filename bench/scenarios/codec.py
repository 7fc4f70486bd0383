"""The codec against hand-written ``struct`` code for the same bytes."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import crc32c

from bench.harness import Rate, Scenario, rate
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.frames import FrameSplitter, encode_ack, encode_header
from lance_spec.messages.lwp import Header
from lance_spec.records import decode_records, encode_records

_HEADER = struct.Struct("<4sBBHLQQLLLL")
_RECORD = struct.Struct("<BL")
_FRAMES = 2000
_RECORDS = 600


@dataclass(slots=True)
class _HandHeader:
    magic: bytes
    version: int
    flags: int
    reserved: int
    header_crc: int
    batch_id: int
    timestamp_ns: int
    record_count: int
    payload_length: int
    payload_crc: int
    topic_id: int


def _hand_header(data: bytes) -> _HandHeader:
    header = _HandHeader(*_HEADER.unpack(data))
    if header.magic != b"LANC" or header.version != 1:
        raise ValueError(header)
    return header


def _hand_split(data: bytes) -> list[tuple[int, int, memoryview]]:
    found, position, view = [], 0, memoryview(data)
    while position + 44 <= len(data):
        magic, version, flags, _, crc, batch_id, _, _, length, _, _ = _HEADER.unpack_from(
            data, position
        )
        if magic != b"LANC" or version != 1 or crc32c.crc32c(view[position : position + 8]) != crc:
            raise ValueError(position)
        stop = position + 44 + length
        found.append((flags, batch_id, view[position + 44 : stop]))
        position = stop
    return found


def _hand_records(data: bytes) -> list[tuple[int, bytes]]:
    found, position = [], 0
    while position < len(data):
        record_type, length = _RECORD.unpack_from(data, position)
        start = position + 5
        position = start + length
        if position > len(data):
            raise ValueError(start)
        found.append((record_type, data[start:position]))
    return found


@contextmanager
def _headers() -> Iterator[tuple[Rate, Rate]]:
    data = encode_header(SPECIFIED, 4, batch_id=7, record_count=1)
    decode = Header.decode
    yield (
        rate(_FRAMES, lambda: [decode(data) for _ in range(_FRAMES)]),
        rate(_FRAMES, lambda: [_hand_header(data) for _ in range(_FRAMES)]),
    )


@contextmanager
def _splitting() -> Iterator[tuple[Rate, Rate]]:
    data = b"".join(encode_ack(SPECIFIED, number) for number in range(_FRAMES))
    both = (SPECIFIED, DEPLOYED)
    yield (
        rate(_FRAMES, lambda: FrameSplitter(both).receive_data(data)),
        rate(_FRAMES, lambda: _hand_split(data)),
    )


@contextmanager
def _records() -> Iterator[tuple[Rate, Rate]]:
    data = encode_records([b"x" * 100] * _RECORDS)
    yield (
        rate(_RECORDS, lambda: decode_records(data)),
        rate(_RECORDS, lambda: _hand_records(data)),
    )


SCENARIOS = (
    Scenario(
        name="codec/header-decode",
        unit="headers/s",
        other="hand-written struct code",
        sides=_headers,
    ),
    Scenario(
        name="codec/frame-split",
        unit="frames/s",
        other="hand-written struct code",
        sides=_splitting,
    ),
    Scenario(
        name="codec/record-decode",
        unit="records/s",
        other="hand-written struct code",
        sides=_records,
    ),
)
