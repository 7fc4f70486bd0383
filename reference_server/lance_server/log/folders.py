"""The folders of topics: made when a topic is created, and emptied when it is deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from lance_server.log.dedup import WindowLimits
from lance_server.log.opening import Opened
from lance_server.log.topic_file import Identity, Retention, TopicFile
from lance_server.log.topics import DELETED_PREFIX, Catalog
from lance_server.storage.contract import StorageBackend, remove_folder

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

    def __repr__(self) -> str:
        return f"<TopicFolders in {self._folder}>"

    def build(self, name: str, retention: Retention) -> Opened:
        """Make a new topic's folder and file.

        Raises:
            OSError: the disk refused.
        """
        topic_id, epoch = self._catalog.claim(name)
        folder = self._folder / str(topic_id)
        self._storage.make_dir(folder)
        identity = Identity(topic_id, name, self._clock() // _NANOSECONDS, epoch)
        file = TopicFile(self._storage, folder, identity, retention)
        file.save()
        self._storage.sync_dir(self._folder)
        return Opened.empty(file, self._window)

    def erase(self, file: TopicFile) -> OSError | None:
        """Take a topic's folder out of sight, durably, then empty it.

        Returns:
            What went wrong after the folder was out of sight; the next start finishes it.

        Raises:
            OSError: the folder is still there.
        """
        identity = file.identity
        self._catalog.retire(identity.name, identity.epoch)
        grave = self._folder / f"{DELETED_PREFIX}{identity.id}"
        self._storage.rename(file.folder, grave)
        try:
            self._storage.sync_dir(self._folder)
            remove_folder(self._storage, grave)
        except OSError as error:
            return error
        return None
