"""A node's data: its shards on one disk, opened at their marks, applied to, and marked again."""

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Self

from lance_server.cluster.applying.mark import (
    FOLDER,
    UNFINISHED,
    Mark,
    load_mark,
    remove,
    remove_mark,
    save_mark,
)
from lance_server.cluster.applying.restore import remove_unknown_topics, restore
from lance_server.cluster.applying.results import Applied
from lance_server.cluster.applying.settings import APPLY_VERSION
from lance_server.cluster.applying.shard import Shard, ShardState
from lance_server.cluster.applying.topic import Removal
from lance_server.cluster.records import check_beginning
from lance_server.cluster.replicated_log import (
    Entry,
    LogReplacedError,
    LogTrimmedError,
    ReplicatedLog,
    ReplicatedLogError,
    ShardReader,
    StopNodeError,
)
from lance_server.errors import DataDirError
from lance_server.storage.contract import StorageBackend


class Replica:
    """A node's data, as a function of the log.

    After an `OSError` the object must not be used any more: another one opens the directory at
    its marks.

    Args:
        storage: the backend; nothing that it writes needs to be durable before a sync.
        data_dir: the directory.
        identity: of the log.

    Attributes:
        identity: of the log.
        shards: those that the node hosts, by number.
        left: marks of shards that the node hosts no more, and whose files it still has, by number.
    """

    def __init__(self, storage: StorageBackend, data_dir: Path, identity: str) -> None:
        self._storage = storage
        self._data_dir = data_dir
        self._folder = data_dir / "segments"
        self.identity = identity
        self._durable: dict[int, int] = {}
        self.shards: dict[int, Shard] = {}
        self.left: dict[int, Mark] = {}

    def __repr__(self) -> str:
        return f"<Replica {self._data_dir}: {list(self.shards.values())}>"

    @classmethod
    def open(
        cls,
        storage: StorageBackend,
        data_dir: Path,
        identity: str,
        shards: int,
        earliest: Callable[[int], int],
        *,
        hosted: Container[int] | None = None,
    ) -> Self:
        """Bring a directory back to its marks and return its data.

        Args:
            storage: the backend.
            data_dir: the directory; a new one is made.
            identity: of the log.
            shards: how many shards the log has.
            earliest: returns the first position of a shard that the log still has.
            hosted: the shards to open; None for all. The files of others stay as they are.

        Raises:
            LogReplacedError: the data came from another log.
            LogTrimmedError: the log has not got what a shard needs next.
            StopNodeError: a newer release wrote the data.
            DataDirError: the directory is damaged.
            OSError: the disk refused.
        """
        replica = cls(storage, data_dir, identity)
        replica._check_owner()
        for folder in (data_dir, replica._folder, data_dir / FOLDER):
            storage.make_dir(folder)
        storage.sync_dir(data_dir)
        marks = [load_mark(storage, data_dir, number) for number in range(shards)]
        open_now = [number for number in range(shards) if hosted is None or number in hosted]
        for number, mark in enumerate(marks):
            replica._check(number, mark, earliest(number) if number in open_now else 0)
        known = frozenset(key for mark in marks if mark for key in mark.topics)
        for mark in marks:
            if mark is not None:
                remove(storage, replica._folder, mark.removals)
        remove_unknown_topics(storage, replica._folder, known)
        for number, mark in enumerate(marks):
            if number in open_now:
                replica.shards[number] = replica._open_shard(number, shards, mark)
            elif mark is not None:
                replica.left[number] = mark
        replica._durable = {key: each.state.position for key, each in replica.shards.items()}
        return replica

    def _check_owner(self) -> None:
        """Refuse the data of a single node, which would be removed, and a clone that is not whole.

        Raises:
            DataDirError: the directory has topics and is not a node's, or not all of them.
        """
        self._storage.make_dir(self._data_dir)
        names = self._storage.list_dir(self._data_dir)
        if FOLDER in names and UNFINISHED in self._storage.list_dir(self._data_dir / FOLDER):
            raise DataDirError(
                f"{self._data_dir} is an incomplete clone: run `lance-server clone` again, "
                "which goes on where it was"
            )
        if FOLDER in names or self._folder.name not in names:
            return
        if self._storage.list_dir(self._folder):
            raise DataDirError(
                f"{self._data_dir} holds the data of a single server; give the node an empty "
                "directory of its own"
            )

    def _check(self, number: int, mark: Mark | None, earliest: int) -> None:
        position = 0 if mark is None else mark.state.position
        if mark is not None and mark.identity != self.identity:
            raise LogReplacedError(
                f"{self._data_dir} holds what came from the log {mark.identity}, this log is "
                f"{self.identity}: it was made again, or belongs to another cluster. Give the "
                "node its own log, or an empty directory; `lwp cluster init URL --from-data-dir "
                "DIR` lets a cluster whose log is lost go on in a new one"
            )
        if mark is not None and mark.state.apply_version > APPLY_VERSION:
            raise StopNodeError(
                f"{self._data_dir} was written by version {mark.state.apply_version} of the rules, "
                f"this release knows up to {APPLY_VERSION}; upgrade this node"
            )
        if position < earliest:
            raise LogTrimmedError(number, position, earliest)

    def _open_shard(self, number: int, shards: int, mark: Mark | None) -> Shard:
        if mark is None:
            state = ShardState(position=0)
            return Shard(number, shards, self._storage, self._folder, state=state)
        shard = restore(self._storage, self._data_dir, number, shards, mark)
        # A crash may have left the second copy of the mark at an earlier one.
        save_mark(self._storage, self._data_dir, number, Mark.of(shard, self.identity))
        return shard

    def open_reader(self, log: ReplicatedLog) -> ShardReader:
        """Return what reads all shards, each from where it is.

        Raises:
            LogUnavailableError: the log cannot be reached.
            StopNodeError: it has not got what comes next, or is that of another cluster.
        """
        reader: ShardReader | None = None
        try:
            for number, shard in self.shards.items():
                state = shard.state
                if state.settings is not None:
                    check_beginning(log, number, state.settings.cluster_id)
                if reader is None:
                    reader = log.read(number, state.position, state.epoch)
                else:
                    reader.add(number, state.position, state.epoch)
        except ReplicatedLogError:
            if reader is not None:
                reader.close()
            raise
        assert reader is not None, "there is a shard"
        return reader

    def apply(self, shard: int, entries: Sequence[Entry]) -> list[Applied]:
        """Apply entries that follow each other; return what came of each.

        Raises:
            StopNodeError: one is missing, or is not a record that this release knows.
            OSError: the disk refused.
        """
        return self.shards[shard].apply(entries)

    def durable(self, shard: int) -> int:
        """Return the position up to which a shard survives a crash of the node."""
        return self._durable[shard]

    def mark(self, number: int) -> None:
        """Make everything durable that a shard has applied, and remove what may go by then.

        Raises:
            OSError: the disk refused.
        """
        shard = self.shards[number]
        if shard.state.settings is None or shard.state.position == self._durable[number]:
            return
        shard.sync()
        mark = Mark.of(shard, self.identity)
        save_mark(self._storage, self._data_dir, number, mark)
        self._durable[number] = shard.state.position
        remove(self._storage, self._folder, mark.removals)
        shard.removed(mark.removals)

    def drop(self, number: int) -> None:
        """Remove the files of a shard that the node hosts no more.

        Its mark goes first: what a crash leaves belongs to no mark, and the next start removes it.

        Raises:
            OSError: the disk refused; the next start tells again that the shard was left.
        """
        mark = self.left.pop(number)
        remove_mark(self._storage, self._data_dir, number)
        remove(self._storage, self._folder, [Removal(each, "topic") for each in mark.topics])

    def release(self) -> None:
        """Close all files and leave them as they are."""
        for shard in self.shards.values():
            shard.release()
