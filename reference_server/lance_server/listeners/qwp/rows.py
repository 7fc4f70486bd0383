"""Converts a message to records: one JSON object for each row, in a Timestamped record.

The record carries the designated timestamp in nanoseconds, or the server's time where the
table has none; the JSON object carries the other columns under their names.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.qwp.refusals import QwpRefusal, bad_message, dictionary_gap
from lance_server.listeners.qwp.values import column_values, instants
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.messages.lwp import Timestamped
from lance_spec.messages.qwp import (
    ColumnType,
    Dictionary,
    GorillaPayload,
    GorillaTable,
    LocalGorillaPayload,
    LocalGorillaTable,
    LocalPayload,
    LocalTable,
    MessageFlag,
    Payload,
    QwpMessage,
    Status,
    TableBlock,
)
from lance_spec.qwp.upgrade import payload_class
from lance_spec.records import encode_record

_encode: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode
_DESIGNATED: Final = {ColumnType.TIMESTAMP: 1000, ColumnType.TIMESTAMP_NANOS: 1}
_CHUNK: Final = 1024 * 1024
_KEEPING: Final = 256
"""Bytes that keeping an object takes, beside what is in it, at most."""
_SYMBOL: Final = 64
"""The same for a text."""
_UNKNOWN: Final = ~int(sum(MessageFlag))
_AnyPayload: TypeAlias = Payload | GorillaPayload | LocalPayload | LocalGorillaPayload
_AnyTable: TypeAlias = TableBlock | GorillaTable | LocalTable | LocalGorillaTable


@dataclass(slots=True)
class TableRows:
    """Records for one table.

    Attributes:
        table: its name.
        chunks: (records, how many) of about 1 MiB each.
        count: how many records in all.
    """

    table: str
    chunks: list[tuple[bytes, int]] = field(default_factory=list)
    count: int = 0

    @property
    def size(self) -> int:
        """Bytes of the records."""
        return sum(len(data) for data, _ in self.chunks)

    @property
    def weight(self) -> int:
        """Bytes of memory that they take, roughly: small things cost more than they hold."""
        return self.size + _KEEPING * (1 + len(self.chunks))


class Reader:
    """Reads the messages of one connection, in order.

    Attributes:
        symbols: the dictionary that the connection's messages have built so far.
        symbol_bytes: bytes of memory that it takes, roughly.
    """

    def __init__(self, options: QwpOptions) -> None:
        self._options = options
        self.symbols: list[str] = []
        self.symbol_bytes = 0

    def __repr__(self) -> str:
        return f"<Reader {len(self.symbols)} symbols>"

    def read(self, data: bytes, now_ns: int) -> tuple[bool, list[TableRows]]:
        """Return whether a message leaves the commit to a later one, and its records.

        Args:
            data: the message.
            now_ns: the time for rows of tables without a designated timestamp.

        Raises:
            QwpRefusal: it is not a message, or holds more than the limits allow.
        """
        try:
            message = QwpMessage.decode(data)
            payload = self._payload(message)
        except DecodeError as error:
            raise bad_message(str(error)) from None
        if isinstance(payload, Payload | GorillaPayload):
            self._define(payload.dictionary)
        tables, left = [], self._options.max_records
        for table in payload.tables:
            rows = self._rows(table, now_ns, left)
            left -= rows.size
            tables.append(rows)
        return bool(message.flags & MessageFlag.DEFER_COMMIT), tables

    def _payload(self, message: QwpMessage) -> _AnyPayload:
        if message.flags & _UNKNOWN:
            raise bad_message(
                f"QwpMessage.flags at byte 5: got {message.flags:#04x}, and this endpoint knows "
                f"{', '.join(str(each.name) for each in MessageFlag)}; clear the others"
            )
        payload = payload_class(message.flags).decode(message.payload)
        if len(payload.tables) != message.table_count:
            raise bad_message(
                f"QwpMessage.table_count at byte 6: says {message.table_count}, "
                f"the payload holds {len(payload.tables)}"
            )
        rows = sum(table.row_count for table in payload.tables)
        if rows > self._options.max_rows:
            raise bad_message(
                f"the message holds {rows} rows, over the limit of {self._options.max_rows}; "
                "send smaller batches"
            )
        return payload

    def _define(self, dictionary: Dictionary) -> None:
        """Take new symbols in; those sent before may be sent again."""
        start, new = dictionary.start_id, dictionary.symbols
        if start > len(self.symbols):
            raise dictionary_gap(
                f"the dictionary goes on at id {start}, and this connection has only "
                f"{len(self.symbols)} symbols; send it again from id 0"
            )
        if start + len(new) > self._options.max_symbols:
            raise QwpRefusal(
                Status.WRITE_ERROR,
                f"the dictionary would have {start + len(new)} symbols, over the limit of "
                f"{self._options.max_symbols}; use text columns for values that rarely repeat",
            )
        replaced = self.symbols[start : start + len(new)]
        self.symbol_bytes += sum(map(_size, new)) - sum(map(_size, replaced))
        self.symbols[start : start + len(new)] = new

    def _rows(self, table: _AnyTable, now_ns: int, left: int) -> TableRows:
        try:
            return self._packed(table, now_ns, left)
        except QwpRefusal as refusal:
            raise QwpRefusal(refusal.status, f"table '{table.name}': {refusal.text}") from None
        except EncodeError as error:
            raise bad_message(f"table '{table.name}': {error}") from None

    def _packed(self, table: _AnyTable, now_ns: int, left: int) -> TableRows:
        found, chunk, count = TableRows(table.name), bytearray(), 0
        for record in self._records(table, now_ns):
            left -= len(record)
            if left < 0:
                raise bad_message(
                    f"the rows become more than {self._options.max_records} bytes of records; "
                    "send smaller batches"
                )
            chunk += record
            count += 1
            if len(chunk) >= _CHUNK:
                found.chunks.append((bytes(chunk), count))
                chunk, count = bytearray(), 0
        if count:
            found.chunks.append((bytes(chunk), count))
        found.count = table.row_count
        return found

    def _records(self, table: _AnyTable, now_ns: int) -> Iterator[bytes]:
        names, columns, times = self._columns(table, now_ns)
        rows = zip(*columns, strict=True) if columns else ((),) * table.row_count
        for time, row in zip(times, rows, strict=True):
            text = _encode(dict(zip(names, row, strict=True))).encode()
            yield encode_record(Timestamped(time, text).encode(), RecordType.TIMESTAMPED)

    def _columns(self, table: _AnyTable, now_ns: int) -> tuple[list[str], list[Any], list[int]]:
        names: list[str] = []
        columns: list[Iterable[Any]] = []
        times: list[int] | None = None
        for definition, section in zip(table.columns, table.sections, strict=True):
            if definition.name:
                names.append(definition.name)
                columns.append(column_values(definition, section, table.row_count, self.symbols))
            elif times is None:
                times = _times(definition.type, section, table.row_count)
            else:
                raise bad_message("two designated timestamps")
        if len(set(names)) != len(names):
            raise bad_message("two columns have one name")
        return names, columns, [now_ns] * table.row_count if times is None else times


def _size(symbol: str) -> int:
    return len(symbol.encode()) + _SYMBOL


def _times(kind: int, section: Any, rows: int) -> list[int]:
    """Return the designated timestamps in nanoseconds."""
    scale = _DESIGNATED.get(ColumnType(kind))
    if scale is None:
        raise bad_message(f"the designated timestamp is a {ColumnType(kind).name} column")
    if section.nulls is not None and any(section.nulls):
        raise bad_message("the designated timestamp of a row is null")
    times = [each * scale for each in instants(section, rows)]
    for row, time in enumerate(times):
        if not 0 <= time < 2**64:
            raise QwpRefusal(
                Status.SCHEMA_MISMATCH,
                f"row {row}: the designated timestamp is {time} ns, and a record holds 0 to 2^64-1",
            )
    return times
