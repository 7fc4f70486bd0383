"""A file that takes room on the disk, and is given up so that a full disk can be emptied.

Deletion and retention record what they do before they do it, and a start may have to do the
same: on a disk without any room neither could free some.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from lance_server.storage.contract import DISK_FULL, StorageBackend, opened

_log = logging.getLogger(__name__)
_PIECE: Final = 1024 * 1024
T = TypeVar("T")


class DiskReserve:
    """Keeps room on the disk until it is needed. Called on one thread at a time.

    Args:
        storage: the backend.
        data_dir: the data directory.
        size: bytes to keep; 0 keeps nothing.
    """

    FILE_NAME: Final = "reserve"

    def __init__(self, storage: StorageBackend, data_dir: Path, size: int) -> None:
        self._storage = storage
        self._path = data_dir / self.FILE_NAME
        self._size = size
        self._is_whole = False

    def __repr__(self) -> str:
        return f"<DiskReserve {self._path} {self._size} bytes, whole={self._is_whole}>"

    def fill(self) -> None:
        """Take the room, where there is enough and it is not taken already."""
        if self._is_whole or not self._size:
            return
        try:
            self._write()
        except OSError as error:
            self._remove()
            if error.errno not in DISK_FULL:
                _log.warning("%s cannot be written: %s", self._path, error)
        else:
            self._is_whole = True

    def _write(self) -> None:
        if self._path.name in self._storage.list_dir(self._path.parent):
            with opened(self._storage, self._path) as fd:
                if self._storage.size(fd) == self._size:
                    return
            self._storage.remove(self._path)
        # A file system that compresses keeps no room for zeros.
        piece = Random(0).randbytes(_PIECE)  # noqa: S311 - nothing is secret about it
        with opened(self._storage, self._path, create=True) as fd:
            for start in range(0, self._size, _PIECE):
                self._storage.write(fd, piece[: self._size - start], start)
            self._storage.sync(fd)
        self._storage.sync_dir(self._path.parent)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._storage.remove(self._path)
            self._storage.sync_dir(self._path.parent)

    def give_up(self) -> bool:
        """Free the room; return whether there was any."""
        try:
            present = self._path.name in self._storage.list_dir(self._path.parent)
            if present:
                self._storage.remove(self._path)
                self._storage.sync_dir(self._path.parent)
        except OSError:
            return False
        self._is_whole = False
        if present:
            _log.warning("the disk is full: %s was removed to make room", self._path)
        return present

    def with_room(self, work: Callable[[], T]) -> T:
        """Do something that frees room; where the disk is full, once more without the reserve.

        Raises:
            OSError: it failed, also then.
        """
        try:
            return work()
        except OSError as error:
            if error.errno not in DISK_FULL or not self.give_up():
                raise
        return work()
