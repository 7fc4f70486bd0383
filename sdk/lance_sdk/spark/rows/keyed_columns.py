"""Keys, times and payloads of records as columns, without a step in Python for each record."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from lance_spec.enums import RecordType
from lance_spec.records import part_records

Array: TypeAlias = np.ndarray[Any, Any]
TIME_SIZE: Final = 8
LENGTH_SIZE: Final = 2
TIMED: Final = (int(RecordType.TIMESTAMPED), int(RecordType.KEY_TIMESTAMPED))
WITH_KEY: Final = (int(RecordType.KEY_VALUE), int(RecordType.KEY_TIMESTAMPED))
_WITHOUT_PARTS: Final = bytes(sorted({*range(256)} - {*TIMED, *WITH_KEY}))
_NULL: Final = int(RecordType.NULL)
_MOST_NS: Final = 2**63 - 1


@dataclass(eq=False)
class KeyedColumns:
    """Records taken apart by their types (LWP section 8.3).

    Attributes:
        data: the memory that the values are in, back to back.
        offsets: where each value begins there, and where the last one ends.
        kinds: the type of each record.
    """

    data: bytearray | memoryview
    offsets: Array
    kinds: Array

    @cached_property
    def has_parts(self) -> bool:
        """Whether any record has a key or a time."""
        return bool(self.kinds.tobytes().translate(None, _WITHOUT_PARTS))

    @cached_property
    def timed(self) -> Array:
        """Which records have a time of their own."""
        return np.isin(self.kinds, TIMED) if self.has_parts else np.zeros(len(self.kinds), bool)

    @cached_property
    def with_key(self) -> Array:
        """Which records have a key."""
        return np.isin(self.kinds, WITH_KEY) if self.has_parts else np.zeros(len(self.kinds), bool)

    @cached_property
    def malformed(self) -> Array:
        """Which records are not laid out as their types say."""
        if not self.has_parts:
            return np.zeros(len(self.kinds), bool)
        sizes = np.diff(self.offsets)
        least = TIME_SIZE * self.timed + LENGTH_SIZE * self.with_key
        return np.asarray((sizes < least) | (self._payload_starts > self.offsets[1:]))

    @cached_property
    def _key_starts(self) -> Array:
        """Return where each key begins, or would."""
        skipped = TIME_SIZE * self.timed + LENGTH_SIZE * self.with_key
        return self.offsets[:-1].astype(np.int64) + skipped

    @cached_property
    def _payload_starts(self) -> Array:
        lengths: Array = np.zeros(len(self.kinds), np.int64)
        places = np.flatnonzero(self.with_key)
        if len(places):
            memory = np.frombuffer(self.data, np.uint8)
            starts = self._key_starts[places] - LENGTH_SIZE
            fitting = starts + LENGTH_SIZE <= self.offsets[1:][places]
            starts = starts[fitting]
            low = memory[starts].astype(np.int64)
            lengths[places[fitting]] = low | memory[starts + 1].astype(np.int64) << 8
        return self._key_starts + lengths

    def payload(self) -> pa.Array:
        """Return what was sent.

        Null for tombstones: behind a key or a time, an empty payload is one (AMB-56).
        """
        if not self.has_parts:
            return self._binary(self.offsets, self.kinds != _NULL)
        starts = self._payload_starts
        ends: Array = self.offsets[1:].astype(np.int64)
        tombstones = (self.kinds == _NULL) | ((self.timed | self.with_key) & (starts == ends))
        return self._cut(starts, ends, ~tombstones)

    def key(self) -> pa.Array:
        """Return the keys; null where a record has none."""
        if not self.with_key.any():
            return pa.nulls(len(self.kinds), pa.binary())
        return self._cut(self._key_starts, self._payload_starts, self.with_key)

    def times_ns(self) -> tuple[Array, Array]:
        """Return the records' own times, and which have one."""
        found: Array = np.zeros(len(self.kinds), np.uint64)
        places = np.flatnonzero(self.timed & ~self.malformed)
        if len(places):
            memory = np.frombuffer(self.data, np.uint8)
            spots = self.offsets[:-1][places].astype(np.int64)[:, None] + np.arange(TIME_SIZE)
            found[places] = memory[spots].view("<u8").ravel()
        return found, self.timed

    def _cut(self, starts: Array, ends: Array, valid: Array) -> pa.Array:
        """Return a part of each value.

        The parts, and what lies between them, are an array already; every other element is taken.
        """
        edges: Array = np.empty(2 * len(starts), np.int32)
        first, last = self.offsets[:-1], self.offsets[1:]  # what is malformed stays within its own
        edges[0::2], edges[1::2] = np.clip(starts, first, last), np.clip(ends, first, last)
        count = len(edges) - 1
        buffers = [None, pa.py_buffer(edges), pa.py_buffer(self.data)]
        every = pa.Array.from_buffers(pa.binary(), max(0, count), buffers)
        numbers = np.arange(0, 2 * len(starts), 2)
        return every.take(pa.array(numbers, pa.int64(), mask=~valid))

    def _binary(self, offsets: Array, valid: Array) -> pa.Array:
        """Return whole values, in the memory that they are in."""
        bits = None
        if not valid.all():
            bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


def malformed_records(data: memoryview, bounds: Array) -> list[int]:
    """Return which records of a chain are not laid out as their types say (LWP section 8.3).

    Args:
        data: whole records, back to back.
        bounds: where each begins, and where the last one ends, as `record_bounds` has them.
    """
    every = np.frombuffer(data, np.uint8)[bounds[:-1]]
    parted = np.flatnonzero(np.isin(every, (*TIMED, *WITH_KEY)))
    if not len(parted):
        return []
    copy = bytearray(data)
    kinds, offsets = part_records(copy)
    columns = KeyedColumns(copy, np.frombuffer(offsets, np.int32), np.frombuffer(kinds, np.uint8))
    return list(np.flatnonzero(columns.malformed))


def readable_ns(times: Array, known: Array) -> pa.Array:
    """Return times as Spark's integers; null where there is none, or it has more than 63 bits."""
    fits = known & (times <= np.uint64(_MOST_NS))
    return pa.array(times.astype(np.int64), pa.int64(), mask=~fits)


def micros(times: Array, known: Array) -> pa.Array:
    """Return times as Spark's timestamps, cut to microseconds; every 64-bit time has one."""
    whole = (times // np.uint64(1000)).astype(np.int64)
    return pa.array(whole, pa.int64(), mask=~known).cast(pa.timestamp("us", "UTC"))
