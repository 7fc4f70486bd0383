"""How Fluvio writes its primitive types; every number has its high byte first."""

from typing import Any

from construct import Construct, Int8ub, Int16sb, Int16ub, Int32sb

from lance_spec.grammar._composed import ZIGZAG, Blob, Many, Maybe, Nested
from lance_spec.grammar._vocab import Declaration, field, message

CORRECTED = ("FLV-01",)
"""Fields that the published reference leaves out or gets wrong."""

STRING = Blob(Int16sb, text=True)
"""Its length is signed: a negative one is refused instead of being read as an empty text."""
OPTION_STRING = Maybe(STRING)
BYTES = Blob(Int32sb)
RECORD_BYTES = Blob(ZIGZAG)
"""Keys and values of records."""


def fluvio(section: str) -> str:
    """Return the citation of a section of the Fluvio protocol reference."""
    return f"Fluvio reference, {section}"


def corrected(name: str, parser: Construct, doc: str, **facts: Any) -> Construct:
    """Return a field that the reference does not describe, or not as programs write it."""
    return field(name, parser, doc=doc, section="FLV-01", ambiguities=CORRECTED, **facts)


def corrected_message(
    name: str, *fields: Construct, doc: str, since: int | None = None
) -> Declaration:
    """Return a message that the reference does not describe."""
    return message(name, *fields, doc=doc, section="FLV-01", since=since, ambiguities=CORRECTED)


def vec(declaration: Declaration) -> Many:
    """Return a list of messages, counted in 32 bits."""
    return Many(Int32sb, Nested(declaration))


def mapping(declaration: Declaration) -> Many:
    """Return the entries of a map, which are counted in 16 bits."""
    return Many(Int16ub, Nested(declaration))


def flag(name: str, doc: str, **facts: Any) -> Construct:
    """Return a byte that is 0 or 1."""
    return corrected(name, Int8ub, doc, boolean=True, **facts)
