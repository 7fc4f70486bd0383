"""Something that settles once: a batch, a call, an opening, a gate."""

from collections.abc import Callable
from typing import Any, Protocol

from lance_sdk._errors.base import LanceError


class Latch(Protocol):
    """What a driver puts into an outcome that somebody waits for."""

    def set(self) -> object:
        """Let the waiters go."""
        ...


class Completion:
    """A result that is not there yet.

    Settling happens inside the core; `announce` is the driver's, outside its lock. A waiter
    looks at `done` and installs `latch` under the same lock that settling takes, so it cannot
    miss the announcement that follows.

    Attributes:
        done: whether it is settled.
        value: the result, once settled without an error.
        error: why there is none.
        latch: what the waiters wait on; None until somebody does.
    """

    __slots__ = ("_callbacks", "done", "error", "latch", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: LanceError | None = None
        self.latch: Latch | None = None
        self._callbacks: list[Callable[[], object]] | None = None

    def __repr__(self) -> str:
        state = "pending" if not self.done else repr(self.error) if self.error else "settled"
        return f"<{type(self).__name__} {state}>"

    @property
    def awaited(self) -> bool:
        """Whether somebody is to be told."""
        return self.latch is not None or self._callbacks is not None

    def settle(self, value: object = None, error: LanceError | None = None) -> bool:
        """Fix the result; return False when it was fixed before and nothing changed."""
        if self.done:
            return False
        self.value, self.error, self.done = value, error, True
        return True

    def add_callback(self, callback: Callable[[], object]) -> bool:
        """Have `announce` call ``callback``; return False when it is settled already."""
        if self.done:
            return False
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(callback)
        return True

    def announce(self, on_error: Callable[[BaseException], object]) -> None:
        """Wake the waiters and run the callbacks; one that raises does not stop the others.

        Args:
            on_error: gets what a callback raised.
        """
        if self.latch is not None:
            self.latch.set()
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            try:
                callback()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                on_error(error)
