"""Rejections on their way to the application: bounded, and never in the way of the network."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from lance_sdk._api.interruptible import join
from lance_sdk.journal.rejections import Rejection
from lance_sdk.logs import DELIVERY

ErrorHandler: TypeAlias = Callable[[Rejection], object]

SMALLEST: Final = 16
"""Fewest errors that an inbox must hold (SF client section 4.4)."""
_JOIN: Final = 2.0
"""Seconds that closing waits for a handler that is busy."""


class LoggingHandler:
    """The default handler: it logs every rejection.

    The first of a kind is a warning; the same frame rejected again for the same reason is only a
    debug line, so that an hour of retries does not fill the log.
    """

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()

    def __repr__(self) -> str:
        return "<LoggingHandler>"

    def __call__(self, rejection: Rejection) -> None:
        """Log one rejection."""
        kind = (rejection.first_fsn, rejection.category, rejection.policy, rejection.message)
        log = DELIVERY.debug if kind == self._last else DELIVERY.warning
        self._last = kind
        log("store-and-forward: %s; policy: %s", rejection, rejection.policy.value)


class ErrorInbox:
    """Hands rejections to a handler on a thread of its own.

    When the handler is slower than the errors come, the oldest ones are dropped and counted.

    Args:
        handler: called with each rejection; what it raises is logged. None logs.
        capacity: errors that may wait, at least 16.

    Attributes:
        dropped: errors that were dropped because the handler was slow.
        delivered: errors that the handler was called with.
        own_handler: whether the application gave a handler.
    """

    def __init__(self, handler: ErrorHandler | None = None, capacity: int = 256) -> None:
        self._handler: ErrorHandler = LoggingHandler() if handler is None else handler
        self._waiting: deque[Rejection] = deque()
        self._capacity = capacity
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.own_handler = handler is not None
        self.dropped = 0
        self.delivered = 0

    def __repr__(self) -> str:
        return f"<ErrorInbox waiting={len(self._waiting)} dropped={self.dropped}>"

    def offer(self, rejection: Rejection) -> None:
        """Take a rejection; never wait for the handler."""
        with self._changed:
            if self._closed:
                return
            if len(self._waiting) >= self._capacity:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(rejection)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lance-errors", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self, timeout: float = _JOIN) -> None:
        """Let the handler finish what waits, within ``timeout`` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            join(self._thread, timeout)

    def _run(self) -> None:
        while (rejection := self._next()) is not None:
            try:
                self._handler(rejection)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                DELIVERY.error("store-and-forward: the error handler raised", exc_info=error)
            self.delivered += 1

    def _next(self) -> Rejection | None:
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting else None
