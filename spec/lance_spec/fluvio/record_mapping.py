"""Records of Fluvio as records of the log, and back.

A record with a time becomes a Timestamped record, one with a key and a time a KeyTimestamped
record, one with a key alone a KeyValue record, any other raw data. What was written otherwise
comes back as it stands: JSON and everything else without key and time.
"""

from struct import Struct
from typing import Final

from lance_spec.enums import RecordType
from lance_spec.errors import EncodeError
from lance_spec.fluvio.batches import NO_TIMESTAMP, FluvioRecord
from lance_spec.limits import MAX_RECORD_VALUE

_NS_PER_MS: Final = 1_000_000
_MAX_MS: Final = ((1 << 64) - 1) // _NS_PER_MS
_MAX_KEY: Final = 0xFFFF
_TIME: Final = Struct("<Q")
_TIME_AND_KEY: Final = Struct("<QH")
_KEY: Final = Struct("<H")


def to_tlv(record: FluvioRecord) -> tuple[int, bytes]:
    """Return a record's type, and what stands before its value (LWP section 8.3).

    Raises:
        EncodeError: the log has no room for its key, its time or its value.
    """
    value, key, time, _ = record
    kind, head = _before(key, time)
    if len(head) + len(value) > MAX_RECORD_VALUE:
        most = f"at most {MAX_RECORD_VALUE} bytes with key and time"
        raise EncodeError("Record", "value", most, f"{len(head) + len(value)} bytes")
    return kind, head


def _before(key: bytes | None, time: int) -> tuple[int, bytes]:
    if key is not None and len(key) > _MAX_KEY:
        raise EncodeError("Record", "key", f"at most {_MAX_KEY} bytes", f"{len(key)} bytes")
    if time == NO_TIMESTAMP:
        if key is None:
            return RecordType.RAW_DATA, b""
        return RecordType.KEY_VALUE, _KEY.pack(len(key)) + key
    if not 0 <= time <= _MAX_MS:
        raise EncodeError("Record", "timestamp", f"0 to {_MAX_MS} ms", str(time))
    ns = time * _NS_PER_MS
    if key is None:
        return RecordType.TIMESTAMPED, _TIME.pack(ns)
    return RecordType.KEY_TIMESTAMPED, _TIME_AND_KEY.pack(ns, len(key)) + key


def from_tlv(kind: int, value: bytes) -> FluvioRecord:
    """Return a record of the log as one of Fluvio's; times are cut to milliseconds.

    Args:
        kind: its type.
        value: its value, with key and time where the type has them. A value that is too short
            for these is taken as it stands.
    """
    if kind == RecordType.TIMESTAMPED and len(value) >= 8:
        return FluvioRecord(value[8:], None, _milliseconds(value))
    if kind == RecordType.KEY_TIMESTAMPED and len(value) >= 10:
        end = 10 + int.from_bytes(value[8:10], "little")
        if end <= len(value):
            return FluvioRecord(value[end:], value[10:end], _milliseconds(value))
    if kind == RecordType.KEY_VALUE and len(value) >= 2:
        end = 2 + int.from_bytes(value[:2], "little")
        if end <= len(value):
            return FluvioRecord(value[end:], value[2:end])
    return FluvioRecord(value)


def _milliseconds(value: bytes) -> int:
    return int.from_bytes(value[:8], "little") // _NS_PER_MS
