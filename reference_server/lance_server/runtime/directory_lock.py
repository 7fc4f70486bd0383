"""The lock that keeps a second server out of a data directory."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Final, Self

from lance_server.errors import DataDirBusyError, DataDirError

_LOCK_NAME: Final = "lock"
_MOST: Final = 300
"""Bytes that tell who holds a lock."""
_MODE: Final = 0o750
"""Folders that are created: others on the machine read nobody's records."""


class DataDirLock:
    """Holds a data directory for this process until it is released or the process ends.

    Args:
        path: the data directory; created when it is not there.

    Raises:
        DataDirBusyError: another server holds it; the message has its process id.
        DataDirError: it cannot be created or written to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path / _LOCK_NAME)
        try:
            _make_durably(path)
            self._fd = os.open(
                self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640
            )
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DataDirError(
                    f"'{self._name}' is a symbolic link, which is not followed: "
                    "remove it, and find out who made it"
                ) from error
            raise DataDirError(
                f"cannot use '{path}' as data directory: {error.strerror}; "
                "choose a folder that this user may write to"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _lines(self._fd)[0] or "unknown"
            os.close(self._fd)
            raise DataDirBusyError(
                f"'{path}' is in use by process {holder}; stop it or choose another data directory"
            ) from None
        held = os.fstat(self._fd)
        self._identity = held.st_ino, held.st_dev
        self.tell()

    def __repr__(self) -> str:
        return f"<DataDirLock {self._path}>"

    def tell(self, administration: str = "") -> None:
        """Write down who holds it, and at which HTTP address it takes changes, if it does."""
        lines = [str(os.getpid()), *([administration] if administration else [])]
        mark = "".join(f"{line}\n" for line in lines).encode()
        with contextlib.suppress(OSError):  # on a full disk others are not told
            os.pwrite(self._fd, mark, 0)
            os.ftruncate(self._fd, len(mark))

    def check(self) -> None:
        """Make sure that the directory is still the one that was locked.

        Raises:
            OSError: it was removed, moved or replaced; nothing written there can be found again.
        """
        try:
            found = os.stat(self._name)  # noqa: PTH116 - for each flush
            same = (found.st_ino, found.st_dev) == self._identity
        except OSError:
            same = False
        if not same:
            raise OSError(
                errno.ESTALE,
                f"the data directory '{self._path}' was removed, moved or replaced while it was "
                "in use; restore it and restart the server",
            )

    def release(self) -> None:
        """Let others have it."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def administration_of(path: Path) -> str | None:
    """Return at which HTTP address the server of a data directory takes changes.

    Args:
        path: the data directory.

    Returns:
        ``HOST:PORT``, or None: it takes none.

    Raises:
        DataDirError: no server uses it.
    """
    try:
        fd = os.open(path / _LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise DataDirError(f"no server uses '{path}': {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _lines(fd)[1] or None
    else:
        raise DataDirError(f"no server uses '{path}'")
    finally:
        os.close(fd)


def _lines(fd: int) -> tuple[str, str]:
    """Return the process and the HTTP address that a lock tells of."""
    lines = os.pread(fd, _MOST, 0).decode(errors="replace").splitlines()
    process, address, *_ = [*lines, "", ""]
    return process, address


def _make_durably(path: Path) -> None:
    """Create a folder and those above it, so that a crash cannot take their names away."""
    if path.is_dir():
        return
    _make_durably(path.parent)
    path.mkdir(mode=_MODE, exist_ok=True)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
