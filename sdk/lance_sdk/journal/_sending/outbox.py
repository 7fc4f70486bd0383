"""The outbox: frames of a journal for the network, and the network's answers.

No socket, no thread, no protocol: a transport asks for frames and passes answers on
(`lance_sdk.journal.transport`). Acknowledgements may come for all frames up to one, or one by one
in any order; the journal is told the number up to which none is missing.
"""

import math
from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Event, Notice
from lance_sdk.errors import ClosedError
from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal.errors import AckOutOfRange, FrameDamaged
from lance_sdk.journal.rejections import (
    DEFAULT_POLICIES,
    AfterRejection,
    Category,
    Policy,
    Rejection,
    SenderHalted,
    session_ended,
)


class Outgoing(NamedTuple):
    """A frame on its way.

    Attributes:
        fsn: its number.
        payload: its bytes, as they were stored.
        replayed: whether it was sent before on an earlier connection.
    """

    fsn: int
    payload: bytes
    replayed: bool


class DeadLetterSink(Protocol):
    """Where rejected frames go by `Policy.DEAD_LETTER`."""

    def write(self, rejection: Rejection, payload: bytes) -> None:
        """Keep a frame durably; OSError says why that is impossible."""
        ...


class RejectionQueue(Protocol):
    """Where rejections go to be told to the application."""

    def offer(self, rejection: Rejection) -> None:
        """Take a rejection; never wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxLimits:
    """How an outbox treats the network.

    Attributes:
        frames: most frames that are sent and that the server has not taken.
        bytes: most bytes of them; one frame may always be sent.
        policies: what is done about rejections, where it differs from the default.
        defaults: the default, by protocol.
        strikes: so many rejections of one frame make a retry pointless,
        dwell: if they took at least so many seconds.
        ack_timeout: seconds after which a connection on which nothing is acknowledged, although
            something waits, counts as lost.
    """

    frames: int = 64
    bytes: int = 32 << 20
    policies: Mapping[Category, Policy] = field(default_factory=dict)
    defaults: Mapping[Category, Policy] = field(default_factory=lambda: DEFAULT_POLICIES)
    strikes: int = 4
    dwell: float = 5.0
    ack_timeout: float = 60.0


class Milestone(Completion):
    """Settles when every frame up to ``fsn`` is dealt with, or never will be."""

    __slots__ = ("fsn",)

    def __init__(self, fsn: int) -> None:
        super().__init__()
        self.fsn = fsn


class Waiters:
    """Milestones that are not settled yet."""

    def __init__(self) -> None:
        self._waiting: list[Milestone] = []

    def __repr__(self) -> str:
        return f"<Waiters {len(self._waiting)}>"

    def add(self, fsn: int, settled: int, failure: LanceError | None) -> Milestone:
        """Return a milestone; it is settled already where that is so."""
        milestone = Milestone(fsn)
        if settled >= fsn:
            milestone.settle()
        elif failure is not None:
            milestone.settle(None, failure)
        else:
            self._waiting.append(milestone)
        return milestone

    def settle(self, upto: int) -> list[Milestone]:
        """Settle those that are reached; return them, to be announced."""
        reached = [each for each in self._waiting if each.fsn <= upto]
        if reached:
            self._waiting = [each for each in self._waiting if each.fsn > upto]
        return [each for each in reached if each.settle()]

    def fail(self, error: LanceError) -> list[Milestone]:
        """Settle all of them with an error; return them, to be announced."""
        waiting, self._waiting = self._waiting, []
        return [each for each in waiting if each.settle(None, error)]


@dataclass(slots=True)
class OutboxCounters:
    """What an outbox counts; see `lance_sdk.journal._sending.sender.SenderStats`."""

    connects: int = 0
    sent: int = 0
    replayed: int = 0
    acks: int = 0
    acked: int = 0
    rejections: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    last_error: str = ""


_RETRIES: Final = {Policy.RETRY, Policy.RETRY_OTHER}


class RejectionPolicy:
    """Counts rejections for each frame, and says when retrying one has become pointless.

    Strikes belong to a frame, so that rejections of others in between do not hide a poisonous
    one; and they must have taken their time, so that a short outage never halts a sender.

    Args:
        limits: policies, strikes and dwell.
    """

    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._policies = {**limits.defaults, **limits.policies}
        self._strikes: dict[int, tuple[int, float]] = {}

    def __repr__(self) -> str:
        return f"<RejectionPolicy of {len(self._strikes)} rejected frames>"

    def policy(self, rejection: Rejection, now: float) -> tuple[int, Policy]:
        """Return how often a frame was rejected, this time included, and what is done."""
        strikes, since = self._strikes.get(rejection.first_fsn, (0, now))
        strikes += 1
        self._strikes[rejection.first_fsn] = (strikes, since)
        policy = self._policies[rejection.category]
        limits = self._limits
        poisonous = strikes >= limits.strikes and now - since >= limits.dwell
        return strikes, Policy.HALT if policy in _RETRIES and poisonous else policy

    def forget(self, fsn: int) -> None:
        """Drop the strikes of a frame that is dealt with."""
        self._strikes.pop(fsn, None)


__all__ = ["Outbox", "OutboxLimits"]

_TRY_AGAIN: Final = 1.0
"""Seconds after which a segment that could not be read is tried again."""
_SPREAD: Final = 64
"""So many windows may be answered after a frame that is not, so that memory has a bound."""
_GIVES_UP: Final = {Policy.DEAD_LETTER, Policy.DROP}


class Outbox:
    """Frames out, answers in.

    Args:
        journal: where the frames are.
        limits: windows and policies.
        inbox: is told of every rejection.
        dead_letters: where frames go by `Policy.DEAD_LETTER`; None halts instead.
        backoff: reset upon acknowledgements; the transport's delays come from it.
        wall_clock: seconds since the Unix epoch.

    Attributes:
        journal: where the frames are.
        limits: windows and policies.
        backoff: delays of the transport, started over by acknowledgements.
        events: settled waiters and notices, shared with the transport.
        online: whether a connection may carry frames.
        idle: whether `next_frame` found nothing; whoever appends then wakes the driver.
        failure: why nothing is sent any more, or None.
        counters: what was counted.
        careful_until: up to this frame, one is sent at a time; see `be_careful`.
        exactly_once: whether the server at hand states that it stores a repeated frame once; None
            while that is not known.
        observer: called with each frame that is dealt with, and why it was given up or None.
    """

    def __init__(
        self,
        journal: Journal,
        limits: OutboxLimits,
        inbox: RejectionQueue,
        dead_letters: DeadLetterSink | None,
        *,
        backoff: Backoff,
        wall_clock: Callable[[], float],
    ) -> None:
        self.journal = journal
        self.limits = limits
        self._inbox = inbox
        self._dead_letters = dead_letters
        self.backoff = backoff
        self._wall = wall_clock
        self._reader: Iterator[tuple[int, bytes]] | None = None
        self._end = 0
        self._cursor = journal.acked_fsn + 1
        self._highest = journal.acked_fsn
        self._sent_before = journal.next_fsn - 1
        self._unsettled: OrderedDict[int, int] = OrderedDict()
        self._untaken: OrderedDict[int, int] = OrderedDict()
        self._done: set[int] = set()
        self._again: list[int] = []
        self._sent_now = -1
        self._in_flight_bytes = 0
        self._rejection_policy = RejectionPolicy(limits)
        self._waiters = Waiters()
        self._stalled_until = -math.inf
        self.careful_until = -1
        self.exactly_once: bool | None = None
        self.observer: Callable[[int, Rejection | None], None] | None = None
        self.events: list[Event] = []
        self.online = False
        self.idle = False
        self.failure: LanceError | None = None
        self.counters = OutboxCounters()

    def __repr__(self) -> str:
        return (
            f"<Outbox next={self._cursor} in_flight={len(self._unsettled)} "
            f"settled={self.settled_fsn} online={self.online} failure={self.failure!r}>"
        )

    # Where things stand

    @property
    def settled_fsn(self) -> int:
        """Every frame up to this number is acknowledged, or given up by policy."""
        return next(iter(self._unsettled), self._cursor) - 1

    @property
    def in_flight(self) -> int:
        """Frames that were sent on this connection and not answered."""
        return len(self._unsettled)

    @property
    def drained(self) -> bool:
        """Whether every frame in the journal is dealt with."""
        return not self._unsettled and self._cursor >= self.journal.next_fsn

    # What the transport calls

    def connected(self, now: float) -> None:
        """A connection may carry frames; sending starts at the first that is not settled."""
        del now
        self._rewind()
        self._sent_before = max(self._sent_before, self._highest)
        self.online = True
        self.counters.connects += 1

    def disconnected(self, now: float) -> None:
        """The connection is gone; what was sent and not answered will be sent again."""
        del now
        self.online = self.idle = False
        self._rewind()

    def be_careful(self) -> None:
        """Send again what is in flight, one frame at a time.

        For servers whose errors do not say which frame they are about (AMB-10): alone on the
        wire, it can only be that one.
        """
        self.careful_until = max(self.careful_until, self._highest)
        self._rewind()

    def _rewind(self) -> None:
        self._cursor = self.settled_fsn + 1
        self._sent_now = self._cursor - 1
        self._unsettled.clear()
        self._untaken.clear()
        self._again.clear()
        self._in_flight_bytes = 0
        self._reader = None

    def again(self, fsn: int) -> None:
        """Send a frame again on this connection: the server refused it for the moment."""
        if fsn in self._unsettled and fsn not in self._again:
            insort(self._again, fsn)

    def next_frame(self, now: float) -> Outgoing | None:
        """Return the next frame that may be sent, or None for now."""
        if self.failure is not None or now < self._stalled_until:
            return None
        if self._again:
            return self._reread(now)
        found = self._read(now) if self._has_room() else None
        if found is None:
            return None
        fsn, payload = found
        self._cursor = fsn + 1
        self._sent_now = fsn
        self._unsettled[fsn] = self._untaken[fsn] = len(payload)
        self._in_flight_bytes += len(payload)
        replayed = fsn <= self._highest
        self._highest = max(self._highest, fsn)
        self.counters.sent += 1
        self.counters.replayed += replayed
        return Outgoing(fsn, payload, replayed)

    def _reread(self, now: float) -> Outgoing | None:
        try:
            fsn, payload = next(self.journal.read_from(self._again[0]))
        except FrameDamaged as damaged:
            self._skip_damaged(damaged, now)
            return None
        except OSError as error:
            self._stall(error, now)
            return None
        del self._again[0]
        self.counters.sent += 1
        self.counters.replayed += 1
        return Outgoing(fsn, payload, True)

    def _has_room(self) -> bool:
        """Whether the window has room: it counts what was sent and not taken, nothing else."""
        if self._unsettled and next(iter(self._unsettled)) <= self.careful_until:
            return False
        if not self._untaken:
            return True
        limits = self.limits
        if self._cursor - next(iter(self._untaken)) >= limits.frames * _SPREAD:
            return False
        return len(self._untaken) < limits.frames and self._in_flight_bytes < limits.bytes

    def _read(self, now: float) -> tuple[int, bytes] | None:
        while True:
            self.idle = False
            if self._reader is None:
                self._end = self.journal.next_fsn
                if self._cursor >= self._end:
                    self.idle = True
                    if self._cursor >= self.journal.next_fsn:  # else a frame came in between
                        return None
                    continue
                self._reader = self.journal.read_from(self._cursor)
            try:
                found = next(self._reader)
                if found[0] >= self._cursor and found[0] not in self._done:
                    return found
            except StopIteration:
                self._reader = None
                self._cursor = max(self._cursor, self._end)  # numbers that no frame has any more
                self._advance()
            except FrameDamaged as damaged:
                self._reader = None
                self._skip_damaged(damaged, now)
                if self.failure is not None:
                    return None
            except OSError as error:
                self._reader = None
                self._stall(error, now)
                return None

    def _stall(self, error: OSError, now: float) -> None:
        if self._stalled_until == -math.inf:
            self.events.append(Notice(f"a segment cannot be read and is tried again: {error}"))
        self._stalled_until = now + _TRY_AGAIN

    def _skip_damaged(self, damaged: FrameDamaged, now: float) -> None:
        """Go on after a frame that cannot be sent any more."""
        rejection = Rejection(
            category=Category.DAMAGED,
            message=str(damaged),
            first_fsn=damaged.fsn,
            last_fsn=damaged.fsn,
        )
        self._cursor = max(self._cursor, damaged.fsn)
        self._unsettled.setdefault(damaged.fsn, 0)
        self.rejected(rejection, now)

    def next_deadline(self) -> float:
        """Return when `next_frame` may have something that it did not have before."""
        return math.inf if self._stalled_until == -math.inf else self._stalled_until

    def handle_timeout(self, now: float) -> None:
        """Try again to read what could not be read."""
        if now >= self._stalled_until:
            self._stalled_until = -math.inf

    def acked(self, fsn: int, now: float) -> None:
        """The server has every frame up to ``fsn``.

        Raises:
            AckOutOfRange: not so many were sent on this connection (SF-35).
        """
        if not 0 <= fsn <= self._sent_now:
            raise AckOutOfRange(fsn, self._sent_now)
        covered = list(takewhile(lambda each: each <= fsn, self._unsettled))
        for each in covered:
            self._forget(each)
        self._progressed(len(covered), now)

    def taken(self, fsn: int) -> None:
        """The server has every frame up to ``fsn``, and has yet to say that they are safe.

        They make room for others on the way.
        """
        for each in list(takewhile(lambda number: number <= fsn, self._untaken)):
            self._in_flight_bytes -= self._untaken.pop(each)

    def settled(self, fsn: int, now: float) -> None:
        """The server has this frame.

        Raises:
            AckOutOfRange: it was never sent (SF-35); one that is settled already is not an error.
        """
        if not 0 <= fsn <= self._highest:
            raise AckOutOfRange(fsn, self._highest)
        if fsn in self._unsettled:
            self._forget(fsn)
            self._progressed(1, now)

    def _forget(self, fsn: int, rejection: Rejection | None = None) -> None:
        del self._unsettled[fsn]
        self._in_flight_bytes -= self._untaken.pop(fsn, 0)
        self._rejection_policy.forget(fsn)
        self._done.add(fsn)
        if fsn in self._again:
            self._again.remove(fsn)
        if self.observer is not None:
            self.observer(fsn, rejection)

    def _progressed(self, frames: int, now: float) -> None:
        del now
        if not frames:
            return
        self.counters.acks += 1
        self.counters.acked += frames
        self.backoff.reset()
        self._advance()

    def _advance(self) -> None:
        """Tell the journal and the waiters how far everything is dealt with."""
        while self._cursor in self._done:
            self._cursor += 1
        settled = self.settled_fsn
        self._done = {fsn for fsn in self._done if fsn > settled}
        upto = min(settled, self._highest)
        if upto > self.journal.acked_fsn:
            self.journal.ack(upto)
        self.events += self._waiters.settle(settled)

    def rejected(
        self, rejection: Rejection, now: float, *, policy: Policy | None = None
    ) -> AfterRejection:
        """The server refuses frames; return what the transport does next.

        Where the policy gives a frame up, it counts as dealt with from here on.

        Args:
            rejection: which frames, and why.
            now: the time.
            policy: what is done about it, where that is not decided by its category.
        """
        self.counters.rejections += 1
        strikes, judged = self._rejection_policy.policy(rejection, now)
        policy = policy or judged
        told = replace(
            rejection,
            policy=policy,
            strikes=strikes,
            at=self._wall(),
            maybe_stored=rejection.first_fsn <= min(rejection.last_fsn, self._sent_before),
        )
        if policy in _GIVES_UP:
            told = self._give_up(told)
        self._inbox.offer(told)
        self.counters.last_error = str(told)
        if told.policy is Policy.HALT:
            self.failed(SenderHalted(told))
            return AfterRejection.HALT
        if told.policy in _GIVES_UP:
            self._advance()
            return AfterRejection.CONTINUE
        elsewhere = told.policy is Policy.RETRY_OTHER
        return AfterRejection.RECONNECT_ELSEWHERE if elsewhere else AfterRejection.RECONNECT

    def _give_up(self, rejection: Rejection) -> Rejection:
        """Do without the rejected frames, or halt where the dead-letter file does not take them."""
        frames = [
            fsn for fsn in self._unsettled if rejection.first_fsn <= fsn <= rejection.last_fsn
        ]
        if rejection.policy is Policy.DEAD_LETTER:
            try:
                self._bury(rejection, frames)
            except (OSError, FrameDamaged) as error:
                text = f"{rejection.message}; it cannot be kept as a dead letter: {error}"
                return replace(rejection, policy=Policy.HALT, message=text)
            self.counters.dead_lettered += len(frames)
        else:
            self.counters.dropped += len(frames)
        for fsn in frames:
            self._forget(fsn, rejection)
        if frames:
            self._cursor = max(self._cursor, frames[-1] + 1)
            self._highest = max(self._highest, frames[-1])
        return rejection

    def _bury(self, rejection: Rejection, frames: list[int]) -> None:
        if self._dead_letters is None:
            raise OSError("there is no place for dead letters; set dead_letter_dir")
        for fsn in frames:
            _, payload = next(self.journal.read_from(fsn))
            self._dead_letters.write(replace(rejection, first_fsn=fsn, last_fsn=fsn), payload)

    # What the client calls

    def milestone(self, fsn: int) -> Milestone:
        """Return an outcome that settles when every frame up to ``fsn`` is dealt with."""
        return self._waiters.add(fsn, self.settled_fsn, self.failure)

    def failed(self, error: LanceError) -> None:
        """Send nothing more; whoever waits is told."""
        if self.failure is not None:
            return
        self.failure = error
        if not isinstance(error, ClosedError | SenderHalted):
            self._tell_failure(error)
        self.events += self._waiters.fail(error)

    def _tell_failure(self, error: LanceError) -> None:
        """Tell the handler of an end that no single frame caused."""
        last = self.journal.next_fsn - 1
        self.counters.rejections += 1
        self.counters.last_error = str(error)
        self._inbox.offer(session_ended(error, self.settled_fsn + 1, last, self._wall()))
