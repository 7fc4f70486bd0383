"""Values on their way into a producer: what is a record, and what is not."""

from collections.abc import Iterable, Iterator
from itertools import islice

from lance_sdk._units import shorten
from lance_sdk.errors import UnsafeRecordType
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import RecordType

CHUNK = 512
"""Values of an iterable that are taken, and added, at a time: enough to make the lock cheap,
few enough not to keep the pump waiting."""

_RESERVED = 0x00


def as_bytes(value: object) -> bytes:
    """Return the value's bytes, copied where the caller could still change them.

    Raises:
        TypeError: when it has none.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    hint = "; encode text first, as in value.encode()" if isinstance(value, str) else ""
    raise TypeError(f"a record's value must be bytes, not {type(value).__name__}{hint}")


def check_type(record_type: object, dialect: Dialect | None, *, allow_unsafe: bool) -> None:
    """Refuse a record type that cannot be sent (LWP section 8.2, AMB-13).

    Args:
        record_type: the type.
        dialect: what the server speaks.
        allow_unsafe: the ``allow_unsafe_types`` option.

    Raises:
        UnsafeRecordType: saying what is wrong with it.
    """
    if not isinstance(record_type, int) or not 0 <= record_type <= 0xFF:
        raise UnsafeRecordType(f"record type {shorten(record_type)}: expected 0x01 to 0xff")
    if allow_unsafe or record_type not in {_RESERVED, RecordType.NULL}:
        return
    if dialect is not None and not dialect.all_record_types:
        raise UnsafeRecordType(
            f"record type {record_type:#04x}: a server of dialect {dialect.name!r} cuts its log "
            f"there when it recovers (AMB-13); allow_unsafe_types=True sends it all the same"
        )
    if record_type == _RESERVED:
        raise UnsafeRecordType(
            "record type 0x00 is reserved (LWP section 8.2); use RecordType.RAW_DATA"
        )


def check_null(value: bytes, record_type: int) -> None:
    """Refuse a tombstone with a value (AMB-12).

    Raises:
        UnsafeRecordType: when it has one.
    """
    if record_type == RecordType.NULL and value:
        raise UnsafeRecordType(f"a NULL record has no value (AMB-12), got {len(value)} bytes")


def chunks(values: Iterable[Buffer], record_type: int) -> Iterator[list[bytes]]:
    """Yield the values as lists of bytes; runs the caller's iterable, so never under a lock.

    Raises:
        TypeError: when a value is not bytes.
    """
    source = iter(values)
    while chunk := list(islice(source, CHUNK)):
        ready = [value if type(value) is bytes else as_bytes(value) for value in chunk]
        if record_type == RecordType.NULL:
            for value in ready:
                check_null(value, record_type)
        yield ready
