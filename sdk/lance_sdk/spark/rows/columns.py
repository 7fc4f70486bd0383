"""The columns of a topic as a table, and records in their bytes as Arrow batches.

A chain of records becomes a column without touching a value in Python: the values are moved
together in the memory that they were read into, and are the column as they lie there.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.rows.column_names import TYPES, Origin, check_names
from lance_sdk.spark.rows.keyed_columns import KeyedColumns, micros, readable_ns
from lance_sdk.spark.rows.null_times import with_null_times
from lance_spec.checksum import Buffer
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.records import part_records

_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}
TIME_COLUMNS: Final = frozenset({"ts_ns", "timestamp", "time_source"})
"""Columns that need the time at which the server stored a record, where it has none of its own."""
_SPLIT: Final = TIME_COLUMNS | {"key"}
"""Columns for which a record with a key or a time is taken apart."""
MAX_OFFSET: Final = 2**63 - 1
"""Spark's integers have a sign."""


def arrow_schema(names: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of some columns, all of which may be null.

    Raises:
        ConfigError: there is no such column.
    """
    chosen = list(names)
    check_names(chosen)
    return pa.schema([(name, _ARROW[TYPES[name]]) for name in chosen])


def check_schema(schema: pa.Schema) -> None:
    """Refuse a schema that asks for other columns than there are, or for them as other types.

    Raises:
        ConfigError: naming the column.
    """
    wanted = arrow_schema(schema.names)
    for field, ours in zip(schema, wanted, strict=True):
        if field.type != ours.type:
            raise ConfigError(
                f"column {field.name!r} is {TYPES[field.name]}, not {field.type}; "
                f"read it as {TYPES[field.name]} and cast it"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """Records whose values were moved together.

    A place is where a record began in the bytes that were parted.

    Attributes:
        values: the memory that the values are in, back to back.
        offsets: where each value begins there, and where the last one ends; 32 bits each.
        kinds: the type of each record.
        before: how many records in front of these were left out.
    """

    values: bytearray | memoryview
    offsets: np.ndarray[Any, Any]
    kinds: bytes
    before: int = 0

    @classmethod
    def of(cls, buffer: bytearray | memoryview, data: Buffer | None = None) -> "Parted":
        """Part a chain of records.

        Args:
            buffer: memory for the values; nobody else may use it from then on.
            data: the chain; by default it is what the buffer holds.

        Raises:
            DecodeError: the chain does not end where the data do; nothing was moved.
        """
        kinds, offsets = part_records(buffer if data is None else data, buffer)
        return cls(buffer, np.frombuffer(offsets, np.int32), kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def place(self, index: int) -> int:
        """Return where a record began; the number of records asks where the last one ended."""
        return int(self.offsets[index]) + RECORD_HEADER_SIZE * (self.before + index)

    def places(self) -> np.ndarray[Any, Any]:
        """Return where each record began."""
        numbers: np.ndarray[Any, Any] = np.arange(
            self.before, self.before + len(self), dtype=np.int64
        )
        return np.asarray(self.offsets[:-1] + RECORD_HEADER_SIZE * numbers)

    def between(self, first: int, last: int) -> "Parted":
        """Return the records that began at a place or later, and ended at another or before."""
        count = len(self)
        if first <= self.place(0) and self.place(count) <= last:
            return self
        start = min(count, bisect_left(range(count + 1), first, key=self.place))
        stop = max(start, bisect_right(range(count + 1), last, key=self.place) - 1)
        offsets, kinds = self.offsets[start : stop + 1], self.kinds[start:stop]
        return Parted(self.values, offsets, kinds, self.before + start)


def to_batch(
    schema: pa.Schema,
    records: Parted,
    origin: Origin,
    times: np.ndarray[Any, Any] | None = None,
) -> pa.RecordBatch:
    """Return records as an Arrow batch that has exactly the columns of a schema.

    Args:
        schema: columns of `TYPES`, in any order.
        records: the records; a column of values is the memory that they are in.
        origin: where they are from.
        times: when each of them arrived, in nanoseconds since the Unix epoch, where known; 0 is
            unknown.

    Raises:
        DataDamaged: a record with a key or a time is not laid out as its type says.
    """
    maker = _Maker(records, origin, times)
    split = _SPLIT if origin.stored else _SPLIT | {"value"}
    whole = None if split.isdisjoint(schema.names) else maker.well_formed()
    arrays = [getattr(maker, field.name)() for field in schema]
    found = with_null_times(pa.RecordBatch.from_arrays(arrays, schema=schema), maker.null_times)
    return found if whole is None else found.filter(whole)


class _Maker:
    """Makes the columns, each one only when it is asked for.

    Attributes:
        null_times: how many times are null in ``ts_ns`` because it cannot hold them.
    """

    def __init__(self, records: Parted, origin: Origin, times: np.ndarray[Any, Any] | None) -> None:
        self._records = records
        self._origin = origin
        self._server_ns = times
        self.null_times = 0
        self._parts = KeyedColumns(
            records.values, records.offsets, np.frombuffer(records.kinds, np.uint8)
        )
        if origin.offset + records.place(len(records)) > MAX_OFFSET:
            raise DataDamaged(
                f"topic {origin.topic!r}: offset {origin.offset} is beyond what Spark can count"
            )

    def well_formed(self) -> pa.Array | None:
        """Return which records are laid out as their types say; None when all are.

        Raises:
            DataDamaged: one is not, and they are not to be left out.
        """
        malformed = self._parts.malformed
        if not malformed.any():
            return None
        if not self._origin.skip:
            index = int(np.flatnonzero(malformed)[0])
            where = self._origin.offset + self._records.place(index)
            raise DataDamaged(
                f"topic {self._origin.topic!r}, record at offset {where}: it is not laid out as "
                f"its type {self._records.kinds[index]:#04x} says (LWP section 8.3); "
                "onDamage=skip leaves it out, recordFormat=stored without the columns "
                "key and timestamp reads it as it is"
            )
        return pa.array(~malformed)

    def topic(self) -> pa.Array:
        return self._same(self._origin.topic)

    def segment(self) -> pa.Array:
        return self._same(self._origin.segment)

    def crc_ok(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._origin.crc_ok), len(self._records))

    def offset(self) -> pa.Array:
        return pa.array(self._records.places() + self._origin.offset, pa.int64())

    def type(self) -> pa.Array:
        return pa.array(self._parts.kinds.astype(np.int32))

    def size(self) -> pa.Array:
        return pa.array(np.diff(self._records.offsets))

    def raw(self) -> pa.Array:
        records = self._records
        buffers = [None, pa.py_buffer(records.offsets), pa.py_buffer(records.values)]
        return pa.Array.from_buffers(pa.binary(), len(records), buffers)

    def value(self) -> pa.Array:
        return self.raw() if self._origin.stored else self._parts.payload()

    def key(self) -> pa.Array:
        return self._parts.key()

    def ts_ns(self) -> pa.Array:
        times, known = self._times()
        found = readable_ns(times, known)
        self.null_times = int(known.sum()) - (len(found) - found.null_count)
        return found

    def timestamp(self) -> pa.Array:
        return micros(*self._times())

    def time_source(self) -> pa.Array:
        own, server = self._parts.timed, pa.scalar(None, pa.string())
        if self._server_ns is not None:
            known = pa.array(self._server_ns != 0)
            server = pc.if_else(known, pa.scalar("server"), server)
        return pc.if_else(pa.array(own), pa.scalar("record"), server)

    def _times(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the records' own times, else when the server stored them, and which are known."""
        own, known = self._parts.times_ns()
        if self._server_ns is None:
            return own, known
        server_ns: np.ndarray[Any, Any] = self._server_ns.astype(np.uint64)
        return np.where(known, own, server_ns), known | (server_ns != 0)

    def _same(self, text: str | None) -> pa.Array:
        return pa.repeat(pa.scalar(text, pa.string()), len(self._records))
