"""Durability by a write-ahead log: one durable write for all files of a small flush.

A commit writes everything to where it belongs, without waiting for the disk, and into a
preallocated file, durably. When that file is half full, a worker thread makes durable what was
written elsewhere, and the file is used again from its start. After a crash its frames are
repeated.

A batch that comes alone is durable in half the time, because its data and its sidecar need one
sync and no file changes its length; a flush that touches many topics gains more. Many bytes for
one topic gain nothing from being written twice: they go where they belong at once (`Ways`
decides). So does what the log has no room for: no commit waits until there is some.

Files are named by what lasts: a segment that was closed has the name of the open one. Before such
a name is given to another file, or a file is cut, the log is made to hold nothing of it.
"""

import contextlib
import errno
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress, count
from pathlib import Path
from typing import Final, NamedTuple

from lance_server.runtime.sync import new_lock
from lance_server.storage.contract import StorageBackend, Write, close_all
from lance_server.storage.wal_file import WalFile
from lance_server.storage.wal_replay import FOLDER, is_held, remove_log, repeat, with_held
from lance_server.storage.ways import FixedWays, Ways
from lance_server.storage.wrapper import WrapperStorage
from lance_spec.disk.wal_frames import (
    FILE_ID_SIZE,
    OVERHEAD,
    WRITE_OVERHEAD,
    encode_removal,
    encode_writes,
    lasting_name,
)

_log = logging.getLogger(__name__)
_FILES: Final = 3
"""As many as flushes may overlap, and one that is made free meanwhile."""
DEFAULT_SIZE: Final = 4 * 1024 * 1024
DEFAULT_MAX_SIZE: Final = 64 * 1024 * 1024
_MANY: Final = 64
"""Files from which on a larger write-ahead log is better than making them durable more often."""
_PAIR: Final = 2
"""Writes of one topic: its data and its sidecar."""
_LINGERING: Final = 256
"""Closed files that the log may keep open until what it has of them is durable elsewhere."""
_RETRY: Final = 1.0
"""Seconds after a failure until room is tried to be made again."""
_TELL: Final = 60.0
"""Seconds between two log lines about commits that go past the log."""


class _File(NamedTuple):
    """A file that was committed to.

    Attributes:
        name: its lasting name.
        segment: the lasting name of the segment that it belongs to.
        overhead: bytes that the log needs for a write to it, beside its data.
    """

    name: bytes
    segment: bytes
    overhead: int


class WalStorage(WrapperStorage):
    """A backend whose small commits are durable in a write-ahead log.

    Args:
        inner: does the work.
        data_dir: what the log is kept for; its folder ``wal`` holds the files.
        size: bytes of each file at first.
        max_size: bytes that each may grow to where commits touch many files.
        ways: decide which commits take the log; by default those of at most 64 KiB for a topic.
        lazy: whether the log is made, in the background, only when a commit asks for it.
        clock: seconds, for what takes how long, and how often something is tried again or told.
        random_bytes: makes the mark of a file's uses.

    Attributes:
        replayed: what an earlier run left, and what became of it.
        ways: decide which commits take the log.
        log_commits: commits of topics that took the log.
        file_commits: those that went to their files because they were large.
        direct_commits: those that went to their files because the log had no room.

    Raises:
        DataDirError: the write-ahead log cannot be trusted.
        OSError: the disk refused to repeat what an earlier run left.
    """

    def __init__(
        self,
        inner: StorageBackend,
        data_dir: Path,
        size: int = DEFAULT_SIZE,
        max_size: int = DEFAULT_MAX_SIZE,
        *,
        ways: Ways | None = None,
        lazy: bool = False,
        clock: Callable[[], float] = time.monotonic,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(inner)
        self.ways: Ways = ways or FixedWays()
        self._size, self._max_size = size, max_size
        self._clock = clock
        self._random_bytes = random_bytes
        self.name = f"{inner.name} (wal)"
        self._root = data_dir
        self._paths: dict[int, Path] = {}
        self._known: dict[int, _File] = {}
        self._number = count(1)
        self._lock = new_lock()
        self._making = new_lock()
        """Held while the log's files are made, and while it is noted that none is to be."""
        self._files: list[WalFile] = []
        self._lingering: dict[int, bytes] = {}
        self._removed: dict[bytes, Path] = {}
        self._asked = 0
        """Bytes of the largest commit for which there was no room lately."""
        self._rest_until = self._tell_at = -1e9
        self._failed = self._finished = False
        self._is_wanted = not lazy
        self.log_commits = self.file_commits = self.direct_commits = 0
        self.replayed = repeat(inner, data_dir)
        self.inner = with_held(inner, data_dir, self.replayed)
        if not lazy:
            self._begin()

    def __repr__(self) -> str:
        used = ", ".join(f"{each.position} of {each.size}" for each in self._files)
        return f"<WalStorage {self.name} bytes in use: {used}>"

    @property
    def lingering(self) -> int:
        """Files that were given up and stay open until their bytes are durable."""
        return len(self._lingering)

    def _begin(self) -> None:
        """Make the log's files; without room for them commits go past it."""
        folder = self._root / FOLDER
        made: list[WalFile] = []
        try:
            self.inner.make_dir(folder)
            for name in self._own_names(folder):  # an attempt that failed left it
                self.inner.remove(folder / name)
            for number in range(_FILES):
                path, mark = folder / f"{number}.wal", self._random_bytes(FILE_ID_SIZE)
                made.append(WalFile(self.inner, path, self._size, self._max_size, mark))
            self.inner.sync_dir(folder)
            self.inner.sync_dir(self._root)
        except OSError as error:
            close_all(self.inner, [each.fd for each in made])
            with contextlib.suppress(OSError):
                for name in self._own_names(folder):
                    self.inner.remove(folder / name)
            self._failed = True
            self._rest_until = self._clock() + _RETRY
            self._tell(f"it cannot be made: {error}")
        else:
            self._files = made

    def _own_names(self, folder: Path) -> list[str]:
        """Return what is in the log's folder and not held for topics (`HeldStorage`)."""
        return [name for name in self.inner.list_dir(folder) if not is_held(name)]

    # What the log calls ------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file; with ``create`` it must not exist yet."""
        if create:
            self._settle(self._name_of(path))
        fd = self.inner.open(path, create=create)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        """Give the file up; what only the log has of it becomes durable elsewhere later."""
        self._paths.pop(fd, None)
        known = self._known.pop(fd, None)
        if known is not None:
            self.ways.forget(known.segment)
            with self._lock:
                if any(each.dirty.get(known.name) == fd for each in self._files):
                    self._lingering[fd] = known.name
                    return
        self.inner.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Set the file's length."""
        self._settle(self._name_of(self._paths[fd]))
        self.inner.truncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file or folder, replacing a file that is there."""
        before, after = self._name_of(source), self._name_of(target)
        if before != after:
            self._settle(after)
            if self._has_below(before):
                self._record_removal(before, source.parent)
            else:
                self._settle(before)
        with self._removing(before):
            self.inner.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder that is empty."""
        name = self._name_of(path)
        if self._has(name):
            self._record_removal(name, path.parent)
        with self._removing(name):
            self.inner.remove(path)

    @contextmanager
    def _removing(self, name: bytes) -> Iterator[None]:
        """Keep what the log has of a file or folder whose removal fails: it may still be there."""
        try:
            yield
        except OSError:
            self._removed.pop(name, None)
            raise

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        self.inner.sync_dir(path)
        if self._removed:
            for name in [name for name, folder in self._removed.items() if folder == path]:
                self._forget(name)

    def sync(self, fd: int) -> None:
        """Make the file's bytes and length durable."""
        try:
            self.inner.sync(fd)
        except OSError:
            self._doubt(fd)
            raise

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files; durable in the write-ahead log, or large ones in their places."""
        known = self._known
        files = [known.get(each.fd) or self._learn(each.fd) for each in writes]
        segment = files[0].segment
        if len(files) != _PAIR or files[1].segment != segment:
            return self._commit_several(writes, files)
        # One topic's, its data and its sidecar: what comes alone comes here.
        if self.ways.takes_log(segment, len(writes[0].data) + len(writes[1].data)):
            return self._commit_small(writes, files, 1)
        return self._commit_large(writes, 1)

    def _commit_several(
        self, writes: Sequence[Write], files: Sequence[_File]
    ) -> list[OSError | None]:
        """Commit the small ones together, and the large ones to their places."""
        segments = [segment for _, segment, _ in files]
        sizes = dict.fromkeys(segments, 0)
        for segment, (_, data, _) in zip(segments, writes, strict=True):
            sizes[segment] += len(data)
        takes_log = self.ways.takes_log
        logged = {segment for segment, size in sizes.items() if takes_log(segment, size)}
        if len(logged) == len(sizes):
            return self._commit_small(writes, files, len(logged))
        small = [n for n, file in enumerate(files) if file.segment in logged]
        large = [n for n, file in enumerate(files) if file.segment not in logged]
        errors: dict[int, OSError | None] = {}
        if small:
            chosen = [files[n] for n in small]
            done = self._commit_small([writes[n] for n in small], chosen, len(logged))
            errors.update(zip(small, done, strict=True))
        if large:
            done = self._commit_large([writes[n] for n in large], len(sizes) - len(logged))
            errors.update(zip(large, done, strict=True))
        return [errors[n] for n in range(len(writes))]

    def _commit_small(
        self, writes: Sequence[Write], files: Sequence[_File], topics: int
    ) -> list[OSError | None]:
        """Commit to the log, or to the files where it has no room."""
        length = OVERHEAD + sum([len(data) for _, data, _ in writes])
        length += sum([overhead for _, _, overhead in files])
        file = self._take(length)
        if file is None:
            self._note_direct(length, topics)
            return self._commit_in_place(writes)
        begun = self._clock()
        try:
            return self._commit_to(file, writes, files)
        finally:
            self._give_back(file, topics, length, self._clock() - begun)

    def _commit_large(self, writes: Sequence[Write], topics: int) -> list[OSError | None]:
        begun = self._clock()
        errors = self._commit_in_place(writes)
        took = self._clock() - begun
        with self._lock:
            self.file_commits += topics
            self.ways.note_files(sum([len(each.data) for each in writes]), took)
        return errors

    def _commit_to(
        self, file: WalFile, writes: Sequence[Write], files: Sequence[_File]
    ) -> list[OSError | None]:
        # Written to its place first, so that what is left to do after the sync is little.
        errors = self.inner.write_each(writes)
        if any(errors):
            is_written = [error is None for error in errors]
            writes = list(compress(writes, is_written))
            files = list(compress(files, is_written))
            if not writes:
                return errors
        names = [name for name, _, _ in files]
        file.dirty.update(zip(names, [fd for fd, _, _ in writes], strict=True))
        file.names.update(names)
        try:
            file.append(next(self._number), encode_writes(names, writes))
        except OSError as error:
            return [error] * len(errors)
        return errors

    def _commit_in_place(self, writes: Sequence[Write]) -> list[OSError | None]:
        errors = self.inner.commit(writes)
        for each, error in zip(writes, errors, strict=True):
            if error is not None:
                self._doubt(each.fd)
        return errors

    def _learn(self, fd: int) -> _File:
        name = self._name_of(self._paths[fd])
        segment = name.rpartition(b".")[0] or name
        known = self._known[fd] = _File(name, segment, WRITE_OVERHEAD + len(name))
        return known

    def _name_of(self, path: Path) -> bytes:
        return lasting_name(path.relative_to(self._root).as_posix()).encode()

    # Who has which file ------------------------------------------------------------------------

    def _take(self, length: int) -> WalFile | None:
        """Return a file that can take so many bytes, for a commit; None rather than waiting."""
        with self._lock:
            for file in self._files:
                if not file.taken and not file.wanted and file.fits(length):
                    file.taken = True
                    file.token.get()  # does not wait: no other thread has it
                    return file
        return None

    def _give_back(
        self, file: WalFile, topics: int = 0, length: int = 0, seconds: float = 0.0
    ) -> None:
        """Let others have a file, after a commit of some topics or after something else."""
        with self._lock:
            file.token.put(None)
            file.taken = False
            if topics:
                self.log_commits += topics
                self.ways.note_log(length, seconds)

    @contextmanager
    def _exclusive(self, file: WalFile) -> Iterator[None]:
        """Have a file for oneself; commits take another one meanwhile."""
        with self._lock:
            file.wanted += 1
        file.token.get()
        try:
            yield
        finally:
            with self._lock:
                file.token.put(None)
                file.wanted -= 1

    # What the log holds of a file ----------------------------------------------------------------

    def _has(self, name: bytes) -> bool:
        return any(name in each.names for each in self._files)

    def _has_below(self, folder: bytes) -> bool:
        """Whether the log has anything of what lies in a folder."""
        inside = folder + b"/"
        with self._lock:
            return any(name.startswith(inside) for file in self._files for name in list(file.names))

    def _settle(self, name: bytes) -> None:
        """Make sure that nothing will ever be repeated for a file."""
        for file in list(self._files):
            if name in file.names:
                with self._exclusive(file):
                    if name in file.names:
                        self._checkpoint(file)

    def _record_removal(self, name: bytes, folder: Path) -> None:
        """Note, durably, that a file or folder which the log has writes for is going.

        They are repeated nevertheless where it is still there after a crash.
        """
        pieces = encode_removal(name)
        file = self._take(OVERHEAD + sum(map(len, pieces)))
        if file is None:
            self._settle_below(name)
            return
        try:
            file.append(next(self._number), pieces)
        finally:
            self._give_back(file)
        self._removed[name] = folder

    def _settle_below(self, name: bytes) -> None:
        inside = name + b"/"
        for file in list(self._files):
            with self._exclusive(file):
                if any(each == name or each.startswith(inside) for each in file.names):
                    self._checkpoint(file)

    def _forget(self, name: bytes) -> None:
        """Let what was removed, durably, go without a sync."""
        self._removed.pop(name, None)
        inside = name + b"/"
        for file in list(self._files):
            with self._exclusive(file):
                gone = [each for each in file.dirty if each == name or each.startswith(inside)]
                for each in gone:
                    del file.dirty[each]
        self._close_lingering()

    def _close_lingering(self) -> None:
        """Close the files that were given up and of which nothing is only in the log any more."""
        with self._lock:
            done = [
                fd
                for fd, name in self._lingering.items()
                if not any(each.dirty.get(name) == fd for each in self._files)
            ]
            for fd in done:
                del self._lingering[fd]
        close_all(self.inner, done)

    # Making room -------------------------------------------------------------------------------

    def pending_work(self) -> Callable[[], None] | None:
        """Return what makes room in the log, for a worker thread; None when there is enough."""
        if self._finished or not self._is_short() or self._clock() < self._rest_until:
            return None
        return self._make_room

    def _is_short(self) -> bool:
        return self._is_wanted and (
            not self._files
            or self._asked > 0
            or len(self._lingering) > _LINGERING
            or any(file.is_half_full or file.unsure for file in self._files)
        )

    def _make_room(self) -> None:
        """Use again, or enlarge, the files that are half full."""
        with self._making:
            if not self._files and not self._finished:
                self._begin()
        asked, self._asked = self._asked, 0
        many = len(self._lingering) > _LINGERING
        for file in list(self._files):
            if not (many or file.is_half_full or file.unsure or not file.fits(asked)):
                continue
            self._grow_others(file)
            with self._exclusive(file):
                try:
                    if file in self._files:
                        self._free(file, asked)
                except OSError as error:
                    _log.warning("no room can be made in the write-ahead log: %s", error)
                    self._rest_until = self._clock() + _RETRY
        self._close_lingering()

    def _grow_others(self, file: WalFile) -> None:
        """Give commits room elsewhere, before the many files of one of the log's become durable."""
        if len(file.dirty) < _MANY or file.may_grow:
            return
        for other in list(self._files):
            if other.size < file.size and not other.unsure:
                with self._exclusive(other):
                    while other.size < file.size and other.grow():
                        pass

    def _free(self, file: WalFile, asked: int) -> None:
        if len(file.dirty) >= _MANY and not file.unsure and file.grow():
            return
        self._checkpoint(file)
        while not file.fits(asked) and file.grow():
            pass

    def _checkpoint(self, file: WalFile) -> None:
        """Make durable elsewhere what a file holds, and use it again from its start."""
        if file.doubted:
            file.doubted = False
            try:
                self._write_again(file)
            except OSError:
                file.doubted = True
                raise
        fds = list(file.dirty.values())
        failed: OSError | None = None
        for fd, error in zip(fds, self.inner.sync_each(fds), strict=True):
            if error is not None:
                self._doubt(fd)
                failed = error
        if failed is not None:
            raise failed
        if file.doubted:  # by another thread's commit, which may have had the error instead of us
            raise OSError(errno.EIO, "a file that the write-ahead log stands for was not written")
        file.recycle()
        self._close_lingering()

    def _doubt(self, fd: int) -> None:
        """Note that a sync of a file failed: the system may have dropped what was not durable."""
        known = self._known.get(fd)
        name = self._lingering.get(fd) if known is None else known.name
        for file in self._files:
            if name in file.names:
                file.doubted = True

    def _write_again(self, file: WalFile) -> None:
        """Write what the write-ahead log has to where it belongs once more."""
        for entry in file.entries():
            fd = file.dirty.get(entry.name.encode())
            if fd is not None and entry.data is not None:
                self.inner.write(fd, entry.data, entry.offset)

    def _note_direct(self, length: int, topics: int) -> None:
        """Tell that a small commit goes past the log, unless that is just being made."""
        with self._lock:
            if not self._files and not self._failed:
                self._is_wanted = True
                self.file_commits += topics
                return
            self.direct_commits += topics
            self._asked = max(self._asked, length)
        self._tell("it is full")

    def figures(self) -> Mapping[str, float]:
        """Return what is counted and measured."""
        return {
            **self.inner.figures(),
            "log_commits": self.log_commits,
            "file_commits": self.file_commits,
            "direct_commits": self.direct_commits,
            "log_limit": self.ways.limit,
        }

    def _tell(self, why: str) -> None:
        now = self._clock()
        if now >= self._tell_at:
            self._tell_at = now + _TELL
            _log.warning(
                "there is no room in the write-ahead log of %s (%s): commits are made durable in "
                "the files they belong to",
                self._root,
                why,
            )

    # The end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Make everything durable in its place and remove the log, so that any release may follow.

        Raises:
            OSError: the disk refused; the next start repeats what the log holds.
        """
        self._finished = True
        with self._making:  # waits until no thread creates a file
            pass
        for file in list(self._files):
            with self._exclusive(file):
                self._checkpoint(file)
        self._drop_files()
        if FOLDER in self.inner.list_dir(self._root):
            kept = set(filter(is_held, self.inner.list_dir(self._root / FOLDER)))
            remove_log(self.inner, self._root, kept)
        self.inner.finish()

    def release(self) -> None:
        """Close the log's files and those that it kept open, without any further writing."""
        self._finished = True
        with self._making:
            self._drop_files()
        self._close_lingering()
        self.inner.release()

    def _drop_files(self) -> None:
        with self._lock:
            files, self._files = self._files, []
        close_all(self.inner, [file.fd for file in files])
