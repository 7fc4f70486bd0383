"""Waiting for sockets, with a pipe that ends the wait; for the thread pump."""

import os
import selectors
import socket
import time
from typing import Final

_LONGEST: Final = 3600.0
"""Seconds; every wait ends, so that lost clocks are survived."""


class Waiter:
    """A selector and a pipe to wake it.

    One thread waits; `wake` and `close` are called under the pump's lock, else the pipe could
    be closed, and its number used by somebody else, between a look and a write.

    Attributes:
        woken: whether a byte is in the pipe already.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._open = True
        self.woken = False

    def __repr__(self) -> str:
        return f"<Waiter open={self._open} woken={self.woken}>"

    def wake(self) -> None:
        """End the wait, this one or the next."""
        if self._open:
            self.woken = True
            os.write(self._in, b"\0")

    def watch(self, sock: socket.socket, *, read: bool = True, write: bool = False) -> None:
        """Wait for a socket from now on, or for something else of it than before."""
        events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        known = sock in self._selector.get_map()
        (self._selector.modify if known else self._selector.register)(sock, events)

    def unwatch(self, sock: socket.socket) -> None:
        """Wait for a socket no more."""
        self._selector.unregister(sock)

    def wait(self, deadline: float) -> int:
        """Wait for a socket, a wake-up, or the time; return what the socket is ready for."""
        timeout = min(max(deadline - time.monotonic(), 0.0), _LONGEST)
        ready = 0
        for key, mask in self._selector.select(timeout):
            if key.fd == self._out:
                self._drain()
            else:
                ready |= mask
        return ready

    def _drain(self) -> None:
        try:
            os.read(self._out, 64)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Let go of the descriptors; closing twice does no harm."""
        if self._open:
            self._open = False
            self._selector.close()
            os.close(self._out)
            os.close(self._in)
