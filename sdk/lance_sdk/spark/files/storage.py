"""Files wherever Arrow can open them: local paths, and URIs such as ``hdfs://`` and ``s3://``."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyarrow import fs

from lance_sdk.errors import ConfigError
from lance_spec.codec.buffers import unfilled

_TRIES: Final = 5
_BUFFERS: Final = 2
"""One is read into while the last batch of a loop still shows the other."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder in a folder.

    Attributes:
        name: its name.
        path: its whole path, as it was asked for.
        size: bytes of a file; 0 for a folder.
        is_folder: whether it is one.
    """

    name: str
    path: str
    size: int
    is_folder: bool


def file_system(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path, and what the path is there.

    Raises:
        ConfigError: there is no such file system, or Arrow cannot spell the path.
    """
    if not path.isascii() and path.encode("utf-8", "replace").decode() != path:
        raise ConfigError(f"path={path!a} is not UTF-8, as Arrow needs it; rename the folder")
    if "://" not in path:
        return fs.LocalFileSystem(), path
    try:
        system, inner = fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise ConfigError(f"path={path!r} cannot be opened: {error}") from None
    return system, str(inner)


def is_folder(path: str) -> bool:
    """Whether a path is a folder.

    Raises:
        ConfigError: there is nothing.
    """
    system, inner = file_system(path)
    info = system.get_file_info(inner)
    if info.type == fs.FileType.NotFound:
        raise ConfigError(f"path={path!r}: there is nothing; name a folder that exists")
    return bool(info.type == fs.FileType.Directory)


def exists(path: str) -> bool:
    """Whether there is a file or folder at a path."""
    system, inner = file_system(path)
    return bool(system.get_file_info(inner).type != fs.FileType.NotFound)


def entries(path: str) -> list[Entry]:
    """Return what is in a folder, by name.

    Raises:
        OSError: it cannot be listed.
    """
    system, inner = file_system(path)
    found = [
        Entry(
            info.base_name,
            f"{path.rstrip('/')}/{info.base_name}",
            info.size or 0,
            info.type == fs.FileType.Directory,
        )
        for info in system.get_file_info(fs.FileSelector(inner))
    ]
    return sorted(found, key=lambda entry: entry.name)


def steadily(work: Callable[[], T], look_again: Callable[[], object] = list) -> T:
    """Do what opens files that were listed; again, where they are gone meanwhile.

    A server closes, merges and drops segments while they are read.

    Args:
        work: what to do.
        look_again: lists the files again, before each repetition.

    Raises:
        FileNotFoundError: files vanished every time.
    """
    for _ in range(_TRIES - 1):
        try:
            return work()
        except FileNotFoundError:
            look_again()
    return work()


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """Open a file for reading at any place: ``size()`` and ``read_at(length, offset)``.

    Raises:
        FileNotFoundError: it is gone.
        OSError: it cannot be read.
    """
    system, inner = file_system(path)
    with system.open_input_file(inner) as file:
        yield file


class ReadMemory:
    """Memory to read into: used again once nothing shows what was read into it."""

    def __init__(self) -> None:
        self._buffers: deque[bytearray] = deque(maxlen=_BUFFERS)

    def read(self, file: Any, size: int, start: int) -> memoryview:
        """Read a range of a file from `opened`, as far as the file reaches.

        Returns:
            Memory that may be written to; it is not used again while this, a part of it, or an
            Arrow array over it is there.

        Raises:
            OSError: it cannot be read.
        """
        view = self.unused(max(0, min(size, file.size() - start)))
        if not view:
            return view
        file.seek(start)
        done = 0
        while done < len(view) and (count := file.readinto(view[done:])):
            done += count
        return view[:done]

    def unused(self, size: int) -> memoryview:
        """Return memory of a size that nothing shows, with any bytes; as for `read`."""
        for buffer in self._buffers:
            if len(buffer) >= size and not _is_shown(buffer):
                return memoryview(buffer)[:size]
        made = unfilled(1 << max(0, size - 1).bit_length())
        self._buffers.append(made)
        return memoryview(made)[:size]


def _is_shown(buffer: bytearray) -> bool:
    """Whether anything shows a buffer's bytes: its size cannot change then."""
    try:
        buffer.append(buffer.pop())  # in this order it stays where it is
    except BufferError:
        return True
    return False


def read_file(path: str, limit: int = 64 << 20) -> bytes:
    """Return a small file whole.

    Raises:
        OSError: it cannot be read.
    """
    with opened(path) as file:
        return bytes(file.read_at(min(file.size(), limit), 0))
