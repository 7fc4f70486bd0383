"""Waits that end with Ctrl-C, even where the signal came a moment before them."""

import math
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from lance_sdk._io.platform import wait_for
from lance_spec.checksum import Buffer

LOOK: Final = 1.0
"""Seconds. A signal that arrives between the interpreter's last look and a wait interrupts
neither; it is seen when the wait ends. So no wait of a user's thread is longer than this."""


class Latch:
    """Something that happens once, and is waited for.

    An exception in `threading.Event.wait` can leave the event locked, and whoever sets it waiting
    for ever; here it can only make other waiters find out at their next look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Let the waiters go, now and later."""
        with suppress(RuntimeError):  # another one has just let go
            self._lock.release()

    def wait(self, timeout: float) -> bool:
        """Wait ``timeout`` seconds at most; return whether it has happened."""
        happened = self._lock.acquire(timeout=timeout)
        if happened:
            self.set()
        return happened


class Broadcast:
    """Something that happens again and again; each time, all who wait for it go on.

    It stands for `threading.Condition`, in whose `wait` an exception can come while the lock is
    not held: the block around it then gives back the lock of another thread. Here nobody holds
    the lock who waits. It is held for `next`, with the look that says that there is something to
    wait for, and for `tell`.
    """

    def __init__(self) -> None:
        self._latch: Latch | None = None

    @property
    def awaited(self) -> bool:
        """Whether somebody waits."""
        return self._latch is not None

    def next(self) -> Latch:
        """Return what is set the next time."""
        latch = self._latch
        if latch is None:
            latch = self._latch = Latch()
        return latch

    def tell(self) -> None:
        """Let those who wait go on."""
        latch, self._latch = self._latch, None
        if latch is not None:
            latch.set()


def wait_on(what: threading.Event | Latch, left: float) -> bool:
    """Wait ``left`` seconds at most; return False only when they are over.

    Args:
        what: a latch or an event.
        left: seconds; may be infinite.

    Returns:
        Whether to look again: something was announced, or there is time left.
    """
    return what.wait(min(left, LOOK)) or left > LOOK


def pause(seconds: float) -> None:
    """Do nothing for so many seconds."""
    while seconds > 0:
        piece = min(seconds, LOOK)
        time.sleep(piece)
        seconds -= piece


def wait_for_end(goes_on: Callable[[], object] = lambda: True) -> None:
    """Wait in the main thread until the process is told to end, by Ctrl-C or SIGTERM.

    Args:
        goes_on: asked each second; the wait ends when it says no.
    """
    told = Latch()  # a handler must not wait for a lock that the wait below it holds
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):  # Ctrl-C raises before and after the others
            before[number] = signal.getsignal(number)
            signal.signal(number, lambda *_: told.set())
        while not told.wait(LOOK) and goes_on():
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def join(thread: threading.Thread, timeout: float = math.inf) -> bool:
    """Wait until a thread has ended, ``timeout`` seconds at most; return whether it has."""
    deadline = time.monotonic() + timeout
    while thread.is_alive() and (left := deadline - time.monotonic()) > 0:
        thread.join(min(left, LOOK))
    return not thread.is_alive()


def acquire(lock: threading.Lock, timeout: float, taken: list[bool]) -> bool:
    """Take a lock within ``timeout`` seconds; return whether it was taken.

    Args:
        lock: the lock.
        timeout: seconds.
        taken: contains True from the very step in which the lock is taken: an exception that
            comes a moment later finds that it is to be given back.
    """
    deadline = time.monotonic() + timeout
    while True:
        piece = min(max(deadline - time.monotonic(), 0.0), LOOK)
        taken.extend(map(lock.acquire, (True,), (piece,)))
        if True in taken:
            return True
        if time.monotonic() >= deadline:
            return False


def receive(sock: socket.socket, size: int, deadline: float = math.inf) -> bytes:
    """Return what a blocking socket brings next, up to ``size`` bytes; none at the end.

    Args:
        sock: the socket; its timeout is changed.
        size: bytes to take at most.
        deadline: when to give up, on the clock of ``time.monotonic``.

    Raises:
        TimeoutError: nothing came in time.
        OSError: the connection is gone.
    """
    while True:
        try:
            _limit(sock, deadline)
            return sock.recv(size)
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise


def send_all(sock: socket.socket, data: Buffer, deadline: float = math.inf) -> None:
    """Send all of ``data`` through a blocking socket.

    Args:
        sock: the socket; its timeout is changed.
        data: the bytes.
        deadline: when to give up, on the clock of ``time.monotonic``.

    Raises:
        TimeoutError: the socket did not take everything in time.
        OSError: the connection is gone.
    """
    left = memoryview(data)
    while left:
        try:
            _limit(sock, deadline)
            left = left[sock.send(left) :]
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise


def ready(sock: Any, write: bool, deadline: float) -> bool:
    """Wait until a socket is writable, or readable; return False when the deadline passes first.

    Args:
        sock: the socket.
        write: writable; otherwise readable.
        deadline: on the clock of ``time.monotonic``.
    """
    while (left := deadline - time.monotonic()) > 0:
        if wait_for(sock, write=write, seconds=min(left, LOOK)):
            return True
    return False


def _limit(sock: socket.socket, deadline: float) -> None:
    sock.settimeout(min(max(deadline - time.monotonic(), 1e-6), LOOK))
