"""The seam to the system that orders a cluster's records and keeps them on a quorum.

A replicated log has a fixed number of shards. Each shard is a sequence of records. Positions
begin anywhere, rise by one and are never given twice. A node appends records, reads every one of
them in order, and applies them. Nothing of the order or of the quorum is decided by a node.

Implementations answer from any thread and may be called from any thread, unless a method says
otherwise. A new log is read from `ReplicatedLog.earliest`.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from lance_spec.checksum import Buffer

MAX_RECORD: Final = 17 * 1024 * 1024
"""Bytes of the longest record that a log must take: the largest batch, and its envelope."""
NO_EPOCH: Final = -1
"""The leader epoch of a log that has none, or that is not known."""


class ReplicatedLogError(Exception):
    """Something that a replicated log refused or could not do; the text says what to do."""


class LogUnavailableError(ReplicatedLogError):
    """The log cannot be reached now; the same call may succeed later."""


class AppendError(ReplicatedLogError):
    """A record was not reported as appended.

    Attributes:
        maybe_applied: whether the record may be in the log all the same.
    """

    def __init__(self, problem: str, *, maybe_applied: bool) -> None:
        super().__init__(problem)
        self.maybe_applied = maybe_applied


class RecordTooLargeError(AppendError):
    """The log does not take records of this size; it was not appended."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"a record of {size} bytes is larger than the {most} bytes that the log takes; "
            "send smaller batches",
            maybe_applied=False,
        )


class StopNodeError(ReplicatedLogError):
    """The log is not the one that the node applied so far: the node must stop applying.

    A node never skips a record. What it holds stays as it is.
    """


class LogTrimmedError(StopNodeError):
    """The position that was asked for is trimmed: the node must be bootstrapped again.

    Attributes:
        position: the position that was asked for.
        earliest: the first position that is still there.
    """

    def __init__(self, shard: int, position: int, earliest: int) -> None:
        super().__init__(
            f"shard {shard}: position {position} is trimmed, the log begins at {earliest}; "
            "fetch what is missing from another node: `lance-server clone DIR --from HOST:PORT`"
        )
        self.position = position
        self.earliest = earliest


class LogTruncatedError(StopNodeError):
    """The log lost records that the node applied: its end or its leader epoch fell."""


class LogGapError(StopNodeError):
    """A record is missing between two that were read."""


class LogReplacedError(StopNodeError):
    """The log has another identity than the one that the node's data came from."""


class FirstStateMissingError(StopNodeError):
    """The records follow on files that the node has not got."""


class UnsafeSettingsError(ReplicatedLogError):
    """The settings of the log break what an acknowledgement promises, or cannot be read."""


class Entry(NamedTuple):
    """One record as the log keeps it.

    Attributes:
        position: its place in the shard; the next record's is one higher.
        epoch: leader epoch under which it was appended, or `NO_EPOCH`.
        time_ns: when the log appended it, in nanoseconds since the Unix epoch; the same for
            every reader.
        record: what was appended.
        shard: where it stands.
    """

    position: int
    epoch: int
    time_ns: int
    record: bytes
    shard: int = 0


Delivered: TypeAlias = Callable[[int | AppendError], None]
"""Called once for an append, on any thread: with the position, or with why it is not known."""


class ShardReader(Protocol):
    """Reads shards, each in its order. Used by one thread at a time."""

    def add(self, shard: int, position: int, epoch: int = NO_EPOCH) -> None:
        """Read one more shard from a position on, see `ReplicatedLog.read`.

        Raises:
            LogUnavailableError: the log cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        ...

    def read(self, most: int, wait: float) -> Sequence[Entry]:
        """Return the next entries, those of each shard oldest first and without gaps.

        Args:
            most: about how many bytes of records; at least one record is returned where there
                is one.
            wait: seconds to wait for the first entry; 0 does not wait.

        Returns:
            Nothing where no entry came in time.

        Raises:
            LogUnavailableError: the log cannot be reached; the same call may succeed later.
            StopNodeError: the log has not got what comes next, or is another log.
        """
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


class ReplicatedLog(Protocol):
    """An ordered log that outlives the loss of a minority of the machines that keep it."""

    @property
    def shards(self) -> int:
        """How many shards the log has; fixed when it is made."""
        ...

    def identity(self) -> str:
        """Return the log's own id: a log that is made again under the same name has another.

        Raises:
            LogUnavailableError: the log cannot be reached.
        """
        ...

    def durability(self) -> str:
        """Return one sentence for operators: which losses the log's settings survive."""
        ...

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append a record; ``delivered`` is told when a quorum has it.

        Records of one process reach a shard in the order of the calls: a record that fails
        does not overtake one before it, and none after it is appended before it is reported.
        The log sets no time limit of its own: a record may be reported late, or never. After
        an error that says maybe applied, the record may still turn up once.

        Raises:
            LogUnavailableError: the log is closed, or accepts no records at present; the record
                was not appended and ``delivered`` is not called.
        """
        ...

    def read(self, shard: int, position: int, epoch: int = NO_EPOCH) -> ShardReader:
        """Return a reader of a shard that begins at a position.

        Args:
            shard: number of the shard.
            position: of the first record to read; that of `end` reads what is appended from
                now on.
            epoch: leader epoch of the record before it, where one is known; the log uses it to
                notice that it was truncated.

        Raises:
            LogUnavailableError: the log cannot be reached.
            StopNodeError: the position is trimmed, or lies after the end.
        """
        ...

    def earliest(self, shard: int) -> int:
        """Return the first position that is still there, or `end` where there is none.

        Raises:
            LogUnavailableError: the log cannot be reached.
        """
        ...

    def end(self, shard: int) -> int:
        """Return the position after the last record.

        Raises:
            LogUnavailableError: the log cannot be reached.
        """
        ...

    def trim(self, shard: int, before: int) -> None:
        """Allow the log to delete the records before a position. It may delete fewer.

        Raises:
            LogUnavailableError: the log cannot be reached.
        """
        ...

    def close(self) -> None:
        """Stop: appends that are not reported yet fail as maybe applied."""
        ...
