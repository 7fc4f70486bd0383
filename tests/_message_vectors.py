"""The vectors whose bytes are one flat message, for tests of what is generated from the grammar."""

from lance_spec import vectors
from lance_spec.ir.families import message
from lance_spec.vectors import Vector

_FAMILIES = ("control_payload", "engine_message", "fetch_response", "tlv_decode")


def payloads() -> list[Vector]:
    """The vectors whose bytes are one message; checksums are left to who reads it."""
    return [
        vector
        for family in _FAMILIES
        for vector in vectors.load(family)
        if vector.group["type"] != "TlvDecode"
        and vector.outcomes[0].get("reason") != "checksum"
        and "." not in name_of(vector)
    ]


def name_of(vector: Vector) -> str:
    """The message that a vector is about."""
    return str(vector.test.get("message", vector.group.get("message")))


def expected(vector: Vector) -> dict[str, str] | None:
    """The fields of a valid vector, as text, or None for an invalid one."""
    if vector.result != "valid":
        return None
    integers = {each.name for each in message(name_of(vector)).fields if each.is_integer}
    fields = {name: value for name, value in vector.test["fields"].items() if name != "whole"}
    return {name: str(int(v)) if name in integers else v for name, v in fields.items()}
