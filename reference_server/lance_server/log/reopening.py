"""Topics that are closed for writing, and the attempts to open them again.

A topic is closed for writing while it is uncertain what the disk holds of it: after a start that
the disk did not let finish, or after a write that failed and could not be undone. It can still be
read as far as it is known to be durable, and deleted. A worker repeats what failed, after pauses
that grow, until it succeeds.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lance_server.errors import DataDirError
from lance_server.runtime.completion import Completion, T
from lance_server.runtime.scheduling import Scheduler, Timer

_log = logging.getLogger(__name__)
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 8.0


@dataclass(slots=True, eq=False)
class _Closed:
    reason: str
    work: Callable[[], Any]
    done: Callable[[Any], None]
    pause: float = _FIRST_PAUSE
    timer: Timer | None = None
    attempt: Completion[Any] | None = None


class Reopener:
    """Tries to open topics for writing again. Belongs to the event loop's thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._closed: dict[int, _Closed] = {}
        self._stopped = False

    def __repr__(self) -> str:
        return f"<Reopener of {len(self._closed)} topics>"

    @property
    def reasons(self) -> dict[int, str]:
        """Why topics are closed, by id."""
        return {topic_id: closed.reason for topic_id, closed in self._closed.items()}

    @property
    def works(self) -> dict[int, Callable[[], object]]:
        """The work that brings each topic back, by id: a stop does it once more."""
        return {topic_id: closed.work for topic_id, closed in self._closed.items()}

    def close(
        self,
        topic_id: int,
        reason: str,
        work: Callable[[], T],
        done: Callable[[T], None],
        *,
        at_once: bool = True,
    ) -> None:
        """Take a topic that was closed, and try to open it again until that succeeds.

        Args:
            topic_id: the topic.
            reason: why it is closed.
            work: brings it back (worker thread); raises `OSError` or `DataDirError` otherwise.
            done: takes what ``work`` returned (loop's thread).
            at_once: whether the first attempt is made without a pause.
        """
        if topic_id in self._closed:
            return
        _log.error("topic %d is closed for writing: %s; this is tried again", topic_id, reason)
        closed = self._closed[topic_id] = _Closed(reason, work, done)
        if at_once:
            self._try(topic_id, closed)
        else:
            self._try_later(topic_id, closed)

    def forget(self, topic_id: int) -> Completion[Any] | None:
        """Make no further attempt; return the one that is under way, or None."""
        closed = self._closed.pop(topic_id, None)
        if closed is None:
            return None
        if closed.timer is not None:
            closed.timer.cancel()
        return closed.attempt

    def stop(self) -> None:
        """Begin no further attempt."""
        self._stopped = True
        for closed in self._closed.values():
            if closed.timer is not None:
                closed.timer.cancel()

    def _try_later(self, topic_id: int, closed: _Closed) -> None:
        def ring() -> None:
            closed.timer = None
            self._try(topic_id, closed)

        closed.timer = self._scheduler.call_later(closed.pause, ring)

    def _try(self, topic_id: int, closed: _Closed) -> None:
        if not self._stopped:
            attempt = closed.attempt = self._scheduler.run("meta", closed.work)
            attempt.wake(lambda: self._tried(topic_id, closed, attempt))

    def _tried(self, topic_id: int, closed: _Closed, attempt: Completion[Any]) -> None:
        closed.attempt = None
        if self._closed.get(topic_id) is not closed:
            return
        if attempt.error is None:
            del self._closed[topic_id]
            _log.warning("topic %d is open for writing again", topic_id)
            closed.done(attempt.result())
            return
        if not isinstance(attempt.error, OSError | DataDirError):
            _log.error("topic %d: the attempt failed", topic_id, exc_info=attempt.error)
        closed.reason = str(attempt.error)
        closed.pause = min(2 * closed.pause, _LONGEST_PAUSE)
        self._try_later(topic_id, closed)
