"""Limits the connection attempts per second, whatever the other side does.

Backoff that starts over with each connection lets a server that accepts and closes be dialled
thousands of times a second. A transport resets its backoff upon acknowledgements only; this is the
second line, which also covers many hosts, dialects tried in turn, and acknowledgements between
closes.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lance_sdk._errors.advice import words
from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.events import (
    Action,
    BacklogSeen,
    Close,
    Connect,
    Disconnected,
    Event,
    Notice,
)
from lance_sdk.errors import ClosedError, DeadlineExceeded
from lance_sdk.journal._sending.outbox import Outbox
from lance_sdk.journal.types import JournalStats
from lance_spec.checksum import Buffer

_STANDS: Final = 5.0
"""Seconds after which a connection that has nothing to send counts as usable."""
_INTERVAL: Final = 10.0
"""Seconds between two looks at a backlog, and the age from which it is told."""


class OutageWatch:
    """Watches one outbox.

    Args:
        outbox: knows whether a connection may carry frames, and how many are acknowledged.
        attempts: returns how many attempts to connect there were.
    """

    def __init__(self, outbox: Outbox, attempts: Callable[[], int]) -> None:
        self._outbox = outbox
        self._attempts = attempts
        self._since: float | None = None
        self._first_attempt = 0
        self._acked = 0
        self._online_since: float | None = None
        self._look_at = math.inf

    def __repr__(self) -> str:
        return f"<OutageWatch since={self._since}>"

    def watch(self, events: list[Event], now: float) -> list[Event]:
        """Return the events of a transport with what they mean for the outage added.

        The end of a connection that the sender closed itself is left out: it is not an error.
        """
        told: list[Event] = []
        for event in events:
            if isinstance(event, Disconnected) and _is_failure(event):
                told += self._failed(event, now)
            elif not (isinstance(event, Disconnected) and isinstance(event.error, ClosedError)):
                told.append(event)
        return told + self._look(now)

    def _failed(self, event: Disconnected, now: float) -> list[Event]:
        self._outbox.counters.last_error = words(event.error)
        events: list[Event] = [Disconnected(event.error, event.retry_in, told=True)]
        if self._since is None:
            self._since, self._acked = now, self._outbox.counters.acked
            self._first_attempt = self._attempts()
            stats = self._outbox.journal.stats()
            text = (
                f"the server cannot be used: {words(event.error)}; {_waiting(stats)}, trying again"
            )
            events += [Notice(text, "outage begins"), self._backlog(stats, now)]
        return events

    def _look(self, now: float) -> list[Event]:
        """Notice what became true in the meantime."""
        if not self._outbox.online:
            self._online_since = None
        elif self._online_since is None:
            self._online_since = now
        ended = self._since is not None and self._usable(now)
        due = now >= self._look_at
        self._arm(now, again=due)
        if not (ended or due):
            return []
        stats = self._outbox.journal.stats()
        if not ended:
            old = self._since is not None or stats.backlog_age >= _INTERVAL
            return [self._backlog(stats, now)] if old and stats.backlog_frames else []
        assert self._since is not None
        tries = self._attempts() - self._first_attempt
        text = (
            f"the server can be used again after {now - self._since:.1f} s and {tries} more "
            f"attempts; {_waiting(stats)}"
        )
        events: list[Event] = [Notice(text, "outage ends"), self._backlog(stats, now)]
        self._since = None
        return events

    def _usable(self, now: float) -> bool:
        if self._outbox.counters.acked > self._acked:
            return True
        stood = self._online_since is not None and now >= self._online_since + _STANDS
        return stood and self._outbox.drained

    def _arm(self, now: float, *, again: bool) -> None:
        """Look again in a while, as long as something waits."""
        if self._outbox.drained and self._since is None:
            self._look_at = math.inf
        elif again or self._look_at == math.inf:
            self._look_at = now + _INTERVAL

    def next_deadline(self) -> float:
        """Return when `watch` may have something to tell."""
        stands = math.inf
        if self._since is not None and self._online_since is not None and self._outbox.drained:
            stands = self._online_since + _STANDS
        return min(stands, self._look_at)

    def _backlog(self, stats: JournalStats, now: float) -> BacklogSeen:
        outage = None if self._since is None else now - self._since
        return BacklogSeen(stats.backlog_frames, stats.backlog_bytes, stats.backlog_age, outage)

    def link(self, now: float) -> str:
        """Return how the connection stands, for whoever waits for room."""
        outbox, last = self._outbox, self._outbox.counters.last_error
        if outbox.online:
            return f"connected, and {outbox.in_flight} frames were sent and not acknowledged"
        why = f": {last}" if last else ""
        if not outbox.counters.connects:
            return f"never connected, in {self._attempts()} attempts{why}"
        since = "" if self._since is None else f" for {now - self._since:.1f} s"
        return f"not connected{since}{why}"


def _is_failure(event: Disconnected) -> bool:
    return event.retry_in is not None and not event.usual and event.redirect is None


def _waiting(stats: JournalStats) -> str:
    if not stats.backlog_frames:
        return "nothing waits"
    age = f"the oldest for {stats.backlog_age:.1f} s"
    return f"{stats.backlog_frames} frames with {stats.backlog_bytes} bytes wait, {age}"


if TYPE_CHECKING:
    from lance_sdk.journal.transport import Transport

MOST_PER_SECOND: Final = 10


class ReconnectLimiter:
    """A transport whose attempts are paced and counted, and whose outages are told.

    Args:
        transport: the session.
        outbox: what it carries; says whether there is a usable connection.
        budget: seconds without a usable connection after which it fails; None means never.

    Attributes:
        attempts: connection attempts so far.
    """

    def __init__(
        self,
        transport: "Transport",
        outbox: Outbox,
        *,
        budget: float | None = None,
    ) -> None:
        self._transport = transport
        self._outbox = outbox
        self._budget = budget
        self._watch = OutageWatch(outbox, lambda: self.attempts)
        self._now = 0.0
        self._outage_since = 0.0
        self._recent: deque[float] = deque(maxlen=MOST_PER_SECOND)
        self._held: Connect | None = None
        self.opened = transport.opened
        self.attempts = 0

    def __repr__(self) -> str:
        return f"<ReconnectLimiter attempts={self.attempts} {self._transport!r}>"

    @property
    def failure(self) -> LanceError | None:
        """The error that ended the session for good."""
        return self._transport.failure

    @failure.setter
    def failure(self, error: LanceError | None) -> None:
        self._transport.failure = error

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again."""
        return self._transport.finished

    def open(self, now: float) -> None:
        """Start connecting."""
        self._outage_since = self._now = now
        self._transport.open(now)

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there, within ``timeout`` seconds."""
        self._transport.close(now, timeout)

    def fail(self, error: LanceError, now: float) -> None:
        """End the session for good."""
        self._transport.fail(error, now)

    def next_action(self, now: float) -> Action | None:
        """Return what the driver must do, attempts not before their time."""
        action = self._transport.next_action(now)
        if isinstance(action, Close) and self._held is not None:
            self._held = None  # it was never dialled, so there is nothing to close
            self._transport.disconnected(None, now)
            return self._transport.next_action(now)
        if isinstance(action, Connect):
            self._held = action
        if self._held is None or now < self._allowed_at():
            return action if self._held is None else None
        held, self._held = self._held, None
        self._recent.append(now)
        self.attempts += 1
        return held

    def _allowed_at(self) -> float:
        """Return when the next attempt may start."""
        return self._recent[0] + 1.0 if len(self._recent) == MOST_PER_SECOND else 0.0

    def connected(self, address: str, now: float, token: str | None = None) -> None:
        """A connection is made."""
        self._transport.connected(address, now, token)

    def dial_failed(self, tries: list[tuple[str, str | None, Exception]], now: float) -> None:
        """No address could be reached."""
        self._now = now
        self._transport.dial_failed(tries, now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """The connection is gone."""
        self._now = now
        if self._outbox.online:
            self._outage_since = now
        self._transport.disconnected(error, now)

    def receive_data(self, data: Buffer, now: float) -> None:
        """Bytes arrived."""
        self._now = now
        self._transport.receive_data(data, now)

    def data_to_send(self, now: float) -> list[Buffer]:
        """Return the bytes that may leave now."""
        return self._transport.data_to_send(now)

    def take_events(self) -> list[Event]:
        """Return what happened since the last call."""
        return self._watch.watch(self._transport.take_events(), self._now)

    def link(self, now: float) -> str:
        """Return how the connection stands, in words."""
        return self._watch.link(now)

    def next_deadline(self) -> float:
        """Return when something is due."""
        due = min(self._transport.next_deadline(), self._watch.next_deadline())
        if self._held is not None:
            due = min(due, self._allowed_at())
        if self._budget is None or self._outbox.online:
            return due
        return min(due, self._outage_since + self._budget)

    def handle_timeout(self, now: float) -> None:
        """Do what is due; give up an outage that is longer than its budget."""
        self._now = now
        self._transport.handle_timeout(now)
        if self._budget is None or self._outbox.online or self.finished:
            return
        if now >= self._outage_since + self._budget:
            self._outage_since = now
            seconds = f"{self._budget:.1f} s (reconnect_budget, reconnect_max_duration_millis)"
            self._transport.fail(DeadlineExceeded(f"no server could be used for {seconds}"), now)
