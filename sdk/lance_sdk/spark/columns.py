"""The columns of a topic as a table, and records in their bytes as Arrow batches.

A chain of records becomes a column without touching a value in Python: headers and values
alternate, so both together are a binary array without a gap, and every second element of it is
taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import DataDamaged
from lance_sdk.types import KEYED
from lance_sdk.values.keyed import split
from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.records import record_bounds

DEFAULT_COLUMNS: Final = ("topic", "offset", "type", "value")
TYPES: Final = {
    "topic": "string",
    "offset": "bigint",
    "type": "int",
    "value": "binary",
    "key": "binary",
    "ts_ns": "bigint",
    "size": "int",
    "segment": "string",
    "crc_ok": "boolean",
}
"""Spark's type of every column there is."""

_ARROW: Final = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
}
MAX_OFFSET: Final = 2**63 - 1
"""Spark's integers have a sign."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run of records comes from.

    Attributes:
        topic: the topic's name.
        offset: byte offset in the topic of the first record.
        segment: name of the file, where it is one.
        crc_ok: whether the bytes match their checksum.
    """

    topic: str
    offset: int
    segment: str | None = None
    crc_ok: bool = True


def arrow_schema(names: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of some columns, all of which may be null.

    Raises:
        ConfigError: there is no such column.
    """
    chosen = list(names)
    for name in chosen:
        if name not in TYPES:
            raise ConfigError(f"there is no column {name!r}; the columns are {', '.join(TYPES)}")
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


def bounds_of(data: Buffer) -> np.ndarray[Any, Any]:
    """Return where each record of a chain begins, and where the last one ends.

    Raises:
        DecodeError: the chain does not end where the data does.
    """
    return np.frombuffer(record_bounds(data), np.int64)


def to_batch(
    schema: pa.Schema,
    data: Buffer,
    bounds: np.ndarray[Any, Any],
    origin: Origin,
    times: np.ndarray[Any, Any] | None = None,
) -> pa.RecordBatch:
    """Return records as an Arrow batch that has exactly the columns of a schema.

    Args:
        schema: columns of `TYPES`, in any order.
        data: whole records, less than 2 GiB.
        bounds: from `bounds_of`.
        origin: where they are from.
        times: when each of them arrived, in nanoseconds since the Unix epoch, where known.

    Raises:
        DataDamaged: a record with a key or a time is not laid out as its type says.
    """
    maker = _Maker(data, bounds, origin, times)
    arrays = [getattr(maker, field.name)() for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Maker:
    """Makes the columns, each one only when it is asked for."""

    def __init__(
        self,
        data: Buffer,
        bounds: np.ndarray[Any, Any],
        origin: Origin,
        times: np.ndarray[Any, Any] | None,
    ) -> None:
        self._data = data
        self._starts = bounds[:-1]
        self._ends = bounds[1:]
        self._origin = origin
        self._times = times
        self._parts: list[tuple[bytes | None, int | None]] | None = None
        if origin.offset + len(data) > MAX_OFFSET:
            raise DataDamaged(
                f"topic {origin.topic!r}: offset {origin.offset} is beyond what Spark can count"
            )

    def topic(self) -> pa.Array:
        return self._same(self._origin.topic)

    def segment(self) -> pa.Array:
        return self._same(self._origin.segment)

    def crc_ok(self) -> pa.Array:
        return pa.repeat(pa.scalar(self._origin.crc_ok), len(self._starts))

    def offset(self) -> pa.Array:
        return pa.array(self._starts + self._origin.offset, pa.int64())

    def type(self) -> pa.Array:
        return pa.array(self._kinds().astype(np.int32))

    def size(self) -> pa.Array:
        return pa.array((self._ends - self._starts - RECORD_HEADER_SIZE).astype(np.int32))

    def value(self) -> pa.Array:
        count = len(self._starts)
        offsets: np.ndarray[Any, Any] = np.empty(2 * count + 1, dtype=np.int32)
        offsets[0:-1:2] = self._starts
        offsets[1::2] = self._starts + RECORD_HEADER_SIZE
        offsets[-1] = self._ends[-1] if count else 0
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._data)]
        both = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
        return both.take(pa.array(np.arange(1, 2 * count, 2, dtype=np.int32)))

    def key(self) -> pa.Array:
        return pa.array([key for key, _ in self._keyed()], pa.binary())

    def ts_ns(self) -> pa.Array:
        own = [moment for _, moment in self._keyed()]
        if self._times is None:
            return pa.array(own, pa.int64())
        pairs = zip(own, self._times.tolist(), strict=True)
        return pa.array([there if mine is None else mine for mine, there in pairs], pa.int64())

    def _same(self, text: str | None) -> pa.Array:
        return pa.repeat(pa.scalar(text, pa.string()), len(self._starts))

    def _kinds(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self._data, np.uint8)[self._starts] if len(self._starts) else _NONE

    def _keyed(self) -> Sequence[tuple[bytes | None, int | None]]:
        """Return key and time of each record; most have neither, and cost nothing."""
        if self._parts is None:
            self._parts = [(None, None)] * len(self._starts)
            for index in np.flatnonzero(np.isin(self._kinds(), _KEYED_TYPES)).tolist():
                self._parts[index] = self._split(index)
        return self._parts

    def _split(self, index: int) -> tuple[bytes | None, int | None]:
        start, end = int(self._starts[index]), int(self._ends[index])
        record = bytes(memoryview(self._data)[start:end])
        try:
            parts = split(record[0], record[RECORD_HEADER_SIZE:])
        except DecodeError as error:
            where = self._origin.offset + start
            raise DataDamaged(
                f"topic {self._origin.topic!r}, record at offset {where}: {error}; "
                "leave out the columns key and ts_ns to read it as it is"
            ) from None
        return parts.key, parts.timestamp_ns


_NONE: Final[np.ndarray[Any, Any]] = np.empty(0, np.uint8)
_KEYED_TYPES: Final = np.array(sorted(int(kind) for kind in KEYED), np.uint8)
