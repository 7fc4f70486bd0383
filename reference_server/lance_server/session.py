"""One connection, without its socket: frames in, answers out, in order (AMB-28).

Ingest frames are stored as they come and answered when they are durable. A command is carried
out when everything before it has been answered, and what comes after it waits: the order of
receipt is the order of effects.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from lance_server.answer_queue import AnswerQueue
from lance_server.answers import Answer, error_frame
from lance_server.commands import Commands
from lance_server.config import ServerConfig
from lance_server.ingest import Ingest
from lance_server.keepalive import KeepaliveGate
from lance_server.log.engine import Engine
from lance_server.outcome import Outcome
from lance_server.pushing import Subscriptions
from lance_server.refusals import Refusal
from lance_server.stats import Counters
from lance_spec.checksum import Buffer
from lance_spec.dialect import Dialect
from lance_spec.enums import ErrorCode, Flag
from lance_spec.frames import (
    FaultKind,
    Frame,
    FrameKind,
    FrameSplitter,
    encode_backpressure,
    encode_keepalive,
)

STALL_AFTER: Final = 1.0
"""Seconds that the disk may take before the client is told to slow down (AMB-28)."""

STALL_REPEAT: Final = 5.0
"""Seconds after which it is told again: the frame also shows that the server is alive."""

_FRAME_COST: Final = 256
"""What a frame that waits costs beside its payload, in bytes of memory."""

_MIN_RATE: Final = 16 * 1024
"""Bytes per second below which an unfinished frame counts as stalled."""


class Session:
    """The protocol state of one connection. It owns neither a clock nor a socket.

    Args:
        engine: the log.
        config: limits.
        dialects: what the peer may speak.
        counters: the server's totals.
        wake: called when `advance` may have something to do.
        now: the current time in seconds.

    Attributes:
        writable: whether the socket takes more; set by whoever owns it.
        closing: why the connection is to be closed once `data_to_send` is written, or None.
    """

    def __init__(
        self,
        engine: Engine,
        config: ServerConfig,
        dialects: tuple[Dialect, ...],
        counters: Counters,
        *,
        wake: Callable[[], None],
        now: float,
    ) -> None:
        self._config = config
        self._counters = counters
        self._wake = wake
        self._splitter = FrameSplitter(dialects)
        self._subscriptions = Subscriptions(engine, counters, wake)
        self._commands = Commands(engine, counters, self._subscriptions)
        self._ingest = Ingest(engine, counters)
        self._gate = KeepaliveGate(now)
        self._answers = AnswerQueue(counters)
        self._held: deque[Frame] = deque()
        self._held_bytes = 0
        self._ending = False
        self._fault_seen = False
        self._last_frame_at = now
        self._received_since = 0
        self._progress_at = now
        self._stalled_at: float | None = None
        self.writable = True
        self.closing: str | None = None

    def __repr__(self) -> str:
        state = self.closing or ("ending" if self._ending else "open")
        return (
            f"<Session {state} dialect={self._splitter.dialect} {self._answers!r} "
            f"held={len(self._held)} owed={self._owed_bytes} bytes>"
        )

    # What the owner of the socket asks ---------------------------------------------------------

    @property
    def owed(self) -> bool:
        """Whether the peer still waits for answers."""
        return bool(self._answers or self._held)

    @property
    def wants_data(self) -> bool:
        """Whether more may be read from the socket."""
        open_to_more = self.closing is None and not self._ending
        return open_to_more and self.writable and self._owed_bytes < self._config.max_unacked_bytes

    @property
    def partial_bytes(self) -> int:
        """Bytes held of a frame that has not arrived whole."""
        return self._splitter.pending

    @property
    def _owed_bytes(self) -> int:
        return self._answers.owed_bytes + self._held_bytes

    def data_to_send(self) -> list[Answer]:
        """Return what is to be written now, and forget it."""
        return self._answers.take_ready()

    # What happens ------------------------------------------------------------------------------

    def receive_data(self, data: Buffer, now: float) -> None:
        """Take bytes from the socket; they may be overwritten afterwards."""
        frames = self._splitter.receive_data(data)
        self._received_since += len(data)
        if frames:
            self._last_frame_at = now
            self._received_since = 0
            self._counters.frames_in += len(frames)
            for frame in frames:
                if self._held or self._answers.command_running:
                    self._hold(frame, now)
                else:
                    self._handle(frame, now)
        if self._splitter.fault is not None and not self._fault_seen:
            self._on_fault()
        self.advance(now)

    def end_of_stream(self, now: float) -> None:
        """Note that nothing more is read; what was received is still answered."""
        self._ending = True
        self.advance(now)

    def advance(self, now: float) -> None:
        """Make the answers ready that can be, and begin what waited for them."""
        while self._splitter.proven:
            if self._answers.collect(self._dialect):
                self._progress_at = now
                self._stalled_at = None
            if self._answers or not self._held or not self._has_room():
                break
            frame = self._held.popleft()
            self._held_bytes -= _cost(frame)
            self._handle(frame, now)
        self._push()
        if self._ending and not self.owed and self.closing is None:
            self._last_words()

    def tick(self, now: float) -> None:
        """Do what time alone brings about: late keepalives, stalls, the idle timeout."""
        if self._splitter.proven:
            for _ in range(self._gate.due(now)):
                self._answers.send(encode_keepalive(self._dialect))
            if self._answers and now - self._progress_at >= STALL_AFTER:
                self._on_stall(now)
        self._close_if_idle(now)

    def close(self, reason: str) -> None:
        """Stop serving; answers that are not ready are never sent."""
        if self.closing is None:
            self.closing = reason
        self._subscriptions.clear()
        self._answers.drop_waiting()
        self._held.clear()
        self._held_bytes = 0

    # Frames ------------------------------------------------------------------------------------

    def _hold(self, frame: Frame, now: float) -> None:
        """Keep a frame until what came before it is done."""
        if frame.kind is FrameKind.KEEPALIVE and self._may_overtake():
            self._keepalive(now)
            return
        frame.payload = memoryview(bytes(frame.payload))
        self._held.append(frame)
        self._held_bytes += _cost(frame)

    def _handle(self, frame: Frame, now: float) -> None:
        if not self._answers:
            self._progress_at = now
        kind = frame.kind
        if kind is FrameKind.INGEST:
            self._take_batch(frame)
        elif kind is FrameKind.CONTROL:
            self._take_command(frame, now)
        elif kind is FrameKind.KEEPALIVE:
            self._keepalive(now)
        elif kind is FrameKind.AMBIGUOUS:
            self._answers.add_error(self._dialect, _ambiguous(frame.flags), _batch_of(frame))
        elif kind is FrameKind.NONE and frame.payload:
            self._answers.add_error(self._dialect, _no_kind(), None)
        else:
            self._counters.ignored_frames += 1

    def _take_batch(self, frame: Frame) -> None:
        try:
            outcome = self._ingest.accept(frame, self._dialect)
        except Refusal as refusal:
            self._answers.add_error(self._dialect, refusal, frame.batch_id)
            return
        if outcome is not None and self._answers.add_batch(outcome, frame.batch_id, _cost(frame)):
            outcome.wake_later(self._wake)

    def _take_command(self, frame: Frame, now: float) -> None:
        self._answers.collect(self._dialect)
        if self._answers or not self._has_room():
            self._hold(frame, now)
            return
        try:
            answer = self._commands.execute(frame, self._dialect)
        except Refusal as refusal:
            self._answers.add_error(self._dialect, refusal, None)
            return
        if isinstance(answer, Outcome):
            self._answers.add_command(answer, _FRAME_COST)
            answer.wake_later(self._wake)
        else:
            self._answers.send(answer)

    def _keepalive(self, now: float) -> None:
        if not self._gate.admit(now):
            self._counters.keepalives_deferred += 1
        elif self._may_overtake():
            self._answers.send(encode_keepalive(self._dialect))
        else:
            self._answers.add(encode_keepalive(self._dialect))

    def _push(self) -> None:
        """Send subscribers what there is, as far as the socket takes it (AMB-21)."""
        while self._subscriptions and self.closing is None and self._has_room():
            frame = self._subscriptions.next_push(self._dialect)
            if frame is None:
                break
            self._answers.send(frame)

    @property
    def _dialect(self) -> Dialect:
        dialect = self._splitter.dialect
        assert dialect is not None, "a frame has arrived: its header proved a dialect"
        return dialect

    def _has_room(self) -> bool:
        return self.writable and self._answers.has_room

    # Time --------------------------------------------------------------------------------------

    def _may_overtake(self) -> bool:
        """Whether keepalives may pass answers that wait for the disk (AMB-28)."""
        return self._stalled_at is not None and self._dialect.strict

    def _on_stall(self, now: float) -> None:
        """Tell the client to slow down, and let its keepalives through."""
        if self._stalled_at is not None and now - self._stalled_at < STALL_REPEAT:
            return
        self._stalled_at = now
        self._counters.backpressure += 1
        self._answers.send(encode_backpressure(self._dialect))
        if self._may_overtake():
            self._answers.let_pass(encode_keepalive(self._dialect))
            waiting = list(self._held)
            self._held.clear()
            self._held_bytes = 0
            for frame in waiting:
                self._hold(frame, now)

    def _close_if_idle(self, now: float) -> None:
        """Close when no frame arrives; an unfinished one must at least grow (AMB-17)."""
        idle = self._config.idle_timeout
        if self.owed or self.closing is not None or now - self._last_frame_at < idle:
            return
        if self._received_since >= idle * _MIN_RATE:
            self._last_frame_at = now
            self._received_since = 0
            return
        self._counters.idle_closed += 1
        self.close(f"no frame for {idle:g} s")

    # The end -----------------------------------------------------------------------------------

    def _on_fault(self) -> None:
        """End a stream that broke a rule: with a word when it was a size, else without."""
        fault = self._splitter.fault
        assert fault is not None, "called when there is one"
        self._fault_seen = True
        self._counters.protocol_faults += 1
        if fault.kind is FaultKind.OVERSIZE and self._dialect.strict:
            self._ending = True
            return
        if self._splitter.proven:
            self._answers.collect(self._dialect)
        self.close(f"protocol fault: {fault}")

    def _last_words(self) -> None:
        """Everything is answered: say why the connection ends, if there is something to say."""
        fault = self._splitter.fault
        if fault is None:
            self.close("nothing more is read from it")
            return
        self._counters.errors += 1
        refusal = Refusal(ErrorCode.PAYLOAD_TOO_LARGE, f"Payload too large: {fault}")
        batch_id = None if fault.header is None else _batch_of(fault.header)
        self._answers.send(error_frame(self._dialect, refusal, batch_id))
        self.close(f"protocol fault: {fault}")


def _cost(frame: Frame) -> int:
    return len(frame.payload) + _FRAME_COST


def _batch_of(frame: Frame) -> int | None:
    """Return the batch id of a frame that claims to carry records."""
    return frame.batch_id if frame.flags & Flag.BATCH_MODE else None


def _ambiguous(flags: int) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_PAYLOAD, f"Flags {flags:#04x} name more than one kind of frame"
    )


def _no_kind() -> Refusal:
    return Refusal(ErrorCode.INVALID_PAYLOAD, "A frame with a payload must have a kind flag")
