"""Frames sent besides responses: keepalives, never in a storm, and the advice to slow down.

AMB-23, AMB-28 and AMB-35.
"""

from typing import Final

from lance_server.lwp.flow_control.stall_detector import StallDetector
from lance_server.lwp.response_queue import ResponseQueue
from lance_server.telemetry.counters import Counters
from lance_spec.dialect import Dialect
from lance_spec.frames import encode_backpressure, encode_keepalive

_BURST: Final = 256


class KeepaliveGate:
    """Lets a burst of keepalives be answered at once, and beyond it one a second.

    None is dropped: those that are late are counted and handed out by `due`.

    Args:
        now: the current time in seconds.
        burst: how many may be answered at once after a quiet time.
    """

    def __init__(self, now: float, burst: int = _BURST) -> None:
        self._burst = burst
        self._allowed = float(burst)
        self._updated = now
        self.deferred = 0

    def __repr__(self) -> str:
        return f"<KeepaliveGate {self._allowed:.1f} of {self._burst}, {self.deferred} deferred>"

    def admit(self, now: float) -> bool:
        """Return whether a keepalive that arrived now is answered now."""
        self._refill(now)
        if self.deferred or self._allowed < 1:
            self.deferred += 1
            return False
        self._allowed -= 1
        return True

    def due(self, now: float) -> int:
        """Return how many deferred keepalives are to be answered now."""
        self._refill(now)
        ready = min(self.deferred, int(self._allowed))
        self.deferred -= ready
        self._allowed -= ready
        return ready

    def _refill(self, now: float) -> None:
        self._allowed = min(self._burst, self._allowed + max(0.0, now - self._updated))
        self._updated = max(self._updated, now)


class Heartbeat:
    """Keeps a connection's time: it knows when a keepalive may pass what waits for the disk.

    Args:
        answers: where everything is queued.
        counters: what is counted.
        stall_detector: how fast answers come.
        now: the current time in seconds.
    """

    def __init__(
        self, answers: ResponseQueue, counters: Counters, stall_detector: StallDetector, now: float
    ) -> None:
        self._answers = answers
        self._counters = counters
        self._stall_detector = stall_detector
        self._gate = KeepaliveGate(now)

    def __repr__(self) -> str:
        return f"<Heartbeat {self._gate!r} {self._stall_detector!r}>"

    @property
    def owes_keepalives(self) -> bool:
        """Whether keepalives wait to be answered."""
        return self._gate.deferred > 0

    def keepalive(self, dialect: Dialect, now: float) -> None:
        """Answer a keepalive, now or later."""
        self._counters.keepalives += 1
        if not self._gate.admit(now):
            self._counters.keepalives_deferred += 1
        elif self.may_overtake(dialect):
            self._answers.send(encode_keepalive(dialect))
        else:
            self._answers.add(encode_keepalive(dialect))

    def may_overtake(self, dialect: Dialect) -> bool:
        """Whether keepalives may pass answers that wait for the disk (AMB-28)."""
        return self._stall_detector.is_stalled and dialect.strict

    def warn(self, dialect: Dialect, now: float) -> None:
        """Tell the client to slow down, unless it was told a moment ago (AMB-35)."""
        if self._stall_detector.may_warn(now):
            self._counters.backpressure += 1
            self._answers.send(encode_backpressure(dialect))

    def tick(self, dialect: Dialect, now: float, *, pressure: bool) -> bool:
        """Send late keepalives and advice; return whether keepalives begin to pass answers.

        Args:
            dialect: the peer's.
            now: the current time in seconds.
            pressure: whether the server is short of something.
        """
        for _ in range(self._gate.due(now)):
            self._answers.send(encode_keepalive(dialect))
        overtakes = False
        if self._answers and self._stall_detector.stalls(now):
            self.warn(dialect, now)
            if overtakes := self.may_overtake(dialect):
                self._answers.let_pass(encode_keepalive(dialect))
        if pressure and self._stall_detector.is_producer(now):
            self.warn(dialect, now)
        return overtakes
