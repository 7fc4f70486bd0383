"""Rows of one table, kept column by column until they are sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lance_sdk.journal.qwp.values import DECIMAL_BYTES, Cell, fits
from lance_spec.messages.qwp import ColumnType

_FORBIDDEN: Final = frozenset("?,'\"\\/:()+*%~\ufeff\x7f") | {chr(code) for code in range(32)}
_IN_COLUMNS: Final = _FORBIDDEN | {".", "-"}


def check_name(name: object, longest: int, *, of_column: bool) -> str:
    """Return what is wrong with a name, or "".

    Args:
        name: the name.
        longest: most bytes of it in UTF-8.
        of_column: whether it is a column's; otherwise it is a table's.
    """
    if not isinstance(name, str):
        return f"a name is a str, not {type(name).__name__}"
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        return f"the name {name!r} has a lone surrogate at character {error.start}"
    if not 1 <= size <= longest:
        return f"the name {name[:40]!r} has {size} bytes; expected 1 to {longest} (max_name_len)"
    wrong = set(name) & (_IN_COLUMNS if of_column else _FORBIDDEN)
    if wrong:
        return f"the name {name!r} holds {min(wrong)!r}, which no {_kind(of_column)} name may"
    if not of_column and (name[0] == "." or name[-1] == "." or ".." in name):
        return f"the name {name!r}: a dot may stand only between other characters"
    return ""


def _kind(of_column: bool) -> str:
    return "column" if of_column else "table"


_EXACT: Final = 2**53
_FIXED: Final = {
    ColumnType.BOOLEAN: 1,
    ColumnType.BYTE: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT: 4,
    ColumnType.LONG: 8,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
    ColumnType.SYMBOL: 5,
    ColumnType.TIMESTAMP: 8,
    ColumnType.DATE: 8,
    ColumnType.UUID: 16,
    ColumnType.LONG256: 32,
    ColumnType.GEOHASH: 8,
    ColumnType.TIMESTAMP_NANOS: 8,
    ColumnType.DECIMAL64: 8,
    ColumnType.DECIMAL128: 16,
    ColumnType.DECIMAL256: 32,
    ColumnType.CHAR: 2,
    ColumnType.IPV4: 4,
}


@dataclass(slots=True)
class Column:
    """One column of a batch.

    Attributes:
        name: its name; empty for the designated timestamp.
        type: its type.
        values: one for each row so far, None for null; rows after the last one are null too.
        scale: places of a decimal column; precision of a geohash column.
        widest: largest absolute unscaled number of a decimal column.
    """

    name: str
    type: ColumnType
    values: list[Any] = field(default_factory=list)
    scale: int = 0
    widest: int = 0

    def fit(self, given: Cell) -> Cell:
        """Return a cell as this column stores it.

        Raises:
            ValueError: the column holds something else.
        """
        if given.type is not self.type:
            given = self._converted(given)
        if self.type in DECIMAL_BYTES:
            self._scaled(given)
        elif self.type is ColumnType.GEOHASH and self.values and given.value[1] != self.scale:
            raise ValueError(
                f"a geohash of {given.value[1]} bits in a column of {self.scale} bits; "
                "a batch has one precision for each column"
            )
        return given

    def _converted(self, given: Cell) -> Cell:
        if self.type is ColumnType.DOUBLE and given.type is ColumnType.LONG:
            if abs(given.value) <= _EXACT:
                return Cell(ColumnType.DOUBLE, float(given.value))
            raise ValueError(f"the integer {given.value} cannot be a DOUBLE exactly")
        raise ValueError(
            f"a value of type {given.type.name} in a column of type {self.type.name}; "
            "a column has one type, convert the value or use another column"
        )

    def _scaled(self, given: Cell) -> tuple[int, int]:
        """Return the scale and the widest number that the column has with one more value."""
        number, scale = given.value
        together = max(scale, self.scale)
        widest = max(
            abs(number) * 10 ** (together - scale), self.widest * 10 ** (together - self.scale)
        )
        if together > 76 or not fits(widest, self.type):
            raise ValueError(
                f"its values with {together} decimal places no longer fit in {self.type.name}; "
                "flush before it, or round"
            )
        return together, widest

    def append(self, row: int, given: Cell) -> None:
        """Store a fitted cell as the value of a row."""
        if self.type in DECIMAL_BYTES:
            self.scale, self.widest = self._scaled(given)
        elif self.type is ColumnType.GEOHASH:
            self.scale = given.value[1]
        self.pad(row)
        self.values.append(given.value)

    def pad(self, rows: int) -> None:
        """Make rows up to a number null that have no value."""
        if len(self.values) < rows:
            self.values += [None] * (rows - len(self.values))


def size_of(given: Cell) -> int:
    """Return about how many bytes a cell takes in a message."""
    fixed = _FIXED.get(given.type)
    if fixed is not None:
        return fixed
    if isinstance(given.value, tuple):
        return len(given.value[1]) + 4 * len(given.value[0]) + 1
    return len(given.value) + 4


def column_size(column: Column) -> int:
    """Return about how many bytes a column takes in a message."""
    stored = [each for each in column.values if each is not None]
    own = 4 * len(column.name) + 16
    fixed = _FIXED.get(column.type)
    if fixed is not None:
        return own + fixed * len(stored)
    return own + sum(size_of(Cell(column.type, each)) for each in stored)


class TableRows:
    """Rows of one table that are sent together.

    Args:
        table: its name.

    Attributes:
        table: its name.
        rows: how many rows.
        size: about how many bytes they take in a message.
        columns: the columns, by name.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.rows = 0
        self.size = 0
        self.columns: dict[str, Column] = {}

    def __repr__(self) -> str:
        return f"<TableRows {self.table!r}: {self.rows} rows, {len(self.columns)} columns>"

    def add(self, cells: Mapping[str, Cell], at: Cell | None) -> int:
        """Store one row; return about how many bytes it takes.

        Raises:
            CellMisfit: a cell does not fit its column; nothing was stored.
        """
        fitted = {name: self._fitted(name, each) for name, each in cells.items()}
        stamp = self._stamp(at)
        if stamp is not None:
            fitted[""] = stamp
        size = sum(map(size_of, fitted.values()))
        for name, each in fitted.items():
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = Column(name, each.type)
                size += 4 * len(name) + 16
            column.append(self.rows, each)
        self.rows += 1
        self.size += size
        return size

    def _fitted(self, name: str, given: Cell) -> Cell:
        column = self.columns.get(name)
        try:
            return given if column is None else column.fit(given)
        except ValueError as error:
            raise CellMisfit(name, str(error)) from None

    def _stamp(self, at: Cell | None) -> Cell | None:
        """Check that all rows of the batch have a designated timestamp, or none has."""
        if self.rows and (at is None) is ("" in self.columns):
            had = "had one" if at is None else "had none"
            raise CellMisfit(
                "",
                f"at={'None' if at is None else 'a time'}, and earlier rows of this batch {had}; "
                "flush() between them",
            )
        return None if at is None else self._fitted("", at)

    def finish(self) -> None:
        """Give every column as many values as there are rows."""
        for each in self.columns.values():
            each.pad(self.rows)

    def split(self) -> "tuple[TableRows, TableRows]":
        """Return the first and the second half of the rows."""
        middle = self.rows // 2
        return self._slice(0, middle), self._slice(middle, self.rows)

    def _slice(self, start: int, stop: int) -> "TableRows":
        part = TableRows(self.table)
        part.rows = stop - start
        for name, each in self.columns.items():
            values = each.values[start:stop]
            if all(value is None for value in values):
                continue  # a frame of one row must not pay for the columns of all others
            part.columns[name] = Column(name, each.type, values, each.scale, each.widest)
            part.size += column_size(part.columns[name])
        return part

    def bound(self) -> int:
        """Return a number of bytes that the rows do not exceed, symbols' texts aside."""
        nulls = len(self.columns) * (self.rows // 8 + 6)
        return self.size + nulls + 4 * len(self.table) + 24

    def symbol_bytes(self) -> int:
        """Return a number of bytes that the texts of symbols do not exceed, column by column."""
        columns = (each for each in self.columns.values() if each.type is ColumnType.SYMBOL)
        return sum(4 * len(text) + 5 for each in columns for text in {*each.values} - {None})

    def symbols(self) -> Iterator[str]:
        """Yield the symbols of all rows."""
        for each in self.columns.values():
            if each.type is ColumnType.SYMBOL:
                yield from (value for value in each.values if value is not None)


class CellMisfit(ValueError):  # noqa: N818 - an internal signal; senders raise RowError
    """A cell cannot be stored.

    Attributes:
        column: its column, or "".
        problem: why.
    """

    def __init__(self, column: str, problem: str) -> None:
        self.column = column
        self.problem = problem
        super().__init__(column, problem)
