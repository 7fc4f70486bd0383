"""Numbers in the bits of a field (Design sections 13.10 and 29.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.codec.packing import (
    HLC_TIMESTAMP,
    NODE_ACTOR_SEQUENCE,
    PACKINGS,
    PackedNumber,
    Packing,
)
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.ir.families import messages

EACH = pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)


@EACH
@given(st.integers(0, 2**64 - 1))
def test_what_is_taken_out_can_be_put_back(packing: Packing, value: int) -> None:
    """No bit is lost or doubled."""
    assert packing.pack(packing.unpack(value)) == value


@EACH
def test_the_parts_take_all_bits(packing: Packing) -> None:
    """A full field is every part at its largest."""
    assert packing.pack({part.name: part.largest for part in packing.parts}) == 2**64 - 1


def test_a_sort_key_orders_by_node_then_actor_then_sequence() -> None:
    """Design section 13.10: the node stands in the highest bits."""
    low = NODE_ACTOR_SEQUENCE.pack({"node": 0, "actor": 255, "sequence": 2**40 - 1})
    high = NODE_ACTOR_SEQUENCE.pack({"node": 1, "actor": 0, "sequence": 0})
    assert low < high == 1 << 48


def test_a_hybrid_clock_counts_milliseconds_above_a_counter() -> None:
    """Design section 29.1: 44 bits and 20 bits."""
    assert HLC_TIMESTAMP.pack({"physical_ms": 1, "logical": 3}) == (1 << 20) + 3


@EACH
def test_every_packing_divides_a_field_of_the_grammar(packing: Packing) -> None:
    """A packing of no field would be dead."""
    fields = [each for m in messages().values() for each in m.fields if each.name == packing.name]
    assert fields
    assert all(each.size == 8 for each in fields)


@pytest.mark.parametrize(
    ("values", "at_fault"),
    [
        ({"node": 2**16, "actor": 0, "sequence": 0}, "node"),
        ({"node": 0, "actor": -1, "sequence": 0}, "actor"),
        ({"node": 0, "actor": 0}, "sequence"),
        ({"node": 0, "actor": 0, "sequence": 0, "shard": 1}, "shard"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(values: dict[str, int], at_fault: str) -> None:
    """Cutting it to size would give two records one key."""
    with pytest.raises(EncodeError) as caught:
        NODE_ACTOR_SEQUENCE.pack(values)
    assert caught.value.field == at_fault


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_value_of_more_than_64_bits_is_refused(value: int) -> None:
    """It did not come out of such a field."""
    with pytest.raises(DecodeError):
        NODE_ACTOR_SEQUENCE.unpack(value)


def test_an_unknown_part_has_no_place() -> None:
    """The error names the field and the part."""
    with pytest.raises(KeyError, match="shard"):
        NODE_ACTOR_SEQUENCE.shift("shard")


def test_a_packing_that_leaves_bits_over_is_refused() -> None:
    """A slip in a declaration is found where it is made."""
    with pytest.raises(ValueError, match="60 bits"):
        Packing("short", "AMB-16", (PackedNumber("all", 60, "Everything"),))
