"""The named values that a family speaks of."""

from enum import IntEnum, IntFlag

from lance_spec.enums import Command, ErrorCode, Flag, RecordType
from lance_spec.ir.nodes import Family

_WIRE: tuple[type[IntEnum | IntFlag], ...] = (Flag, Command, RecordType, ErrorCode)


def named_values(family: Family) -> list[type[IntEnum | IntFlag]]:
    """Return the enumerations of a family; one with frames has all those of the wire."""
    found: list[type[IntEnum | IntFlag]] = list(_WIRE) if family.frames else []
    for message in family.messages:
        for field in message.fields:
            found += [each for each in (field.facts.enum, field.facts.flags) if each]
    return list(dict.fromkeys(found))
