"""Records into values; the methods of `lance_sdk.types.Record` end here."""

from typing import Any

from lance_sdk.errors import UndecodableRecord
from lance_sdk.types import Record
from lance_sdk.values.codecs import codec_for, codec_of_type
from lance_sdk.values.keyed import KeyedParts, split
from lance_spec.errors import DecodeError


def parts_of(record: Record) -> KeyedParts:
    """Take a record's value apart.

    Raises:
        UndecodableRecord: it is not laid out as its type says (LWP section 8.3).
    """
    try:
        return split(record.type, record.raw)
    except DecodeError as error:
        raise _undecodable(record, str(error)) from error


def value_of(record: Record, values: Any) -> Any:
    """Return what a record says.

    Args:
        record: the record.
        values: how to read its body; None goes by its type.

    Raises:
        UndecodableRecord: the body is not what the codec reads.
    """
    if record.is_tombstone:
        return None
    codec = codec_of_type(record.type) if values is None else codec_for(values)
    body = parts_of(record).body
    try:
        return codec.decode(body)
    except (ValueError, RecursionError) as error:  # the bytes are at fault, however deep
        raise _undecodable(
            record, f"{repr(codec).removesuffix('()')} cannot read it: {error}"
        ) from error


def _undecodable(record: Record, why: str) -> UndecodableRecord:
    return UndecodableRecord(
        f"record at offset {record.offset} of {record.topic or 'the topic'} "
        f"(type {record.type:#04x}, {len(record.raw)} bytes): {why}; its bytes are in record.raw",
        record,
    )
