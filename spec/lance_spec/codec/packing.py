"""Several numbers in the bits of one 64-bit field (Design sections 13.10 and 29.1, AMB-16)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lance_spec.errors import DecodeError, EncodeError

_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class PackedNumber:
    """One number within a packed field.

    Attributes:
        name: what it is called.
        bits: how many bits it takes.
        doc: what it means, one sentence without its full stop.
    """

    name: str
    bits: int
    doc: str

    @property
    def largest(self) -> int:
        """The largest value that fits."""
        return (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class Packing:
    """How the bits of a packed field are divided.

    Attributes:
        name: name of the field.
        section: where its source defines it.
        parts: the numbers in it, the one in the highest bits first; they take all 64 bits.
    """

    name: str
    section: str
    parts: tuple[PackedNumber, ...]

    def __post_init__(self) -> None:
        bits = sum(part.bits for part in self.parts)
        if bits != _BITS:
            raise ValueError(f"the parts of {self.name} take {bits} bits; they must take {_BITS}")

    def shift(self, name: str) -> int:
        """Return how many bits lie below a part.

        Raises:
            KeyError: there is no such part.
        """
        below = _BITS
        for part in self.parts:
            below -= part.bits
            if part.name == name:
                return below
        raise KeyError(f"{self.name} has no part {name!r}")

    def pack(self, values: Mapping[str, int]) -> int:
        """Return the field's value, given every part.

        Raises:
            EncodeError: a part is missing, unknown, or does not fit.
        """
        unknown = set(values) - {part.name for part in self.parts}
        if unknown:
            raise EncodeError(self.name, min(unknown), "a part of the field", "another name")
        packed = 0
        for part in self.parts:
            value = values.get(part.name, -1)
            if not 0 <= value <= part.largest:
                got = str(values.get(part.name, "nothing"))
                raise EncodeError(self.name, part.name, f"0 to {part.largest}", got)
            packed = packed << part.bits | value
        return packed

    def unpack(self, value: int) -> dict[str, int]:
        """Return every part of a field's value.

        Raises:
            DecodeError: the value has more than 64 bits.
        """
        if not 0 <= value < 1 << _BITS:
            raise DecodeError(self.name, "", 0, f"0 to {(1 << _BITS) - 1}", str(value))
        return {part.name: value >> self.shift(part.name) & part.largest for part in self.parts}


_NODE: Final = PackedNumber("node", 16, "Number of the node")

NODE_ACTOR_SEQUENCE: Final = Packing(
    "node_actor_sequence",
    "Design section 13.10",
    (
        _NODE,
        PackedNumber("actor", 8, "Number of the ingestion actor on the node"),
        PackedNumber("sequence", 40, "Counter of the actor"),
    ),
)
"""The low half of a sort key."""

NODE_SEQUENCE: Final = Packing(
    "node_sequence", "AMB-16", (_NODE, PackedNumber("sequence", 48, "Counter of the node"))
)
"""The low half of a sort key as published servers write it."""

HLC_TIMESTAMP: Final = Packing(
    "hlc_timestamp",
    "Design section 29.1",
    (
        PackedNumber("physical_ms", 44, "Milliseconds since the Unix epoch"),
        PackedNumber("logical", 20, "Counter within the millisecond"),
    ),
)
"""A hybrid logical clock's time, the high half of a sort key in published servers."""

PACKINGS: Final = {each.name: each for each in (NODE_ACTOR_SEQUENCE, NODE_SEQUENCE, HLC_TIMESTAMP)}
"""Every packing by the name of the fields that it divides, in whatever message they stand."""
