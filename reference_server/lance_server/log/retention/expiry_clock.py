"""Whether the wall clock may be believed when something is to expire (AMB-58).

A clock that jumps ahead makes everything look old. So what is dropped by age is only dropped
while the clock goes as the machine's time since it was started does; and at a start, while the
clock is not before the last time that was recorded, nor more than a week after it. Otherwise
nothing expires until the clock returns or someone confirms it, also after a restart: from when on
the clock was ahead is recorded, too. Limits by size do not ask it.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lance_server.errors import DataDirError
from lance_server.log.clock import Clock
from lance_server.log.metadata.checksummed_file import load_document, save_document
from lance_server.runtime.platform import boottime_ns
from lance_server.storage.contract import StorageBackend
from lance_spec.bodies import take_int
from lance_spec.errors import DecodeError

_log = logging.getLogger(__name__)
FILE_NAME: Final = "clock.json"
_AHEAD: Final = "ahead_ns"
_SECOND: Final = 1_000_000_000
JUMP_NS: Final = 3600 * _SECOND
"""By how much the clock may differ from the time that passed, while the server runs."""
ABSENCE_NS: Final = 7 * 24 * 3600 * _SECOND
"""How long the server may have been stopped."""
_SLACK_NS: Final = _SECOND
_SAVED_EVERY_NS: Final = 600 * _SECOND


class ExpiryClock:
    """Compares the wall clock with the time that passed. Used on the event loop's thread.

    Args:
        storage: the backend.
        data_dir: where the last time is recorded.
        clock: the wall clock, in nanoseconds.
        boottime: nanoseconds that pass whatever is done to the wall clock.
    """

    def __init__(
        self,
        storage: StorageBackend,
        data_dir: Path,
        clock: Clock,
        boottime: Callable[[], int] = boottime_ns,
    ) -> None:
        self._storage = storage
        self._path = data_dir / FILE_NAME
        self._clock = clock
        self._boottime = boottime
        self._saved_at: int | None = None
        self._last_ns: int | None = None
        """The last time that was recorded."""
        self._ahead_ns: int | None = None
        """The earliest time of a clock that is ahead, while it is."""
        self._ahead_saved_ns: int | None = None
        """The one that was recorded."""
        self.doubt: str | None = None
        """Why nothing expires, or None."""
        self._believe()

    def __repr__(self) -> str:
        return f"<ExpiryClock doubt={self.doubt}>"

    def _believe(self) -> None:
        """Take the wall clock for right as it is now."""
        now = self._clock()
        self._begun = self._boottime()
        self._earliest, self._latest = now - JUMP_NS, now + JUMP_NS

    def load(self) -> str | None:
        """Compare the clock with the last time that was recorded; return what was wrong with that.

        Raises:
            OSError: the disk refused.
        """
        try:
            document = load_document(self._storage, self._path)
            if document is None:
                return None
            last = take_int(document.body, "wall_ns", FILE_NAME)
            ahead = take_int({_AHEAD: 0, **document.body}, _AHEAD, FILE_NAME) or None
        except (DataDirError, DecodeError) as error:
            return str(error)
        self._begun = self._boottime()
        self._earliest, self._latest = last - _SLACK_NS, last + ABSENCE_NS
        self._last_ns, self._ahead_saved_ns = last, ahead
        if ahead is not None:
            self._latest = min(self._latest, max(last, ahead - JUMP_NS))
        self.check()
        return document.problem

    @property
    def trusted(self) -> bool:
        """Whether what is old may go, by the last `check`."""
        return self.doubt is None

    def boottime_ns(self) -> int:
        """Return nanoseconds that pass whatever is done to the wall clock."""
        return self._boottime()

    def now_ns(self) -> int:
        """Return the wall clock's time, as far as it can be believed."""
        passed = self._boottime() - self._begun
        return min(max(self._clock(), self._earliest + passed), self._latest + passed)

    def check(self) -> bool:
        """Compare the clocks; return whether what is old may go."""
        now, passed = self._clock(), self._boottime() - self._begun
        earliest, latest = self._earliest + passed, self._latest + passed
        if earliest <= now <= latest:
            if self.doubt is not None:
                _log.warning("the clock has returned: what is old expires again")
            self.doubt = self._ahead_ns = None
            self._believe()
            return True
        known = (self._ahead_ns, self._ahead_saved_ns)
        self._ahead_ns = min(now, *(each or now for each in known)) if now > latest else None
        seconds = (now - latest if now > latest else earliest - now) // _SECOND
        direction = "ahead of" if now > latest else "behind"
        doubt = f"the clock is at least {seconds} s {direction} what it may be"
        if self.doubt is None:
            _log.error(
                "%s: nothing expires by age until it returns or 'lance-server confirm-clock' is "
                "told that it is right",
                doubt,
            )
        self.doubt = doubt
        return False

    def confirm(self) -> None:
        """Take the wall clock for right: someone looked at it."""
        self.doubt = self._ahead_ns = None
        self._saved_at = None
        self._believe()
        _log.warning("the clock was confirmed: what is old expires again")

    def is_due(self) -> bool:
        """Whether the time is to be recorded again."""
        saved = self._saved_at
        if self._ahead_ns != self._ahead_saved_ns:
            return self.trusted or self._last_ns is not None
        return self.trusted and (saved is None or self._boottime() - saved >= _SAVED_EVERY_NS)

    def save(self) -> None:
        """Record the time, durably, or from when on it cannot be believed (worker thread).

        Raises:
            OSError: the disk refused.
        """
        if self.trusted:
            now, at = self._clock(), self._boottime()
            save_document(self._storage, self._path, {"wall_ns": now})
            self._saved_at, self._last_ns, self._ahead_saved_ns = at, now, None
        elif self._last_ns is not None and (ahead := self._ahead_ns) is not None:
            body = {"wall_ns": self._last_ns, _AHEAD: ahead}
            save_document(self._storage, self._path, body)
            self._ahead_saved_ns = ahead
