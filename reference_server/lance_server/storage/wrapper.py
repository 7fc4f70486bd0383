"""A storage backend that passes everything on to another one."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lance_server.storage.contract import StorageBackend, Write, sync_in_turn, write_in_turn
from lance_spec.checksum import Buffer


class WrapperStorage:
    """The base of backends that change some methods of another one.

    Args:
        inner: does the work.

    Attributes:
        inner: does the work.
        name: of the backend that does it.
    """

    def __init__(self, inner: StorageBackend) -> None:
        self.inner = inner
        self.name = inner.name

    def make_dir(self, path: Path) -> None:
        """Create a folder; one that exists is fine."""
        self.inner.make_dir(path)

    def list_dir(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return self.inner.list_dir(path)

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file; with ``create`` it must not exist yet."""
        return self.inner.open(path, create=create)

    def close(self, fd: int) -> None:
        """Give the file up."""
        self.inner.close(fd)

    def size(self, fd: int) -> int:
        """Return the file's length in bytes."""
        return self.inner.size(fd)

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write all of ``data`` at ``offset``, or raise."""
        self.inner.write(fd, data, offset)

    def write_each(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files, each by `write`; return what went wrong for each."""
        return write_in_turn(self, writes)

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Fill ``target`` from ``offset`` on; return how many bytes there were."""
        return self.inner.read_into(fd, target, offset, cached_only=cached_only)

    def plain_fd(self, fd: int) -> int | None:
        """Return the descriptor that may be read itself, or None."""
        return self.inner.plain_fd(fd)

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        self.inner.sync(fd)

    def sync_each(self, fds: Sequence[int]) -> list[OSError | None]:
        """Make several files durable, each by `sync`; return what went wrong for each."""
        return sync_in_turn(self, fds)

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each."""
        return self.inner.commit(writes)

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self.inner.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        self.inner.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        self.inner.remove(path)

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self.inner.sync_dir(path)

    def pending_work(self) -> Callable[[], None] | None:
        """Return what the backend wants to have run on a worker thread soon, or None."""
        return self.inner.pending_work()

    def settle_folder(self, path: Path) -> None:
        """Do what the start could not do for a folder's files."""
        self.inner.settle_folder(path)

    def figures(self) -> Mapping[str, float]:
        """Return what the backend counts and measures, by name."""
        return self.inner.figures()

    def finish(self) -> None:
        """Leave nothing that the next start would have to do first."""
        self.inner.finish()

    def release(self) -> None:
        """Close what the backend itself keeps open."""
        self.inner.release()
