"""One connection to the target, as far as it is heard: events in, each of them judged."""

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.expectations import (
    ANOTHER_KIND,
    Allowed,
    Closed,
    NoAnswer,
    Violation,
)
from lance_conformance.engine.failures import Failure
from lance_conformance.engine.raw_connection import RawConnection

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
FLOOD = 1000
"""Frames that nobody asked for after which a case gives up on a connection."""


class Decoder(Protocol[F_co]):
    """Splits a stream into frames, and stops for good at the first violation."""

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete yet."""
        ...

    def feed(self, data: bytes) -> None:
        """Take more bytes of the stream."""
        ...

    def next(self) -> F_co | Violation | None:
        """The next frame, the violation that ended the stream, or ``None`` to ask for more."""
        ...


class EventReader(Generic[F]):
    """What comes on one connection.

    Args:
        connection: The open connection.
        decoder: Takes its bytes apart.
        deadline: When the case ends; each right answer moves it.
    """

    def __init__(self, connection: RawConnection, decoder: Decoder[F], deadline: Deadline) -> None:
        self.number = connection.number
        self._deadline = deadline
        self._connection = connection
        self._decoder = decoder
        self._clock = asyncio.get_running_loop().time
        self._began = self._clock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} {self._connection!r}>"

    @property
    def usable(self) -> bool:
        """Whether the connection stands and everything that came on it was taken."""
        return self._connection.closed is None and not self._decoder.pending

    async def receive(self) -> F | Violation | Closed | NoAnswer:
        """The next event of this connection, at the latest at the deadline."""
        while True:
            data = self._connection.take()
            self._deadline.heard(len(data))
            self._decoder.feed(data)
            found = self._decoder.next()
            if found is not None:
                self.note(found)
                return found
            if self._connection.closed is not None:
                return self._ended(self._connection.closed)
            due = self._deadline.due()
            if not await self._connection.wait(due) and self._clock() >= due:
                return NoAnswer(due - self._began)

    async def receive_any(self) -> F | Violation | Closed | NoAnswer:
        """The next event, which gives the one after it its time, for what is not judged."""
        event = await self.receive()
        if not isinstance(event, (Violation, Closed, NoAnswer)):
            self._deadline.progress()
        return event

    def note(self, event: F | Violation) -> None:
        """Look at what came before it is judged."""

    def _ended(self, how: str) -> Violation | Closed:
        if self._decoder.pending:
            return Violation(
                "truncated-frame",
                f"the connection ended {self._decoder.pending} bytes into a frame",
            )
        return Closed("rst" if how == "rst" else "fin")

    def ambient(self, event: object) -> bool:
        """Whether a target may send this at any time, so that it is passed over."""
        del event
        return False

    async def expect(self, *allowed: Allowed) -> Any:
        """The next event that matters, when it is one of the allowed outcomes.

        Args:
            allowed: The alternatives.

        Raises:
            Failure: The event is none of them.
        """
        for _ in range(FLOOD):
            event = await self.receive()
            judgements = [choice.judge(event) for choice in allowed]
            if None in judgements:
                self._deadline.progress()
                return event
            if not self.ambient(event):
                raise self._failure(event, allowed, judgements)
        raise self.failure("flood", f"{FLOOD} frames that nobody asked for", allowed)

    def _failure(
        self, event: object, allowed: Sequence[Allowed], judgements: Sequence[str | None]
    ) -> Failure:
        near = [j for j in judgements if j is not None and j != ANOTHER_KIND]
        reason = near[0] if near else _general_reason(event, allowed)
        return self.failure(reason, str(event), allowed)

    def failure(self, reason: str, received: str, allowed: Sequence[Allowed] = ()) -> Failure:
        """A failure seen on this connection."""
        expected = tuple(str(choice) for choice in allowed)
        wanted = " or ".join(expected)
        return Failure(
            reason,
            f"expected {wanted}; got {received}" if wanted else received,
            expected=expected,
            received=received,
            connection=self.number,
        )

    def drop(self) -> None:
        """End the connection."""
        self._connection.drop()


def _general_reason(event: object, allowed: Sequence[Allowed]) -> str:
    if isinstance(event, NoAnswer):
        wants_close = any(choice.judge(Closed("fin")) is None for choice in allowed)
        return "not-closed" if wants_close else "timeout"
    if isinstance(event, Closed):
        return "closed-early"
    return event.reason if isinstance(event, Violation) else "unexpected-frame"
