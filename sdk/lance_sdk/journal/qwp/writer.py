"""Rows in, frames out: what the sync and the async row sender have in common.

Rows collect in a batch for each table. `RowWriter.seal` sets the batch aside; `RowWriter.front`
makes a frame of what was set aside first, and `RowWriter.stored` forgets it once it is in the
journal. So a frame that finds no room is kept, with its symbols' ids, and is the next one again.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from lance_sdk.errors import ConfigError
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal.qwp.columns import CellMisfit, TableRows, check_name, size_of
from lance_sdk.journal.qwp.dictionary import SymbolDictionary
from lance_sdk.journal.qwp.errors import RowError
from lance_sdk.journal.qwp.message import encode, encode_whole
from lance_sdk.journal.qwp.values import Cell, cell, symbol, timestamp_micros
from lance_spec.messages.qwp import ColumnType

At: TypeAlias = datetime | Cell | None
"""When a row happened: a datetime with a zone, `timestamp_micros` or `timestamp_nanos` of a
number, or None for the time at which the server takes it."""

_TIMES: Final = {ColumnType.TIMESTAMP, ColumnType.TIMESTAMP_NANOS}
_NAMES_KEPT: Final = 10_000
"""Names of columns that are known to be good; a program rarely has more."""
_OVERHEAD: Final = 64
"""Bytes of a message beside its tables and symbols, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """When rows are flushed by themselves, and limits.

    Attributes:
        auto_flush: whether they are.
        auto_flush_rows: as soon as so many rows wait; None means any number may.
        auto_flush_bytes: as soon as they take about so many bytes; None means any number may.
        auto_flush_interval: at the next row, as soon as the oldest has waited so long, in
            seconds; None means any time.
        max_buffer: most bytes of rows that wait.
        max_name: most bytes of a table's or column's name.
        delta_frames: store only the symbols that no earlier frame had, and the others in a
            dictionary beside the frames. Only clients of this project, and those that keep such a
            dictionary, drain the slot then (SF-04).

    Raises:
        ConfigError: a value is out of range.
    """

    auto_flush: bool = True
    auto_flush_rows: int | None = 1000
    auto_flush_bytes: int | None = None
    auto_flush_interval: float | None = 0.1
    max_buffer: int = 100 << 20
    max_name: int = 127
    delta_frames: bool = False

    def __post_init__(self) -> None:
        for name in ("auto_flush_rows", "auto_flush_bytes", "max_buffer", "max_name"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}={value}: expected at least 1")


class RowWriter:
    """The rows of one sender that are not in its journal yet.

    Args:
        options: when to flush, and limits.
        dictionary: the symbols of the slot.
        frame_limit: most bytes of a frame.
        clock: monotonic seconds.

    Attributes:
        rows: rows that are not in the journal.
    """

    def __init__(
        self,
        options: RowOptions,
        dictionary: SymbolDictionary,
        frame_limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._dictionary = dictionary
        self._limit = frame_limit - _OVERHEAD
        self._clock = clock
        self._open: dict[str, TableRows] = {}
        self._sealed: deque[TableRows] = deque()
        self._size = 0
        self._first_at = 0.0
        self._names: set[str] = set()
        self._front: tuple[bytes, list[TableRows], int] | None = None
        self.rows = 0

    def __repr__(self) -> str:
        return f"<RowWriter {self.rows} rows, about {self._size} bytes, {self._dictionary!r}>"

    # Rows in

    def add(
        self,
        table: str,
        symbols: Mapping[str, str | None] | None,
        columns: Mapping[str, object] | None,
        at: At,
    ) -> None:
        """Take one row.

        Raises:
            RowError: it cannot be sent; nothing changed.
        """
        batch = self._open.get(table) or TableRows(table)
        if not batch.rows:
            self._check_table(table)
        size = self._put(batch, symbols, columns, at)
        if not self.rows:
            self._first_at = self._clock()
        self._open[table] = batch
        self._grow(1, size)

    def add_batch(self, batch: TableRows) -> None:
        """Take rows of one table that were put together elsewhere.

        Raises:
            RowError: there is no room for them.
        """
        self._check_room(batch.table, 0, batch.size)
        if batch.rows:
            self.seal()
            if not self.rows:
                self._first_at = self._clock()
            self._sealed.append(batch)
            self._grow(batch.rows, batch.size)

    def batch(
        self,
        table: str,
        rows: Iterable[Mapping[str, object]],
        *,
        symbols: Collection[str],
        at: str | None,
    ) -> TableRows:
        """Put rows together without taking them yet.

        Args:
            table: their table.
            rows: column names and values of each.
            symbols: names of the columns that are symbols.
            at: name of the column with the designated timestamp, or None.

        Raises:
            RowError: one of them cannot be sent.
        """
        self._check_table(table)
        batch = TableRows(table)
        for row in rows:
            stamp: Any = None if at is None else row.get(at)
            if at is not None and stamp is None:
                raise RowError(table, at, batch.rows, "the designated timestamp is missing")
            marked: dict[str, Any] = {name: row[name] for name in symbols if name in row}
            rest = {name: value for name, value in row.items() if name not in marked}
            rest.pop(at or "", None)
            self._put(batch, marked, rest, stamp)
        return batch

    def _put(
        self,
        batch: TableRows,
        symbols: Mapping[str, str | None] | None,
        columns: Mapping[str, object] | None,
        at: At,
    ) -> int:
        try:
            cells = dict(self._cells(symbols or {}, columns or {}))
            stamp = None if at is None else _stamp(at)
            self._check_row(batch, cells)
            return batch.add(cells, stamp)
        except CellMisfit as misfit:
            raise RowError(batch.table, misfit.column, batch.rows, misfit.problem) from None

    def _cells(
        self, symbols: Mapping[str, str | None], columns: Mapping[str, object]
    ) -> Iterator[tuple[str, Cell]]:
        for name, text in symbols.items():
            if text is not None:
                yield self._checked(name), _symbol(name, text)
        for name, value in columns.items():
            if name in symbols:
                raise CellMisfit(name, "it is given as a symbol and as a column")
            if value is not None:
                yield self._checked(name), _cell(name, value)

    def _checked(self, name: str) -> str:
        if name not in self._names:
            problem = check_name(name, self._options.max_name, of_column=True)
            if problem:
                raise CellMisfit(str(name), problem)
            if len(self._names) >= _NAMES_KEPT:
                self._names.clear()
            self._names.add(name)
        return name

    def _check_table(self, table: str) -> None:
        problem = check_name(table, self._options.max_name, of_column=False)
        if problem:
            raise RowError(str(table), "", 0, problem)

    def _check_row(self, batch: TableRows, cells: Mapping[str, Cell]) -> None:
        if not cells:
            raise CellMisfit("", "a row needs at least one value")
        size = 4 * len(batch.table) + 64
        for name, each in cells.items():
            text = 4 * len(each.value) + 5 if each.type is ColumnType.SYMBOL else 0
            size += size_of(each) + text + 4 * len(name) + 32
        if size > self._limit:
            raise CellMisfit(
                "",
                f"it takes about {size} bytes, and a frame {self._limit}; raise "
                "sf_max_segment_bytes",
            )
        self._check_room(batch.table, batch.rows, size)

    def _check_room(self, table: str, row: int, size: int) -> None:
        if self._size + size > self._options.max_buffer:
            raise RowError(
                table,
                "",
                row,
                f"the rows that wait would take over {self._options.max_buffer} bytes "
                "(max_buf_size); flush() first",
            )

    def _grow(self, rows: int, size: int) -> None:
        self.rows += rows
        self._size += size

    def clear(self) -> None:
        """Give up every row that is not in the journal."""
        self._open.clear()
        self._sealed.clear()
        self._front = None
        self.rows = self._size = 0

    @property
    def flush_due(self) -> bool:
        """Whether the rows should be flushed by now."""
        options = self._options
        if not options.auto_flush or not self.rows:
            return False
        return (
            (options.auto_flush_rows is not None and self.rows >= options.auto_flush_rows)
            or (options.auto_flush_bytes is not None and self._size >= options.auto_flush_bytes)
            or (
                options.auto_flush_interval is not None
                and self._clock() - self._first_at >= options.auto_flush_interval
            )
        )

    # Frames out

    def seal(self) -> None:
        """Set the rows so far aside, to be sent before what comes later."""
        self._sealed += self._open.values()
        self._open.clear()

    def front(self) -> bytes | None:
        """Return the next frame to be stored, the same until `stored`; None when there is none.

        Raises:
            OSError: the dictionary cannot be written.
        """
        if self._front is None and self._sealed:
            self._front = self._encode()
        return None if self._front is None else self._front[0]

    def _encode(self) -> tuple[bytes, list[TableRows], int]:
        tables = self._fitting()
        ids = None
        if self._options.delta_frames:
            symbols = [each for table in tables for each in table.symbols()]
            ids = self._dictionary.for_frame(symbols)
        if ids is None:
            return encode_whole(tables), tables, self._dictionary.framed
        first_new, new = self._dictionary.unframed()
        frame = encode(tables, ids, first_new, new)
        self._dictionary.note()
        return frame, tables, first_new + len(new)

    def _fitting(self) -> list[TableRows]:
        """Return the tables of the next frame, the first one split until it fits."""
        while self._sealed[0].rows > 1 and self._bound(self._sealed[0]) > self._limit:
            first = self._sealed.popleft()
            self._sealed.extendleft(reversed(first.split()))
        tables, size = [self._sealed[0]], self._bound(self._sealed[0])
        for each in list(self._sealed)[1:]:
            size += self._bound(each)
            if size > self._limit or any(each.table == other.table for other in tables):
                break
            tables.append(each)
        return tables

    def _bound(self, table: TableRows) -> int:
        return table.bound() + table.symbol_bytes()

    def stored(self) -> None:
        """The frame from `front` is in the journal."""
        assert self._front is not None
        _, tables, framed = self._front
        self._front = None
        self._dictionary.framed = framed
        for each in tables:
            self._sealed.popleft()
            self.rows -= each.rows
        self._size = sum(each.size for each in (*self._sealed, *self._open.values()))


def append(journal: Journal, frame: bytes, timeout: float | None) -> int:
    """Store a frame; the arguments stand in the order in which they become known."""
    return journal.append(frame, timeout=timeout)


def _symbol(name: str, value: str) -> Cell:
    try:
        return symbol(value)
    except (TypeError, ValueError) as error:
        raise CellMisfit(name, str(error)) from None


def _cell(name: str, value: object) -> Cell:
    try:
        return cell(value)
    except (TypeError, ValueError) as error:
        raise CellMisfit(name, str(error)) from None


def _stamp(at: object) -> Cell:
    try:
        stamp = timestamp_micros(at) if isinstance(at, datetime) else at
    except ValueError as error:
        raise CellMisfit("", f"at: {error}") from None
    if not isinstance(stamp, Cell) or stamp.type not in _TIMES:
        raise CellMisfit(
            "",
            f"at={at!r}: expected a datetime with a zone, timestamp_micros(n), "
            "timestamp_nanos(n), or None for the server's time",
        )
    return stamp
