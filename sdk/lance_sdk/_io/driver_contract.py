"""The contract between a core and its driver.

The driver promises:

1. All verbs are called under one lock, or from one task.
2. After ``Connect`` exactly one of `connected` and `dial_failed` follows, or `disconnected`
   when ``Close`` came first; after `connected` exactly one `disconnected` follows, whoever
   ended the connection.
3. After every verb it looks again at `next_action`, `data_to_send`, `take_events` and
   `next_deadline`, and at the deadline, or soon after, it calls `handle_timeout`.
4. Outcomes are announced outside the lock, in the order in which they were settled.
5. A received buffer stays untouched until `receive_data` returns, and no longer.
6. The work of an `OffloadedTask` runs outside the lock, one task after the other, and its
   ``done`` is called like a verb.
"""

from typing import Protocol

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.events import Action, Event
from lance_spec.checksum import Buffer

__all__ = ["ProtocolCore"]


class ProtocolCore(Protocol):
    """A protocol core, as a driver sees it.

    `lance_sdk._protocol.reconnecting_session.Session` is one.
    """

    failure: LanceError | None

    @property
    def finished(self) -> bool:
        """Whether nothing will ever happen again and the driver may stop."""
        ...

    def next_action(self, now: float) -> Action | None:
        """Return what to do about the connection; each action is returned once."""
        ...

    def connected(self, address: str, now: float, token: str | None = None) -> None:
        """A connection to ``address`` is made, TLS included; ``token`` is fresh for it."""
        ...

    def dial_failed(self, tries: list[tuple[str, str | None, Exception]], now: float) -> None:
        """No address could be reached: (phase, address, cause) of each."""
        ...

    def disconnected(self, error: Exception | None, now: float) -> None:
        """The connection is gone; without an error, in good order."""
        ...

    def receive_data(self, data: Buffer, now: float) -> None:
        """These bytes arrived."""
        ...

    def data_to_send(self, now: float) -> list[Buffer]:
        """Return the bytes that may leave now; called only when earlier ones have left."""
        ...

    def next_deadline(self) -> float:
        """Return the one instant at which `handle_timeout` is next wanted."""
        ...

    def handle_timeout(self, now: float) -> None:
        """Do what is due at ``now``; calling it early does no harm."""
        ...

    def take_events(self) -> list[Event]:
        """Return what happened since the last call."""
        ...

    def fail(self, error: LanceError, now: float) -> None:
        """End everything: the driver itself cannot go on."""
        ...

    def close(self, now: float, timeout: float) -> None:
        """Finish what is there, within ``timeout`` seconds."""
        ...
