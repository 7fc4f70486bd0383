"""The folders of topics: made when a topic is created, and emptied when it is deleted."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lance_server.log.dedup import WindowLimits
from lance_server.log.metadata.catalog import DELETED_PREFIX, TopicIdAllocator
from lance_server.log.metadata.partition_description import PartitionedTopic, partition_name
from lance_server.log.metadata.topic_file import Retention, StoredIdentity, TopicFile
from lance_server.log.recovery.startup import Opened
from lance_server.storage.contract import StorageBackend, UndecidedError, remove_folder

_NANOSECONDS: Final = 1_000_000_000


class TopicFolders:
    """Makes and erases them, durably, on a worker thread.

    Args:
        storage: the backend.
        catalog: which numbers and epochs were given out.
        folder: where the topics' folders lie.
        window: how far back repeated batches are recognised.
        clock: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        storage: StorageBackend,
        catalog: TopicIdAllocator,
        folder: Path,
        window: WindowLimits,
        clock: Callable[[], int],
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._folder = folder
        self._window = window
        self._clock = clock
        self._unfinished: list[Path] = []
        """Folders of topics whose creation failed and could not be undone yet."""

    def __repr__(self) -> str:
        return f"<TopicFolders in {self._folder}>"

    def build(self, name: str, retention: Retention) -> Opened:
        """Make a new topic's folder and file.

        Raises:
            UndecidedError: the next start may find the topic; the next call undoes it first.
            OSError: there is no such topic.
        """
        self.undo()
        topic_id, epoch = self._catalog.claim(name)
        with self._undoing():
            file = self._new_topic(topic_id, epoch, name, retention)
            self._storage.sync_dir(self._folder)
        return Opened.empty(file, self._window)

    def build_partitions(self, described: PartitionedTopic, count: int) -> Sequence[Opened]:
        """Make the topics that a partitioned topic lacks: all of them, or none.

        Args:
            described: the partitioned topic, with the partitions that are there already.
            count: how many it is to have.

        Returns:
            The new ones.

        Raises:
            UndecidedError: the next start may find them; the next call undoes it first.
            OSError: all is as before.
        """
        self.undo()
        there = len(described.topic_ids)
        names = [partition_name(described.name, index) for index in range(there, count)]
        with self._undoing():
            claimed = self._catalog.begin(names)
            files = [
                self._new_topic(topic_id, epoch, name, described.retention)
                for name, (topic_id, epoch) in zip(names, claimed, strict=True)
            ]
            self._storage.sync_dir(self._folder)
            topic_ids = (*described.topic_ids, *self._catalog.creating)
            self._catalog.commit(replace(described, topic_ids=topic_ids))
        return [Opened.empty(file, self._window) for file in files]

    def _new_topic(self, topic_id: int, epoch: int, name: str, retention: Retention) -> TopicFile:
        folder = self._folder / str(topic_id)
        self._unfinished.append(folder)
        identity = StoredIdentity(topic_id, name, self._clock() // _NANOSECONDS, epoch)
        file = TopicFile(self._storage, folder, identity, retention)
        self._storage.make_dir(folder)
        file.save()
        return file

    @contextlib.contextmanager
    def _undoing(self) -> Iterator[None]:
        """Remove everything again when the disk refuses."""
        try:
            yield
        except OSError as error:
            try:
                self.undo()
            except OSError:
                raise UndecidedError.after(error) from error
            raise OSError(error.errno, error.strerror) from error
        self._unfinished = []

    def undo(self) -> None:
        """Take topics whose creation failed halfway out of sight, durably.

        Raises:
            OSError: they are still there; the next call tries again.
        """
        folders, partitions = self._unfinished, self._catalog.creating
        if partitions:
            self._catalog.save()  # whatever a commit that failed has left there
        if folders:
            present = self._storage.list_dir(self._folder)
            for folder in folders:
                if folder.name in present:
                    self._storage.rename(folder, self._grave(folder.name))
            self._storage.sync_dir(self._folder)
        if partitions:
            self._catalog.give_up()
        self._unfinished = []
        with contextlib.suppress(OSError):  # the next start finishes it
            for folder in folders:
                remove_folder(self._storage, self._grave(folder.name))

    def _grave(self, name: str) -> Path:
        return self._folder / f"{DELETED_PREFIX}{name}"

    def erase(self, file: TopicFile) -> OSError | None:
        """Take a topic's folder out of sight, durably, then empty it.

        Returns:
            What went wrong after the folder was out of sight; the next start finishes it.

        Raises:
            OSError: the folder is still there.
        """
        identity = file.identity
        self._catalog.retire(identity.name, identity.epoch)
        grave = self._grave(str(identity.id))
        try:
            self._storage.rename(file.folder, grave)
        except OSError:
            if grave.name not in self._storage.list_dir(self._folder):
                raise
        try:
            self._storage.sync_dir(self._folder)
            remove_folder(self._storage, grave)
        except OSError as error:
            return UndecidedError.after(error)
        return None

    def erase_partitions(
        self, described: PartitionedTopic, epochs: Mapping[str, int]
    ) -> OSError | None:
        """Take a partitioned topic out of sight, durably, then empty the folders of all of it.

        Args:
            described: the partitioned topic.
            epochs: of its topics, by name; one that cannot be served is not among them.

        Returns:
            What went wrong after it was gone; the next start finishes it.

        Raises:
            OSError: it is still there.
        """
        try:
            self._catalog.drop(described.name, epochs)
        except UndecidedError as error:
            return error
        names = [str(topic_id) for topic_id in described.topic_ids]
        try:
            present = self._storage.list_dir(self._folder)
            gone = [name for name in names if name in present]
            for name in gone:
                self._storage.rename(self._folder / name, self._grave(name))
            self._storage.sync_dir(self._folder)
            self._catalog.dropped(described.topic_ids)
            for name in gone:
                remove_folder(self._storage, self._grave(name))
        except OSError as error:
            return UndecidedError.after(error)
        return None

    def change_retention(
        self, described: PartitionedTopic, files: Sequence[TopicFile], retention: Retention
    ) -> None:
        """Change the retention of a partitioned topic, durably; a start finishes what is begun."""
        self._catalog.change(replace(described, retention=retention))
        for file in files:
            file.set_retention(retention)
