"""No more than so many connection attempts a second, whatever the other side does.

Backoff that starts over with each connection lets a server that accepts and closes be dialled
thousands of times a second. A carrier resets its backoff upon acknowledgements only; this is the
second line, which also covers many hosts, dialects tried in turn, and acknowledgements between
closes.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lance_sdk._core.events import Action, Close, Connect, Event
from lance_sdk._tree import LanceError
from lance_sdk.errors import DeadlineExceeded
from lance_spec.checksum import Buffer

if TYPE_CHECKING:
    from lance_sdk.journal.transport import Carrier

MOST_PER_SECOND: Final = 10


class Paced:
    """A carrier whose attempts are paced, and counted.

    Args:
        carrier: the session.
        budget: seconds without a usable connection after which it fails; None means never.
        online: says whether there is a usable connection.

    Attributes:
        attempts: connection attempts so far.
    """

    def __init__(
        self,
        carrier: "Carrier",
        *,
        budget: float | None = None,
        online: Callable[[], bool] = bool,
    ) -> None:
        self._carrier = carrier
        self._budget = budget
        self._online = online
        self._outage_since = 0.0
        self._recent: deque[float] = deque(maxlen=MOST_PER_SECOND)
        self._held: Connect | None = None
        self.opened = carrier.opened
        self.attempts = 0

    def __repr__(self) -> str:
        return f"<Paced attempts={self.attempts} {self._carrier!r}>"

    @property
    def failure(self) -> LanceError | None:
        """The error that ended the session for good."""
        return self._carrier.failure

    @failure.setter
    def failure(self, error: LanceError | None) -> None:
        self._carrier.failure = error

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again."""
        return self._carrier.finished

    def open(self, now: float) -> None:
        """Start connecting."""
        self._outage_since = now
        self._carrier.open(now)

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there, within ``timeout`` seconds."""
        self._carrier.close(now, timeout)

    def fail(self, error: LanceError, now: float) -> None:
        """End the session for good."""
        self._carrier.fail(error, now)

    def next_action(self, now: float) -> Action | None:
        """Return what the pump must do, attempts not before their time."""
        action = self._carrier.next_action(now)
        if isinstance(action, Close) and self._held is not None:
            self._held = None  # it was never dialled, so there is nothing to close
            self._carrier.disconnected(None, now)
            return self._carrier.next_action(now)
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
        self._carrier.connected(address, now, token)

    def dial_failed(self, tries: list[tuple[str, str | None, Exception]], now: float) -> None:
        """No address could be reached."""
        self._carrier.dial_failed(tries, now)

    def disconnected(self, error: Exception | None, now: float) -> None:
        """The connection is gone."""
        if self._online():
            self._outage_since = now
        self._carrier.disconnected(error, now)

    def receive_data(self, data: Buffer, now: float) -> None:
        """Bytes arrived."""
        self._carrier.receive_data(data, now)

    def data_to_send(self, now: float) -> list[Buffer]:
        """Return the bytes that may leave now."""
        return self._carrier.data_to_send(now)

    def take_events(self) -> list[Event]:
        """Return what happened since the last call."""
        return self._carrier.take_events()

    def next_deadline(self) -> float:
        """Return when something is due."""
        due = self._carrier.next_deadline()
        if self._held is not None:
            due = min(due, self._allowed_at())
        if self._budget is None or self._online():
            return due
        return min(due, self._outage_since + self._budget)

    def handle_timeout(self, now: float) -> None:
        """Do what is due; give up an outage that is longer than its budget."""
        self._carrier.handle_timeout(now)
        if self._budget is None or self._online() or self.finished:
            return
        if now >= self._outage_since + self._budget:
            self._outage_since = now
            seconds = f"{self._budget:.1f} s (reconnect_max_duration)"
            self._carrier.fail(DeadlineExceeded(f"no server could be used for {seconds}"), now)
