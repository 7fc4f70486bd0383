"""What an outbox is given, and what it counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lance_sdk._core.outcome import Outcome
from lance_sdk._tree import LanceError
from lance_sdk.journal.rejections import DEFAULT_POLICIES, Category, Policy, Rejection

__all__ = ["DeadLetters", "Inbox", "Milestone", "OutboxCounters", "OutboxLimits", "Waiters"]


class DeadLetters(Protocol):
    """Where rejected frames go by `Policy.DEAD_LETTER`."""

    def write(self, rejection: Rejection, payload: bytes) -> None:
        """Keep a frame durably; OSError says why that is impossible."""
        ...


class Inbox(Protocol):
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


class Milestone(Outcome):
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
    """What an outbox counts; see `lance_sdk.journal.sender.SenderStats`."""

    connects: int = 0
    sent: int = 0
    replayed: int = 0
    acks: int = 0
    acked: int = 0
    rejections: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    last_error: str = ""
