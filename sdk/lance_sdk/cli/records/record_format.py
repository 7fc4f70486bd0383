"""How a record looks on stdout: its bytes and a separator, or a JSON object a line."""

import base64
import json
from typing import TYPE_CHECKING, Any

from lance_sdk.cli.records.keyed import KEYED, parts
from lance_spec.enums import RecordType
from lance_spec.records import decode_records

if TYPE_CHECKING:
    from lance_sdk.types import Record, RecordBatch


def as_lines(batch: "RecordBatch", separator: bytes, key_separator: bytes | None = None) -> bytes:
    """Return the records' bytes, each followed by the separator.

    Args:
        batch: the records.
        separator: what stands after each.
        key_separator: what stands between key and value; None leaves the keys out.
    """
    if batch.opaque:
        return batch.data + separator
    records = decode_records(batch.data)
    if key_separator is not None:
        lines = [_with_key(kind, value, key_separator) for kind, value in records]
    else:
        lines = [parts(kind, value).body if kind in KEYED else value for kind, value in records]
    return separator.join([*lines, b""])


def _with_key(kind: int, value: bytes, separator: bytes) -> bytes:
    found = parts(kind, value)
    return (found.key or b"") + separator + found.body


def as_json(batch: "RecordBatch") -> bytes:
    """Return one JSON object a line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(f"{encode(_object(record))}\n" for record in batch).encode()


def _object(record: "Record") -> dict[str, Any]:
    """Return a record's fields; ``encoding`` says how ``value`` stands for its bytes."""
    found = parts(record.type, record.raw)
    encoding, value = _text(found.body)
    shown: dict[str, Any] = {
        "topic": record.topic,
        "offset": record.offset,
        "type": "opaque" if record.is_opaque else _type_name(record.type),
        "encoding": encoding,
        "value": value,
    }
    if found.key is not None:
        shown["key_encoding"], shown["key"] = _text(found.key)
    if found.timestamp_ns is not None:
        shown["timestamp_ns"] = found.timestamp_ns
    return shown


def _text(value: bytes) -> tuple[str, str]:
    try:
        return "utf-8", value.decode()
    except UnicodeDecodeError:
        return "base64", base64.b64encode(value).decode()


def _type_name(number: int) -> str | int:
    """Return the name LWP section 8.2 gives the type; application types stay numbers."""
    try:
        return RecordType(number).name.lower()
    except ValueError:
        return number
