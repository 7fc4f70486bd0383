"""Family ``packed_field``: numbers in the bits of a 64-bit field."""

from collections.abc import Iterator
from typing import Any

from generate.codec.wire import u64
from generate.document import ACCEPT, Test, document, group, note

NOTES = {
    "Neighbour": note(
        "EDGE_CASE",
        "One part is full or empty and the others are the opposite.",
        "Code that shifts by one bit too many gives one part's bits to its neighbour.",
        "AMB-16",
    ),
}

FIELDS: dict[str, tuple[tuple[str, int], ...]] = {
    "node_actor_sequence": (("node", 16), ("actor", 8), ("sequence", 40)),
    "node_sequence": (("node", 16), ("sequence", 48)),
    "hlc_timestamp": (("physical_ms", 44), ("logical", 20)),
}
"""Parts of each field and their bits, from the top (AMB-16)."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "A 64-bit field as its eight little-endian bytes, and the numbers in its bits.",
        "Every string of eight bytes is valid; an encoder refuses numbers that do not fit.",
    ]
    groups = [
        group("PackedField", _tests(name, parts), field=name) for name, parts in FIELDS.items()
    ]
    return document("packed_field", header, NOTES, groups)


def _tests(field: str, parts: tuple[tuple[str, int], ...]) -> Iterator[Test]:
    zeros = {name: 0 for name, _ in parts}
    ones = {name: 2**bits - 1 for name, bits in parts}
    yield _test(field, parts, "zeros", "Zero in every part.", zeros)
    yield _test(field, parts, "ones", "The largest number in every part.", ones)
    for name, bits in parts:
        short = name.replace("_", "-")
        yield _test(field, parts, f"only-{short}", f"Only {name}.", zeros | {name: 2**bits - 1})
        yield _test(field, parts, f"one-{short}", f"A 1 in {name}.", zeros | {name: 1})
        yield _test(field, parts, f"no-{short}", f"All but {name}.", ones | {name: 0})
        top = zeros | {name: 2 ** (bits - 1)}
        yield _test(field, parts, f"top-{short}", f"The top bit of {name}.", top)
    others = {name: 0x5A5A5A5A5A5A5A5A % 2**bits for name, bits in parts}
    yield _test(field, parts, "others", "Other numbers.", others)


def _test(
    field: str, parts: tuple[tuple[str, int], ...], name: str, comment: str, values: dict[str, int]
) -> Test:
    packed = 0
    for part, bits in parts:
        packed = packed * 2**bits + values[part]
    return {
        "id": f"packed-{field.replace('_', '-')}-{name}",
        "comment": comment,
        "clause": f"AMB-16/{field.replace('_', '-')}",
        "level": "MUST",
        "basis": "decision",
        "bytes": u64(packed).hex(),
        "fields": {part: str(value) for part, value in values.items()},
        "result": "valid",
        "outcome": ACCEPT,
        "flags": ["Neighbour"] if name.startswith(("only-", "no-")) else [],
    }
