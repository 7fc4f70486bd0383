"""Values on their way into a producer: what is a record, and what is not."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import LocalProtocolError, UnsafeRecordType
from lance_sdk.types import KEYED, Buffer
from lance_sdk.values.codecs import codec_for, codec_of_type
from lance_sdk.values.keyed import Time, check_layout, join
from lance_spec.dialect import Dialect
from lance_spec.enums import RecordType

CHUNK: Final = 512
"""Values of an iterable that are taken, and added, at a time: enough to make the lock cheap,
few enough not to keep the driver waiting."""

_RESERVED: Final = 0x00
_STORED_BYTES: Final = (
    "record type {:#04x} holds a key or a time besides the value: pass key= and timestamp=; "
    "to store a record once more use send_raw(record.raw, record.type)"
)
_NO_VALUE: Final = (
    "None is sent as a tombstone, which has no type of its own: leave out record_type={:#04x}, or "
    "send b''"
)
_BYTES: Final = (bytes, bytearray, memoryview)
_PAIR: Final = 2


class _Nothing:
    """A type that no value has: with a codec, every value must be made into a record."""


class RecordMaker:
    """Turns what ``send`` is given into a record's value and type.

    Args:
        values: the ``values`` option.
        allow_unsafe: the ``allow_unsafe_types`` option.

    Attributes:
        plain: values of exactly this type are records of type 0x01 as they stand.

    Raises:
        ConfigError: ``values`` is not a codec.
    """

    def __init__(self, values: Any, *, allow_unsafe: bool) -> None:
        self._codec = None if values is None else codec_for(values)
        self._allow_unsafe = allow_unsafe
        self.plain: type = bytes if values is None else _Nothing

    def __repr__(self) -> str:
        return f"<RecordMaker {self._codec!r}>"

    def make(
        self,
        value: Any,
        dialect: Dialect | None,
        *,
        key: bytes | str | None = None,
        timestamp: Time | None = None,
        record_type: int | None = None,
    ) -> tuple[bytes, int]:
        """Return a record's value and type (LWP section 8).

        Raises:
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: LWP has no room for it.
            TypeError: the value is of a kind that the codec does not take.
            ValueError: the codec cannot write it.
        """
        keyed = key is not None or timestamp is not None
        if value is None:
            raw, found = b"", RecordType.NULL if record_type is None else record_type
        else:
            raw, found = self._encode(value, record_type)
        if keyed:
            raw, found = join(raw, key, timestamp)
            _check_free(record_type, found)
        elif value is None and found != RecordType.NULL:
            raise LocalProtocolError(_NO_VALUE.format(found))
        elif found in KEYED:
            raise LocalProtocolError(_STORED_BYTES.format(found))
        check_type(found, dialect, allow_unsafe=self._allow_unsafe)
        check_null(raw, found)
        return raw, found

    def make_raw(self, raw: Buffer, record_type: int, dialect: Dialect | None) -> tuple[bytes, int]:
        """Return stored bytes and their type as a record; no codec is asked.

        Raises:
            UnsafeRecordType: the type cannot be sent (AMB-13).
            LocalProtocolError: the bytes are not laid out as the type says.
            TypeError: they are not bytes.
        """
        data = as_bytes(raw)
        check_type(record_type, dialect, allow_unsafe=self._allow_unsafe)
        if record_type in KEYED:
            check_layout(record_type, data)
        check_null(data, record_type)
        return data, record_type

    def raw_chunks(
        self, raws: Iterable[Buffer], record_type: int, dialect: Dialect | None
    ) -> Iterator[list[bytes]]:
        """Yield stored bytes as lists; raises what `make_raw` does.

        It runs the caller's iterable, so it is never used under a lock.
        """
        source = _several("send_many_raw", "send_raw", raws)
        while chunk := list(islice(source, CHUNK)):
            yield [self.make_raw(raw, record_type, dialect)[0] for raw in chunk]

    def pairs(self, records: Iterable[Any], dialect: Dialect | None) -> list[tuple[bytes, int]]:
        """Return stored bytes and types as records; raises what `make_raw` does."""
        given = list(records)
        for each in given:
            if not isinstance(each, tuple | list) or len(each) != _PAIR:
                raise TypeError(
                    "send_records() takes pairs of stored bytes and record type, as in "
                    f"(record.raw, record.type), not {type(each).__name__}"
                )
        return [self.make_raw(raw, kind, dialect) for raw, kind in given]

    def _encode(self, value: Any, record_type: int | None) -> tuple[bytes, int]:
        if record_type is not None:
            if isinstance(value, _BYTES):
                return bytes(value), record_type
            return codec_of_type(record_type).encode(value), record_type
        if self._codec is not None:
            return self._codec.encode(value), self._codec.record_type
        if hasattr(value, "SerializeToString"):
            return value.SerializeToString(), RecordType.PROTOBUF
        return codec_of_type(RecordType.RAW_DATA).encode(value), RecordType.RAW_DATA

    def chunks(
        self, values: Iterable[Any], record_type: int | None, dialect: Dialect | None
    ) -> Iterator[tuple[list[bytes], int]]:
        """Yield the values as lists of bytes of one type; raises what `make` does.

        It runs the caller's iterable, so it is never used under a lock.
        """
        source = _several("send_many", "send", values)
        while chunk := list(islice(source, CHUNK)):
            if record_type is None and set(map(type, chunk)) == {self.plain}:
                yield chunk, RecordType.RAW_DATA
                continue
            made = [self.make(value, dialect, record_type=record_type) for value in chunk]
            for kind, pairs in groupby(made, key=itemgetter(1)):
                yield [raw for raw, _ in pairs], kind


def _several(called: str, for_one: str, values: Iterable[Any]) -> Iterator[Any]:
    """Return an iterator over values, refusing what is plainly one value.

    Raises:
        TypeError: it is one, or is not iterable.
    """
    if isinstance(values, (*_BYTES, str, Mapping)) or not hasattr(values, "__iter__"):
        raise TypeError(
            f"{called}() takes a list of values, or another iterable, not "
            f"{type(values).__name__}; one value goes through {for_one}()"
        )
    return iter(values)


def _check_free(asked: int | None, found: int) -> None:
    if asked not in {None, found}:
        raise LocalProtocolError(
            f"record_type={asked:#04x} has no room for key= or timestamp=, with which a record is "
            f"of type {found:#04x}: leave it out; values= says how to write the value. (LWP "
            "section 8.3)"
        )


def as_bytes(value: object) -> bytes:
    """Return the value's bytes, copied where the caller could still change them.

    Raises:
        TypeError: when it has none.
    """
    return codec_of_type(RecordType.RAW_DATA).encode(value)


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
            f"there when it recovers; allow_unsafe_types=True sends it all the same. (AMB-13)"
        )
    if record_type == _RESERVED:
        raise UnsafeRecordType(
            "record type 0x00 is reserved; use RecordType.RAW_DATA. (LWP section 8.2)"
        )


def check_null(value: bytes, record_type: int) -> None:
    """Refuse a tombstone with a value (AMB-12).

    Raises:
        UnsafeRecordType: when it has one.
    """
    if record_type == RecordType.NULL and value:
        raise UnsafeRecordType(
            f"a tombstone has no value, got {len(value)} bytes; send None, or leave record_type "
            f"out. (AMB-12)"
        )
