"""Keepalives of one connection: balance, rate, round-trip time (LWP section 2.3, AMB-23).

Every Keepalive that this side starts is answered once and in order, so answers are matched
with a queue. One that arrives with the queue empty was started by the peer: it is answered,
but at most once a second, so that no two peers can ever drive each other into a storm.
"""

import math
from collections import deque
from collections.abc import Callable

_ANSWER_INTERVAL = 1.0
"""Seconds between two answers to keepalives the peer starts (AMB-23)."""

OnPong = Callable[[float], None]
"""Called with ``now`` when the answer to a keepalive arrives."""


class Keepalive:
    """Decides when a Keepalive is due and what an arriving one means.

    Args:
        interval: quiet seconds after which one is due.
        idle_timeout: silent seconds after which the peer counts as dead.
        now: when the connection was made.

    Attributes:
        rtt: seconds between the last keepalive and its answer; None before the first.
        received: number of keepalives that arrived.
        last_received: when the last bytes arrived.
        last_sent: when the last bytes left.
        owed: whether the peer waits for an answer to a keepalive of its own.
    """

    def __init__(self, interval: float, idle_timeout: float, now: float) -> None:
        self._interval = interval
        self._idle_timeout = idle_timeout
        self._waiting: deque[tuple[float, OnPong | None]] = deque()
        self.last_sent = now
        self._last_answer = -math.inf
        self.owed = False
        self.rtt: float | None = None
        self.received = 0
        self.last_received = now

    def __repr__(self) -> str:
        return f"<Keepalive waiting={len(self._waiting)} owed={self.owed} rtt={self.rtt}>"

    def start(self, now: float, on_pong: OnPong | None = None) -> None:
        """Note that this side starts a keepalive."""
        self._waiting.append((now, on_pong))

    def arrived(self, now: float) -> None:
        """Take a Keepalive frame: the answer to the oldest of ours, or one the peer started."""
        self.received += 1
        if not self._waiting:
            self.owed = True  # a burst is worth one answer: it shows that this side is alive
            return
        sent_at, on_pong = self._waiting.popleft()
        self.rtt = now - sent_at
        if on_pong is not None:
            on_pong(now)

    def answer_due(self, now: float) -> bool:
        """Return whether an answer is to be sent now; if so, count it as sent."""
        if not self.owed or now < self._last_answer + _ANSWER_INTERVAL:
            return False
        self.owed = False
        self._last_answer = now
        return True

    def start_due(self, now: float) -> bool:
        """Return whether this side should start a keepalive now."""
        return now >= self._start_at()

    def dead(self, now: float) -> bool:
        """Return whether the peer has been silent for too long."""
        return now >= self.last_received + self._idle_timeout

    def _start_at(self) -> float:
        if self._waiting:
            return math.inf
        return min(self.last_sent, self.last_received) + self._interval

    def next_deadline(self) -> float:
        """Return when one of the above may change its answer."""
        answer_at = self._last_answer + _ANSWER_INTERVAL if self.owed else math.inf
        return min(answer_at, self._start_at(), self.last_received + self._idle_timeout)
