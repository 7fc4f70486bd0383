"""Readers and writers for the vectors of frames."""

from typing import Any, TypeAlias

from lance_spec.dialect import DIALECTS
from lance_spec.frames import Frame, FrameSplitter, encode_header
from lance_spec.records import encode_record

Json: TypeAlias = dict[str, Any]


def _frame(frame: Frame) -> Json:
    names = ("batch_id", "timestamp_ns", "record_count", "topic_id", "payload_crc", "flags")
    shown = {name: getattr(frame, name) for name in names} | {"kind": frame.kind.name}
    return shown | {"payload_length": len(frame.payload), "payload": bytes(frame.payload)}


def read_frames(request: Json, group: Json, _data: bytes) -> Json:
    """Split what arrives into frames."""
    splitter = FrameSplitter((DIALECTS[group["dialect"]["name"]],))
    pieces = [bytes.fromhex(each) for each in request.get("pieces") or [request["bytes"]]]
    frames = [_frame(each) for piece in pieces for each in splitter.receive_data(piece)]
    answer: Json = {"frames": frames, "fields": frames[0] if frames else {}}
    if fault := splitter.fault:
        place = {"reason": fault.kind.value, "field": fault.field, "offset": fault.offset}
        return answer | {"outcome": {"action": "close"} | place}
    if splitter.pending or not frames:
        answer["outcome"] = {"action": "wait"}
    return answer


def write_bytes(request: Json, group: Json, _data: bytes) -> Json:
    """Write records, or a frame."""
    if "records" in request:
        records = [(bytes.fromhex(each["value"]), each["type"]) for each in request["records"]]
        return {"bytes": b"".join(encode_record(*each) for each in records)}
    given = request["fields"]
    payload = bytes.fromhex(given["payload"])
    fields = {name: int(value) for name, value in given.items() if name != "payload"}
    dialect = DIALECTS[group["dialect"]["name"]]
    return {"bytes": encode_header(dialect, payload=payload, **fields) + payload}
