"""One connection to the target: frames out, judged events in."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from lance_conformance.dialect import Dialect
from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.event_reader import EventReader
from lance_conformance.engine.expectations import Allowed, Violation
from lance_conformance.engine.failures import Blocked, Failure, KitError, NotApplicable
from lance_conformance.engine.raw_connection import RawConnection
from lance_conformance.server.expect import keepalive
from lance_conformance.server.features import feature_of
from lance_conformance.wire.access import may_change
from lance_conformance.wire.control import KEEPALIVE
from lance_conformance.wire.crc import Checksum
from lance_conformance.wire.frame import Decoder, Flag, Frame, FrameKind

_KEEPALIVE = int(Flag.KEEPALIVE)
SMALL = 65536
"""Bytes of payload up to which a frame that was sent is remembered."""


class Peer(EventReader[Frame]):
    """The target, as one connection shows it.

    Args:
        connection: The open connection.
        dialect: The dialect the target was found to speak.
        deadline: When the case ends; each right answer moves it.
        on_frame: Told of every frame that comes.
        read_only: Nothing may be sent that could change something at the target.
        left_out: Features of which nothing may be sent, each with the reason.
    """

    def __init__(
        self,
        connection: RawConnection,
        dialect: Dialect,
        deadline: Deadline,
        on_frame: Callable[[Frame], None] = lambda _: None,
        *,
        read_only: bool = False,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(connection, Decoder(dialect.compute), deadline)
        self._read_only = read_only
        self._left_out = left_out
        self._dialect = dialect
        self._on_frame = on_frame
        self._keepalives_owed = 0

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} keepalives_owed={self._keepalives_owed}>"

    # -- out ---------------------------------------------------------------------------------------

    def send(self, *frames: Frame) -> None:
        """Send frames in one write, after making sure that they are right."""
        self._connection.write(b"".join(self._checked(frame) for frame in frames))

    def send_secret(self, frames: Sequence[Frame], masked: Sequence[Frame]) -> None:
        """Send frames in one write of which the transcript must not have every payload.

        Args:
            frames: The frames.
            masked: What is recorded in their place.
        """
        shown = b"".join(_right_bytes(frame, self._dialect.compute) for frame in masked)
        self._connection.write(b"".join(self._checked(frame) for frame in frames), shown=shown)

    def read_slowly(self) -> None:
        """Take nothing more from the connection, and let the target feel it."""
        self._connection.stop_reading()

    @property
    def held(self) -> int:
        """Bytes that came and wait in our socket; 0 where the system does not tell."""
        return self._connection.held

    def read_on(self) -> None:
        """Take what has come meanwhile."""
        self._connection.read_on()

    def send_faulty(self, frame: Frame, field: str) -> None:
        """Send a frame that is wrong on purpose.

        Args:
            frame: The stimulus.
            field: The one field in which it is wrong.
        """
        self._allow(frame)
        self._note_keepalive(frame)
        self._connection.write(frame.encode(self._dialect.compute), field)

    def send_bytes(self, data: bytes) -> None:
        """Send a piece of a frame, for cases about segmentation."""
        self._connection.write(data)

    def encode(self, frame: Frame) -> bytes:
        """A right frame as bytes, to be sent in pieces."""
        return self._checked(frame)

    def _checked(self, frame: Frame) -> bytes:
        self._allow(frame)
        self._note_keepalive(frame)
        encode = _right_bytes if len(frame.payload) <= SMALL else _judged_bytes
        return encode(frame, self._dialect.compute)

    def _allow(self, frame: Frame) -> None:
        """Keep from a target what it does not serve, and what could change one that is in use."""
        reason = self._left_out.get(feature_of(frame) or "") if self._left_out else None
        if reason is not None:
            raise NotApplicable(reason)
        if self._read_only and may_change(frame):
            raise NotApplicable(f"--read-only: {frame} could change something at the target")

    def _note_keepalive(self, frame: Frame) -> None:
        if frame.flags & _KEEPALIVE:
            self._keepalives_owed += 1

    # -- in ----------------------------------------------------------------------------------------

    def note(self, event: Frame | Violation) -> None:
        """Count the answers to our Keepalives."""
        if isinstance(event, Frame):
            self._keepalives_owed -= event.kind is FrameKind.KEEPALIVE
            self._on_frame(event)

    def ambient(self, event: object) -> bool:
        """Backpressure, and Keepalives that answer none of ours, may come at any time."""
        if not isinstance(event, Frame):
            return False
        unasked = event.kind is FrameKind.KEEPALIVE and self._keepalives_owed < 0
        if unasked:
            self._keepalives_owed = 0
        return unasked or event.kind is FrameKind.BACKPRESSURE

    async def frame(self, *allowed: Allowed) -> Frame:
        """Like `expect`, for alternatives that are all frames."""
        event = await self.expect(*allowed)
        if not isinstance(event, Frame):
            raise KitError(f"{allowed} let {event} pass, which is not a frame")
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


@lru_cache(maxsize=256)
def _right_bytes(frame: Frame, checksum: Checksum) -> bytes:
    """A frame that is sent again and again, as bytes."""
    return _judged_bytes(frame, checksum)


def _judged_bytes(frame: Frame, checksum: Checksum) -> bytes:
    """A frame as bytes, once the strict decoder has agreed that they are right."""
    data = frame.encode(checksum)
    decoder = Decoder(checksum)
    decoder.feed(data)
    seen = decoder.next()
    if not isinstance(seen, Frame) or seen.payload != frame.payload or decoder.pending:
        raise KitError(f"the kit was about to send {frame}, which is not a right frame: {seen}")
    return data
