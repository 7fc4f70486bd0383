"""Rows as records: Arrow batches into the frames that a sink sends or stages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import SinkError
from lance_sdk.spark.rows.keyed_columns import TIMED, KeyedColumns
from lance_sdk.types import KEYED
from lance_spec.enums import RecordType
from lance_spec.limits import MAX_RECORD_VALUE, RECORD_HEADER_SIZE

_READ: Final = frozenset({"topic", "type", "value", "key", "timestamp", "ts_ns", "time_source"})
_IGNORED: Final = frozenset({"offset", "size", "segment", "crc_ok", "raw"})
"""Columns that reading gives and writing decides again, so that what was read can be written."""
_TIMES: Final = frozenset({"timestamp", "ts_ns"})
_RAW: Final = int(RecordType.RAW_DATA)
_NULL: Final = int(RecordType.NULL)
_RESERVED: Final = 0
_BYTE: Final = 0xFF
_LONGEST_KEY: Final = 0xFFFF
_BOUND_TYPES: Final = np.array([*sorted(int(kind) for kind in KEYED), _NULL], np.uint8)
"""Types that say something of key, time or value."""
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


def without_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that are for a table of Spark's catalog; those of a topic are refused.

    Raises:
        SinkError: a row has an offset.
    """
    if batch["offset"].null_count < len(batch):
        raise SinkError(
            "the rows were read from a topic, and Spark does not tell which table they are for; "
            "name the columns to write: INSERT INTO copy (key, value) SELECT key, value FROM orders"
        )
    return batch


def own_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as they were read without the times that a server gave, as their types tell."""
    kinds = batch["type"]
    timed = pc.is_in(kinds, pa.array(TIMED, kinds.type))
    is_own = pc.or_(timed, pc.is_null(kinds))
    columns = {
        name: pc.if_else(is_own, column, pa.scalar(None, column.type)) if name in _TIMES else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def frames_of(
    batch: pa.RecordBatch, topic: str | None, limit: int, *, stored: bool = False
) -> Iterator[Frame]:
    """Yield the frames of a batch of rows, in the order of the rows.

    Args:
        batch: rows with the columns that `check_columns` allows.
        topic: where to; None goes by the column ``topic`` of each row.
        limit: bytes of a frame, unless a single record is larger.
        stored: whether ``value`` is what is to be stored, with key and time before the payload;
            columns of keys and times say nothing then.

    Raises:
        SinkError: a row cannot be a record, naming the column.
    """
    for name, part in _by_topic(batch, topic):
        for start, count in _slices(part):
            chunk = part.slice(start, count)
            yield from _frames(name, _records(chunk, stored=stored), limit)


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


def _records(batch: pa.RecordBatch, *, stored: bool) -> pa.BinaryArray:
    """Return each row as one whole record."""
    values = _binary(batch["value"], "value")
    said = _said_types(batch)
    if stored:
        parts = _Parts(_types_of_stored(values, said), [])
        _check_layout(parts.kinds, values)
    else:
        parts = _parts(batch, values, said)
    values = pc.fill_null(values, b"")
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
    for each in parts.before:
        lengths = lengths + pc.binary_length(each).to_numpy(zero_copy_only=False)
    if len(lengths) and int(lengths.max()) > MAX_RECORD_VALUE:
        raise SinkError(f"a value has {lengths.max()} bytes; a record takes {MAX_RECORD_VALUE}")
    headers: np.ndarray[Any, Any] = np.empty((len(values), RECORD_HEADER_SIZE), np.uint8)
    headers[:, 0] = parts.kinds
    headers[:, 1:] = lengths.astype("<u4").view(np.uint8).reshape(-1, 4)
    heads = _fixed(headers, np.ones(len(values), bool))
    return pc.binary_join_element_wise(heads, *parts.before, values, b"")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What makes rows records, but for their values.

    Attributes:
        kinds: the type of each record.
        before: what stands before the values, in this order.
    """

    kinds: np.ndarray[Any, Any]
    before: list[pa.Array]


def _fixed(rows: np.ndarray[Any, Any], present: np.ndarray[Any, Any]) -> pa.Array:
    """Return an element of bytes for each row of an array, empty where none is present."""
    offsets: np.ndarray[Any, Any] = np.zeros(len(present) + 1, np.int32)
    np.cumsum(present * rows.shape[1], out=offsets[1:])
    data = np.ascontiguousarray(rows[present]).tobytes()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(present), buffers)


def _said_types(batch: pa.RecordBatch) -> pa.Array | None:
    """Return the column of types, where there is one.

    Raises:
        SinkError: it holds no types.
    """
    if "type" not in batch.schema.names:
        return None
    column = batch["type"]
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise SinkError(f"column 'type' is {column.type}; it must be an integer from 0 to 255")
    bounds = pc.min_max(column.cast(pa.int64()))
    if bounds["min"].is_valid and not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() <= _BYTE:
        raise SinkError("column 'type' holds a number that is not from 0 to 255")
    return column


def _types_of_stored(values: pa.Array, said: pa.Array | None) -> np.ndarray[Any, Any]:
    """Return the type of each record whose value is as it is stored (AMB-12)."""
    if said is None:
        kinds: np.ndarray[Any, Any] = np.full(len(values), _RAW, np.uint8)
    else:
        kinds = pc.fill_null(said, _RAW).to_numpy(zero_copy_only=False).astype(np.uint8)
    if values.null_count:
        kinds = np.where(_nulls(values), _NULL, kinds).astype(np.uint8)
    return kinds


def _nulls(column: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False))


def _check_layout(kinds: np.ndarray[Any, Any], values: pa.Array) -> None:
    """Refuse stored values that are not laid out as their types say.

    Raises:
        SinkError: naming the first one.
    """
    whole = pc.fill_null(values, b"")
    offsets = np.frombuffer(whole.buffers()[1], np.int32, len(whole) + 1, 4 * whole.offset)
    parts = KeyedColumns(memoryview(whole.buffers()[2] or b""), offsets, kinds)
    full = pc.binary_length(whole).to_numpy(zero_copy_only=False) > 0
    _refuse(parts.malformed, kinds, "has a value that is not laid out so (LWP section 8.3)")
    _refuse((kinds == _NULL) & full, kinds, "is a tombstone, which has no value (AMB-12)")


def _refuse(wrong: np.ndarray[Any, Any], kinds: np.ndarray[Any, Any], why: str) -> None:
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise SinkError(f"row {index} of a batch: type {int(kinds[index])} {why}")


def _parts(batch: pa.RecordBatch, values: pa.Array, said: pa.Array | None) -> _Parts:
    """Return types, and what stands before the payloads (LWP section 8.3).

    Raises:
        SinkError: a row's type contradicts its key, time or value; nothing is ever dropped.
    """
    keys, times = _keys(batch), _times(batch)
    keyed = ~_nulls(keys)
    timed = ~_nulls(times)
    gone = _nulls(values)
    kinds: np.ndarray[Any, Any] = np.where(gone, _NULL, _RAW)
    kinds = np.where(timed, int(RecordType.TIMESTAMPED), kinds)
    kinds = np.where(keyed, int(RecordType.KEY_VALUE), kinds)
    kinds = np.where(keyed & timed, int(RecordType.KEY_TIMESTAMPED), kinds).astype(np.uint8)
    if said is not None:
        kinds = _agreed(said, kinds, keyed | timed, gone)
    empty = pc.fill_null(pc.binary_length(values), 1).to_numpy(zero_copy_only=False) == 0
    if (wrong := empty & (keyed | timed)).any():
        raise SinkError(
            f"row {int(np.flatnonzero(wrong)[0])} of a batch: an empty value after a key or a "
            "time is a tombstone (AMB-56); write null, or a value that is not empty"
        )
    lengths = pc.fill_null(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False)
    if len(lengths) and int(lengths.max()) > _LONGEST_KEY:
        raise SinkError(f"a key has {lengths.max()} bytes; LWP has room for {_LONGEST_KEY}")
    before = []
    if timed.any():
        moments = pc.fill_null(times, 0).to_numpy(zero_copy_only=False).astype("<u8")
        before.append(_fixed(moments.view(np.uint8).reshape(-1, 8), timed))
    if keyed.any():
        sizes = lengths.astype("<u2").view(np.uint8).reshape(-1, 2)
        before += [_fixed(sizes, keyed), pc.fill_null(keys, b"")]
    return _Parts(kinds, before)


def _agreed(
    said: pa.Array,
    kinds: np.ndarray[Any, Any],
    parted: np.ndarray[Any, Any],
    gone: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """Return the types that rows say, where they fit what the rows hold."""
    missing = _nulls(said)
    types = pc.fill_null(said, 0).to_numpy(zero_copy_only=False).astype(np.uint8)
    types = np.where(missing, kinds, types).astype(np.uint8)
    _refuse(
        types == _RESERVED,
        types,
        "is reserved (LWP section 8.2); write 1, or copy records as they are with "
        "recordFormat=stored",
    )
    bound = parted | gone | np.isin(types, _BOUND_TYPES)
    wrong = bound & (types != kinds)
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise SinkError(
            f"row {index} of a batch: its column 'type' says {int(types[index])}, and its key, "
            f"timestamp and value make it {int(kinds[index])}; leave out the column 'type', or "
            "what contradicts it. A timestamp that came from a server is left out where the "
            "column 'time_source' says so"
        )
    return types


def _keys(batch: pa.RecordBatch) -> pa.Array:
    if "key" not in batch.schema.names or pa.types.is_null(batch["key"].type):
        return pa.nulls(len(batch), pa.binary())
    return _binary(batch["key"], "key")


def _times(batch: pa.RecordBatch) -> pa.Array:
    """Return the times to write, in nanoseconds; those that a server gave are none.

    Raises:
        SinkError: a column of times is none, or a time is before 1970.
    """
    names = batch.schema.names
    is_own = None
    if "time_source" in names and not pa.types.is_null(batch["time_source"].type):
        is_own = pc.fill_null(pc.not_equal(batch["time_source"], "server"), fill_value=True)
    found = pa.nulls(len(batch), pa.uint64())
    if "timestamp" in names and not pa.types.is_null(batch["timestamp"].type):
        column = batch["timestamp"]
        if not pa.types.is_timestamp(column.type):
            raise SinkError(f"column 'timestamp' is {column.type}; it must be a timestamp")
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        found = _nanoseconds(_since_1970(micros, is_own))
    if "ts_ns" in names and not pa.types.is_null(batch["ts_ns"].type):
        column = batch["ts_ns"]
        if not pa.types.is_integer(column.type):
            raise SinkError(f"column 'ts_ns' is {column.type}; it must be an integer")
        found = pc.coalesce(_since_1970(column, is_own), found)  # the finer of the two
    return found


def _since_1970(times: pa.Array, is_own: pa.Array | None) -> pa.Array:
    """Return times without those that a server gave."""
    if is_own is not None:
        times = pc.if_else(is_own, times, pa.scalar(None, times.type))
    try:
        return times.cast(pa.uint64())
    except pa.ArrowInvalid:
        raise SinkError("a time lies before 1970; LWP has room for times from then on") from None


def _nanoseconds(micros: pa.Array) -> pa.Array:
    try:
        return pc.multiply_checked(micros, pa.scalar(1000, pa.uint64()))
    except pa.ArrowInvalid:
        raise SinkError("a timestamp lies after the year 2554, where LWP's times end") from None


def _binary(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_binary(column.type):
        return column
    if pa.types.is_large_binary(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.binary())
    raise SinkError(f"column {name!r} is {column.type}; it must be binary or string")


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
