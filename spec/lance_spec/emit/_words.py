"""Phrases that several back ends print about messages and fields."""

import re

from lance_spec.ir.nodes import Field, Message


def snake(name: str) -> str:
    """Return a class name in lower case with underscores: ``FetchResponse``, ``fetch_response``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def c_bytes(value: bytes) -> str:
    """Return bytes as C and C++ both write them: a string, octal where a byte is not a letter."""
    chars = (chr(b) if chr(b).isalnum() and b < 128 else f"\\{b:03o}" for b in value)
    return f'(const uint8_t *)"{"".join(chars)}"'


def citation(section: str, ambiguities: tuple[str, ...]) -> str:
    """Return where something is defined: its section, then the register's ids, each once."""
    return ", ".join(dict.fromkeys((section, *ambiguities)))


def field_meaning(field: Field) -> str:
    """Return what a field means, with the names of its values."""
    names = field.facts.enum or field.facts.flags
    return f"{field.facts.doc}; names in `{names.__name__}`" if names else field.facts.doc


def with_unit(field: Field, separator: str = ", ") -> str:
    """Return what a field means and its unit, unless the sentence names that already."""
    unit = field.facts.unit
    if not unit or unit in field.facts.doc.lower().split():
        return field.facts.doc
    return f"{field.facts.doc}{separator}in {unit}"


def carrier(message: Message) -> str:
    """Return what carries a message and who sends it, or an empty string."""
    if message.command is not None:
        code = f"command {message.command.name} (0x{message.command:02X})"
        return f"Payload of {code}, sent by the {message.sender}"
    if message.record_type is not None:
        return f"Value of record type {message.record_type.name} (0x{message.record_type:02X})"
    return ""


def size_phrase(message: Message) -> str:
    """Return how long a message is."""
    if message.size is not None:
        return f"{message.size} bytes" if message.size else "empty"
    return f"{message.minimum_size} bytes or more" if message.minimum_size else "any length"
