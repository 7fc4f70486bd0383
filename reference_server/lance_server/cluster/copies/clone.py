"""Making a directory equal to a copy that a node offers: bootstrap and repair alike.

Each piece of a file that is there already, and has the copy's checksum, stays. So a clone that was
cut short goes on where it was, a node that was away fetches what it lacks, and of a damaged file
only what is damaged comes over the network. A mark says meanwhile that the directory is not whole.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from lance_server.cluster.applying.mark import FOLDER, MARK_SUFFIX, UNFINISHED, load_mark
from lance_server.cluster.copies.offered import MAX_PIECE, SEGMENTS, is_folder
from lance_server.errors import DataDirError
from lance_server.log.copies import Offer
from lance_server.storage.contract import StorageBackend, read_at
from lance_spec.checksum import CRC32C

_ROOTS: Final = (SEGMENTS, FOLDER)


class CopySource(Protocol):
    """A node that offers a copy."""

    def take(self) -> Offer:
        """Have a copy made.

        Raises:
            PeerError: the node refuses, or does not answer.
        """
        ...

    def piece(self, copy: str, name: str, start: int, size: int, known: int | None) -> bytes | None:
        """Return a piece of a file, or None where its CRC-32C is the one that is known.

        Raises:
            PeerError: the node refuses, or does not answer.
        """
        ...

    def end(self, copy: str) -> None:
        """Say that the copy is needed no more."""
        ...


@dataclass(slots=True)
class CloneReport:
    """What a clone has done.

    Attributes:
        files: files of the copy.
        fetched: bytes that came over the network.
        kept: bytes that were there already.
        removed: files that the copy does not have.
    """

    files: int = 0
    fetched: int = 0
    kept: int = 0
    removed: int = 0


def clone(
    storage: StorageBackend,
    data_dir: Path,
    source: CopySource,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> CloneReport:
    """Make a directory equal to a copy of a node.

    Args:
        storage: the backend of the directory.
        data_dir: an empty directory, or that of a node of the same cluster that is stopped.
        source: offers the copy.
        progress: called with the bytes of a piece that is done, and those of all files.

    Raises:
        DataDirError: the directory belongs to something else.
        PeerError: the node refuses, or does not answer; the same call goes on from there.
        OSError: a disk refused; the same.
    """
    _judge_owner(storage, data_dir)
    offer = source.take()
    _judge_identity(storage, data_dir, offer)
    _judge_shards(storage, data_dir, offer)
    work = _Clone(storage, data_dir, source, offer, progress)
    work.run()
    source.end(offer.id)
    return work.report


def _judge_owner(storage: StorageBackend, data_dir: Path) -> None:
    """Refuse the data of a single server."""
    names = storage.list_dir(data_dir)
    if SEGMENTS in names and FOLDER not in names and storage.list_dir(data_dir / SEGMENTS):
        raise DataDirError(
            f"{data_dir} holds the data of a single server, which would be lost; name an empty "
            "directory"
        )


def _judge_identity(storage: StorageBackend, data_dir: Path, offer: Offer) -> None:
    """Refuse the data of another cluster; a mark that cannot be read is replaced."""
    if FOLDER not in storage.list_dir(data_dir):
        return
    try:
        mark = load_mark(storage, data_dir, 0)
    except DataDirError:
        return
    if mark is not None and mark.identity != offer.identity:
        raise DataDirError(
            f"{data_dir} holds what came from the log {mark.identity}, the node follows the log "
            f"{offer.identity}; name an empty directory"
        )


def _judge_shards(storage: StorageBackend, data_dir: Path, offer: Offer) -> None:
    """Refuse a copy without shards that are here: their files would be lost."""
    if FOLDER not in storage.list_dir(data_dir):
        return
    marks = [name for name in storage.list_dir(data_dir / FOLDER) if name.endswith(MARK_SUFFIX)]
    lost = sorted(name for name in marks if f"{FOLDER}/{name}" not in offer.files)
    if lost:
        named = ", ".join(name.removesuffix(MARK_SUFFIX) for name in lost)
        raise DataDirError(
            f"{data_dir} has the files of {named}, which the node does not host, and they would be "
            "lost: clone a node that hosts the same shards, or name an empty directory"
        )


class _Clone:
    """One run."""

    def __init__(
        self,
        storage: StorageBackend,
        data_dir: Path,
        source: CopySource,
        offer: Offer,
        progress: Callable[[int, int], object],
    ) -> None:
        self._storage = storage
        self._data_dir = data_dir
        self._source = source
        self._offer = offer
        self._progress = progress
        self._total = sum(offer.files.values())
        self.report = CloneReport(files=len(offer.files))

    def run(self) -> None:
        """Do all of it; the mark that the directory is not whole is there from first to last."""
        storage = self._storage
        folders = self._make_folders()
        marker = self._data_dir / FOLDER / UNFINISHED
        with self._opened(marker) as fd:
            storage.sync(fd)
        storage.sync_dir(marker.parent)
        for root in _ROOTS:
            self._remove_others(self._data_dir / root, f"{root}/")
        for name, size in self._offer.files.items():
            self._make_equal(name, size)
        for folder in folders:
            storage.sync_dir(folder)
        storage.remove(marker)
        storage.sync_dir(marker.parent)

    def _make_folders(self) -> list[Path]:
        """Make all folders and return them, inner ones first."""
        found = {self._data_dir: None, self._data_dir / FOLDER: None}
        for name in self._offer.files:
            for parent in reversed(PurePosixPath(name).parents):
                found[self._data_dir / parent] = None
        for folder in found:
            self._storage.make_dir(folder)
        return list(found)[::-1]

    def _remove_others(self, folder: Path, prefix: str) -> None:
        """Remove what the copy does not have."""
        for name in self._storage.list_dir(folder):
            if is_folder(name):
                self._remove_others(folder / name, f"{prefix}{name}/")
            elif prefix + name not in self._offer.files and name != UNFINISHED:
                self._storage.remove(folder / name)
                self.report.removed += 1
        if not any(each.startswith(prefix) for each in self._offer.files):
            self._storage.remove(folder)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[int]:
        """Open a file, whether it is there or not."""
        try:
            fd = self._storage.open(path)
        except FileNotFoundError:
            fd = self._storage.open(path, create=True)
        try:
            yield fd
        finally:
            self._storage.close(fd)

    def _make_equal(self, name: str, size: int) -> None:
        storage = self._storage
        with self._opened(self._data_dir / name) as fd:
            for start in range(0, size, MAX_PIECE):
                self._make_piece(fd, name, start, min(MAX_PIECE, size - start))
            storage.truncate(fd, size)
            storage.sync(fd)

    def _make_piece(self, fd: int, name: str, start: int, size: int) -> None:
        here = read_at(self._storage, fd, size, start)
        known = CRC32C(here) if len(here) == size else None
        piece = self._source.piece(self._offer.id, name, start, size, known)
        if piece is None:
            # An earlier clone, or the node, may have left it unsynced, or with a failed sync.
            self._storage.write(fd, here, start)
            self.report.kept += size
        else:
            self._storage.write(fd, piece, start)
            self.report.fetched += size
        self._progress(size, self._total)
