"""Carrying out a plan, and judging what comes of it."""

import gc
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.disk import File, Folder, Move, SimDisk
from tests.simulation.faults import STOPS, Fault
from tests.simulation.model import (
    Batch,
    Reading,
    State,
    TopicModel,
    ViolationError,
    make_batch,
    number_at,
)
from tests.simulation.mount import Mount
from tests.simulation.plan import Operation, Plan
from tests.simulation.store import DATA_DIR, Life, offline
from tests.simulation.world import StuckError, World

from lance_server.errors import LanceServerError
from lance_server.log.engine import Engine
from lance_server.log.indexes import index_segment
from lance_server.log.reader import Fetched, Range
from lance_server.log.topic import Topic
from lance_server.log.topic_file import Retention
from lance_server.offline.verifying import verify
from lance_server.outcome import Outcome
from lance_server.refusals import Refusal
from lance_server.runtime.sync import replaced

_PATIENCE: Final = 10.0
"""Seconds after which nothing is on its way any more."""
_SHORT: Final = 0.001
_RECOVERY: Final = 120.0
"""Seconds after the last fault within which the store is to be whole again."""
_FILES: Final = 4
"""Files that may be open beside those of topics."""
_BUSY_STEPS: Final = 12
"""Turns of threads between two operations, at most, where nobody waits."""
_DAMAGE: Final = frozenset({
    "damage", "lost segment", "lost sidecar", "unavailable topic", "unrepeated write",
})  # fmt: skip
"""Findings that say that something is not readable."""


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


class Run:
    """Carries out a plan.

    Args:
        plan: what happens.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.result = Result()
        self.world = World(Random(plan.seed), plan.settings.pace)
        self.data_dir = DATA_DIR
        self.disk = SimDisk()
        self.disk.root.change(Move(None, DATA_DIR.name, Folder()))
        self.disk.root.sync()
        self.life: Life | None = None
        self.stopped: str | None = None
        self.faults: list[Fault] = []
        self.topics: dict[int, TopicModel] = {}
        """Those that are or may be there, by id."""
        self.creating: dict[str, TopicModel] = {}
        self.batches: list[tuple[TopicModel, Batch]] = []
        self.number = 0
        self.trouble: list[ViolationError] = []
        self.jumped = False
        self.clean = False
        """Whether the last stop was a clean one."""
        self.healed_at = 0.0
        """When the last trouble ended: what was asked before may still fail for it."""
        default = TopicModel("default", 0, present=True)
        self.topics[0] = default

    # The run ---------------------------------------------------------------------------------

    def carry_out(self) -> Result:
        """Do all of it; what was broken stands in the result."""
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        gc.disable()
        try:
            with replaced(self.world.primitives()):
                self._carry_out()
        except ViolationError as error:
            self.result.violation = str(error)
        except (StuckError, AssertionError, RecursionError) as error:
            self.result.violation = f"{type(error).__name__}: {error}"
        finally:
            self._end_life()
            gc.enable()
            logging.disable(level)
        for fault in self.faults:
            if fault.fired:
                self.result.fired[f"{fault.error} {fault.method}"] += 1
        return self.result

    def _carry_out(self) -> None:
        for operation in self.plan.operations:
            self.world.random = Random(operation.seed)
            self._do(operation)
            self.result.operations += 1
            self._check_cheaply()
        self.world.random = Random(self.plan.seed)
        self._finale()

    def _do(self, operation: Operation) -> None:
        work: Callable[..., None] = getattr(self, f"do_{operation.name}")
        work(**operation.arguments)
        self._note_stop()

    def _note_stop(self) -> None:
        """End the life that a fault has ended."""
        if self.stopped is not None:
            kind, self.stopped = self.stopped, None
            self._crash(kind)

    def _check_cheaply(self) -> None:
        if self.trouble:
            raise self.trouble[0]
        if self.world.errors:
            error = self.world.errors[0]
            raise ViolationError(f"a callback raised {type(error).__name__}: {error}")

    # Lives -----------------------------------------------------------------------------------

    def _stop(self, kind: str) -> None:
        """Note that a fault ends the process (any thread)."""
        self.stopped = kind
        if self.life is not None:
            self.life.mount.dead = True

    def _end_life(self) -> None:
        if self.life is not None:
            self.life.mount.dead = True
            self.life = None
        self.world.end()

    def _crash(self, kind: str) -> None:
        self._end_life()
        self.clean = False
        for topic in self._all_topics():
            topic.lose_track()
        self.result.crashes += 1
        if kind == "power":
            self.disk.power(self.world.random)
            if "os" in self.plan.settings.mode:
                for topic in self._all_topics():
                    topic.doubt()
        else:
            self.disk.kill(self.world.random)

    def _all_topics(self) -> list[TopicModel]:
        return [*self.topics.values(), *self.creating.values()]

    def do_start(self) -> None:
        """Start the store; what is wrong with the disk may keep it from that."""
        if self.life is None and not self._start() and not self._in_trouble():
            raise ViolationError("the store did not start")

    def _in_trouble(self) -> bool:
        """Whether something is to be expected to go wrong."""
        return (
            self.disk.room is not None
            or self.disk.read_only
            or any(fault.fired for fault in self.faults if fault.error not in STOPS)
        )

    def _start(self) -> bool:
        life = self.life = Life(self.world, self.disk, self.plan.settings, self._stop)
        life.mount.faults = self.faults
        self.world.spawn(life.open)
        self.world.rest(_SHORT)
        self.result.starts += 1
        if self.stopped is not None:
            return True
        if life.error is not None:
            if not isinstance(life.error, (OSError, LanceServerError)):
                error = life.error
                raise ViolationError(f"a start raised {type(error).__name__}: {error}")
            self._crash("kill")
            self.result.crashes -= 1
            return False
        if life.engine is None:
            raise ViolationError("a start never ended")
        if not self._in_trouble():
            self._judge_start(life.engine)
        return True

    def do_kill(self) -> None:
        """End the process."""
        self.stopped = "kill"

    def do_power(self) -> None:
        """End the machine, whether the process runs or not."""
        self.stopped = "power"

    def do_stop(self) -> None:
        """Stop the store cleanly; a disk that refuses makes it an unclean stop."""
        life = self.life
        if life is None or life.engine is None:
            return
        engine = life.engine
        done: list[Outcome[None]] = []
        life.loop.post(lambda: done.append(engine.close()))
        self._rest()
        if self.life is not life or self.stopped:
            return
        if not done or not done[0].done:
            raise ViolationError("a clean stop never ended")
        if done[0].error is not None and not self._in_trouble():
            raise ViolationError(f"a clean stop failed: {done[0].error}")
        self._release(life)
        clean = done[0].error is None
        left = [str(path) for path, _ in life.mount.files.values() if path.suffix != ".wal"]
        if clean and left and not self._in_trouble():
            raise ViolationError(f"files are open after a clean stop: {left}")
        self._end_life()
        self.clean = clean
        for topic in self._all_topics():
            topic.lose_track()

    def _release(self, life: Life) -> None:
        try:
            life.release()
        except OSError as error:
            if not self._in_trouble():
                raise ViolationError(f"files were not closed: {error}") from None

    def do_backup(self) -> None:
        """Stop, and go on with a copy of the data directory."""
        self.do_stop()
        if self.life is None and self.stopped is None:
            self.disk = self.disk.copy()

    # Trouble ---------------------------------------------------------------------------------

    def do_fault(self, **arguments: Any) -> None:
        """Plan a fault."""
        self.result.planned += 1
        self.faults.append(Fault(**arguments))

    def do_heal(self) -> None:
        """End all faults."""
        for fault in self.faults:
            if fault.fired:
                self.result.fired[f"{fault.error} {fault.method}"] += 1
        self.faults.clear()
        self.disk.room = None
        self.disk.read_only = False
        self.healed_at = self.world.now

    def do_fill(self, room: int) -> None:
        """Let the disk fill up."""
        self.disk.room = room

    def do_read_only(self) -> None:
        """Let the disk take no change."""
        self.disk.read_only = True

    def do_jump(self, seconds: int) -> None:
        """Let the wall clock jump."""
        self.world.jump_ns += seconds * 1_000_000_000
        self.jumped = True

    def do_rot(self, topic: int, share: float, way: str) -> None:
        """Change bytes of a topic's files on the disk while nobody runs."""
        model = self._topic(topic)
        if self.life is not None or model is None or model.id is None:
            return
        try:
            files = self.disk.files(DATA_DIR / "segments" / str(model.id))
        except FileNotFoundError:
            return
        chosen = [f for path, f in files if path.suffix in {".lnc", ".batches"} and f.content]
        if not chosen:
            return
        file = chosen[int(share * len(chosen))]
        self._rot(file, way)
        model.rotten = True
        model.unclean_rot |= not self.clean

    def _rot(self, file: File, way: str) -> None:
        place = self.world.random.randrange(len(file.content))
        length = self.world.random.choice((1, 8, 200))
        changed = bytes(
            each ^ 0x55 if way == "flip" else 0 for each in file.content[place : place + length]
        )
        file.content[place : place + len(changed)] = changed
        file.disk, file.pending = bytearray(file.content), []

    # What clients do -------------------------------------------------------------------------

    def _topic(self, slot: int) -> TopicModel | None:
        """Return one of the topics that are certainly there."""
        present = [topic for topic in self.topics.values() if topic.present]
        return present[slot % len(present)] if present else None

    def _post(self, job: Callable[[Life, Engine], None]) -> None:
        """Have something done on the loop's thread, and let threads go on for a while."""
        life = self.life
        if life is None or life.engine is None:
            return
        engine = life.engine
        life.loop.post(lambda: None if life.mount.dead else job(life, engine))
        self.world.run(steps=self.world.random.randrange(_BUSY_STEPS))

    def do_append(self, topic: int, records: int, size: int) -> None:
        """Send a new batch."""
        model = self._topic(topic)
        if model is None or self.life is None:
            return
        self.number += 1
        batch = make_batch(self.number, records, size, self.world.now)
        model.batches[batch.number] = batch
        self.batches.append((model, batch))
        self._send(model, batch)

    def do_resend(self, back: int) -> None:
        """Send one of the last batches again."""
        if self.batches and self.life is not None:
            model, batch = self.batches[-1 - back % len(self.batches)]
            if model.present:
                batch.resent = True
                self._send(model, batch)

    def _send(self, model: TopicModel, batch: Batch) -> None:
        batch.waits += 1
        asked_at = self.world.now

        def job(life: Life, _: Engine) -> None:
            assert model.id is not None, "its creation was acknowledged"
            if batch.state in {State.ABSENT, State.REFUSED}:
                batch.state = State.SENT
            try:
                outcome = life.append(model.id, batch)
            except Refusal as refusal:
                self._answered(life, model, batch, asked_at, refusal)
            else:
                outcome.wake(lambda: self._answered(life, model, batch, asked_at, outcome.error))

        self._post(job)

    def _answered(
        self,
        life: Life,
        model: TopicModel,
        batch: Batch,
        asked_at: float,
        error: Exception | None,
    ) -> None:
        if life.mount.dead:
            return
        if error is None:
            self.result.acknowledged += 1
            model.settle(batch, State.ACKED)
        else:
            model.settle(batch, self._state_after(error, asked_at))

    def _state_after(self, error: Exception, asked_at: float) -> State:
        """Return what a client knows after an error."""
        if not isinstance(error, Refusal):
            problem = f"a request failed with {type(error).__name__}: {error}"
            self.trouble.append(ViolationError(problem))
            return State.UNKNOWN
        excused = asked_at <= self.healed_at or "failed repeatedly" in error.message
        if not self._in_trouble() and not excused and "Topic" not in error.message:
            self.trouble.append(ViolationError(f"a healthy disk refused: {error!r}"))
        stored_nothing = error.message.startswith("Nothing was stored")
        return State.REFUSED if stored_nothing or "Topic" in error.message else State.UNKNOWN

    def do_roll(self, topic: int) -> None:
        """Have a topic's segment closed."""
        self._with_topic(topic, lambda _, found: found.partition.roll())

    def do_upkeep(self, topic: int) -> None:
        """Do what is due for a topic."""
        self._with_topic(topic, lambda engine, found: engine.upkeep.visit(found))

    def _with_topic(self, slot: int, work: Callable[[Engine, Topic], None]) -> None:
        model = self._topic(slot)
        if model is not None:
            self._on(model, work)

    def _on(self, model: TopicModel, work: Callable[[Engine, Topic], None]) -> None:
        def job(_: Life, engine: Engine) -> None:
            found = engine.find(model.id if model.id is not None else -1)
            if found is not None:
                work(engine, found)

        self._post(job)

    def do_fetch(self, topic: int, share: float) -> None:
        """Read some of a topic while others write."""
        model = self._topic(topic)
        if model is None:
            return

        def work(engine: Engine, found: Topic) -> None:
            low, high = found.partition.start_offset, found.partition.end_offset
            start = low + int(share * (high - low))
            known = [place for place in model.taken if low <= place <= start]
            start = max(known, default=low)
            try:
                fetched = engine.fetch(found, Range(start, 1 + int(share * 500)))
            except Refusal as refusal:
                self._judge_fetch(model, start, refusal)
            else:
                if isinstance(fetched, Outcome):
                    outcome = fetched
                    outcome.wake(lambda: self._judge_fetched(model, start, outcome))
                else:
                    self._judge_fetch(model, start, fetched)

        self._on(model, work)

    def _judge_fetched(self, model: TopicModel, start: int, outcome: Outcome[Fetched]) -> None:
        if outcome.error is None:
            self._judge_fetch(model, start, outcome.result())
        else:
            self._judge_fetch(model, start, outcome.error)

    def _judge_fetch(self, model: TopicModel, start: int, found: Fetched | Exception) -> None:
        if isinstance(found, Exception):
            gone = isinstance(found, Refusal) and "earliest" in found.details
            damaged = isinstance(found, Refusal) and "next_offset" in found.details
            excused = self._in_trouble() or not model.present
            if gone or (damaged and model.rotten) or (excused and not damaged):
                return
            self.trouble.append(
                ViolationError(f"{model.name}: reading at {start} failed: {found!r}")
            )
            return
        data = bytes(found.buffer)
        number = number_at(data, 0)
        if number is None:
            return
        batch = model.batches.get(number)
        if batch is None or not (batch.raw.startswith(data) or data.startswith(batch.raw)):
            self.trouble.append(
                ViolationError(f"{model.name}: at {start} stands {data[:24]!r}, not {batch}")
            )
            return
        known = model.taken.setdefault(start, number)
        if known != number:
            self.trouble.append(
                ViolationError(f"{model.name}: at {start} stands {batch}, not batch {known}")
            )
        batch.seen = True
        batch.place = start if batch.place is None else batch.place

    def do_seek(self, topic: int, share: float) -> None:
        """Find a place by time."""
        model = self._topic(topic)
        if model is None or self.jumped:
            return
        placed = sorted(
            (b.place, b) for b in model.batches.values() if b.place is not None and not b.resent
        )
        if not placed or "os" in self.plan.settings.mode:
            return
        stamp = placed[int(share * len(placed))][1].stamp_ns
        wanted = next(place for place, batch in placed if batch.stamp_ns >= stamp)

        def work(engine: Engine, found: Topic) -> None:
            outcome = engine.offset_for_time(found, stamp)
            outcome.wake(lambda: self._judge_seek(model, found, wanted, outcome))

        self._on(model, work)

    def _judge_seek(
        self, model: TopicModel, found: Topic, wanted: int, outcome: Outcome[int]
    ) -> None:
        if outcome.error is not None:
            if not self._in_trouble() and not model.rotten:
                self.trouble.append(ViolationError(f"a time seek failed: {outcome.error}"))
            return
        place = outcome.result()
        unknown = any(batch.place is None for batch in model.batches.values())
        if place > wanted and place != found.partition.start_offset and not model.rotten:
            self.trouble.append(
                ViolationError(f"{model.name}: a time seek went to {place}, beyond {wanted}")
            )
        elif place < wanted and not unknown and not any(b.resent for b in model.batches.values()):
            self.trouble.append(
                ViolationError(f"{model.name}: a time seek went to {place}, before {wanted}")
            )

    # Topics ----------------------------------------------------------------------------------

    def do_create(self, name: int) -> None:
        """Create a topic."""
        text = f"topic-{name}"
        if text in self.creating or any(
            topic.name == text and topic.present is not False for topic in self.topics.values()
        ):
            return
        model = self.creating[text] = TopicModel(text)
        asked_at = self.world.now

        def job(life: Life, engine: Engine) -> None:
            try:
                outcome = engine.create_topic(text, Retention())
            except Refusal as refusal:
                self._created(life, model, asked_at, refusal, None)
                return
            outcome.wake(
                lambda: self._created(
                    life,
                    model,
                    asked_at,
                    outcome.error,
                    None if outcome.error else outcome.result(),
                )
            )

        if self.life is None:
            del self.creating[text]
            return
        self._post(job)

    def _created(
        self,
        life: Life,
        model: TopicModel,
        asked_at: float,
        error: Exception | None,
        topic: Topic | None,
    ) -> None:
        if life.mount.dead:
            return
        if topic is not None:
            self.creating.pop(model.name, None)
            model.id, model.present = topic.id, True
            if topic.id in self.topics:
                self.trouble.append(ViolationError(f"topic id {topic.id} was given twice"))
            self.topics[topic.id] = model
        elif error is not None and self._state_after(error, asked_at) is State.REFUSED:
            self.creating.pop(model.name, None)

    def do_delete(self, topic: int) -> None:
        """Delete a topic."""
        model = self._topic(topic)
        if model is None or not model.id or self.life is None:
            return
        model.present = None
        asked_at = self.world.now

        def job(life: Life, engine: Engine) -> None:
            assert model.id is not None, "its creation was acknowledged"
            try:
                outcome = engine.delete_topic(model.id, text="Unknown topic")
            except Refusal as refusal:
                self._deleted(life, model, asked_at, refusal)
            else:
                outcome.wake(lambda: self._deleted(life, model, asked_at, outcome.error))

        self._post(job)

    def _deleted(
        self, life: Life, model: TopicModel, asked_at: float, error: Exception | None
    ) -> None:
        if not life.mount.dead:
            if error is None:
                model.present = False
            else:
                self._state_after(error, asked_at)

    def do_retention(self, topic: int, size: int, age: int) -> None:
        """Change a topic's retention."""
        model = self._topic(topic)
        if model is None:
            return

        def work(engine: Engine, found: Topic) -> None:
            model.limits.append((size, age))
            model.policies.append((size, age))
            asked_at = self.world.now
            outcome = engine.set_retention(found, Retention(age, size))
            outcome.wake(lambda: self._retained(model, (size, age), asked_at, outcome.error))

        self._on(model, work)

    def _retained(
        self,
        model: TopicModel,
        policy: tuple[int, int],
        asked_at: float,
        error: Exception | None,
    ) -> None:
        if self.life is None or self.life.mount.dead or policy not in model.policies:
            return
        if error is None:
            model.policies = model.policies[model.policies.index(policy) :]
        elif not isinstance(error, OSError):
            self._state_after(error, asked_at)

    def do_commit(self, topic: int, consumer: int) -> None:
        """Commit an offset."""
        model = self._topic(topic)
        if model is None:
            return

        def work(_: Engine, found: Topic) -> None:
            self.number += 1
            offset, asked_at = self.number, self.world.now
            model.commits.setdefault(consumer, [None]).append(offset)
            outcome = found.consumers.commit(consumer, offset)
            outcome.wake(lambda: self._committed(model, consumer, offset, asked_at, outcome.error))

        self._on(model, work)

    def _committed(
        self,
        model: TopicModel,
        consumer: int,
        offset: int,
        asked_at: float,
        error: Exception | None,
    ) -> None:
        if self.life is None or self.life.mount.dead:
            return
        known = model.commits[consumer]
        if error is None:
            model.commits[consumer] = known[known.index(offset) :] if offset in known else known
        elif self._state_after(error, asked_at) is State.REFUSED:
            known.remove(offset)

    # Waiting ---------------------------------------------------------------------------------

    def _rest(self) -> None:
        self.world.rest(_PATIENCE)

    def do_settle(self) -> None:
        """Wait until nothing is on its way, and look at everything."""
        self._rest()
        life = self.life
        if self.stopped or life is None or life.engine is None or self._in_trouble():
            return
        for topic in self._all_topics():
            waiting = [batch for batch in topic.batches.values() if batch.waits]
            if waiting and topic.present:
                raise ViolationError(f"{topic.name}: {waiting[0]} was never answered")
        self._judge_topics(life, life.engine, settled=False)
        most = _FILES + 2 * len(self.topics) + self.plan.settings.open_segments
        if len(life.mount.files) > most:
            open_files = [str(path) for path, _ in life.mount.files.values()]
            raise ViolationError(f"{len(open_files)} files are open: {open_files}")

    def do_wait(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run(until=self.world.now + seconds)

    # Offline tools ---------------------------------------------------------------------------

    def _offline(self) -> AbstractContextManager[tuple[Any, Any, Mount]]:
        return offline(self.world, self.disk, self.plan.settings)

    def _may_be_offline(self) -> bool:
        return self.life is None and not self._in_trouble() and self.result.starts > 0

    def do_repair(self) -> None:
        """Do what ``lance-server repair`` does."""
        if self._may_be_offline():
            with self._offline():
                pass

    def do_reindex(self) -> None:
        """Do what ``lance-server reindex`` does."""
        if self._may_be_offline():
            with self._offline() as (engine, _, mount):
                for topic in engine.topics_with_default():
                    for segment in topic.partition.segment_list:
                        index_segment(mount, segment, 0)

    def do_verify(self) -> None:
        """Do what ``lance-server verify`` does, which changes nothing."""
        if self._may_be_offline():
            mount = Mount(self.disk, self.world, "dsync", self._stop)
            before = _image(self.disk)
            verify(DATA_DIR, storage=mount)
            if _image(self.disk) != before:
                raise ViolationError("verify changed something")

    # Judging ---------------------------------------------------------------------------------

    def _judge_start(self, engine: Engine) -> None:
        life = self.life
        assert life is not None, "it was just started"
        self._judge_names(engine)
        for finding in engine.report.findings:
            topic = None if finding.topic_id is None else self.topics.get(finding.topic_id)
            rotten = topic is not None and topic.rotten
            known = topic is None or topic.present is not None
            if finding.kind in _DAMAGE and not rotten and known:
                raise ViolationError(f"nothing was damaged, and a start reports: {finding}")
        self._judge_topics(life, engine, settled=True)
        if self.world.random.random() < 0.2:
            self._judge_second_recovery(engine)

    def _judge_names(self, engine: Engine) -> None:
        """Learn which of the topics in doubt there are, and judge that the others are there."""
        names: dict[str, int] = {}
        for found in engine.topics_with_default():
            name = found.file.identity.name
            if name in names:
                raise ViolationError(f"two topics are called {name}: {names[name]} and {found.id}")
            names[name] = found.id
            if found.id not in self.topics:
                model = self.creating.pop(name, None)
                if model is None:
                    raise ViolationError(f"topic {found.id}, {name}, was never created")
                model.id = found.id
                self.topics[found.id] = model
            self.topics[found.id].present = self._still(self.topics[found.id])
        self.creating.clear()
        for topic_id, model in self.topics.items():
            there = engine.find(topic_id) is not None
            if model.present and not there:
                if not model.rotten:
                    raise ViolationError(f"topic {topic_id}, {model.name}, is gone")
                model.present = None
            elif model.present is None and not there:
                model.present = False

    def _still(self, model: TopicModel) -> bool:
        if model.present is False:
            raise ViolationError(f"topic {model.id}, {model.name}, was deleted and is there")
        return True

    def _judge_topics(self, life: Life, engine: Engine, *, settled: bool) -> None:
        faults, life.mount.faults = life.mount.faults, []
        for model in self.topics.values():
            found = engine.find(model.id if model.id is not None else -1)
            if found is not None and model.present:
                try:
                    reading = life.read(found)
                except (OSError, Refusal) as error:
                    raise ViolationError(f"{model.name} cannot be read: {error!r}") from None
                self._judge_reading(model, reading, settled=settled)
                self._judge_settings(model, found)
        life.mount.faults = faults

    def _judge_reading(self, model: TopicModel, reading: Reading, *, settled: bool) -> None:
        if reading.damage and not model.rotten:
            raise ViolationError(f"{model.name}: reading finds damage at {reading.damage}")
        model.judge_floor(reading, self.world.now)
        model.judge(reading, settled=settled)

    def _judge_settings(self, model: TopicModel, found: Topic) -> None:
        """Judge what a topic knows beside its data."""
        for consumer, possible in model.commits.items():
            committed = found.consumers.committed(consumer)
            if committed not in possible:
                raise ViolationError(
                    f"{model.name}: consumer {consumer} has {committed}, not one of {possible}"
                )
        retention = found.file.retention
        if (retention.max_bytes, retention.max_age_secs) not in model.policies:
            raise ViolationError(f"{model.name}: it has {retention}, not one of {model.policies}")

    def _judge_second_recovery(self, engine: Engine) -> None:
        """Judge that to start again after a kill, on a copy, changes nothing."""
        twin = Run(self.plan.keeping(()))
        twin.disk = self.disk.copy()
        twin.world.random = Random(1)
        life = Life(twin.world, twin.disk, self.plan.settings, twin._stop)
        twin.life = life
        with replaced(twin.world.primitives()):
            twin.world.spawn(life.open)
            twin.world.rest(_SHORT)
        if life.engine is None:
            raise ViolationError(f"a second start failed: {life.error}")
        mine = self.life
        assert mine is not None, "it was just started"
        for found in engine.topics_with_default():
            again = life.engine.find(found.id)
            if again is None:
                raise ViolationError(f"a second start lost topic {found.id}")
            first, second = mine.read(found), life.read(again)
            if first.pieces != second.pieces:
                raise ViolationError(
                    f"a second start reads topic {found.id} in another way: {first} and {second}"
                )
        twin._end_life()

    def _finale(self) -> None:
        """Judge that the store is whole after all faults, without a restart and with one."""
        self.do_heal()
        if self.life is None:
            self.do_start()
            self._note_stop()
        self.world.rest(_RECOVERY)
        self._check_cheaply()
        for _ in range(2):
            for slot in range(len(self.topics)):
                self.do_append(slot, 1, 20)
            self._rest()
        self._check_cheaply()
        self._judge_usable()
        self.do_settle()
        self.do_stop()
        self._check_cheaply()
        self.do_power()
        self._note_stop() if "os" not in self.plan.settings.mode else None
        self.stopped = None
        self.do_start()
        self.do_settle()
        self._check_cheaply()

    def _judge_usable(self) -> None:
        for model in self.topics.values():
            if not model.present:
                continue
            last = max(model.batches.values(), key=lambda each: each.number, default=None)
            if last is None or last.state is not State.ACKED:
                raise ViolationError(f"{model.name} takes nothing after the faults: {last}")


def _image(disk: SimDisk) -> dict[str, bytes]:
    return {str(path): bytes(file.content) for path, file in disk.files(DATA_DIR)}


def carry_out(plan: Plan) -> Result:
    """Carry out a plan."""
    return Run(plan).carry_out()
