"""Offsets in files, one folder a consumer: the published Rust client's layout, and a little more.

::

    FOLDER/billing/topic-7-consumer-4119.offset     the offset in decimal: what everybody reads
    FOLDER/billing/topic-7-consumer-4119.commit     the same and the rest of the commit, as JSON
    FOLDER/billing/topic-7-consumer-4119.lock       flock(2), held while the offset is claimed

The ``.offset`` file is the truth: where another program moved it, what the ``.commit`` file
adds to the old offset does not count, and the topic's identity alone is checked (AMB-30).
"""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lance_sdk._io import at_fork, platform
from lance_sdk._io.state_files import replace_files
from lance_sdk.errors import ConfigError, ForkedError
from lance_sdk.offsets._document import MAX_DOCUMENT, StoredOffset, decode, encode
from lance_sdk.offsets.consumer_ids import consumer_id
from lance_sdk.offsets.contract import Commit, TopicIdentity, check_consumer_name
from lance_sdk.offsets.errors import (
    StaleGeneration,
    StoreCorrupt,
    StoreLocked,
    StoreUnavailable,
)
from lance_spec.disk.offset_files import OffsetFileName, decode_offset, encode_offset
from lance_spec.errors import DecodeError

__all__ = ["FileStore"]

_OFFSET: Final = ".offset"
_COMMIT: Final = ".commit"
_LOCK: Final = ".lock"
_LONGEST_OFFSET: Final = 64
_NO_FOLDER: Final = {errno.ENOTDIR, errno.ENOENT, errno.EEXIST, errno.EACCES, errno.EROFS}


class FileStore:
    """Keeps offsets in files; satisfies `OffsetStore`.

    While an offset is claimed its lock is held, so that two consumers of one name cannot run
    on one folder. The kernel lets go when the process ends, however it ends.

    Args:
        folder: where the consumers' folders are; created at the first claim.
        consumer_id: number in the file names, where another program uses one of its own; by
            default it is made of the consumer's name.

    Raises:
        ConfigError: when the id has more than 64 bits.
    """

    def __init__(self, folder: str | os.PathLike[str], *, consumer_id: int | None = None) -> None:
        if consumer_id is not None and not 0 <= consumer_id < 2**64:
            raise ConfigError(f"consumer_id={consumer_id}: expected 0 to {2**64 - 1}")
        self._folder = Path(folder)
        self._consumer_id = consumer_id
        self._mutex = threading.Lock()
        self._locks: dict[Path, int] = {}
        self._forked = False

    def __repr__(self) -> str:
        return f"<FileStore {self._folder} claimed={len(self._locks)}>"

    @property
    def folder(self) -> Path:
        """Where the consumers' folders are."""
        return self._folder

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Lock an offset and return its commit; see `OffsetStore.claim`."""
        files = self._files(consumer, topic)
        with self._mutex, _as_unavailable(files.folder):
            _make_folder(files.folder)
            path = files.lock
            lock = self._lock(path)
            try:
                entry = self._take_over(files, topic, generation)
                self._locks[path] = lock
                at_fork.register(self)
            except BaseException:  # Ctrl-C, too
                self._locks.pop(path, None)
                _unlock(lock)
                raise
        return None if entry is None else entry.found

    def save(self, commit: Commit) -> None:
        """Replace the files of a commit and sync them; see `OffsetStore.save`."""
        files = self._files(commit.consumer, commit.topic)
        with self._mutex, _as_unavailable(files.folder):
            if files.lock in self._locks:
                _write(files, commit)
                return
            _make_folder(files.folder)
            lock = self._lock(files.lock)
            try:
                _write(files, commit)
            finally:
                _unlock(lock)

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """Unlock an offset; see `OffsetStore.release`."""
        with self._mutex:
            lock = self._locks.pop(self._files(consumer, topic).lock, None)
            if lock is not None:
                _unlock(lock)

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        with _as_unavailable(self._folder):
            folders = self._consumers() if consumer is None else [self._folder_of(consumer)]
            known = (files for folder in folders for files in _files_in(folder))
            found = [entry.found for files in known if (entry := _read(files)) is not None]
        commits = [commit for commit in found if commit is not None]
        return sorted(commits, key=lambda each: (each.consumer, each.topic.label))

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove the files of a commit, but not its lock; see `OffsetStore.forget`."""
        files = self._files(consumer, topic)
        with self._mutex, _as_unavailable(files.folder):
            if not files.folder.is_dir():
                return False
            held = files.lock in self._locks
            lock = None if held else self._lock(files.lock)
            try:
                return _remove(files)
            finally:
                if lock is not None:
                    _unlock(lock)

    def close(self) -> None:
        """Release every lock."""
        with self._mutex:
            for lock in self._locks.values():
                _unlock(lock)
            self._locks.clear()
        at_fork.unregister(self)

    def forked(self) -> None:
        """Let go of the parent's locks; called in a forked child."""
        self._mutex = threading.Lock()
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()
        self._forked = True

    def _take_over(
        self, files: "_OffsetFiles", topic: TopicIdentity, generation: int
    ) -> StoredOffset | None:
        """Return what is kept, with its generation raised on disk."""
        entry = _read(files)
        if entry is None:
            entry = self._namesake(files, topic)
            if entry is None and generation:
                blank = Commit(consumer=files.consumer, topic=topic, offset=0)
                entry = StoredOffset(blank, written=False)
        current = 0 if entry is None else entry.commit.generation
        if generation < current:
            raise StaleGeneration(topic.label, generation, current)
        if entry is not None and generation > current:
            entry = entry.claimed(generation)
            replace_files({files.commit: encode(entry)})
        return entry

    def _namesake(self, files: "_OffsetFiles", topic: TopicIdentity) -> StoredOffset | None:
        """Return what is kept for another topic of the same name, so that it is noticed."""
        if topic.name is None:
            return None
        for other in _files_in(files.folder):
            entry = _read(other)
            if entry is not None and entry.commit.topic.name == topic.name:
                return entry
        return None

    def _lock(self, path: Path) -> int:
        if self._forked:
            raise ForkedError(f"{self!r} was used before os.fork(); make a new one in the child")
        fd = platform.open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            platform.lock(fd)
            os.ftruncate(fd, 0)
            platform.write_at(fd, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = _holder(fd)
            os.close(fd)
            raise StoreLocked(str(path), holder) from None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _consumers(self) -> list[Path]:
        if not self._folder.exists():
            return []
        return [each for each in self._folder.iterdir() if each.is_dir()]

    def _folder_of(self, consumer: str) -> Path:
        return self._folder / check_consumer_name(consumer)

    def _files(self, consumer: str, topic: TopicIdentity) -> "_OffsetFiles":
        number = consumer_id(consumer) if self._consumer_id is None else self._consumer_id
        return _OffsetFiles(self._folder_of(consumer), OffsetFileName(topic.id, number))


@dataclass(frozen=True, slots=True)
class _OffsetFiles:
    """The files of one consumer's offset in one topic."""

    folder: Path
    name: OffsetFileName

    @property
    def consumer(self) -> str:
        return self.folder.name

    @property
    def offset(self) -> Path:
        """The offset file, in the other form of its name where only that one is there."""
        path = self.folder / str(self.name)
        other = self.folder / str(self.name).replace("-", "_")
        return other if other.exists() and not path.exists() else path

    @property
    def commit(self) -> Path:
        return self._beside(_COMMIT)

    @property
    def lock(self) -> Path:
        return self._beside(_LOCK)

    def _beside(self, suffix: str) -> Path:
        return self.folder / f"{str(self.name).removesuffix(_OFFSET)}{suffix}"


def _files_in(folder: Path) -> Iterator[_OffsetFiles]:
    """Return the files in a folder, by consumer and topic."""
    names = {path.with_suffix(_OFFSET).name for path in folder.glob("topic*")}
    found = set()
    for name in names:
        with suppress(DecodeError):  # a file of somebody else
            found.add(_OffsetFiles(folder, OffsetFileName.parse(name)))
    return iter(sorted(found, key=lambda files: str(files.name)))


def _read(files: _OffsetFiles) -> StoredOffset | None:
    entry = _read_commit(files)
    offset = _read_offset(files.offset)
    if offset is None:
        return None if entry is None else replace(entry, written=False)
    if entry is not None and entry.written and entry.commit.offset == offset:
        return entry
    known = Commit(consumer=files.consumer, topic=TopicIdentity(files.name.topic_id), offset=0)
    base = known if entry is None else entry.commit
    return StoredOffset(replace(base, offset=offset, fingerprint=None, committed_at_ns=0))


def _read_commit(files: _OffsetFiles) -> StoredOffset | None:
    data = _content(files.commit, MAX_DOCUMENT)
    return None if data is None else decode(data, str(files.commit))


def _read_offset(path: Path) -> int | None:
    data = _content(path, _LONGEST_OFFSET)
    try:
        return None if data is None else decode_offset(data)
    except DecodeError as error:
        raise StoreCorrupt(str(path), f"expected {error.expected}, got {error.got}") from None


def _content(path: Path, limit: int) -> bytes | None:
    """Return a file's bytes, and one more than the limit where it is longer; None without one."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except FileNotFoundError:
        return None


def _write(files: _OffsetFiles, commit: Commit) -> None:
    before = _read_commit(files)
    if before is not None and commit.generation < before.commit.generation:
        raise StaleGeneration(commit.topic.label, commit.generation, before.commit.generation)
    # In this order: a crash between the two leaves an offset without its fingerprint, as after
    # a commit of another program, and never a fingerprint that belongs to another offset.
    replace_files(
        {files.offset: encode_offset(commit.offset), files.commit: encode(StoredOffset(commit))}
    )


def _remove(files: _OffsetFiles) -> bool:
    existed = files.offset.exists()
    for path in (files.offset, files.commit):
        path.unlink(missing_ok=True)
    platform.sync_folder(files.folder)
    return existed


def _make_folder(folder: Path) -> None:
    """Create a folder and those above it, durably: a commit lasts no longer than its folder."""
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    platform.sync_folder(folder.parent)


def _unlock(fd: int) -> None:
    """Release a lock, also where a forked child still has a copy of its descriptor."""
    platform.unlock(fd)
    os.close(fd)


def _holder(fd: int) -> int | None:
    text = platform.read_at(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


@contextmanager
def _as_unavailable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        place = error.filename or folder
        advice = "; expected a folder in which this process may write"
        raise StoreUnavailable(
            f"cannot use the offset file {place}: {error.strerror}"
            f"{advice if error.errno in _NO_FOLDER else ''}"
        ) from error
