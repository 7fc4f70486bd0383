"""Tables of Arrow, pandas and whoever else speaks Arrow, as rows to send.

Columns are converted as a whole: a value that does not fit refuses the frame, and nothing of it
is sent.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lance_sdk.errors import ConfigError
from lance_sdk.journal.qwp import values
from lance_sdk.journal.qwp.columns import Column, TableRows, check_name, column_size
from lance_sdk.journal.qwp.errors import RowError
from lance_sdk.journal.qwp.values import Cell
from lance_spec.messages.qwp import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

Symbols: TypeAlias = Sequence[str] | bool
"""Columns that become symbols: their names, True for every column of texts, False for none."""
_Make: TypeAlias = Callable[[Any], Cell]

_MILLIS_A_DAY: Final = 86_400_000
_MOST: Final = 2**63 - 1
_TICKS: Final = {
    "s": (ColumnType.TIMESTAMP, 1_000_000),
    "ms": (ColumnType.TIMESTAMP, 1_000),
    "us": (ColumnType.TIMESTAMP, 1),
    "ns": (ColumnType.TIMESTAMP_NANOS, 1),
}
_SAME: Final = {
    "bool": ColumnType.BOOLEAN,
    "int8": ColumnType.BYTE,
    "int16": ColumnType.SHORT,
    "uint8": ColumnType.SHORT,
    "int32": ColumnType.INT,
    "uint16": ColumnType.INT,
    "int64": ColumnType.LONG,
    "uint32": ColumnType.LONG,
    "float": ColumnType.FLOAT,
    "double": ColumnType.DOUBLE,
    "binary": ColumnType.BINARY,
    "large_binary": ColumnType.BINARY,
}
"""Types whose values are stored as they are, by Arrow's names."""
_NULL: Final = {ColumnType.INT: -(2**31), ColumnType.LONG: -(2**63)}


class UnreadableFrame(ValueError):  # noqa: N818 - says what it is; "Error" would repeat it
    """A frame that Arrow refused."""


def arrow_table(frame: object) -> "pa.Table":
    """Return a frame as an Arrow table.

    Args:
        frame: a table or record batch of Arrow, a pandas DataFrame, or any object with
            ``__arrow_c_stream__``, as Polars and DuckDB have them.

    Raises:
        ConfigError: PyArrow is not installed.
        TypeError: it is not such an object.
        UnreadableFrame: Arrow cannot read it.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional package
    except ImportError as missing:
        raise ConfigError(
            "dataframe() needs PyArrow: pip install 'lance-sdk[dataframe]'"
        ) from missing
    if isinstance(frame, pa.Table):
        return frame
    try:
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if type(frame).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except (ValueError, TypeError) as error:
        raise UnreadableFrame(f"the frame cannot be read as Arrow: {error}") from None
    raise TypeError(f"a {type(frame).__name__} is not a table of Arrow or pandas")


def frame_rows(
    frame: object, table: str, *, symbols: Symbols, at: str | None, max_name: int
) -> TableRows:
    """Return the rows of a frame.

    Args:
        frame: see `arrow_table`.
        table: the table that they go to.
        symbols: which columns become symbols; dictionary-encoded ones always do.
        at: the column with the designated timestamp; None means the server's time.
        max_name: most bytes of a name.

    Raises:
        RowError: a column cannot be sent; it names the column.
        TypeError: it is not a frame.
    """
    try:
        arrow = arrow_table(frame)
    except UnreadableFrame as error:
        raise RowError(table, "", 0, str(error)) from None
    _check_names(arrow, table, symbols, at, max_name)
    rows = TableRows(table)
    rows.rows = arrow.num_rows
    for name in arrow.column_names:
        column = _column(arrow, table, name, symbols=symbols, at=at)
        if column is not None:
            rows.columns[column.name] = column
            rows.size += column_size(column)
    return rows


def _check_names(
    arrow: "pa.Table", table: str, symbols: Symbols, at: str | None, max_name: int
) -> None:
    if len(set(arrow.column_names)) != arrow.num_columns:
        raise RowError(table, "", 0, "two columns of the frame have one name")
    wanted = [] if isinstance(symbols, bool) else list(symbols)
    for each in [*wanted, *([] if at is None else [at])]:
        if each not in arrow.column_names:
            raise RowError(
                table, each, 0, f"the frame has no such column; it has {arrow.column_names}"
            )
    problem = check_name(table, max_name, of_column=False)
    if problem:
        raise RowError(table, "", 0, problem)
    for name in arrow.column_names:
        problem = check_name(name, max_name, of_column=True)
        if problem and name != at:
            raise RowError(table, name, 0, problem)


def _column(
    arrow: "pa.Table", table: str, name: str, *, symbols: Symbols, at: str | None
) -> Column | None:
    """Return a column, or None where every value of it is null."""
    data = arrow.column(name)
    try:
        column = _filled(name, data, symbol=_is_symbol(data, name, symbols))
    except (TypeError, ValueError) as error:
        raise RowError(table, name, 0, str(error)) from None
    if name == at:
        return _designated(column, data, table)
    if data.null_count == len(data):
        return None
    column.pad(arrow.num_rows)
    return column


def _filled(name: str, data: "pa.ChunkedArray", *, symbol: bool) -> Column:
    """Return a column with its values; plain types are taken as a whole, others one by one."""
    plain = _plain(data, symbol=symbol)
    if plain is not None:
        return Column(name, *plain)
    make, objects = _maker(data.type), data.to_pylist()
    cells = [None if each is None else make(each) for each in objects]
    kind = next((each.type for each in cells if each is not None), ColumnType.VARCHAR)
    column = Column(name, kind)
    for row, each in enumerate(cells):
        if each is not None:
            column.append(row, column.fit(each))
    return column


def _designated(column: Column, data: "pa.ChunkedArray", table: str) -> Column:
    if data.null_count:
        row = column.values.index(None)
        raise RowError(table, column.name, row, "the designated timestamp is null")
    if column.type not in {ColumnType.TIMESTAMP, ColumnType.TIMESTAMP_NANOS}:
        problem = f"at={column.name!r} is a {column.type.name} column, no time"
        raise RowError(table, column.name, 0, problem)
    return Column("", column.type, column.values)


def _is_symbol(data: "pa.ChunkedArray", name: str, symbols: Symbols) -> bool:
    import pyarrow.types as pt  # noqa: PLC0415 - an optional package

    if pt.is_dictionary(data.type):
        return True
    if isinstance(symbols, bool):
        return symbols and (pt.is_string(data.type) or pt.is_large_string(data.type))
    return name in symbols


def _plain(data: "pa.ChunkedArray", *, symbol: bool) -> tuple[ColumnType, list[Any]] | None:
    """Return type and values of a column whose values need no look at each of them."""
    import pyarrow as pa  # noqa: PLC0415 - an optional package
    import pyarrow.types as pt  # noqa: PLC0415

    kind = data.type
    if symbol:
        return ColumnType.SYMBOL, data.cast(pa.string()).to_pylist()
    if pt.is_temporal(kind) and str(kind).startswith(("timestamp", "date")):
        return _times(data)
    if pt.is_string(kind) or pt.is_large_string(kind):
        texts = data.to_pylist()
        return ColumnType.VARCHAR, [None if each is None else each.encode() for each in texts]
    found = _SAME.get(str(kind))
    if found is None:
        return None
    values = data.to_pylist()
    if _NULL.get(found) in values and found in _NULL:
        raise ValueError(f"{_NULL[found]} stands for null in {found.name} columns")
    return found, values


def _times(data: "pa.ChunkedArray") -> tuple[ColumnType, list[Any]]:
    import pyarrow as pa  # noqa: PLC0415 - an optional package
    import pyarrow.types as pt  # noqa: PLC0415

    kind = data.type
    if pt.is_timestamp(kind):
        column, by = _TICKS[kind.unit]
        return column, _scaled(data.cast(pa.int64()), by)
    if pt.is_date32(kind):
        return ColumnType.DATE, _scaled(data.cast(pa.int32()), _MILLIS_A_DAY)
    return ColumnType.DATE, _scaled(data.cast(pa.int64()), 1)


def _scaled(data: "pa.ChunkedArray", by: int) -> list[Any]:
    """Return times in the unit that they are sent in.

    Raises:
        ValueError: one of them does not fit in 64 bits then.
    """
    values = [None if each is None else each * by for each in data.to_pylist()]
    if any(each is not None and not -_MOST <= each <= _MOST for each in values):
        raise ValueError("a time does not fit in 64 bits of the unit that is sent")
    return values


def _maker(kind: "pa.DataType") -> _Make:
    import pyarrow.types as pt  # noqa: PLC0415 - an optional package

    tests: tuple[tuple[Callable[[Any], bool], _Make], ...] = (
        (pt.is_integer, values.long),
        (pt.is_floating, values.double),
        (pt.is_string_view, values.varchar),
        (pt.is_fixed_size_binary, values.binary),
        (pt.is_decimal128, values.decimal128),
        (pt.is_decimal256, values.decimal256),
        (pt.is_nested, values.double_array),
        (pt.is_null, values.varchar),
    )
    for fits, make in tests:
        if fits(kind):
            return make
    raise TypeError(f"no column holds Arrow's {kind}; convert it first")
