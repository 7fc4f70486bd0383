"""Changes of the assignment, in order, that the member must still apply."""

from collections import deque

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Event
from lance_sdk.groups._protocol.membership import Change


class Changes:
    """Changes that were not applied yet, and the error that stands after the last of them.

    Args:
        events: where the outcome of a wait collects.

    Attributes:
        error: why there will be no more.
        trouble: why there are none at the moment, raised at every look until it is over.
    """

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._waiting: deque[Change] = deque()
        self._gate: Completion | None = None
        self.error: LanceError | None = None
        self.trouble: LanceError | None = None

    def __repr__(self) -> str:
        return f"<Changes waiting={len(self._waiting)} error={self.error!r}>"

    def __bool__(self) -> bool:
        return bool(self._waiting) or (self.error or self.trouble) is not None

    def first(self) -> Change | None:
        """Return the next change, if there is one; it stays the next one until it is `applied`.

        Raises:
            LanceError: there will be no more, or none at the moment.
        """
        if self._waiting:
            return self._waiting[0]
        if (error := self.error or self.trouble) is not None:
            raise error.with_traceback(None)
        return None

    def applied(self, change: Change) -> None:
        """Go on to the change after this one."""
        if self._waiting and self._waiting[0] is change:
            self._waiting.popleft()

    def gate(self) -> Completion:
        """Return an outcome that settles when there is a change to apply, or an error."""
        if self._gate is None or self._gate.done:
            self._gate = Completion()
        return self._gate

    def tell(self, change: Change) -> None:
        """Put a change after the others, unless nothing changed."""
        if parts := change.parts():
            self._waiting += parts
            self._open_gate()

    def fail(self, error: LanceError) -> None:
        """End with this error, unless there is one."""
        if self.error is None:
            self.error = error
        self._open_gate()

    def tell_trouble(self) -> None:
        """Wake who waits, to be told of the trouble."""
        self._open_gate()

    def _open_gate(self) -> None:
        if self._gate is not None and self._gate.settle():
            self._events.append(self._gate)
