"""QWP's packed times: the bits of each change, and how many bytes they take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages import qwp
from lance_spec.messages.qwp import TimeEncoding
from lance_spec.qwp import gorilla
from lance_spec.qwp.upgrade import payload_class

WIDE = st.integers(-(2**63), 2**63 - 1)
CHANGES = st.lists(st.integers(-(2**13), 2**13) | st.integers(-(2**31), 2**31 - 1), max_size=20)


def times(changes: list[int]) -> list[int]:
    """Times whose distances change like this, from 0 on."""
    found = [0, 0]
    for each in changes:
        found.append(2 * found[-1] - found[-2] + each)
    return found


@pytest.mark.parametrize(
    ("change", "bits"),
    [
        (0, "0"),
        (1, "10 1000000"),
        (-64, "10 0000001"),
        (63, "10 1111110"),
        (64, "110 000000100"),
        (-256, "110 000000001"),
        (256, "1110 000000001000"),
        (-2048, "1110 000000000001"),
        (2048, "1111 00000000000100000000000000000000"),
    ],
)
def test_each_change_takes_the_fewest_bits(change: int, bits: str) -> None:
    """A prefix, then the change; in this text the lowest bit of a byte stands first."""
    packed = gorilla.pack(times([change]))
    assert packed is not None
    shown = "".join(f"{each:08b}"[::-1] for each in packed[16:])
    assert shown == bits.replace(" ", "").ljust(len(shown), "0")


@given(CHANGES)
def test_packed_times_come_back(changes: list[int]) -> None:
    """Whatever their changes are, within 32 bits."""
    packed = gorilla.pack(times(changes))
    assert packed is not None
    assert gorilla.unpack(packed, len(changes) + 2) == times(changes)
    assert gorilla.size_of(packed + b"more", len(changes) + 2) == len(packed)


@given(st.lists(WIDE, max_size=6))
def test_any_times_are_packed_or_refused(values: list[int]) -> None:
    """A change beyond 32 bits has no form; the column is sent plainly then."""
    packed = gorilla.pack(values)
    assert packed is None or gorilla.unpack(packed, len(values)) == values


@given(CHANGES.filter(bool), st.data())
def test_a_cut_is_noticed(changes: list[int], data: st.DataObject) -> None:
    """Wherever the bytes end."""
    packed = gorilla.pack(times(changes))
    assert packed is not None
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    assert gorilla.size_of(cut, len(changes) + 2) is None
    with pytest.raises(ValueError, match="end inside"):
        gorilla.unpack(cut, len(changes) + 2)


def test_a_change_of_more_than_32_bits_is_not_packed() -> None:
    """2^31 is the first that does not fit."""
    assert gorilla.pack([0, 0, 2**31 - 1]) is not None
    assert gorilla.pack([0, 0, 2**31]) is None


def block(encoding: TimeEncoding, values: bytes, rows: int) -> qwp.GorillaTable:
    """A table with one column of times."""
    column = qwp.ColumnDefinition(name="", type=qwp.ColumnType.TIMESTAMP)
    section = qwp.TimestampColumn(nulls=None, encoding=encoding, values=values)
    return qwp.GorillaTable(name="t", row_count=rows, columns=[column], sections=[section])


def test_a_column_says_how_its_times_are_written() -> None:
    """QWP wire ingress: 0 for 8 bytes each, 1 for packed ones."""
    packed = gorilla.pack([10, 20, 30])
    assert packed is not None
    for each in (block(TimeEncoding.GORILLA, packed, 3), block(TimeEncoding.PLAIN, bytes(24), 3)):
        assert qwp.GorillaTable.decode(each.encode()) == each


def test_times_that_are_too_few_or_too_many_are_refused() -> None:
    """As many as the table has rows, when written and when read."""
    packed = gorilla.pack([10, 20, 30])
    assert packed is not None
    with pytest.raises(EncodeError, match="4 packed times"):
        block(TimeEncoding.GORILLA, packed[:16], 4).encode()
    wire = block(TimeEncoding.GORILLA, packed, 3).encode()
    with pytest.raises(DecodeError, match="packed times"):
        qwp.GorillaTable.decode(wire[:-1])


def test_a_count_of_times_that_cannot_be_takes_no_time() -> None:
    """Rows that are not there are refused before a bit is read."""
    wire = bytearray(block(TimeEncoding.GORILLA, bytes(16), 2).encode())
    wire[2:3] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    with pytest.raises(DecodeError, match="times"):
        qwp.GorillaTable.decode(bytes(wire))


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (0x00, "LocalPayload"),
        (0x04, "LocalGorillaPayload"),
        (0x08, "Payload"),
        (0x09, "Payload"),
        (0x0C, "GorillaPayload"),
    ],
)
def test_two_flags_choose_the_payload(flags: int, name: str) -> None:
    """QWP wire ingress: DEFER_COMMIT changes nothing about the layout."""
    assert payload_class(flags).__name__ == name
