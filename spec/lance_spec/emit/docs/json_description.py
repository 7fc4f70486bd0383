"""Back end: the grammar as JSON, from which other languages can make their own codec."""

import dataclasses
import json
from enum import IntEnum, IntFlag
from typing import Any

from lance_spec.codec.packing import PACKINGS, Packing
from lance_spec.emit._enums import named_values
from lance_spec.grammar._vocab import Crc, FrameForm
from lance_spec.ir.nodes import Difference, Family, Field, LengthField, Message
from lance_spec.ir.shapes import Shape


def render(family: Family) -> str:
    """Return a family as a JSON document.

    It holds everything that a codec needs: fields in wire order with type, offset and length,
    constants, limits, checksums, the names of values, and which command or record type carries
    which message. Numbers are little-endian, in composed families as their shape says; a message
    must be read exactly to its end.
    """
    document = {
        "generatedBy": "python -m lance_spec emit",
        "family": family.name,
        "doc": family.doc,
        "byteOrder": "see shapes" if family.composed else "little",
        **({"versions": list(family.versions)} if family.versions else {}),
        "enums": {each.__name__: _enum(each) for each in named_values(family)},
        "frames": [_frame(each) for each in family.frames],
        "messages": [_message(each) for each in family.messages],
    }
    return json.dumps(document, indent=2) + "\n"


def _enum(names: type[IntEnum | IntFlag]) -> dict[str, Any]:
    return {
        "kind": "flags" if issubclass(names, IntFlag) else "values",
        "names": {str(each.name): int(each) for each in names},
    }


def _frame(form: FrameForm) -> dict[str, Any]:
    return {
        "kind": form.kind,
        "flag": int(form.flag),
        "sender": form.sender,
        "zeroFields": list(form.zero_fields),
        "payload": form.payload,
        "doc": form.doc,
        "section": form.section,
        "ambiguities": list(form.ambiguities),
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "name": message.name,
        "doc": message.doc,
        "section": message.section,
        "ambiguities": list(message.ambiguities),
        "command": message.command,
        "recordType": message.record_type,
        "sender": message.sender,
        "size": message.size,
        "minimumSize": message.minimum_size,
        **({} if message.since is None else {"since": message.since}),
        "fields": [_field(each) for each in message.fields],
    }


def _field(field: Field) -> dict[str, Any]:
    facts = field.facts
    names = facts.enum or facts.flags
    described: dict[str, Any] = {
        "name": field.name,
        "type": field.type_name,
        "offset": field.offset,
        "size": field.size,
        "doc": facts.doc,
        "section": facts.section,
        "ambiguities": list(facts.ambiguities),
    }
    optional = {
        "length": _length(field),
        "lengthOf": field.length_of or None,
        "shape": None if field.shape is None else _shape(field.shape),
        "plus": field.plus or None,
        "since": facts.since,
        "until": facts.until,
        "closed": facts.closed or None,
        "const": field.const.hex() if isinstance(field.const, bytes) else field.const,
        "reserved": facts.reserved or None,
        "unit": facts.unit or None,
        "names": names.__name__ if names else None,
        "boolean": facts.boolean or None,
        "bounds": list(facts.bounds) if facts.bounds else None,
        "checksum": _checksum(facts.checksum) if facts.checksum else None,
        "bits": _bits(PACKINGS[field.name]) if field.name in PACKINGS else None,
    }
    return described | {name: value for name, value in optional.items() if value is not None}


def _shape(shape: Shape) -> dict[str, Any]:
    """Describe a shape by its kind and what that kind is made of."""
    described: dict[str, Any] = {"kind": type(shape).__name__.lower()}
    for each in dataclasses.fields(shape):
        value = getattr(shape, each.name)
        if each.name == "cases":
            value = {str(tag): nested.name for tag, nested in value}
        elif dataclasses.is_dataclass(value):
            value = _shape(value)  # type: ignore[arg-type]  # shapes contain only shapes
        described[each.name] = value
    return described


def _length(field: Field) -> dict[str, str] | None:
    if isinstance(field.length, LengthField):
        return {"field": field.length.name}
    if isinstance(field.length, Difference):
        return {"end": field.length.end, "start": field.length.start}
    return None if field.length is None else {"rest": "of the message"}


def _bits(packing: Packing) -> list[dict[str, Any]]:
    """Return the numbers within a field, the one in the highest bits first."""
    return [
        {"name": part.name, "bits": part.bits, "shift": packing.shift(part.name), "doc": part.doc}
        for part in packing.parts
    ]


def _checksum(checksum: Crc) -> dict[str, Any]:
    over = checksum.over if isinstance(checksum.over, str) else list(checksum.over)
    return {"over": over, "algorithm": checksum.algorithm}
