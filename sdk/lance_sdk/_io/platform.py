# mypy: disable-error-code="unreachable"
# Each system has branches that no other one reaches.
"""What operating systems do differently: locks, syncing, reserved blocks, signals, forks.

Every other module of this package uses only what Python has on Linux, macOS and Windows. A test
holds them to that, and an environment runs the tests without the names that the others lack.
"""

import errno
import os
import select
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
_NOT_INHERITED: Final[int] = getattr(os, "O_CLOEXEC", getattr(os, "O_NOINHERIT", 0))
_NOT_THROUGH_LINKS: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_LOCKED_BYTE: Final = 1 << 30
"""Windows locks ranges of bytes, and nobody reads one; this one lies beyond what is written."""
_ZEROS: Final = bytes(1 << 16)
_NO_SUCH_CALL: Final = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY})


def open_file(path: Path, flags: int, mode: int = 0o644, *, follow: bool = True) -> int:
    """Open a file for bytes, not inherited by children, and return its descriptor.

    Args:
        path: the file.
        flags: of ``os.open``, without those for translation, inheritance and links.
        mode: of a file that is created.
        follow: whether a symbolic link in its place is followed, where that can be refused.

    Raises:
        OSError: the file cannot be opened.
    """
    extra = _BINARY | _NOT_INHERITED | (0 if follow else _NOT_THROUGH_LINKS)
    return os.open(path, flags | extra, mode)


def lock(fd: int) -> None:
    """Lock an open file for this process alone; the lock ends with it, or with the descriptor.

    Raises:
        BlockingIOError: another process, or another descriptor of this one, holds the lock.
        OSError: the file system has no locks.
    """
    if sys.platform == "win32":
        _lock_byte(fd, msvcrt.LK_NBLCK)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(fd: int) -> None:
    """Release a lock, also where a forked child still has a copy of its descriptor."""
    if sys.platform == "win32":
        _lock_byte(fd, msvcrt.LK_UNLCK)
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)


if sys.platform == "win32":
    _SEEKING: Final = threading.Lock()
    """Held between placing a descriptor and using it: there is no call for both in one."""

    def _lock_byte(fd: int, how: int) -> None:
        with _SEEKING:
            before = os.lseek(fd, 0, os.SEEK_CUR)
            os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(fd, how, 1)
            except OSError as error:
                raise BlockingIOError(errno.EAGAIN, "the file is locked") from error
            finally:
                os.lseek(fd, before, os.SEEK_SET)


def sync(fd: int) -> None:
    """Wait until the file's bytes, and its length, are on the disk itself.

    macOS hands ``fsync`` to a drive that may keep the bytes in memory; ``F_FULLFSYNC`` waits for
    the medium.

    Raises:
        OSError: the disk could not take them.
    """
    if sys.platform == "darwin":
        _sync_fully(fd)
    elif sys.platform == "win32":
        os.fsync(fd)
    else:
        os.fdatasync(fd)


def sync_folder(folder: Path) -> None:
    """Wait until names that were created, renamed or removed in a folder are on disk.

    Windows keeps names in a journal of its own and has no call for it; nothing is done there.

    Raises:
        OSError: the disk could not take them, or there is no such folder.
    """
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if sys.platform == "darwin":
            _sync_fully(fd)
        else:
            os.fsync(fd)
    finally:
        os.close(fd)


if sys.platform == "darwin":

    def _sync_fully(fd: int) -> None:
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                raise
            os.fsync(fd)  # a file system, as of a network, that has only this


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Return at most ``length`` bytes from ``offset`` on; fewer at the end of the file."""
    if sys.platform == "win32":
        with _SEEKING:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.read(fd, length)
    return os.pread(fd, length, offset)


def write_at(fd: int, data: bytes | bytearray | memoryview, offset: int) -> int:
    """Write bytes at ``offset`` and return how many were taken."""
    if sys.platform == "win32":
        with _SEEKING:
            os.lseek(fd, offset, os.SEEK_SET)
            return os.write(fd, data)
    return os.pwrite(fd, data, offset)


def reserve(fd: int, size: int) -> None:
    """Make sure that each of the first ``size`` bytes has a block, so that no write lacks one.

    Bytes beyond the end of the file become zeros; what is there stays.

    Raises:
        OSError: the disk has not that much room.
    """
    if sys.platform == "linux":
        os.posix_fallocate(fd, 0, size)
        return
    end = os.fstat(fd).st_size
    while end < size:  # a file that is only made longer may have holes; written zeros have blocks
        end += write_at(fd, _ZEROS[: size - end], end)


def punch(fd: int, offset: int, length: int) -> None:
    """Make ``length`` bytes from ``offset`` read as zeros and free the blocks below them.

    Python has no call for it, so the C library's is used where there is one.

    Raises:
        OSError: it is not possible here; the file's content did not change.
    """
    _fallocate()(fd, _PUNCH_HOLE | _KEEP_SIZE, offset, length)


@cache
def _fallocate() -> Callable[[int, int, int, int], None]:
    if sys.platform != "linux":
        return _absent
    import ctypes  # noqa: PLC0415 - only a journal needs it

    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if function is None:
        return _absent
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    function.restype = ctypes.c_int

    def call(fd: int, mode: int, offset: int, length: int) -> None:
        if function(fd, mode, offset, length) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"hole punching: {os.strerror(code)}")

    return call


def _absent(fd: int, mode: int, offset: int, length: int) -> None:
    del fd, mode, offset, length
    raise OSError(errno.EOPNOTSUPP, "hole punching: this system has no fallocate(2)")


def boot_number() -> int:
    """Return a number that every start of the machine changes; 0 where none is known."""
    try:
        text = _BOOT_ID.read_text().strip()
        return int(text.replace("-", "")[:15], 16)
    except (OSError, ValueError):
        return 0


def send_parts(sock: socket.socket, parts: Sequence[bytes | bytearray | memoryview]) -> int:
    """Send several buffers in one call, or the first of them where a call takes only one."""
    if sys.platform == "win32":
        return sock.send(parts[0])
    return sock.sendmsg(parts)


def wait_for(target: Any, *, write: bool, seconds: float) -> bool:
    """Wait until a socket can be read or written, and return whether it can.

    Args:
        target: a socket, or on POSIX systems anything with a descriptor.
        write: wait until it can be written; otherwise until it can be read, or has ended.
        seconds: how long at most.
    """
    if sys.platform == "win32":
        done = select.select([] if write else [target], [target] if write else [], [], seconds)
        return any(done)
    poll = select.poll()
    poll.register(target, select.POLLOUT if write else select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def readiness(*targets: Any) -> Callable[[float], bool]:
    """Return what waits until one of some targets can be read, or has ended, for some seconds."""
    if sys.platform == "win32":
        return lambda seconds: any(select.select(targets, [], [], seconds))
    poll = select.poll()
    for target in targets:
        poll.register(target, select.POLLIN)
    return lambda seconds: bool(poll.poll(1000 * seconds))


class SharedEpoll:
    """The epoll of a selector, with which another thread changes what is waited for.

    Args:
        descriptor: of the selector.
    """

    def __init__(self, descriptor: int) -> None:
        if sys.platform == "linux":
            self._epoll = select.epoll.fromfd(os.dup(descriptor))

    def watch(self, sock: socket.socket, *, read: bool, write: bool) -> None:
        """Have the selector wait for these, or for nothing, of a socket that it has."""
        if sys.platform == "linux":
            events = (select.EPOLLIN if read else 0) | (select.EPOLLOUT if write else 0)
            self._epoll.modify(sock, events)

    def close(self) -> None:
        """Let go of the descriptor."""
        if sys.platform == "linux":
            self._epoll.close()


def shared_epoll(selector: selectors.BaseSelector) -> SharedEpoll | None:
    """Return the epoll of a selector; None where it has none."""
    if sys.platform == "linux" and isinstance(selector, selectors.EpollSelector):
        return SharedEpoll(selector.fileno())
    return None


def has_lost_reader(descriptor: int) -> bool:
    """Return whether nobody can read any more what is written to a pipe, where that is told."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(descriptor, 0)  # 0: report nothing but a lost reader
    return bool(poll.poll(0))


class WakeUp:
    """What a thread can wait for beside sockets, and another thread can set.

    `set` and `close` are called under one lock.
    """

    def __init__(self) -> None:
        if sys.platform == "win32":  # selectors take nothing but sockets there
            self._sockets = socket.socketpair()
            for each in self._sockets:
                each.setblocking(False)
        elif sys.platform == "linux":
            self._counter = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self._pipe = os.pipe()
            for each in self._pipe:
                os.set_blocking(each, False)

    def fileno(self) -> int:
        """Return what to wait for."""
        if sys.platform == "win32":
            return self._sockets[0].fileno()
        if sys.platform == "linux":
            return self._counter
        return self._pipe[0]

    def set(self) -> None:
        """End the wait, this one or the next."""
        if sys.platform == "win32":
            self._sockets[1].send(b"\0")
        elif sys.platform == "linux":
            os.eventfd_write(self._counter, 1)
        else:
            os.write(self._pipe[1], b"\0")

    def clear(self) -> None:
        """Forget that it was set."""
        with suppress(BlockingIOError):
            if sys.platform == "win32":
                self._sockets[0].recv(64)
            elif sys.platform == "linux":
                os.eventfd_read(self._counter)
            else:
                os.read(self._pipe[0], 64)

    def close(self) -> None:
        """Let go of the descriptors."""
        if sys.platform == "win32":
            for each in self._sockets:
                each.close()
        elif sys.platform == "linux":
            os.close(self._counter)
        else:
            for descriptor in self._pipe:
                os.close(descriptor)


def seconds_asleep() -> float:
    """Return how long the machine was suspended since it booted; 0 where it does not tell."""
    if sys.platform == "win32":
        return 0.0
    if sys.platform == "linux":
        clock = time.CLOCK_BOOTTIME
    else:
        clock = time.CLOCK_MONOTONIC  # counts sleep on macOS, where time.monotonic() does not
    return max(0.0, time.clock_gettime(clock) - time.monotonic())


def call_after_fork(call: Callable[[], None]) -> None:
    """Have ``call`` run in each child that ``os.fork()`` makes, where there are forks."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=call)


def interrupting_signal() -> int | None:
    """Return a signal that nobody else uses, which interrupts a wait and does nothing else.

    None where a wait of the main thread cannot be interrupted by a signal.
    """
    if sys.platform == "win32":
        return None
    return signal.SIGURG


def interrupt_wait(thread: int, number: int) -> None:
    """Interrupt the system call in which a thread waits, by its id and a signal."""
    if sys.platform != "win32":
        signal.pthread_kill(thread, number)
