"""A lease on a folder of offsets: one coordinator at a time, on one host or on several.

On one host the kernel's lock decides, at once. Where hosts share the folder and not their locks,
the lock file's age does: its holder touches it, and who comes later waits until it has not been
touched for the length of the lease. Ages are measured by the file system's own clock.
"""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from lance_sdk._io import platform
from lance_sdk.offsets.errors import StoreLocked, StoreUnavailable

LEASE: Final = 10.0
"""Seconds after which a holder that was not heard of has lost the folder."""
_NAME: Final = "coordinator.lock"
_LONGEST: Final = 4096


class FolderLease:
    """The right to be the only coordinator on a folder.

    Args:
        folder: of the offset store.
        seconds: length of the lease.
        host: name of this host.
    """

    def __init__(self, folder: Path, seconds: float = LEASE, host: str | None = None) -> None:
        self._folder = folder
        self._path = folder / _NAME
        self._token = token_hex(8)
        self._host = socket.gethostname() if host is None else host
        self._fd: int | None = None
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"<FolderLease {self._path} held={self._fd is not None}>"

    def take(self) -> None:
        """Take the folder.

        Raises:
            StoreLocked: another coordinator has it.
            StoreUnavailable: the folder cannot be used.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            fd = platform.open_file(self._path, os.O_RDWR | os.O_CREAT, follow=False)
            try:
                self._claim(fd)
            except BaseException:
                os.close(fd)
                raise
        except OSError as error:
            raise StoreUnavailable(f"cannot use {self._path}: {error.strerror}") from error
        self._fd = fd

    def _claim(self, fd: int) -> None:
        holder = _read(fd)
        try:
            platform.lock(fd)
        except BlockingIOError:
            raise StoreLocked(str(self._path), holder.get("pid")) from None
        if holder.get("host", self._host) != self._host and self._age(fd) < self.seconds:
            place = f"{self._path}, held by host {holder['host']}"
            raise StoreLocked(place, holder.get("pid"))
        text = json.dumps({"host": self._host, "pid": os.getpid(), "token": self._token}).encode()
        platform.write_at(fd, text, 0)  # in place, as there may be no room for another block
        os.ftruncate(fd, len(text))
        platform.sync(fd)

    def _age(self, fd: int) -> float:
        """Return for how long the file was not touched, by the file system's clock."""
        probe = self._folder / f"{_NAME}.{self._token}"
        probe.write_bytes(b"")
        try:
            return probe.stat().st_mtime - os.fstat(fd).st_mtime
        finally:
            probe.unlink()

    def renew(self) -> None:
        """Show that the holder is alive.

        Raises:
            StoreLocked: another coordinator took the folder meanwhile.
        """
        assert self._fd is not None, "it was taken"
        holder = _read(self._fd)
        if holder.get("token") != self._token:
            raise StoreLocked(str(self._path), holder.get("pid"))
        os.utime(self._fd)

    def release(self) -> None:
        """Give the folder back; twice does no harm."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        with suppress(OSError):
            if _read(fd).get("token") == self._token:
                os.ftruncate(fd, 0)
        os.close(fd)


def _read(fd: int) -> dict[str, Any]:
    try:
        body = json.loads(platform.read_at(fd, _LONGEST, 0))
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
