"""The codecs of LWP's record types (LWP section 8.2)."""

import json
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError
from lance_sdk.values.contract import Codec
from lance_spec.enums import RecordType

__all__ = ["Avro", "Json", "MessagePack", "Protobuf", "Raw", "Text", "codec_for", "codec_of_type"]


class Raw:
    """Bytes as they are (0x01, unless another type is given).

    Args:
        record_type: the TLV type, for example an application's own from 0x80 to 0xFE.
    """

    def __init__(self, record_type: int = RecordType.RAW_DATA) -> None:
        self.record_type = record_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.record_type:#04x})"

    def encode(self, value: Any) -> bytes:
        """Return the value's bytes, copied where the caller could still change them."""
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise TypeError(f"a record's value must be bytes, not {type(value).__name__}{_hint(value)}")

    def decode(self, data: bytes) -> bytes:
        """Return the bytes."""
        return data


class Avro(Raw):
    """Bytes that an Avro writer made (0x05); which schema they follow is the application's."""

    def __init__(self) -> None:
        super().__init__(RecordType.AVRO)


class Text:
    """Text as UTF-8, in records of type 0x01."""

    record_type = RecordType.RAW_DATA

    def __repr__(self) -> str:
        return "Text()"

    def encode(self, value: Any) -> bytes:
        """Return the text as UTF-8."""
        if not isinstance(value, str):
            raise TypeError(
                f"values='text' takes text, not {type(value).__name__}; write str(value), or leave "
                "values= out to send bytes"
            )
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Return the text."""
        return data.decode()


_PLAIN: Final = frozenset({dict, list, str, int, float, bool, tuple})


class Json:
    """JSON as compact UTF-8 (0x02); NaN and infinities are refused, for JSON has none.

    Objects of dataclasses, pydantic, msgspec and attrs classes are written by their fields, also
    inside lists and dicts; datetimes as ISO 8601, UUIDs as text, members of an Enum by their value.
    """

    record_type = RecordType.JSON

    def __init__(self) -> None:
        self._encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_object
        ).encode

    def __repr__(self) -> str:
        return "Json()"

    def encode(self, value: Any) -> bytes:
        """Return the value as JSON."""
        kind = type(value)
        write = None if kind in _PLAIN else _models().encoder_of(kind)
        if write is not None:
            written: bytes = write(value)
            return written
        try:
            return self._encode(value).encode()
        except ValueError as error:
            if "float" not in str(error):
                raise
            raise ValueError(
                f"{error}: JSON has no NaN and no infinity; send None or text instead"
            ) from None

    def decode(self, data: bytes) -> Any:
        """Return what the JSON says."""
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _models() -> ModuleType:
    return import_module("lance_sdk.values.models")  # few programs need it


def _object(value: Any) -> Any:
    return _models().plain(value)


class MessagePack:
    """MessagePack (0x03); needs ``pip install 'lance-sdk[msgpack]'``."""

    record_type = RecordType.MESSAGE_PACK

    def __init__(self) -> None:
        self._msgpack = _msgpack()

    def __repr__(self) -> str:
        return "MessagePack()"

    def encode(self, value: Any) -> bytes:
        """Return the value as MessagePack; ``datetime`` as its timestamp extension."""
        packed: bytes = self._msgpack.packb(value, datetime=True)
        return packed

    def decode(self, data: bytes) -> Any:
        """Return what the MessagePack says; timestamps as ``datetime`` in UTC."""
        try:
            return self._msgpack.unpackb(data, timestamp=3, strict_map_key=False)
        except (self._msgpack.exceptions.UnpackException, RecursionError) as error:
            raise ValueError(str(error) or type(error).__name__) from error


def _msgpack() -> ModuleType:
    try:
        return import_module("msgpack")
    except ImportError:
        raise ConfigError("MessagePack needs `pip install 'lance-sdk[msgpack]'`") from None


class Protobuf:
    """Messages of one generated Protocol Buffers class (0x04).

    Args:
        message: the class, for example ``orders_pb2.Order``.
    """

    record_type = RecordType.PROTOBUF

    def __init__(self, message: Any) -> None:
        if not hasattr(message, "FromString"):
            raise ConfigError(f"Protobuf({shorten(message)}): expected a generated message class")
        self._message = message

    def __repr__(self) -> str:
        return f"Protobuf({self._message.__name__})"

    def encode(self, value: Any) -> bytes:
        """Return the message's bytes."""
        if not isinstance(value, self._message):
            raise TypeError(f"{self!r} takes messages of its class, not {type(value).__name__}")
        serialized: bytes = value.SerializeToString()
        return serialized

    def decode(self, data: bytes) -> Any:
        """Return the message."""
        try:
            return self._message.FromString(data)
        except Exception as error:
            # Its DecodeError is in a package that this one does not depend on.
            raise ValueError(str(error) or type(error).__name__) from error


_NAMED: Final[dict[str, Callable[[], Codec]]] = {
    "raw": Raw,
    "text": Text,
    "json": Json,
    "msgpack": MessagePack,
    "avro": Avro,
}
_OF_TYPE: Final[dict[int, Callable[[], Codec]]] = {
    RecordType.JSON: Json,
    RecordType.MESSAGE_PACK: MessagePack,
}


def codec_for(values: object) -> Codec:
    """Return the codec that a ``values=`` option names or is, or that writes a class's objects.

    Raises:
        ConfigError: it is none of these, or its package is missing.
    """
    if isinstance(values, str) and values in _NAMED:
        return _named(values)
    if isinstance(values, type):
        if (codec := _codec_of_class(values)) is not None:
            return codec
    elif isinstance(values, Codec):
        return values
    names = ", ".join(map(repr, _NAMED))
    raise ConfigError(
        f"values={shorten(values)}: expected {names}, a codec object, or a class: a dataclass, or "
        f"one of pydantic, msgspec, attrs or Protocol Buffers"
    )


@lru_cache(maxsize=256)
def _codec_of_class(kind: type) -> Codec | None:
    if hasattr(kind, "FromString"):
        return Protobuf(kind)
    models = _models()
    codec: Codec | None = models.Model(kind) if models.is_model(kind) else None
    return codec


@cache
def _named(name: str) -> Codec:
    return _NAMED[name]()


@lru_cache(maxsize=256)
def codec_of_type(record_type: int) -> Codec:
    """Return the codec for values of a record type; bytes alone where the type says no more."""
    make = _OF_TYPE.get(record_type)
    return Raw(record_type) if make is None else make()


def _hint(value: object) -> str:
    if isinstance(value, str):
        return "; encode text first, as in value.encode(), or use values='text'"
    if isinstance(value, dict | list | int | float):
        return "; values='json' on the producer encodes such values"
    if _models().is_model(type(value)):
        return f"; values='json' on the producer encodes it, values={type(value).__name__} too"
    return ""
