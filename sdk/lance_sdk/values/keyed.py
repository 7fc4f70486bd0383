"""Records that carry a key, a time, or both (LWP section 8.3)."""

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import LocalProtocolError
from lance_sdk.values.keyed_parts import KeyedParts
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.lwp import KeyTimestamped, KeyValue, Timestamped

__all__ = ["KeyedParts", "Time", "as_moment_ns", "as_time_ns", "join", "split"]

Time: TypeAlias = int | datetime
"""Nanoseconds since the Unix epoch, or a datetime with a time zone."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LATEST: Final = 2**64 - 1


def join(body: bytes, key: bytes | str | None, timestamp: Time | None) -> tuple[bytes, int]:
    """Return a record's value with its key and time before it, and its type.

    Raises:
        LocalProtocolError: LWP has no room for such a key or time.
        TypeError: it is neither.
    """
    raw = None if key is None else _key_bytes(key)
    when = None if timestamp is None else as_time_ns("timestamp", timestamp)
    try:
        if raw is None:
            assert when is not None, "somebody asked for a key or a time"
            return Timestamped(when, body).encode(), RecordType.TIMESTAMPED
        if when is None:
            return KeyValue(raw, body).encode(), RecordType.KEY_VALUE
        return KeyTimestamped(when, raw, body).encode(), RecordType.KEY_TIMESTAMPED
    except EncodeError:
        size = 0 if raw is None else len(raw)
        raise LocalProtocolError(
            f"a key of {size} bytes: LWP has room for 65535; put the rest into the value"
        ) from None


def split(record_type: int, value: bytes) -> KeyedParts:
    """Take a record's value apart.

    Raises:
        DecodeError: the value is not laid out as its type says.
    """
    if record_type == RecordType.KEY_VALUE:
        pair = KeyValue.decode(value)
        return KeyedParts(pair.value, pair.key)
    if record_type == RecordType.TIMESTAMPED:
        timed = Timestamped.decode(value)
        return KeyedParts(timed.data, None, timed.timestamp_ns)
    if record_type == RecordType.KEY_TIMESTAMPED:
        both = KeyTimestamped.decode(value)
        return KeyedParts(both.value, both.key, both.timestamp_ns)
    return KeyedParts(value)


def check_layout(record_type: int, value: bytes) -> None:
    """Refuse a value that is not laid out as its type says.

    Raises:
        LocalProtocolError: naming what is missing.
    """
    try:
        split(record_type, value)
    except DecodeError as error:
        raise LocalProtocolError(
            f"not the stored bytes of a record of type {record_type:#04x}: {error}; pass "
            "record.raw with record.type, or the value with key= and timestamp= to send()"
        ) from None


def as_time_ns(name: str, when: Time) -> int:
    """Return a time as nanoseconds since the Unix epoch.

    Args:
        name: the parameter, for the error.
        when: the time.

    Raises:
        TypeError: it is not a time.
        LocalProtocolError: it cannot be written, or says no time zone.
    """
    if isinstance(when, datetime):
        when = _since_epoch(name, when)
    if isinstance(when, bool) or not isinstance(when, int):
        kind = type(when).__name__
        raise TypeError(f"{name} must be nanoseconds since the epoch or a datetime, not {kind}")
    if not 0 <= when <= _LATEST:
        raise LocalProtocolError(f"{name}={shorten(when)}: expected 0 to {_LATEST} nanoseconds")
    return when


def as_moment_ns(name: str, when: datetime) -> int:
    """Return the time from which a log is read; one that no log reaches is an end of all of them.

    Args:
        name: the parameter, for the error.
        when: the time.

    Raises:
        LocalProtocolError: it says no time zone.
    """
    return min(max(0, _since_epoch(name, when)), _LATEST)


def _since_epoch(name: str, when: datetime) -> int:
    if when.tzinfo is None:
        raise LocalProtocolError(
            f"{name}={shorten(when)} says no time zone; use datetime.now(timezone.utc)"
        )
    return (when - _EPOCH) // _MICROSECOND * 1000


def as_datetime(timestamp_ns: int) -> datetime:
    """Return a time as a datetime in UTC, cut to microseconds.

    Raises:
        OverflowError: it lies beyond the year 9999.
    """
    return _EPOCH + timedelta(microseconds=timestamp_ns // 1000)


def _key_bytes(key: bytes | str) -> bytes:
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes | bytearray | memoryview):
        return bytes(key)
    raise TypeError(f"a key must be text or bytes, not {type(key).__name__}; write str(key)")
