"""Rows as records: Arrow batches into the frames that a sink sends or stages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import SinkError
from lance_sdk.types import KEYED
from lance_sdk.values.keyed import join
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE

_READ: Final = frozenset({"topic", "type", "value", "key", "ts_ns"})
_IGNORED: Final = frozenset({"offset", "size", "segment", "crc_ok"})
"""Columns that reading gives and writing decides anew, so that what was read can be written."""
_RAW: Final = int(RecordType.RAW_DATA)
_NULL: Final = int(RecordType.NULL)
_CHUNK: Final = 256 << 20
"""Bytes of values joined at once; Arrow's offsets have 31 bits."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Records that are sent together.

    Attributes:
        topic: where to.
        count: number of records.
        payload: the records.
    """

    topic: str
    count: int
    payload: bytes


def check_columns(names: Sequence[str], topic: str | None) -> None:
    """Refuse rows that cannot be records.

    Raises:
        ConfigError: naming the column that is missing or unknown.
    """
    if "value" not in names:
        raise ConfigError(f"rows need a column value; they have {', '.join(names)}")
    unknown = [name for name in names if name not in _READ | _IGNORED]
    if unknown:
        raise ConfigError(
            f"column {unknown[0]!r} has no place in a record; rows may have "
            f"{', '.join(sorted(_READ))}. Put the rest into value, for example with to_json"
        )
    if topic is None and "topic" not in names:
        raise ConfigError("say which topic to write to: option topic=NAME, or a column topic")


def frames_of(batch: pa.RecordBatch, topic: str | None, limit: int) -> Iterator[Frame]:
    """Yield the frames of a batch of rows, in the order of the rows.

    Args:
        batch: rows with the columns that `check_columns` allows.
        topic: where to; None goes by the column ``topic`` of each row.
        limit: bytes of a frame, unless a single record is larger.

    Raises:
        SinkError: a row cannot be a record, naming the column.
    """
    for name, part in _by_topic(batch, topic):
        for start, count in _slices(part):
            chunk = part.slice(start, count)
            yield from _frames(name, _records(chunk), limit)


def _by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    if topic is not None:
        yield topic, batch
        return
    column = batch["topic"]
    for name in pc.unique(column).to_pylist():
        if not name:
            raise SinkError("a row has no topic; fill the column topic, or say option topic=NAME")
        mask = pc.equal(column, name)
        yield name, batch if pc.all(mask).as_py() else batch.filter(mask)


def _slices(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield runs of rows whose values can be joined."""
    whole = len(batch)
    size = max(1, batch.nbytes)
    step = max(1, whole * _CHUNK // size) if size > _CHUNK else max(1, whole)
    for start in range(0, whole, step):
        yield start, min(step, whole - start)


def _records(batch: pa.RecordBatch) -> pa.BinaryArray:
    """Return each row as one whole record."""
    values = _binary(batch["value"], "value")
    kinds = _kinds(batch, values)
    if _has_any(batch, "key") or _has_any(batch, "ts_ns"):
        values, kinds = _keyed(batch, values, kinds)
    values = pc.fill_null(values, b"")
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)
    if len(lengths) and int(lengths.max()) > MAX_RECORD_VALUE:
        raise SinkError(f"a value has {lengths.max()} bytes; a record takes {MAX_RECORD_VALUE}")
    headers: np.ndarray[Any, Any] = np.empty((len(values), RECORD_HEADER_SIZE), np.uint8)
    headers[:, 0] = kinds
    headers[:, 1:] = lengths.astype("<u4").view(np.uint8).reshape(-1, 4)
    offsets: np.ndarray[Any, Any] = np.arange(
        0, (len(values) + 1) * RECORD_HEADER_SIZE, RECORD_HEADER_SIZE, dtype=np.int32
    )
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(headers.tobytes())]
    heads = pa.Array.from_buffers(pa.binary(), len(values), buffers)
    return pc.binary_join_element_wise(heads, values, b"")


def _binary(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_binary(column.type):
        return column
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    raise SinkError(f"column {name!r} is {column.type}; it must be binary or string")


def _kinds(batch: pa.RecordBatch, values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the type of each record; what has no value is a tombstone (AMB-12)."""
    if "type" in batch.schema.names:
        said = pc.fill_null(batch["type"], _RAW).to_numpy(zero_copy_only=False)
        if len(said) and not (said.min() >= 0 and said.max() <= 0xFF):
            raise SinkError("column 'type' holds a number that is not from 0 to 255")
        kinds = said.astype(np.uint8)
    else:
        kinds = np.full(len(values), _RAW, np.uint8)
    if values.null_count:
        kinds = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), _NULL, kinds)
    return kinds.astype(np.uint8)


def _has_any(batch: pa.RecordBatch, name: str) -> bool:
    return name in batch.schema.names and batch[name].null_count < len(batch)


def _keyed(
    batch: pa.RecordBatch, values: pa.Array, kinds: np.ndarray[Any, Any]
) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    """Put key and time before the values that have one (LWP section 8.3)."""
    names, nothing = batch.schema.names, [None] * len(batch)
    keys = batch["key"].to_pylist() if "key" in names else nothing
    times = batch["ts_ns"].to_pylist() if "ts_ns" in names else nothing
    bodies = values.to_pylist()
    kinds = kinds.copy()
    for index, (key, moment) in enumerate(zip(keys, times, strict=True)):
        if bodies[index] is None or (key is None and moment is None):
            continue
        if int(kinds[index]) in KEYED:
            continue  # read as it is: key and time stand in the value already
        bodies[index], kinds[index] = join(bodies[index], key, moment)
    return pa.array(bodies, pa.binary()), kinds


def _frames(topic: str, joined: pa.BinaryArray, limit: int) -> Iterator[Frame]:
    count = len(joined)
    offsets = np.frombuffer(joined.buffers()[1], np.int32, count + 1, 4 * joined.offset)
    data = memoryview(joined.buffers()[2] or b"")
    first = 0
    while first < count:
        behind = int(np.searchsorted(offsets, offsets[first] + limit, side="right")) - 1
        behind = max(first + 1, min(behind, count))
        payload = bytes(data[int(offsets[first]) : int(offsets[behind])])
        yield Frame(topic, behind - first, payload)
        first = behind
