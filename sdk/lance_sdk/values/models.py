"""Objects of classes with declared fields, as JSON and back.

Dataclasses and attrs classes are taken apart field by field; pydantic and msgspec write and read
their own. None of these packages is imported here: their classes are known by what they carry.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_spec.enums import RecordType

__all__ = ["Model", "is_model", "plain"]

_AS_TEXT: Final = (datetime, date, time, UUID)
_FROM_TEXT: Final[dict[object, Callable[[str], Any]]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
}


def is_model(kind: object) -> bool:
    """Whether something is a class of pydantic, msgspec or attrs, or a dataclass."""
    return isinstance(kind, type) and (
        is_dataclass(kind) or _is_pydantic(kind) or _is_msgspec(kind) or _is_attrs(kind)
    )


def _is_pydantic(kind: type) -> bool:
    return hasattr(kind, "__pydantic_validator__")


def _is_msgspec(kind: type) -> bool:
    return hasattr(kind, "__struct_fields__")


def _is_attrs(kind: type) -> bool:
    return hasattr(kind, "__attrs_attrs__")


def plain(value: Any) -> Any:
    """Return an object as what JSON has, for `json.JSONEncoder`; its parts may be objects again.

    Raises:
        TypeError: it is not an object of such a class, nor a time, a UUID or a member of an Enum.
    """
    kind = type(value)
    if _is_pydantic(kind):
        return kind.__pydantic_serializer__.to_python(value, mode="json")
    if _is_msgspec(kind):
        return import_module("msgspec").to_builtins(value)
    if is_dataclass(kind) or _is_attrs(kind):
        return {name: getattr(value, name) for name in _names(kind)}
    if isinstance(value, _AS_TEXT):
        return str(value) if isinstance(value, UUID) else value.isoformat()
    if isinstance(value, Enum):
        return value.value
    raise TypeError(
        f"{kind.__name__} {shorten(value)} is not JSON serializable; turn it into text, numbers, "
        f"lists and dicts, or send an object of a dataclass, pydantic, msgspec or attrs class"
    )


def _names(kind: Any) -> list[str]:
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return [attribute.name for attribute in kind.__attrs_attrs__]


def encoder_of(kind: type) -> Callable[[Any], bytes] | None:
    """Return how a library writes objects of its own class as JSON; None where it does not."""
    if _is_pydantic(kind):
        write: Callable[[Any], bytes] = kind.__pydantic_serializer__.to_json  # type: ignore[attr-defined]
        return write
    if _is_msgspec(kind):
        encode: Callable[[Any], bytes] = import_module("msgspec").json.encode
        return encode
    return None


class Model:
    """Objects of one class as JSON (0x02); ``values=Order`` is short for ``Model(Order)``.

    pydantic and msgspec check what they read. Of dataclasses and attrs classes the fields must be
    there, nested ones too; the types of plain fields are not checked, and fields that the class
    does not have are passed over.

    Args:
        model: a dataclass, or a class of pydantic, msgspec or attrs.
    """

    record_type = RecordType.JSON

    def __init__(self, model: Any) -> None:
        from lance_sdk.values.codecs import Json  # noqa: PLC0415 - it loads this module

        self._model = model
        self._json = Json()
        self._write = encoder_of(model) or self._json.encode
        self._read = self._reader(model)

    def __repr__(self) -> str:
        return f"Model({self._model.__name__})"

    def encode(self, value: Any) -> bytes:
        """Return an object as JSON."""
        if not isinstance(value, self._model):
            raise TypeError(
                f"values={self._model.__name__} takes objects of this class, not "
                f"{type(value).__name__}; "
                "make one, or use values='json' for any"
            )
        return self._write(value)

    def decode(self, data: bytes) -> Any:
        """Return the object that the JSON describes."""
        return self._read(data)

    def _reader(self, model: Any) -> Callable[[bytes], Any]:
        if _is_pydantic(model):
            read: Callable[[bytes], Any] = model.__pydantic_validator__.validate_json
            return read  # its ValidationError is a ValueError
        if _is_msgspec(model):
            return _msgspec_reader(model)
        return lambda data: build(model, self._json.decode(data))


def _msgspec_reader(model: type) -> Callable[[bytes], Any]:
    msgspec = import_module("msgspec")
    decoder = msgspec.json.Decoder(model)

    def read(data: bytes) -> Any:
        try:
            return decoder.decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error

    return read


def build(kind: Any, found: Any, where: str = "") -> Any:
    """Return what JSON says as an object of a class, or as what a type hint names.

    Raises:
        ValueError: it does not fit; the text names the field.
    """
    if is_model(kind):
        return _build_object(kind, found, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(found)
    if kind in _FROM_TEXT:
        if not isinstance(found, str):
            problem = f"{_at(where)}expected the text of a {kind.__name__}"
            raise ValueError(problem)
        return _FROM_TEXT[kind](found)
    return _build_generic(get_origin(kind), get_args(kind), found, where)


def _build_generic(origin: Any, hints: tuple[Any, ...], found: Any, where: str) -> Any:
    if origin in {Union, types.UnionType}:
        inner = [hint for hint in hints if hint is not type(None)]
        return build(inner[0], found, where) if len(inner) == 1 and found is not None else found
    if not hints or not isinstance(origin, type):
        return found
    if issubclass(origin, Mapping) and isinstance(found, dict):
        return {key: build(hints[-1], each, f"{where}[{key!r}]") for key, each in found.items()}
    if issubclass(origin, Sequence | set | frozenset) and isinstance(found, list):
        made = [build(hints[0], each, f"{where}[{n}]") for n, each in enumerate(found)]
        make: Any = list if origin is Sequence else origin
        return make(made)
    return found


def _build_object(kind: Any, found: Any, where: str) -> Any:
    if not isinstance(found, dict):
        problem = f"{_at(where)}expected an object of {kind.__name__}"
        raise ValueError(problem)  # noqa: TRY004 - the data are at fault, not the program
    given: dict[str, Any] = {}
    for name, (argument, hint) in _arguments(kind).items():
        if name in found:
            given[argument] = build(hint, found[name], f"{where}.{name}" if where else name)
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"{_at(where)}{error}") from None


def _at(where: str) -> str:
    return f"{where}: " if where else ""


@lru_cache(maxsize=256)
def _arguments(kind: Any) -> dict[str, tuple[str, Any]]:
    """Return the fields that the constructor takes: their arguments' names and type hints."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return {field.name: (field.name, hints[field.name]) for field in fields(kind) if field.init}
    return {
        attribute.name: (attribute.alias, hints.get(attribute.name, attribute.type))
        for attribute in kind.__attrs_attrs__
        if attribute.init
    }
