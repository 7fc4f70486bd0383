"""Family ``frame_stream``: one string of bytes, cut in many ways, always read the same."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import Frame, crc, le
from generate.document import ACCEPT, Test, close, document, group, note
from generate.lwp.frames.decode import DIALECTS, FIELDS

NOTES = {
    "FaultBehind": note(
        "STATE",
        "Sound frames stand before one that is broken.",
        "A receiver that throws away everything loses batches that it was sent whole.",
        "11.3",
    ),
    "FaultBetween": note(
        "STATE",
        "A broken frame stands before sound ones.",
        "A receiver that looks for the next magic acts on bytes of a stream it has lost.",
        "11.3",
    ),
}

STREAMS: dict[str, tuple[str, ...]] = {
    "one": ("ingest",),
    "acks": ("ack", "ack-max", "ack"),
    "keepalives": ("keepalive",) * 10,
    "batches": ("ingest", "ingest-two", "ingest-empty-record"),
    "session": ("get-topic", "ingest", "keepalive", "ingest-two", "fetch"),
    "answers": ("topic-response", "ack", "keepalive", "ack-max", "fetch-response"),
    "subscription": ("subscribe", "commit-offset", "unsubscribe"),
    "push": ("fetch-response",) * 4,
    "backpressure": ("ack", "backpressure", "ack-max"),
    "errors": ("error-json", "error-text"),
    "everything": tuple(name for name in FIELDS if name != "unknown-command"),
}
"""Which frames of ``frame_decode`` follow each other in each stream."""

FAULTS = (("magic", 0), ("version", 4), ("header_crc", 8))
REASONS = {"magic": "bad_magic", "version": "bad_version", "header_crc": "bad_header_crc"}


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A stream of frames, and ways to cut it: `every` so many bytes, or once, `at` a place.",
        "Every way of cutting gives the same result.",
        "`frames` are the kind, batch id and payload of each whole frame, in order.",
        "accept: nothing is left. wait: `missing` bytes are needed to complete the last one.",
        "close: the frames before the fault are read, and nothing at or after it; `offset` is",
        "counted from the start of the stream.",
    ]
    groups = [_group(name, facts) for name, facts in DIALECTS.items()]
    return document("frame_stream", header, NOTES, groups)


def _group(dialect: str, facts: dict[str, Any]) -> dict[str, Any]:
    frames = {n: Frame(algorithm=facts["checksum"], **fields) for n, fields in FIELDS.items()}
    tests = [
        test
        for name, parts in STREAMS.items()
        for test in _tests(dialect, name, [frames[each] for each in parts])
    ]
    return group("FrameStream", tests, dialect={"name": dialect, **facts})


def _tests(dialect: str, name: str, frames: list[Frame]) -> Iterator[Test]:
    data = b"".join(each.encode() for each in frames)
    test = _test(f"stream-{dialect}-{name}", f"The stream {name}.", data, frames)
    yield test | {"result": "valid", "outcome": ACCEPT}
    yield _cut(test, data, frames)
    if len(frames) > 1:
        for fault in FAULTS:
            yield _broken(test, data, frames, len(frames) - 1, fault)
    if len(frames) > 2:
        yield _broken(test, data, frames, 1, FAULTS[0])


def _cut(test: Test, data: bytes, frames: list[Frame]) -> Test:
    """The same stream without its last byte."""
    short = _test(f"{test['id']}-less-one", "Without its last byte.", data[:-1], frames[:-1])
    return short | {
        "pairOf": test["id"],
        "fault": {"kind": "truncate", "length": len(data) - 1},
        "result": "valid",
        "outcome": {"action": "wait", "missing": 1},
    }


def _broken(
    test: Test, data: bytes, frames: list[Frame], index: int, fault: tuple[str, int]
) -> Test:
    """The same stream with one field of one header inverted."""
    field, place = fault
    start = sum(len(each.encode()) for each in frames[:index])
    at = start + place
    insert = bytes([data[at] ^ 0xFF])
    fault_end = at + 1
    if field == "version":  # its checksum must be right, or that would be a second fault
        guarded = data[start:at] + insert + data[at + 1 : start + 8]
        insert = insert + data[at + 1 : start + 8] + le(crc(frames[0].algorithm, guarded), 4)
        fault_end = start + 12
    damaged = data[:at] + insert + data[fault_end:]
    where = "last" if index == len(frames) - 1 else "second"
    identifier = f"{test['id']}-{field.replace('_', '-')}-in-{where}"
    if where == "second":
        identifier = f"{test['id']}-magic-in-second"
    comment = f"The {field} of frame {index} is wrong."
    flag = "FaultBehind" if where == "last" else "FaultBetween"
    return _test(identifier, comment, damaged, frames[:index]) | {
        "clause": "11.3/stream",
        "pairOf": test["id"],
        "fault": {
            "kind": "splice",
            "offset": at,
            "remove": fault_end - at,
            "insert": insert.hex(),
        },
        "result": "invalid",
        "outcome": close(REASONS[field], field, at),
        "flags": [flag],
    }


def _test(identifier: str, comment: str, data: bytes, frames: list[Frame]) -> Test:
    return {
        "id": identifier,
        "comment": comment,
        "clause": "17.3/segmentation",
        "level": "MUST",
        "basis": "prose",
        "bytes": data.hex(),
        "cuts": _cuts(len(data)),
        "frames": [_frame(each) for each in frames],
        "flags": [],
    }


def _cuts(length: int) -> list[dict[str, int]]:
    """Ways to cut: in pieces of equal size, and once, at and around the edges of a header."""
    cuts = [{"every": size} for size in (1, 2, 7, 44, 53) if size < length]
    places = dict.fromkeys((1, 11, 12, 13, 43, 44, 45, length - 1))
    return [{"every": length}, *cuts, *({"at": place} for place in places if 0 < place < length)]


KINDS = ((0x40, "CONTROL"), (0x20, "KEEPALIVE"), (0x08, "ACK"), (0x10, "BACKPRESSURE"))


def _frame(frame: Frame) -> dict[str, str]:
    kind = next((name for flag, name in KINDS if frame.flags & flag), "INGEST")
    return {"kind": kind, "batch_id": str(frame.batch_id), "payload": frame.payload.hex()}
