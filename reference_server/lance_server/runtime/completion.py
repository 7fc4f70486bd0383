"""Something that the disk still decides."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")
U = TypeVar("U")
_log = logging.getLogger(__name__)

Waiters: TypeAlias = dict[Callable[[], None], None]
"""Who is to be woken, in order, each once."""
_NOBODY: Final[Waiters] = {}
"""Stays empty: most outcomes of a flush of many topics have nobody who waits."""


class Completion(Generic[T]):
    """A result that arrives later, on the event loop's thread.

    It is lighter than a future on purpose: all batches of one flush share one, and whoever
    waits is woken without a trip through the event loop.

    Attributes:
        done: whether it is settled.
        error: why it failed, once it has.
    """

    __slots__ = ("_value", "_waiters", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None
        self._value: T | None = None
        self._waiters = _NOBODY

    def __repr__(self) -> str:
        state = "pending" if not self.done else f"failed: {self.error}" if self.error else "done"
        return f"<Completion {state}, {len(self._waiters)} waiting>"

    def result(self) -> T:
        """Return the value, or raise the error; only once it is done."""
        if self.error is not None:
            raise self.error
        assert self.done, "the outcome is still open"
        return self._value  # type: ignore[return-value]  # settled: the value is a T

    def wake(self, waiter: Callable[[], None]) -> None:
        """Call ``waiter`` when it is settled, once, however often it was given."""
        if self.done:
            waiter()
        else:
            self.wake_later(waiter)

    def wake_later(self, waiter: Callable[[], None]) -> None:
        """Call ``waiter`` when it is settled, unless it is already."""
        if self.done:
            return
        if self._waiters is _NOBODY:
            self._waiters = {waiter: None}
        else:
            self._waiters[waiter] = None

    def then(self, convert: Callable[[T], U]) -> "Completion[U]":
        """Return the outcome of applying ``convert`` to the value, once it is there."""
        converted: Completion[U] = Completion()

        def pass_on() -> None:
            try:
                value = convert(self.result())
            except Exception as error:  # noqa: BLE001 - it travels on in the new outcome
                converted.fail(error)
            else:
                converted.settle(value)

        self.wake(pass_on)
        return converted

    def settle(self, value: T) -> None:
        """Succeed, and wake everyone who waits."""
        wake_all(self.decide(value))

    def fail(self, error: Exception) -> None:
        """Fail, and wake everyone who waits."""
        wake_all(self.decide(error=error))

    def decide(self, value: T | None = None, error: Exception | None = None) -> Waiters:
        """Succeed, or fail with an error; return who waits, for `wake_all`.

        Whoever waits for several outcomes is woken once where all are decided first.
        """
        assert not self.done, "an outcome is settled once"
        self._value, self.error = value, error
        self.done = True
        waiters, self._waiters = self._waiters, _NOBODY
        return waiters


def wake_all(waiters: Waiters) -> None:
    """Wake whoever waits; what goes wrong there is logged, and the others are woken."""
    for waiter in waiters:
        try:
            waiter()
        except Exception:  # noqa: BLE001 - it is told, and the others are woken
            _log.exception("what waited for a result failed")


def pass_on(source: Completion[T], target: Completion[T]) -> None:
    """Settle ``target`` as ``source`` was."""
    if source.error is not None:
        target.fail(source.error)
    else:
        target.settle(source.result())


async def settled(outcome: Completion[T]) -> T:
    """Wait for an outcome and return its value, or raise its error."""
    if not outcome.done:
        done = asyncio.Event()
        outcome.wake(done.set)
        await done.wait()
    return outcome.result()
