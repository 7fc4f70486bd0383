"""Readers for the vectors of this project's own families, except frames."""

import json
from importlib import import_module
from typing import Any, TypeAlias

from lance_spec import bodies, schemas
from lance_spec.codec.packing import PACKINGS
from lance_spec.disk.offset_files import OffsetFileName, decode_offset
from lance_spec.disk.segment_names import SegmentName
from lance_spec.errors import DecodeError
from lance_spec.groups import text_protocol
from lance_spec.ir.families import message
from lance_spec.records import decode_records, scan_records
from lance_spec.vectors._codecs import codec
from lance_spec.vectors._faults import CHECKSUMS

Json: TypeAlias = dict[str, Any]


def read_message(request: Json, group: Json, data: bytes) -> Json:
    """Read a chain of records, or a flat message."""
    if group["type"] == "TlvDecode":
        return {"records": [{"type": kind, "value": value} for kind, value in decode_records(data)]}
    subject = message(request.get("message") or group["message"])
    decoded = codec(subject.name).decode(data)
    if hasattr(decoded, "crc_ok") and not decoded.crc_ok():
        last = subject.fields[-1]
        raise DecodeError(subject.name, last.name, last.offset or 0, "its checksum", "another")
    return {"fields": {each.name: getattr(decoded, each.name) for each in subject.given}}


def read_body(_request: Json, group: Json, data: bytes) -> Json:
    """Read JSON, or an error in either form."""
    if group["type"] == "ErrorPayload":
        error = bodies.decode_error(data)
        return {"fields": {"code": error.code, "message": error.message, "details": error.details}}
    if group["body"] == "topic":
        return {"fields": bodies.decode_topic(data).to_body()}
    if group["body"] == "topic_list":
        return {"fields": {"topics": [each.to_body() for each in bodies.decode_topics(data)]}}
    if group["body"] == "cluster_status":
        return {"fields": bodies.ClusterStatus.decode(data).body}
    if group["body"] == "topic_deleted":
        body = bodies.decode_json(data, "TopicResponse")
        return {"fields": {"deleted": bodies.take_int(body, "deleted", "TopicResponse", 2**32)}}
    return _by_schema(group["body"], data)


def _by_schema(name: str, data: bytes) -> Json:
    """Read a body that only its schema describes."""
    try:
        jsonschema: Any = import_module("jsonschema")
    except ModuleNotFoundError:
        return {"skip": "jsonschema is not installed: pip install 'lance-sdk[test]'"}
    try:
        body = json.loads(data)
        jsonschema.Draft202012Validator(schemas.load(name)).validate(body)
    except (ValueError, jsonschema.ValidationError):
        return {"outcome": {"action": "reject"}}
    return {"fields": body}


def read_text(_request: Json, group: Json, data: bytes) -> Json:
    """Read a name, a text, or numbers in the bits of a field."""
    if group["type"] == "PackedField":
        return {"fields": PACKINGS[group["field"]].unpack(int.from_bytes(data, "little"))}
    if group["form"] == "OffsetFile":
        return {"fields": {"offset": decode_offset(data)}}
    readers: Json = {
        "SegmentName": lambda: SegmentName.parse(data.decode()),
        "OffsetFileName": lambda: OffsetFileName.parse(data.decode()),
        "request": lambda: text_protocol.TextRequest.decode(data),
        "answer": lambda: text_protocol.decode_answer(data),
    }
    read = readers[group["form"]]()
    name = "Error" if isinstance(read, text_protocol.Refused) else type(read).__name__
    fields = {each: getattr(read, each) for each in read.__slots__}
    given = {each: value for each, value in fields.items() if value is not None}
    return {"fields": given | ({"answer": name} if group["form"] == "answer" else {})}


def read_segment(_request: Json, _group: Json, data: bytes) -> Json:
    """Find out how far a segment is whole records."""
    scan = scan_records(data)
    found: Json = {"whole": scan.count, "end": scan.end}
    if scan.fault:
        found |= {"outcome": {"action": "reject"}, "needed": scan.fault.needed}
    return found


def read_crc(_request: Json, group: Json, data: bytes) -> Json:
    """Compute a checksum."""
    return {"crc": f"{CHECKSUMS[group['algorithm']](data):08x}"}
