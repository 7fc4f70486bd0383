"""Snapshot of a node: a copy of its data directory as of a mark, while it goes on applying.

Another node that starts on the copy goes on from the mark's position of the log. Between two steps
of the node its files are made what a mark says; closed files get a second name then, and those
that grow are kept open. What they held at that moment is copied while the node applies on.
"""

from pathlib import Path
from typing import Final, NamedTuple

from lance_server.cluster.applying.mark import FOLDER, mark_path
from lance_server.cluster.applying.replica import Replica
from lance_server.cluster.applying.topic import ReplicatedTopic
from lance_server.cluster.node import ClusterNode
from lance_server.errors import ConfigError
from lance_server.log.metadata.checksummed_file import backup_of
from lance_server.log.retention.rules import WINDOW_SUFFIX
from lance_server.log.segments.segment_files import DATA_SUFFIX, SIDECAR_SUFFIX
from lance_server.log.segments.sidecar import ENTRY_SIZE, HEADER_SIZE
from lance_server.log.snapshot import (
    LinkFile,
    SnapshotMaker,
    SnapshotReport,
    SnapshotWriter,
)
from lance_server.runtime.completion import Completion
from lance_server.runtime.scheduling import Scheduler
from lance_server.storage.contract import StorageBackend

_LASTING: Final = (DATA_SUFFIX, SIDECAR_SUFFIX, WINDOW_SUFFIX, ".idx")
"""How the names of files end that never change once they are closed."""


class _Growing(NamedTuple):
    """A file that was being written.

    Attributes:
        fd: it, open.
        target: where its copy goes.
        size: bytes that the mark counts.
    """

    fd: int
    target: Path
    size: int


class NodeSnapshotWriter(SnapshotWriter):
    """Writes a snapshot of a node, see `SnapshotWriter`."""

    def __init__(
        self,
        source: StorageBackend,
        data_dir: Path,
        storage: StorageBackend,
        target: Path,
        link: LinkFile,
    ) -> None:
        super().__init__(source, data_dir, storage, target, link)
        self._growing: list[_Growing] = []
        self._folders: list[Path] = []

    def hold(self, replica: Replica) -> None:
        """Take hold of all files; they are as a mark says (the node's worker thread).

        Raises:
            ConfigError: the node has no mark yet, or something is in the way.
            OSError: the disk refused.
        """
        if any(shard.state.settings is None for shard in replica.shards.values()):
            raise ConfigError("the cluster has not begun, or this node has not read the log yet")
        self.begin()
        self._copy_marks(replica)
        for shard in replica.shards.values():
            for topic in shard.topics.values():
                self._hold_topic(topic)

    def _copy_marks(self, replica: Replica) -> None:
        source, target = self._data_dir / FOLDER, self._draft / FOLDER
        self._make(target)
        for number in replica.shards:
            path = mark_path(self._data_dir, number)
            for name in (path.name, backup_of(path).name):
                if name in self._source.list_dir(source):
                    self._copy_whole(source / name, target / name)

    def _hold_topic(self, topic: ReplicatedTopic) -> None:
        source = topic.file.folder
        target = self._draft / "segments" / source.name
        self._make(target)
        sizes = _sizes_of(topic)
        for name in self._source.list_dir(source):
            if name in sizes:
                fd = self._source.open(source / name)
                self._growing.append(_Growing(fd, target / name, sizes[name]))
            elif name.endswith(_LASTING):
                self._share(source / name, target / name)
            else:
                self._copy_whole(source / name, target / name)
        self.report.topics += 1

    def _make(self, folder: Path) -> None:
        self._storage.make_dir(folder)
        self._folders.append(folder)

    def finish(self) -> SnapshotReport:
        """Copy what was held of files that grow, and give the copy its name, durably.

        Raises:
            OSError: the disk refused.
        """
        while self._growing:
            each = self._growing.pop()
            try:
                self._write(each.target, self._chunks(each.fd, each.size))
            finally:
                self._source.close(each.fd)
        for folder in self._folders:
            self._storage.sync_dir(folder)
        return super().finish()

    def give_up(self) -> None:
        """Remove what was made.

        Raises:
            OSError: the disk refused; some of it is left.
        """
        while self._growing:
            self._source.close(self._growing.pop().fd)
        for folder in self._folders:
            self._empty(folder)
        self._folders.clear()
        super().give_up()


def _sizes_of(topic: ReplicatedTopic) -> dict[str, int]:
    """Return how much of the files counts that are being written, by name."""
    writer = topic.active
    if writer is None:
        return {}
    segment = writer.segment
    return {
        segment.data_path.name: writer.size,
        segment.sidecar_path.name: HEADER_SIZE + writer.batches * ENTRY_SIZE,
    }


class NodeSnapshots(SnapshotMaker):
    """Makes snapshots of a node, one at a time. Belongs to the event loop's thread.

    Args:
        node: the node.
        data_dir: its data directory.
        storage: its backend.
        scheduler: where work runs.
    """

    def __init__(
        self, node: ClusterNode, data_dir: Path, storage: StorageBackend, scheduler: Scheduler
    ) -> None:
        super().__init__(data_dir, storage, scheduler)
        self._node = node

    def _make(
        self,
        target: Path,
        storage: StorageBackend,
        link: LinkFile,
        outcome: Completion[SnapshotReport],
    ) -> None:
        writer = NodeSnapshotWriter(self._storage, self._data_dir, storage, target, link)
        held = self._node.at_mark(writer.hold)
        held.wake(lambda: self._finish(writer, held, outcome))

    def _finish(
        self,
        writer: NodeSnapshotWriter,
        held: Completion[None],
        outcome: Completion[SnapshotReport],
    ) -> None:
        if held.error is not None:
            self._undo(writer, held.error, outcome)
            return
        finished = self._scheduler.run("meta", writer.finish)

        def end() -> None:
            if finished.error is not None:
                self._undo(writer, finished.error, outcome)
            else:
                outcome.settle(finished.result())

        finished.wake(end)

    def _undo(
        self, writer: NodeSnapshotWriter, error: Exception, outcome: Completion[SnapshotReport]
    ) -> None:
        if not writer.begun:
            outcome.fail(error)
            return
        removed = self._scheduler.run("meta", writer.give_up)
        removed.wake(lambda: self.fail(outcome, error, removed.error))
