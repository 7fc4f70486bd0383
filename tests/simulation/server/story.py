"""What a run of the whole server has: its world, its disk, its peers, and what came of it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.simulation.model import TopicModel, ViolationError
from tests.simulation.run import PlanRun
from tests.simulation.server.peers import LwpPeer, Peer
from tests.simulation.server.plan import ServerPlan
from tests.simulation.store.life import DATA_DIR

if TYPE_CHECKING:
    from tests.simulation.server.server import ServerLife
    from tests.simulation.server.written import Written

_LOOK: Final = 0.02
"""Seconds between two looks at whether something has happened."""
_MOST_PIECES: Final = 700
"""Answers that one peer may get in one turn of the event loop, before the others have theirs."""


@dataclass(slots=True)
class ServerResult:
    """What came of a run.

    Attributes:
        violation: the promise that was broken, or None.
        operations: how many were carried out.
        acknowledged: batches that were.
        answers: answers that were judged.
        starts: how often the server was started.
        crashes: kills and losses of power.
        floods: attacks.
        fired: faults that happened, by what they were.
    """

    violation: str | None = None
    operations: int = 0
    acknowledged: int = 0
    answers: int = 0
    starts: int = 0
    crashes: int = 0
    floods: int = 0
    fired: Counter[str] = field(default_factory=Counter)


class ServerStory(PlanRun[ServerResult]):
    """A run.

    Args:
        plan: what happens.

    Attributes:
        life: the server, while it runs.
        topics: by id.
        good: the peers that behave.
        attackers: the others.
        written: what peers of other listeners write to, by name.
        streams: those of them that Fluvio's peers have created.
    """

    def __init__(self, plan: ServerPlan) -> None:
        super().__init__(plan, ServerResult(), DATA_DIR)
        self.life: ServerLife | None = None
        self.topics = {0: TopicModel("default", 0, present=True)}
        self.good = [LwpPeer(self, number) for number in range(3)]
        self.attackers: list[Peer] = []
        self.written: dict[str, Written] = {}
        self.streams: list[Written] = []
        self._mine: dict[Peer, TopicModel] = {}
        self._number = 0
        self._stopped: str | None = None
        self._troubled_until = 0.0
        self._calm = False

    def _check(self) -> None:
        super()._check()
        for transport in [] if self.life is None else self.life.transports:
            if transport.most_pieces > _MOST_PIECES:
                raise ViolationError(
                    f"one peer got {transport.most_pieces} answers in a turn of the event loop"
                )

    def _in_trouble(self) -> bool:
        return any(fault.struck for fault in self.faults) or self.world.now < self._troubled_until

    def _run_until(self, happened: Callable[[], bool], seconds: float) -> None:
        """Let things go on until something has happened, or for so long."""
        until = self.world.now + seconds
        while self.world.now < until and self._stopped is None and not happened():
            self.world.run(until=min(until, self.world.now + _LOOK))
