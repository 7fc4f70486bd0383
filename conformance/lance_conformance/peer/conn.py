"""One connection to the target: frames out, judged events in."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache

from lance_conformance.dialect import Dialect
from lance_conformance.peer.expect import (
    ANOTHER_KIND,
    Allowed,
    Closed,
    Event,
    Silence,
    keepalive,
)
from lance_conformance.peer.link import Link
from lance_conformance.peer.verdict import Blocked, Failure, KitError
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.crc import Checksum
from lance_conformance.wire.frame import Decoder, Flag, Frame, Kind, Violation

_KEEPALIVE = int(Flag.KEEPALIVE)
FLOOD = 1000
"""Frames that nobody asked for after which a case gives up on a connection."""


class Peer:
    """The target, as one connection shows it.

    Args:
        link: The open connection.
        dialect: The dialect the target was found to speak.
        deadline: When the case ends, in the time of the event loop's clock.
        on_frame: Told of every frame that comes.
    """

    def __init__(
        self,
        link: Link,
        dialect: Dialect,
        deadline: float,
        on_frame: Callable[[Frame], None] = lambda _: None,
    ) -> None:
        self.number = link.number
        self._link = link
        self._dialect = dialect
        self.deadline = deadline
        self._on_frame = on_frame
        self._decoder = Decoder(dialect.compute)
        self._began = asyncio.get_running_loop().time()
        self._keepalives_owed = 0

    @property
    def usable(self) -> bool:
        """Whether the connection stands and everything that came on it was taken."""
        return self._link.closed is None and not self._decoder.pending

    def __repr__(self) -> str:
        return f"<Peer {self.number} {self._link!r} keepalives_owed={self._keepalives_owed}>"

    # -- out ---------------------------------------------------------------------------------------

    def send(self, *frames: Frame) -> None:
        """Send frames in one write, after making sure that they are right."""
        self._link.write(b"".join(self._checked(frame) for frame in frames))

    def send_faulty(self, frame: Frame, field: str) -> None:
        """Send a frame that is wrong on purpose.

        Args:
            frame: The stimulus.
            field: The one field in which it is wrong.
        """
        self._note_keepalive(frame)
        self._link.write(frame.encode(self._dialect.compute), field)

    def send_bytes(self, data: bytes) -> None:
        """Send a piece of a frame, for cases about segmentation."""
        self._link.write(data)

    def encode(self, frame: Frame) -> bytes:
        """A right frame as bytes, to be sent in pieces."""
        return self._checked(frame)

    def _checked(self, frame: Frame) -> bytes:
        self._note_keepalive(frame)
        return _right_bytes(frame, self._dialect.compute)

    def _note_keepalive(self, frame: Frame) -> None:
        if frame.flags & _KEEPALIVE:
            self._keepalives_owed += 1

    # -- in ----------------------------------------------------------------------------------------

    async def receive(self) -> Event:
        """The next event of this connection, at the latest at the deadline."""
        while True:
            self._decoder.feed(self._link.take())
            found = self._decoder.next()
            if found is not None:
                return self._noted(found)
            if self._link.closed is not None:
                return self._ended(self._link.closed)
            if not await self._link.wait(self.deadline):
                return Silence(self.deadline - self._began)

    def _noted(self, event: Frame | Violation) -> Frame | Violation:
        if isinstance(event, Frame):
            self._keepalives_owed -= event.kind is Kind.KEEPALIVE
            self._on_frame(event)
        return event

    def _ended(self, how: str) -> Event:
        if self._decoder.pending:
            return Violation(
                "truncated-frame",
                f"the connection ended {self._decoder.pending} bytes into a frame",
            )
        return Closed("rst" if how == "rst" else "fin")

    async def expect(self, *allowed: Allowed) -> Event:
        """The next event that matters, when it is one of the allowed outcomes.

        Backpressure, and Keepalives that answer none of ours, are passed over: a target may send
        them at any time.

        Args:
            allowed: The alternatives.

        Raises:
            Failure: The event is none of them.
        """
        for _ in range(FLOOD):
            event = await self.receive()
            judgements = [choice.judge(event) for choice in allowed]
            if None in judgements:
                return event
            if not self._ambient(event):
                raise self._failure(event, allowed, judgements)
        raise self.failure("flood", f"{FLOOD} frames that nobody asked for", allowed)

    async def frame(self, *allowed: Allowed) -> Frame:
        """Like `expect`, for alternatives that are all frames."""
        event = await self.expect(*allowed)
        if not isinstance(event, Frame):
            raise KitError(f"{allowed} let {event} pass, which is no frame")
        return event

    async def ask(self, frame: Frame, *allowed: Allowed) -> Frame:
        """Send one frame and return its answer, one of the allowed frames."""
        self.send(frame)
        return await self.frame(*allowed)

    async def expect_quiet(self, cite: str) -> None:
        """Prove that no answer comes: two Keepalives in a row are answered and nothing else.

        Two, because a target that answers Keepalives while it reads may send what it owes for the
        same read only afterwards; the second Keepalive belongs to a later read.

        Args:
            cite: The clause or ambiguity that asks for silence.

        Raises:
            Failure: Something else came.
            Blocked: The Keepalives were not answered, so silence cannot be told from slowness.
        """
        for _ in range(2):
            self.send(KEEPALIVE)
            try:
                await self.expect(keepalive())
            except Failure as failure:
                raise self._not_quiet(failure, cite) from None

    def _not_quiet(self, failure: Failure, cite: str) -> Failure:
        if failure.timing:
            return Blocked(
                failure.reason,
                "the Keepalive barrier was not answered, so silence proves nothing",
                connection=self.number,
            )
        return Failure(
            failure.reason,
            f"expected no answer [{cite}]; got {failure.received}",
            expected=(f"no answer [{cite}]",),
            received=failure.received,
            connection=self.number,
        )

    def _ambient(self, event: Event) -> bool:
        if not isinstance(event, Frame):
            return False
        unasked = event.kind is Kind.KEEPALIVE and self._keepalives_owed < 0
        if unasked:
            self._keepalives_owed = 0
        return unasked or event.kind is Kind.BACKPRESSURE

    def _failure(
        self, event: Event, allowed: Sequence[Allowed], judgements: Sequence[str | None]
    ) -> Failure:
        near = [j for j in judgements if j is not None and j != ANOTHER_KIND]
        reason = near[0] if near else _general_reason(event, allowed)
        return self.failure(reason, _seen(event), allowed)

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
        self._link.drop()


def _general_reason(event: Event, allowed: Sequence[Allowed]) -> str:
    if isinstance(event, Silence):
        wants_close = any(choice.judge(Closed("fin")) is None for choice in allowed)
        return "not-closed" if wants_close else "timeout"
    if isinstance(event, Closed):
        return "closed-early"
    return event.reason if isinstance(event, Violation) else "unexpected-frame"


def _seen(event: Event) -> str:
    if isinstance(event, Violation):
        return f"bytes that are no frame: {event.message}"
    return str(event)


@lru_cache(maxsize=256)
def _right_bytes(frame: Frame, checksum: Checksum) -> bytes:
    """A frame as bytes, once the strict decoder has agreed that they are right."""
    data = frame.encode(checksum)
    decoder = Decoder(checksum)
    decoder.feed(data)
    seen = decoder.next()
    if not isinstance(seen, Frame) or seen.payload != frame.payload or decoder.pending:
        raise KitError(f"the kit was about to send {frame}, which is not a right frame: {seen}")
    return data


async def connect(host: str, port: int, link: Link, deadline: float) -> None:
    """Open a connection.

    Args:
        host: Where the target listens.
        port: Where the target listens.
        link: The protocol that takes the connection.
        deadline: Time of the event loop's clock.

    Raises:
        OSError: The target refused, or did not answer in time.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(deadline):
            await loop.create_connection(lambda: link, host, port)
    except TimeoutError:
        raise TimeoutError("it was not accepted in time") from None
