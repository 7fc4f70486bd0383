"""Converts rows to the QWP message that carries them."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lance_sdk.journal.qwp.columns import Column, TableRows
from lance_sdk.journal.qwp.values import DECIMAL_BYTES
from lance_spec.messages import qwp
from lance_spec.messages.qwp import (
    ColumnDefinition,
    ColumnType,
    LocalPayload,
    LocalTable,
    MessageFlag,
    Payload,
    TableBlock,
)

_FORMATS: Final = {
    ColumnType.BYTE: ("b", qwp.Column1),
    ColumnType.SHORT: ("h", qwp.Column2),
    ColumnType.INT: ("i", qwp.Column4),
    ColumnType.LONG: ("q", qwp.Column8),
    ColumnType.FLOAT: ("f", qwp.Column4),
    ColumnType.DOUBLE: ("d", qwp.Column8),
    ColumnType.TIMESTAMP: ("q", qwp.Column8),
    ColumnType.DATE: ("q", qwp.Column8),
    ColumnType.TIMESTAMP_NANOS: ("q", qwp.Column8),
    ColumnType.CHAR: ("H", qwp.Column2),
    ColumnType.IPV4: ("I", qwp.Column4),
}
_JOINED: Final = {ColumnType.UUID: qwp.Column16, ColumnType.LONG256: qwp.Column32}
_DECIMALS: Final = {
    ColumnType.DECIMAL64: qwp.Decimal8,
    ColumnType.DECIMAL128: qwp.Decimal16,
    ColumnType.DECIMAL256: qwp.Decimal32,
}


def encode(
    tables: Sequence[TableRows], ids: Mapping[str, int], first_new: int, new: Sequence[str]
) -> bytes:
    """Return the message for rows.

    Args:
        tables: the rows.
        ids: the id of every symbol in them.
        first_new: the first id that no earlier message has brought.
        new: the symbols with that id and the following ones.
    """
    payload = Payload(
        dictionary=qwp.Dictionary(start_id=first_new, symbols=list(new)),
        tables=[_block(each, ids) for each in tables],
    )
    return qwp.QwpMessage(
        flags=int(MessageFlag.DELTA_DICTIONARY),
        table_count=len(tables),
        payload=payload.encode(),
    ).encode()


def encode_whole(tables: Sequence[TableRows]) -> bytes:
    """Return a message that needs no other one: every symbol column brings its symbols."""
    payload = LocalPayload(tables=[_local_block(each) for each in tables])
    return qwp.QwpMessage(flags=0, table_count=len(tables), payload=payload.encode()).encode()


def _block(table: TableRows, ids: Mapping[str, int]) -> TableBlock:
    columns = _finished(table)
    return TableBlock(
        name=table.table,
        row_count=table.rows,
        columns=_definitions(columns),
        sections=[_section(each, ids) for each in columns],
    )


def _local_block(table: TableRows) -> LocalTable:
    columns = _finished(table)
    return LocalTable(
        name=table.table,
        row_count=table.rows,
        columns=_definitions(columns),
        sections=[_section(each, None) for each in columns],
    )


def _finished(table: TableRows) -> list[Column]:
    table.finish()
    return list(table.columns.values())


def _definitions(columns: Sequence[Column]) -> list[ColumnDefinition]:
    return [ColumnDefinition(name=each.name, type=each.type) for each in columns]


def _section(column: Column, ids: Mapping[str, int] | None) -> Any:
    values = [each for each in column.values if each is not None]
    absent = len(values) < len(column.values)
    nulls = _bits([each is None for each in column.values]) if absent else None
    kind = column.type
    if kind in _FORMATS:
        code, section = _FORMATS[kind]
        return section(nulls=nulls, values=struct.pack(f"<{len(values)}{code}", *values))
    if kind in _JOINED:
        return _JOINED[kind](nulls=nulls, values=b"".join(values))
    if kind in _DECIMALS:
        return _DECIMALS[kind](nulls=nulls, scale=column.scale, values=_unscaled(column, values))
    return _others(column, values, nulls, ids)


def _others(
    column: Column, values: list[Any], nulls: bytes | None, ids: Mapping[str, int] | None
) -> Any:
    match column.type:
        case ColumnType.BOOLEAN:
            return qwp.BooleanColumn(nulls=nulls, values=_bits(values))
        case ColumnType.SYMBOL if ids is None:
            own = {each: number for number, each in enumerate(dict.fromkeys(values))}
            return qwp.LocalSymbolColumn(
                nulls=nulls, symbols=list(own), ids=[own[each] for each in values]
            )
        case ColumnType.SYMBOL:
            assert ids is not None
            return qwp.SymbolColumn(nulls=nulls, ids=[ids[each] for each in values])
        case ColumnType.VARCHAR | ColumnType.BINARY:
            return qwp.SliceColumn(nulls=nulls, values=values)
        case ColumnType.GEOHASH:
            size, bits = (column.scale + 7) // 8, column.scale
            packed = b"".join(number.to_bytes(size, "little") for number, _ in values)
            return qwp.GeohashColumn(nulls=nulls, precision=max(bits, 1), values=packed)
        case _:
            arrays = [qwp.Array(dims=dims, elements=elements) for dims, elements in values]
            return qwp.ArrayColumn(nulls=nulls, values=arrays)


def _bits(values: Sequence[object]) -> bytes:
    """Return truth values as bits, the first one lowest."""
    text = "".join("1" if each else "0" for each in reversed(values))
    return int(text or "0", 2).to_bytes((len(values) + 7) // 8, "little")


def _unscaled(column: Column, values: Sequence[tuple[int, int]]) -> bytes:
    size, scale = DECIMAL_BYTES[column.type], column.scale
    unscaled = (number * 10 ** (scale - own) for number, own in values)
    return b"".join(each.to_bytes(size, "little", signed=True) for each in unscaled)
