"""The folders of topics: made when a topic is created, and emptied when it is deleted."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lance_server.log.dedup import WindowLimits
from lance_server.log.opening import Opened
from lance_server.log.topic_file import Identity, Retention, TopicFile
from lance_server.log.topics import DELETED_PREFIX, Catalog
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
        catalog: Catalog,
        folder: Path,
        window: WindowLimits,
        clock: Callable[[], int],
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._folder = folder
        self._window = window
        self._clock = clock
        self._unfinished: Path | None = None
        """The folder of a topic whose creation failed and could not be undone yet."""

    def __repr__(self) -> str:
        return f"<TopicFolders in {self._folder}>"

    def build(self, name: str, retention: Retention) -> Opened:
        """Make a new topic's folder and file.

        Raises:
            UndecidedError: the next start may find the topic; the next call undoes it first.
            OSError: there is no such topic.
        """
        self._undo()
        topic_id, epoch = self._catalog.claim(name)
        folder = self._unfinished = self._folder / str(topic_id)
        identity = Identity(topic_id, name, self._clock() // _NANOSECONDS, epoch)
        file = TopicFile(self._storage, folder, identity, retention)
        try:
            self._storage.make_dir(folder)
            file.save()
            self._storage.sync_dir(self._folder)
        except OSError as error:
            try:
                self._undo()
            except OSError:
                raise UndecidedError.after(error) from error
            raise OSError(error.errno, error.strerror) from error
        self._unfinished = None
        return Opened.empty(file, self._window)

    def _undo(self) -> None:
        """Take a topic that was not finished out of sight, durably."""
        folder = self._unfinished
        if folder is None:
            return
        if folder.name in self._storage.list_dir(self._folder):
            self._storage.rename(folder, self._grave(folder.name))
        self._storage.sync_dir(self._folder)
        self._unfinished = None
        with contextlib.suppress(OSError):  # the next start finishes it
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
