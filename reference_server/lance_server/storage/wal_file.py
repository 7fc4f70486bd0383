"""One file of the write-ahead log: appended to, enlarged, used again from its start."""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lance_server.runtime.sync import Queue, new_queue
from lance_server.storage.contract import StorageBackend, read_at
from lance_spec.checksum import Buffer
from lance_spec.disk.wal_frames import (
    END,
    GUARD,
    HEADER_SIZE,
    SECTOR,
    Logged,
    Use,
    encode_frame,
    read_frames,
)

_log = logging.getLogger(__name__)
_ZEROS: Final = bytes(1024 * 1024)


class WalFile:
    """One preallocated file that is written over and over.

    It belongs to the thread that holds `token`; `taken` and `wanted` are guarded by the log's lock.

    Args:
        storage: what it stands on.
        path: the file; it must not exist yet.
        size: its bytes for frames at first.
        max_size: bytes that it may grow to.
        mark: eight random bytes that only its frames bear.

    Attributes:
        token: whoever takes it out has the file for itself.
        taken: whether a commit has it.
        wanted: threads that have it, or wait for it, and are not commits.
        size: its bytes for frames.
        position: where the next frame goes, after the header.
        dirty: descriptors, by lasting name, of files with writes that only this file has durably.
        names: lasting names of which it has entries.
        doubted: whether a sync of one of them has failed, so that the system may have forgotten
            what was written there.
        unsure: whether it is unknown what an append or a new use that failed left on the disk.
    """

    def __init__(
        self, storage: StorageBackend, path: Path, size: int, max_size: int, mark: bytes
    ) -> None:
        self._storage = storage
        self._max_size = max_size
        self.path = path
        self.token: Queue[None] = new_queue()
        self.token.put(None)
        self.taken = False
        self.wanted = 0
        self.size = 0
        self.position = 0
        self.dirty: dict[bytes, int] = {}
        self.names: set[bytes] = set()
        self.doubted = False
        self.unsure = False
        self._index = 0
        self._use = Use(mark, 1)
        self.fd = storage.open(path, create=True)
        try:
            self._fill(size)
            self._write(GUARD + self._use.encode(), 0)
        except OSError:
            storage.close(self.fd)
            raise

    def __repr__(self) -> str:
        return f"<WalFile {self.path.name} {self.position} of {self.size} bytes in use>"

    def _fill(self, size: int) -> None:
        """Give the file a size, all of it written, so that commits need not change its length."""
        begin, end = HEADER_SIZE + self.size, HEADER_SIZE + size
        for place in range(begin if self.size else 0, end, len(_ZEROS)):
            self._storage.write(self.fd, memoryview(_ZEROS)[: end - place], place)
        self._storage.sync(self.fd)
        self.size = size

    @property
    def is_half_full(self) -> bool:
        """Whether it is time to use it again from its start."""
        return self.position > self.size // 2

    def fits(self, length: int) -> bool:
        """Whether so many bytes, an end included, can be appended now."""
        return not self.unsure and self.position + length <= self.size

    @property
    def may_grow(self) -> bool:
        """Whether the file may become larger than it is."""
        return self.size < self._max_size

    def grow(self) -> bool:
        """Make the file twice as large; return whether it may be and the disk has room for it."""
        if not self.may_grow:
            return False
        try:
            self._fill(min(2 * self.size, self._max_size))
        except OSError as error:
            _log.warning("the write-ahead log stays at %d bytes: %s", self.size, error)
            self._max_size = self.size
            return False
        return True

    def append(self, number: int, writes: Iterable[Buffer]) -> None:
        """Append a frame, durably, and the end after it.

        Raises:
            OSError: the disk refused; the frame is taken back, or the file takes no more until
                it is used again from its start.
        """
        self._index += 1
        frame = encode_frame(self._use, self._index, number, writes, END)
        place = HEADER_SIZE + self.position
        assert not self.unsure, "a file whose end is unknown takes no more"
        assert self.position + len(frame) <= self.size, "a frame fits, with an end after it"
        storage, fd = self._storage, self.fd
        try:
            storage.write(fd, frame, place)
            storage.sync(fd)
        except OSError:
            self.unsure = True
            with contextlib.suppress(OSError):
                self._write(END, place)
                self.unsure = False
            raise
        self.position += len(frame) - len(END)

    def entries(self) -> Iterator[Logged]:
        """Yield what was appended since the file was used again from its start.

        Raises:
            OSError: the disk refused.
        """
        held = bytes(read_at(self._storage, self.fd, HEADER_SIZE + self.position, 0))
        for frame in read_frames(held, self._use)[0]:
            yield from frame.writes

    def recycle(self) -> None:
        """Use the file again from its start; what is in it need not be repeated any more.

        Raises:
            OSError: the disk refused; which use of the file it knows is unknown, so the file takes
                nothing until this succeeds.
        """
        if self.position or self.unsure:
            self._use = self._use._replace(generation=self._use.generation + 1)
            self.unsure = True
            self._write(self._use.encode(), SECTOR)
            self.unsure = False
            self._index = self.position = 0
        self.dirty.clear()
        self.names.clear()

    def _write(self, data: bytes, place: int) -> None:
        self._storage.write(self.fd, data, place)
        self._storage.sync(self.fd)
