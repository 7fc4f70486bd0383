# mypy: disable-error-code="unreachable"
# Each system has branches that no other one reaches.
"""What Linux and macOS do differently for a server: durable writes, cached reads, clocks."""

import errno
import os
import select
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final

if sys.platform == "darwin":
    import fcntl

_NO_SUCH_CALL: Final = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY})
HALF_CLOSED: Final[int] = getattr(select, "POLLRDHUP", select.POLLHUP)
"""What ``poll`` reports of a peer that sends nothing any more."""


def boottime_ns() -> int:
    """Return the nanoseconds since the machine was started, time asleep included."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)  # unlike monotonic_ns(), it counts sleep


def sync(fd: int) -> None:
    """Wait until a file's bytes and length are on the disk itself.

    macOS hands ``fsync`` to a drive that may keep the bytes in memory; ``F_FULLFSYNC`` waits for
    the medium.

    Raises:
        OSError: the disk could not take them.
    """
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
            os.fsync(fd)  # a file system, as of a network, that has only this
    else:
        os.fdatasync(fd)


def write_durably(fd: int, data: bytes | bytearray | memoryview, offset: int) -> int:
    """Write bytes that are durable when the call returns, and return how many were taken.

    Raises:
        OSError: the disk refused; EOPNOTSUPP where only a sync makes bytes durable.
    """
    if sys.platform == "linux" and hasattr(os, "RWF_DSYNC"):  # musl has it from 1.2.5 on
        return os.pwritev(fd, (data,), offset, os.RWF_DSYNC)
    raise OSError(errno.EOPNOTSUPP, "this system has no writes that are durable by themselves")


def read_cached(fd: int, targets: Sequence[memoryview], offset: int) -> int:
    """Fill buffers from the system's memory alone, and return how many bytes there were.

    Raises:
        OSError: EAGAIN where the disk would have to be asked, EOPNOTSUPP where that is not told.
    """
    if sys.platform == "linux" and hasattr(os, "RWF_NOWAIT"):  # musl has it from 1.2.5 on
        return os.preadv(fd, targets, offset, os.RWF_NOWAIT)
    raise OSError(errno.EOPNOTSUPP, "this system cannot report what it has in memory")


def memory_file() -> IO[str]:
    """Return a file for text that no other program sees."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("text"), "w+")
    return tempfile.TemporaryFile("w+")
