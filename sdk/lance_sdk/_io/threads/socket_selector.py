"""Waiting for sockets, and for what ends the wait; for the thread driver."""

import selectors
import socket
import time
from typing import Final

from lance_sdk._io.platform import WakeUp, shared_epoll

_LONGEST: Final = 3600.0
"""Seconds; every wait ends, so that lost clocks are survived."""


class SocketSelector:
    """A selector, and what wakes it.

    One thread waits; `wake` and `close` are called under the driver's lock, else its
    descriptor could be closed, and the number used by somebody else, between a look and a write.
    Under it `woken` is also taken back, before the thread looks at the core.

    Attributes:
        woken: whether it was woken already.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_up = WakeUp()
        self._selector.register(self._wake_up, selectors.EVENT_READ)
        self._epoll = shared_epoll(self._selector)
        self._events = 0
        self._open = True
        self.woken = False

    def __repr__(self) -> str:
        return f"<SocketSelector open={self._open} woken={self.woken}>"

    def wake(self) -> None:
        """End the wait, this one or the next."""
        if self._open:
            self._wake_up.set()
            self.woken = True  # last: where an exception strikes before, the next one sets it

    def watch(self, sock: socket.socket, *, read: bool = True, write: bool = False) -> None:
        """Wait for a socket from now on, or for something else of it than before."""
        events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        self._events = events
        known = sock in self._selector.get_map()
        (self._selector.modify if known else self._selector.register)(sock, events)

    @property
    def can_leave_alone(self) -> bool:
        """Whether a watched socket can be left to another thread."""
        return self._epoll is not None

    def leave_alone(self, sock: socket.socket) -> None:
        """Leave the socket that is watched to another thread, whichever thread waits here."""
        assert self._epoll is not None
        self._epoll.watch(sock, read=False, write=False)

    def watch_again(self, sock: socket.socket) -> None:
        """Watch the socket again as before `leave_alone`."""
        assert self._epoll is not None
        events = self._events
        read, write = bool(events & selectors.EVENT_READ), bool(events & selectors.EVENT_WRITE)
        self._epoll.watch(sock, read=read, write=write)

    def unwatch(self, sock: socket.socket) -> None:
        """Wait for a socket no more."""
        self._selector.unregister(sock)

    def wait(self, deadline: float) -> int:
        """Wait for a socket, a wake-up, or the time; return what the socket is ready for."""
        timeout = min(max(deadline - time.monotonic(), 0.0), _LONGEST)
        ready = 0
        for key, mask in self._selector.select(timeout):
            if key.fileobj is self._wake_up:
                self._wake_up.clear()
            else:
                ready |= mask
        return ready

    def close(self) -> None:
        """Let go of the descriptors; closing twice does no harm."""
        if self._open:
            self._open = False
            if self._epoll is not None:
                self._epoll.close()
            self._selector.close()
            self._wake_up.close()
