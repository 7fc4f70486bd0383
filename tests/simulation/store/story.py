"""What a run is made of: the world, the disk, the store, and what was promised so far."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.model import Batch, State, TopicModel, ViolationError
from tests.simulation.run import PlanRun
from tests.simulation.store.life import DATA_DIR, Life
from tests.simulation.store.plan import StorePlan

from lance_server.log.log_manager import LogManager
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal

_BUSY_STEPS: Final = (1, 12, 60)
"""Turns of threads between two operations, at most, where nobody waits."""
_BUSY_SECONDS: Final = (0.0, 0.0, 0.001, 0.01)
"""Likewise the time."""
_REOPENING: Final = 30.0
"""Seconds after which a topic must take batches again that the disk does not refuse any more."""


@dataclass(slots=True)
class Result:
    """What came of a run.

    Attributes:
        violation: the promise that was broken, or None.
        operations: how many were carried out.
        acknowledged: batches that were.
        crashes: kills and losses of power.
        starts: how often the store was opened.
        fired: faults that happened, by what they were.
        planned: faults that were planned.
    """

    violation: str | None = None
    operations: int = 0
    acknowledged: int = 0
    crashes: int = 0
    starts: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    planned: int = 0


class Story(PlanRun[Result]):
    """The state of a run, and how its parts reach the store.

    Args:
        plan: what happens.

    Attributes:
        life: the store, while it runs.
        stopped: how a fault has ended it, until that was noted.
        topics: those that are or may be there, by id.
        creating: those whose creation was not answered yet, by name.
        batches: all that were sent.
        number: of the last batch or commit.
        jumped: whether the wall clock jumped.
        calm: whether no trouble was planned so far.
        clean: whether the last stop was a clean one.
        closing: whether a clean stop was asked for.
        killed: whether the store ran when it was stopped last.
        healed_at: when the last trouble ended: what was asked before may still fail for it.
    """

    def __init__(self, plan: StorePlan) -> None:
        super().__init__(plan, Result(), DATA_DIR)
        self.data_dir = DATA_DIR
        self.life: Life | None = None
        self.stopped: str | None = None
        self.topics = {0: TopicModel("default", 0, present=True)}
        self.creating: dict[str, TopicModel] = {}
        self.batches: list[tuple[TopicModel, Batch]] = []
        self.number = 0
        self.jumped = False
        self.calm = True
        self.clean = False
        self.killed = False
        self.closing = False
        self.healed_at = 0.0

    def _all_topics(self) -> list[TopicModel]:
        return [*self.topics.values(), *self.creating.values()]

    def _in_trouble(self) -> bool:
        """Whether something is to be expected to go wrong."""
        return (
            self.disk.room is not None
            or self.disk.read_only
            or any(fault.struck for fault in self.faults)
        )

    def _topic(self, slot: int) -> TopicModel | None:
        """Return one of the topics that are certainly there."""
        present = [topic for topic in self.topics.values() if topic.present]
        return present[slot % len(present)] if present else None

    def _post(self, job: Callable[[Life, LogManager], None]) -> None:
        """Have something done on the loop's thread, and let threads go on for a while."""
        life = self.life
        if life is None or life.engine is None:
            return
        engine = life.engine
        life.loop.post(lambda: None if life.mount.dead else job(life, engine))
        random = self.world.random
        self.world.run(
            steps=random.randrange(random.choice(_BUSY_STEPS)),
            until=self.world.now + random.choice(_BUSY_SECONDS),
        )

    def _with_topic(self, slot: int, work: Callable[[LogManager, Topic], None]) -> None:
        model = self._topic(slot)
        if model is not None:
            self._on(model, work)

    def _on(self, model: TopicModel, work: Callable[[LogManager, Topic], None]) -> None:
        def job(_: Life, engine: LogManager) -> None:
            found = engine.find(model.id if model.id is not None else -1)
            if found is not None:
                work(engine, found)

        self._post(job)

    def _state_after(self, error: Exception, asked_at: float) -> State:
        """Return what a client knows after an error."""
        if not isinstance(error, Refusal):
            problem = f"a request failed with {type(error).__name__}: {error}"
            self.trouble.append(ViolationError(problem))
            return State.UNKNOWN
        excused = asked_at <= self.healed_at or "failed repeatedly" in error.message
        if "tried again until the disk" in error.message:  # a topic opens again after a pause
            excused = asked_at <= self.healed_at + _REOPENING
        if not self._in_trouble() and not excused and "Topic" not in error.message:
            self.trouble.append(ViolationError(f"a healthy disk refused: {error!r}"))
        stored_nothing = error.message.startswith("Nothing was stored")
        return State.REFUSED if stored_nothing or "Topic" in error.message else State.UNKNOWN
