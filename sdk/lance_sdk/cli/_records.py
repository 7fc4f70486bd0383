"""How a record looks on stdout: its bytes and a separator, or a JSON object a line."""

import base64
import json
from typing import TYPE_CHECKING, Any

from lance_spec.enums import RecordType
from lance_spec.records import decode_records

if TYPE_CHECKING:
    from lance_sdk.types import Record, RecordBatch


def as_lines(batch: "RecordBatch", separator: bytes) -> bytes:
    """Return the records' bytes, each followed by the separator."""
    values = [value for _, value in decode_records(batch.data)]
    return separator.join([*values, b""])


def as_json(batch: "RecordBatch") -> bytes:
    """Return one JSON object a line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(f"{encode(_object(record))}\n" for record in batch).encode()


def _object(record: "Record") -> dict[str, Any]:
    """Return a record's fields; ``encoding`` says how ``value`` stands for its bytes."""
    encoding, value = _text(record.value)
    return {
        "topic": record.topic,
        "offset": record.offset,
        "type": _type_name(record.type),
        "encoding": encoding,
        "value": value,
    }


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
