"""A replicated log whose appends and readers do only what a test lets them do."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from lance_server.cluster.memory import MemoryLog
from lance_server.cluster.replicated_log import (
    AppendError,
    Delivered,
    Entry,
    LogUnavailableError,
    ShardReader,
)
from lance_spec.checksum import Buffer


class Pending(NamedTuple):
    """An append that a test has not decided about."""

    shard: int
    record: bytes
    delivered: Delivered


class FaultyLog:
    """One node's connection to a shared `MemoryLog`, with faults.

    An append waits in ``pending`` until the test lets the log take it, lose it, or take it
    without saying so. Reports of records that were taken wait in ``reports``. A connection
    keeps the order of the records of a shard: only the oldest one of each can be decided.

    Args:
        log: the log that all nodes share.

    Attributes:
        pending: appends that are not decided, oldest first.
        reports: reports that the node has not got, oldest first.
        reachable: whether the node reaches the log.
        visible: per shard, the position from which on this node sees nothing yet; None where it
            sees everything.
    """

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.pending: deque[Pending] = deque()
        self.reports: deque[tuple[Delivered, int | AppendError]] = deque()
        self.reachable = True
        self.visible: list[int | None] = [None] * log.shards
        self._closed = False

    def __repr__(self) -> str:
        return f"<FaultyLog of {self.log!r}: {len(self.pending)} pending>"

    @property
    def shards(self) -> int:
        """How many shards the log has."""
        return self.log.shards

    def identity(self) -> str:
        """Return the log's id.

        Raises:
            LogUnavailableError: the test says so.
        """
        self.reach()
        return self.log.identity()

    def durability(self) -> str:
        """Return which losses the log survives."""
        return self.log.durability()

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Note an append for the test to decide about.

        Raises:
            LogUnavailableError: the connection is closed.
        """
        if self._closed:
            raise LogUnavailableError("the connection to the log is closed")
        self.pending.append(Pending(shard, bytes(record), delivered))

    def read(self, shard: int, position: int, epoch: int = 0) -> ShardReader:
        """Return a reader that sees what the test lets it see.

        Raises:
            LogUnavailableError: the test says so.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        reader = _LaggingReader(self)
        reader.add(shard, position, epoch)
        return reader

    def earliest(self, shard: int) -> int:
        """Return the first position that is still there.

        Raises:
            LogUnavailableError: the test says so.
        """
        self.reach()
        return self.log.earliest(shard)

    def end(self, shard: int) -> int:
        """Return the position after the last record.

        Raises:
            LogUnavailableError: the test says so.
        """
        self.reach()
        return self.log.end(shard)

    def trim(self, shard: int, before: int) -> None:
        """Forget the entries before a position.

        Raises:
            LogUnavailableError: the test says so.
        """
        self.reach()
        self.log.trim(shard, before)

    def close(self) -> None:
        """Fail what is pending, as maybe applied."""
        self._closed = True
        while self.pending:
            self.fail(applied=False)
        while self.reports:
            self.report()

    # What a test decides -------------------------------------------------------------------------

    def _oldest(self, shard: int | None) -> Pending:
        found = next(each for each in self.pending if shard in {None, each.shard})
        self.pending.remove(found)
        return found

    def commit(self, shard: int | None = None) -> int:
        """Let the log take the oldest pending append, of any shard; its report waits.

        Returns:
            The record's position.
        """
        oldest = self._oldest(shard)
        position = self.log.put(oldest.shard, oldest.record)
        self.reports.append((oldest.delivered, position))
        return position

    def fail(self, *, applied: bool, shard: int | None = None) -> None:
        """Report the oldest pending append as maybe applied, whether or not the log takes it."""
        oldest = self._oldest(shard)
        if applied:
            self.log.put(oldest.shard, oldest.record)
        problem = AppendError("the log did not confirm the record", maybe_applied=True)
        self.reports.append((oldest.delivered, problem))

    def report(self) -> None:
        """Give the node the oldest report."""
        delivered, result = self.reports.popleft()
        delivered(result)

    def take_all(self) -> None:
        """Let the log take everything, and give the node every report."""
        while self.pending:
            self.commit()
        while self.reports:
            self.report()

    def reach(self) -> None:
        """Refuse where the test says so.

        Raises:
            LogUnavailableError: it does.
        """
        if self._closed or not self.reachable:
            raise LogUnavailableError("the log cannot be reached")

    def limit(self, shard: int, position: int) -> int:
        """Return how many entries from a position on the node may see.

        Raises:
            LogUnavailableError: the test says so.
        """
        self.reach()
        visible = self.visible[shard]
        end = self.log.end(shard)
        return max(0, (end if visible is None else min(visible, end)) - position)


class _LaggingReader:
    """Reads no further than the test lets it."""

    def __init__(self, log: FaultyLog) -> None:
        self._log = log
        self._positions: dict[int, int] = {}

    def add(self, shard: int, position: int, epoch: int = 0) -> None:
        """Read one more shard.

        Raises:
            LogUnavailableError: the test says so.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        self._log.reach()
        self._log.log.read(shard, position, epoch).close()
        self._positions[shard] = position

    def read(self, most: int, wait: float) -> Sequence[Entry]:
        """Return the next entries, never waiting for them.

        Raises:
            LogUnavailableError: the test says so.
            StopNodeError: they are trimmed.
        """
        del wait
        found: list[Entry] = []
        for shard, position in self._positions.items():
            limit = self._log.limit(shard, position)
            more = self._log.log.entries(shard, position, most)[:limit]
            self._positions[shard] += len(more)
            found += more
        return found

    def close(self) -> None:
        """Do nothing: the log is shared."""
