"""Which way a commit takes: through the write-ahead log, or to its files at once.

Through the log a topic's commit is durable after one sync instead of two, and its bytes are
written twice. That pays up to as many bytes as the disk takes in the time of a sync, so the limit
is what the disk showed lately. A topic changes its way between two of its commits, when they are
clearly on the other side of the limit, and keeps a way for some commits.
"""

from typing import Final, Protocol

DEFAULT_LIMIT: Final = 64 * 1024
"""Bytes of a topic's commit up to which it takes the log, as long as nothing was measured."""
_LEAST: Final = 16 * 1024
_MOST: Final = 256 * 1024
_FAR: Final = 4
"""How many times the limit a commit must have to go to its files whatever the topic's way is."""
_DWELL: Final = 16
"""Commits for which a topic keeps its way, at least."""
_TOPIC_SMOOTHING: Final = 8
"""Commits over which the usual size of a topic's is taken."""
_DISK_SMOOTHING: Final = 16
"""Commits over which the disk's figures are taken."""
_SMALL: Final = 16 * 1024
"""Bytes of an append up to which the sync is what takes its time."""
_LARGE: Final = 256 * 1024
"""Bytes of a commit to files from which on the transfer is what takes its time."""


class Ways(Protocol):
    """Decides which commits take the log. One topic is asked for by one thread at a time."""

    limit: int

    def takes_log(self, name: bytes, size: int) -> bool:
        """Return whether a topic's next commit, of so many bytes, takes the log.

        Args:
            name: of the topic's segment.
            size: bytes of data and sidecar.
        """
        ...

    def forget(self, name: bytes) -> None:
        """Note that a segment was closed."""
        ...

    def note_log(self, size: int, seconds: float) -> None:
        """Note what an append to the log took; called by one thread at a time."""
        ...

    def note_files(self, size: int, seconds: float) -> None:
        """Note what a commit to its files took; called by one thread at a time."""
        ...


class FixedWays:
    """The log takes what is not larger than a limit.

    Args:
        limit: bytes of a topic's commit.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit

    def __repr__(self) -> str:
        return f"<FixedWays up to {self.limit} bytes>"

    def takes_log(self, name: bytes, size: int) -> bool:
        """Return whether a topic's next commit takes the log."""
        del name
        return size <= self.limit

    def forget(self, name: bytes) -> None:
        """Do nothing: nothing is known of segments."""

    def note_log(self, size: int, seconds: float) -> None:
        """Do nothing: the limit stands."""

    def note_files(self, size: int, seconds: float) -> None:
        """Do nothing: the limit stands."""


class _Habit:
    """A topic's commits lately, and the way that they take."""

    __slots__ = ("commits", "takes_log", "usual")

    def __init__(self, size: int, *, takes_log: bool) -> None:
        self.usual = float(size)
        self.takes_log = takes_log
        self.commits = 0


class MeasuredWays:
    """The log takes what is cheaper to write twice than to sync twice, as the disk goes lately.

    Attributes:
        limit: bytes of a topic's commit up to which the log is the better way.
        sync_seconds: what a small append to the log takes; 0 before the first.
        bytes_per_second: what large commits to files reach; 0 before the first.
    """

    def __init__(self) -> None:
        self.limit = DEFAULT_LIMIT
        self.sync_seconds = 0.0
        self.bytes_per_second = 0.0
        self._habits: dict[bytes, _Habit] = {}

    def __repr__(self) -> str:
        return f"<MeasuredWays up to {self.limit} bytes, {len(self._habits)} segments>"

    def takes_log(self, name: bytes, size: int) -> bool:
        """Return whether a topic's next commit takes the log."""
        limit = self.limit
        if size > _FAR * limit:
            return False
        habit = self._habits.get(name)
        if habit is None:
            habit = self._habits[name] = _Habit(size, takes_log=size <= limit)
        habit.usual += (size - habit.usual) / _TOPIC_SMOOTHING
        habit.commits += 1
        if habit.commits > _DWELL:
            is_beyond = habit.usual > limit if habit.takes_log else habit.usual < limit / 2
            if is_beyond:  # clearly, so that it does not change with each commit
                habit.takes_log = not habit.takes_log
                habit.commits = 1
        return habit.takes_log

    def forget(self, name: bytes) -> None:
        """Note that a segment was closed."""
        self._habits.pop(name, None)

    def note_log(self, size: int, seconds: float) -> None:
        """Note what an append to the log took."""
        if size <= _SMALL:
            before = self.sync_seconds or seconds
            self.sync_seconds = before + (seconds - before) / _DISK_SMOOTHING
            if self.bytes_per_second:
                self._set_limit()

    def note_files(self, size: int, seconds: float) -> None:
        """Note what a commit to its files took."""
        if size >= _LARGE and seconds > 0:
            rate = size / seconds
            before = self.bytes_per_second or rate
            self.bytes_per_second = before + (rate - before) / _DISK_SMOOTHING
            if self.sync_seconds:
                self._set_limit()

    def _set_limit(self) -> None:
        worth = int(self.sync_seconds * self.bytes_per_second)
        self.limit = min(max(worth, _LEAST), _MOST)
