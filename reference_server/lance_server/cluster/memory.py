"""A replicated log in the memory of one process: for tests, and for trying a cluster out.

Nodes of one process that name the same log share it. It ends with the process.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lance_server.cluster.replicated_log import (
    MAX_RECORD,
    Delivered,
    Entry,
    LogTrimmedError,
    LogTruncatedError,
    RecordTooLargeError,
)
from lance_spec.checksum import Buffer

_AT_ONCE: Final = 1024
"""Most entries that one read returns."""
_EPOCH: Final = 0
"""There is one leader, for ever."""


class _Shard:
    """Entries of one shard; the lock of the log guards them."""

    def __init__(self) -> None:
        self.start = 0
        self.entries: list[Entry] = []

    @property
    def end(self) -> int:
        return self.start + len(self.entries)


class MemoryLog:
    """A log of one process.

    Args:
        identity: its id.
        shards: how many shards it has.
        clock: returns nanoseconds since the Unix epoch, for the times of entries.
    """

    def __init__(
        self, identity: str, *, shards: int = 1, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._identity = identity
        self._shards = [_Shard() for _ in range(shards)]
        self._clock = clock
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        ends = [shard.end for shard in self._shards]
        return f"<MemoryLog {self._identity}: ends={ends}>"

    @property
    def shards(self) -> int:
        """How many shards the log has."""
        return len(self._shards)

    def identity(self) -> str:
        """Return the log's id."""
        return self._identity

    def durability(self) -> str:
        """Return which losses the log survives: none."""
        return "The log is kept in the memory of one process: it survives nothing."

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append a record and report its position at once."""
        if len(record) > MAX_RECORD:
            delivered(RecordTooLargeError(len(record), MAX_RECORD))
            return
        delivered(self.put(shard, record))

    def put(self, shard: int, record: Buffer) -> int:
        """Append a record and return its position."""
        with self._changed:
            kept = self._shards[shard]
            position = kept.end
            entry = Entry(position, _EPOCH, self._clock(), bytes(record), shard)
            kept.entries.append(entry)
            self._changed.notify_all()
        return position

    def read(self, shard: int, position: int, epoch: int = _EPOCH) -> "MemoryReader":
        """Return a reader that begins at a position.

        Raises:
            StopNodeError: the position is trimmed, or lies after the end.
        """
        reader = MemoryReader(self)
        reader.add(shard, position, epoch)
        return reader

    def wait(self, positions: Mapping[int, int], seconds: float) -> None:
        """Wait until one of the shards does not end at its position."""
        with self._changed:
            self._changed.wait_for(
                lambda: any(self._shards[shard].end != end for shard, end in positions.items()),
                seconds,
            )

    def entries(self, shard: int, position: int, most: int) -> Sequence[Entry]:
        """Return entries of a shard from a position on.

        Raises:
            StopNodeError: the position is trimmed, or lies after the end.
        """
        kept = self._shards[shard]
        with self._changed:
            if position < kept.start:
                raise LogTrimmedError(shard, position, kept.start)
            if position > kept.end:
                raise LogTruncatedError(
                    f"shard {shard}: the log ends at {kept.end}, before position {position} that "
                    "this node has applied; it is not the log that this node followed"
                )
            first = position - kept.start
            return _up_to(kept.entries[first : first + _AT_ONCE], most)

    def earliest(self, shard: int) -> int:
        """Return the first position that is still there."""
        with self._changed:
            return self._shards[shard].start

    def end(self, shard: int) -> int:
        """Return the position after the last record."""
        with self._changed:
            return self._shards[shard].end

    def trim(self, shard: int, before: int) -> None:
        """Forget the entries before a position."""
        kept = self._shards[shard]
        with self._changed:
            gone = min(max(0, before - kept.start), len(kept.entries))
            del kept.entries[:gone]
            kept.start += gone

    def close(self) -> None:
        """Do nothing: other nodes of the process may use the log."""


def _up_to(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Return as many entries as fit, at least one where any bytes are wanted."""
    found: list[Entry] = []
    size = 0
    for entry in entries:
        size += len(entry.record)
        if size > most and (found or not most):
            break
        found.append(entry)
    return found


class MemoryReader:
    """Reads shards of a `MemoryLog`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._positions: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<MemoryReader at {self._positions}>"

    def add(self, shard: int, position: int, epoch: int = _EPOCH) -> None:
        """Read one more shard.

        Raises:
            StopNodeError: the position is trimmed, or lies after the end.
        """
        del epoch
        self._log.entries(shard, position, 0)
        self._positions[shard] = position

    def read(self, most: int, wait: float) -> Sequence[Entry]:
        """Return the next entries.

        Raises:
            StopNodeError: they are trimmed.
        """
        if wait:
            self._log.wait(self._positions, wait)
        found: list[Entry] = []
        for shard, position in self._positions.items():
            more = self._log.entries(shard, position, most)
            self._positions[shard] += len(more)
            found += more
        return found

    def close(self) -> None:
        """Do nothing: a reader holds nothing."""


_named: Final[dict[str, MemoryLog]] = {}
_naming: Final = threading.Lock()


def named_log(name: str, *, shards: int = 1) -> MemoryLog:
    """Return the log of this process with a name; the first call makes it.

    Args:
        name: any name.
        shards: how many shards a new log has; one that exists keeps its number.
    """
    with _naming:
        return _named.setdefault(name, MemoryLog(f"memory-{name}", shards=shards))


def forget_log(name: str) -> None:
    """Let the next `named_log` of a name make a new log."""
    with _naming:
        _named.pop(name, None)
