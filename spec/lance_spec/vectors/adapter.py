"""Answers ``vectors check --exec`` for this package, and shows how an adapter is written."""

import json
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from lance_spec.dialect import DIALECTS
from lance_spec.errors import DecodeError
from lance_spec.families import message
from lance_spec.frames import Frame, FrameSplitter, encode_header
from lance_spec.records import decode_records, encode_record
from lance_spec.vectors._codecs import codec
from lance_spec.vectors._readings import read_body, read_crc, read_segment, read_text

Json: TypeAlias = dict[str, Any]


def _frame(frame: Frame) -> Json:
    names = ("batch_id", "timestamp_ns", "record_count", "topic_id", "payload_crc", "flags")
    shown = {name: getattr(frame, name) for name in names} | {"kind": frame.kind.name}
    return shown | {"payload_length": len(frame.payload), "payload": bytes(frame.payload)}


def _split(request: Json, group: Json, _data: bytes) -> Json:
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


def _encode(request: Json, group: Json, _data: bytes) -> Json:
    if "records" in request:
        records = [(bytes.fromhex(each["value"]), each["type"]) for each in request["records"]]
        return {"bytes": b"".join(encode_record(*each) for each in records)}
    given = request["fields"]
    payload = bytes.fromhex(given["payload"])
    fields = {name: int(value) for name, value in given.items() if name != "payload"}
    dialect = DIALECTS[group["dialect"]["name"]]
    return {"bytes": encode_header(dialect, payload=payload, **fields) + payload}


def _message(request: Json, group: Json, data: bytes) -> Json:
    if group["type"] == "TlvDecode":
        return {"records": [{"type": kind, "value": value} for kind, value in decode_records(data)]}
    subject = message(request.get("message") or group["message"])
    decoded = codec(subject.name).decode(data)
    if hasattr(decoded, "crc_ok") and not decoded.crc_ok():
        last = subject.fields[-1]
        raise DecodeError(subject.name, last.name, last.offset or 0, "its checksum", "another")
    return {"fields": {each.name: getattr(decoded, each.name) for each in subject.given}}


_READERS: dict[str, Callable[[Json, Json, bytes], Json]] = {
    "crc": read_crc,
    "segment_scan": read_segment,
    "engine_message": _message,
    **dict.fromkeys(("frame_decode", "frame_stream"), _split),
    **dict.fromkeys(("frame_encode", "tlv_encode"), _encode),
    **dict.fromkeys(("tlv_decode", "control_payload", "fetch_response"), _message),
    **dict.fromkeys(("error_payload", "json_body"), read_body),
    **dict.fromkeys(("file_name", "group_text", "packed_field"), read_text),
}


def answer(request: Json) -> Json:
    """Return what this package makes of one request."""
    data = bytes.fromhex(request.get("bytes", ""))
    try:
        read = _READERS[request["family"]](request, request["group"], data)
    except DecodeError as error:
        return {"outcome": {"action": "reject", "field": error.field, "offset": error.offset}}
    return {"outcome": {"action": "accept"}} | read


def main() -> None:
    """Answer line by line until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        answered = {"id": request["id"]} | answer(request)
        sys.stdout.write(json.dumps(answered, default=bytes.hex) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
