"""QWP messages as published senders and servers exchange them."""

import dataclasses
import struct
from typing import Any

import pytest

from lance_spec.errors import DecodeError, EncodeError
from lance_spec.grammar.qwp.columns import SECTIONS
from lance_spec.messages import qwp
from lance_spec.messages.qwp import ColumnType
from lance_spec.qwp import upgrade

OBSERVED = bytes.fromhex(
    "51575031 01 08 0100 27000000"
    " 00 01 02 4130"
    " 01 74 01 03 03 73796d 09 01 76 05 00 0a"
    " 00 00 00 0000000000000000 00 00401e18240a0600"
)
"""What a published sender sent for one row: a symbol, a number and a time."""


def table(rows: int, *columns: tuple[ColumnType, Any]) -> qwp.TableBlock:
    """A table of some columns."""
    definitions = [
        qwp.ColumnDefinition(name=f"c{n}", type=kind) for n, (kind, _) in enumerate(columns)
    ]
    sections = [section for _, section in columns]
    return qwp.TableBlock(name="t", row_count=rows, columns=definitions, sections=sections)


def refusal(block: qwp.TableBlock) -> EncodeError:
    """The error that encoding a table raises."""
    with pytest.raises(EncodeError) as caught:
        block.encode()
    return caught.value


@pytest.fixture
def payload() -> qwp.Payload:
    """The payload of the observed message."""
    return qwp.Payload.decode(qwp.QwpMessage.decode(OBSERVED).payload)


def test_the_observed_message_is_read(payload: qwp.Payload) -> None:
    """A dictionary with one symbol, and one table with three columns."""
    assert payload.dictionary == qwp.Dictionary(start_id=0, symbols=["A0"])
    (block,) = payload.tables
    assert (block.name, block.row_count) == ("t", 1)
    assert [(each.name, each.type) for each in block.columns] == [
        ("sym", ColumnType.SYMBOL),
        ("v", ColumnType.LONG),
        ("", ColumnType.TIMESTAMP),
    ]


def test_the_observed_values_are_the_ones_that_were_sent(payload: qwp.Payload) -> None:
    """Id 0, the number 0, and a time in microseconds."""
    symbol, number, time = payload.tables[0].sections
    assert symbol == qwp.SymbolColumn(nulls=None, ids=[0])
    assert number == qwp.Column8(nulls=None, values=bytes(8))
    assert isinstance(time, qwp.Column8)
    assert struct.unpack("<q", time.values) == (1_700_000_000_000_000,)


def test_the_observed_message_is_written(payload: qwp.Payload) -> None:
    """Byte for byte."""
    message = qwp.QwpMessage(
        flags=qwp.MessageFlag.DELTA_DICTIONARY, table_count=1, payload=payload.encode()
    )
    assert message.encode() == OBSERVED


def test_the_header_is_12_bytes() -> None:
    """Magic, version, flags, number of tables, length."""
    assert qwp.QwpMessage.MIN_SIZE == 12
    assert len(qwp.QwpMessage(flags=0, table_count=0, payload=b"").encode()) == 12


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [(3, 0x32, "magic"), (4, 2, "version"), (8, 0x26, ""), (8, 0x28, "payload")],
)
def test_a_broken_header_is_refused(place: int, value: int, field: str) -> None:
    """Other letters, another version, or a length that is not that of the payload."""
    broken = bytearray(OBSERVED)
    broken[place] = value
    with pytest.raises(DecodeError) as caught:
        qwp.QwpMessage.decode(broken)
    assert caught.value.field == field


def test_every_type_has_a_section() -> None:
    """A definition that is read can be followed by its values."""
    assert {int(each) for each in SECTIONS} == {int(each) for each in ColumnType}


def test_an_unknown_type_is_refused() -> None:
    """Where its values end cannot be known; 0x08 is assigned to nothing."""
    wire = table(0).encode()[:-1] + bytes.fromhex("01 01 63 08")
    with pytest.raises(DecodeError, match=r"ColumnDefinition.type at byte 6: expected a value of"):
        qwp.TableBlock.decode(wire)


def test_null_bits_have_the_lowest_row_first() -> None:
    """Three rows, the second null: two values are sent."""
    block = table(3, (ColumnType.BYTE, qwp.Column1(nulls=b"\x02", values=b"\x07\x09")))
    assert block.encode().endswith(bytes.fromhex("01 02 07 09"))
    assert qwp.TableBlock.decode(block.encode()) == block


@pytest.mark.parametrize("flag", [2, 0x80, 0xFF])
def test_any_null_flag_but_zero_means_null_bits(flag: int) -> None:
    """Only 0 says that there are none; written is 1, so that a message has one form."""
    block = table(3, (ColumnType.BYTE, qwp.Column1(nulls=b"\x02", values=b"\x07\x09")))
    wire = block.encode()
    other = wire[:-4] + bytes([flag]) + wire[-3:]
    assert qwp.TableBlock.decode(other) == block
    assert qwp.TableBlock.decode(other).encode() == wire


def test_null_bits_beyond_the_rows_mean_nothing() -> None:
    """They are kept as they came."""
    block = table(3, (ColumnType.BYTE, qwp.Column1(nulls=b"\xfa", values=b"\x07\x09")))
    assert qwp.TableBlock.decode(block.encode()) == block


@pytest.mark.parametrize(
    ("kind", "section", "wire"),
    [
        (ColumnType.BOOLEAN, qwp.BooleanColumn(nulls=None, values=b"\x05"), "00 05"),
        (
            ColumnType.VARCHAR,
            qwp.SliceColumn(nulls=None, values=[b"ab", b"", b"c"]),
            "00 00000000 02000000 02000000 03000000 616263",
        ),
        (ColumnType.SYMBOL, qwp.SymbolColumn(nulls=b"\x01", ids=[1, 300]), "01 01 01 ac02"),
        (
            ColumnType.GEOHASH,
            qwp.GeohashColumn(nulls=b"\x06", precision=20, values=b"\x01\x02\x03"),
            "01 06 14 010203",
        ),
        (
            ColumnType.DECIMAL64,
            qwp.Decimal8(nulls=b"\x07", scale=2, values=b""),
            "01 07 02",
        ),
        (
            ColumnType.DOUBLE_ARRAY,
            qwp.ArrayColumn(nulls=b"\x05", values=[qwp.Array(dims=[1, 2], elements=bytes(16))]),
            "01 05 02 01000000 02000000" + 16 * " 00",
        ),
        (ColumnType.IPV4, qwp.Column4(nulls=b"\x03", values=b"\x04\x03\x02\x01"), "01 03 04030201"),
    ],
)
def test_sections_are_laid_out_by_type(kind: ColumnType, section: Any, wire: str) -> None:
    """Three rows of each kind of section."""
    block = table(3, (kind, section))
    assert block.encode().endswith(bytes.fromhex(wire))
    assert qwp.TableBlock.decode(block.encode()) == block


@pytest.mark.parametrize(
    ("kind", "section", "field"),
    [
        (ColumnType.LONG, qwp.Column8(nulls=None, values=bytes(7)), "values"),
        (ColumnType.LONG, qwp.Column8(nulls=b"", values=bytes(16)), "nulls"),
        (ColumnType.BOOLEAN, qwp.BooleanColumn(nulls=None, values=b""), "values"),
        (ColumnType.SYMBOL, qwp.SymbolColumn(nulls=None, ids=[1]), "ids"),
        (ColumnType.VARCHAR, qwp.SliceColumn(nulls=None, values=[b"a"]), "values"),
        (ColumnType.LONG, qwp.SymbolColumn(nulls=None, ids=[1, 2]), "sections"),
        (
            ColumnType.LONG_ARRAY,
            qwp.ArrayColumn(nulls=b"\x01", values=[qwp.Array(dims=[2], elements=b"")]),
            "elements",
        ),
    ],
)
def test_a_section_that_does_not_fit_its_table_is_refused(
    kind: ColumnType, section: Any, field: str
) -> None:
    """Two rows want two values, or null bits that say otherwise, of the type that was defined."""
    assert refusal(table(2, (kind, section))).field == field


def test_each_column_has_a_section() -> None:
    """No more and no fewer."""
    block = table(1, (ColumnType.BYTE, qwp.Column1(nulls=None, values=b"a")))
    assert refusal(dataclasses.replace(block, sections=[])).field == "sections"


@pytest.mark.parametrize(
    "offsets", [(1, 1, 1), (0, 2, 1), (0, 1, 2**32 - 1)], ids=["not from 0", "falling", "too far"]
)
def test_offsets_that_cannot_be_are_refused(offsets: tuple[int, ...]) -> None:
    """They start at 0, never fall, and end within the bytes."""
    good = table(2, (ColumnType.BINARY, qwp.SliceColumn(nulls=None, values=[b"a", b"b"]))).encode()
    wire = good[:-14] + struct.pack("<3I", *offsets) + good[-2:]
    with pytest.raises(DecodeError, match=r"SliceColumn.values"):
        qwp.TableBlock.decode(wire)


def test_rows_that_are_not_there_take_no_memory() -> None:
    """A table may claim any number; its values must be there before they are read."""
    for kind in ColumnType:
        head = bytes.fromhex("01 74 ffffffffffffffffff01 01 01 63") + bytes([kind])
        for flag in (b"\x00", b"\x01"):
            with pytest.raises(DecodeError):
                qwp.TableBlock.decode(head + flag + bytes(20))


def test_a_negative_dimension_is_refused() -> None:
    """Two of them would multiply to a size that looks right."""
    with pytest.raises(DecodeError, match=r"Array.elements at byte 9: expected dimensions of 0"):
        qwp.Array.decode(bytes.fromhex("02 ffffffff ffffffff") + bytes(8))


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("00 0300000000000000 0000", qwp.OkResponse(wire_sequence=3, tables=[])),
        (
            "00 0000000000000000 0100 0100 74 0900000000000000",
            qwp.OkResponse(wire_sequence=0, tables=[qwp.TableSequence(name=b"t", sequence=9)]),
        ),
        ("02 0000", qwp.DurableAck(tables=[])),
        (
            "0d 0100000000000000 0300 676170",
            qwp.ErrorResponse(status=qwp.Status.DICTIONARY_GAP, wire_sequence=1, text=b"gap"),
        ),
        ("77 0100000000000000 0000", qwp.ErrorResponse(status=0x77, wire_sequence=1, text=b"")),
    ],
)
def test_answers_of_servers(wire: str, message: Any) -> None:
    """Each is read and written; a status without a name is read too."""
    data = bytes.fromhex(wire)
    assert type(message).decode(data) == message
    assert message.encode() == data


@pytest.mark.parametrize(
    ("cls", "wire"),
    [
        (qwp.OkResponse, "00 0300000000000000 0000 00"),
        (qwp.OkResponse, "00 0300000000000000 00"),
        (qwp.DurableAck, "02 0100 0000 0000000000000000"),
        (qwp.ErrorResponse, "05 0000000000000000 0104" + 1025 * "61"),
        (qwp.ErrorResponse, "02 0000000000000000 0000"),
    ],
    ids=["trailing byte", "cut", "table without name", "text too long", "status of another answer"],
)
def test_broken_answers_are_refused(cls: Any, wire: str) -> None:
    """A sender drops the connection on each and sends again what was not acknowledged."""
    with pytest.raises(DecodeError):
        cls.decode(bytes.fromhex(wire))


@pytest.mark.parametrize("code", upgrade.CloseCode)
def test_two_ways_to_close_are_orderly(code: upgrade.CloseCode) -> None:
    """All others count against the message that was sent last."""
    assert code.orderly == (code in (1000, 1001))
