"""Events to the log and to whoever waits; the same for both pumps."""

from lance_sdk._core.events import Connected, Disconnected, Event, Notice
from lance_sdk._core.outcome import Outcome
from lance_sdk.logs import DELIVERY, SESSION


class Announcer:
    """Announces outcomes and logs the rest: one warning an incident, however many retries.

    Args:
        name: what the pump is for, as messages show it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._was_connected = False
        self._failures = 0

    def announce(self, events: list[Event]) -> None:
        """Handle events in order; no lock may be held: outcomes run user code."""
        for event in events:
            if isinstance(event, Outcome):
                event.announce(self._callback_failed)
            elif isinstance(event, Connected):
                self._connected(event)
            elif isinstance(event, Disconnected):
                self._disconnected(event)
            elif isinstance(event, Notice):
                DELIVERY.warning("%s: %s", self._name, event.message)

    def _connected(self, event: Connected) -> None:
        extra = {"lance": {"peer": event.peer, "dialect": event.dialect}}
        if self._failures and self._was_connected:
            text = "%s: connected again to %s (%s) after %d failures"
            SESSION.info(text, self._name, event.peer, event.dialect, self._failures, extra=extra)
        else:
            SESSION.debug("%s: connected to %s (%s)", self._name, event.peer, event.dialect)
        self._was_connected = True
        self._failures = 0

    def _disconnected(self, event: Disconnected) -> None:
        if event.retry_in is None:
            SESSION.debug("%s: disconnected: %s", self._name, event.error)
            return
        self._failures += 1
        quiet = self._failures > 1 or not self._was_connected
        log = SESSION.debug if quiet else SESSION.warning
        log("%s: %s; trying again in %.2f s", self._name, event.error, event.retry_in)

    def _callback_failed(self, error: Exception) -> None:
        DELIVERY.error("%s: a callback raised", self._name, exc_info=error)
