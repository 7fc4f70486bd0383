"""What is judged: at each start, and whenever nothing is on its way."""

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.simulation.model import Reading, State, TopicModel, ViolationError
from tests.simulation.store.life import DATA_DIR, Life, read_topic
from tests.simulation.store.story import Story
from tests.simulation.world import World

from lance_server.log.log_manager import LogManager
from lance_server.log.recovery.recovery_report import Finding
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.sync import replaced
from lance_server.storage.wal import WalStorage

SHORT: Final = 0.001
"""Seconds to wait for where nothing but threads is to be waited for."""
_FILES: Final = 4
"""Files that may be open beside those of topics."""
_DAMAGE: Final = frozenset({
    "damage", "lost segment", "lost sidecar", "unavailable topic",
})  # fmt: skip
"""Findings that say that something is not readable."""


def _never(kind: str) -> None:
    raise AssertionError(f"no fault is planned here: {kind}")


class Checks(Story):
    """The rules that always hold."""

    def _judge_start(self, engine: LogManager) -> None:
        life = self.life
        assert life is not None, "it was just started"
        self._judge_names(engine)
        self._judge_findings(engine.report.findings)
        if engine.report.clean and self.killed:
            raise ViolationError("a start takes a kill for a clean stop")
        self._judge_topics(life, engine, settled=True)
        if self.world.random.random() < 0.2:
            self._judge_second_recovery(engine)

    def _judge_findings(self, findings: Sequence[Finding], *, is_whole: bool = False) -> None:
        """Judge that damage is only reported where there is some.

        Args:
            findings: what a start, or ``verify``, reports.
            is_whole: the last stop was a clean one, so that everything is to be in its place.
        """
        for finding in findings:
            topic = None if finding.topic_id is None else self.topics.get(finding.topic_id)
            rotten = topic is not None and topic.rotten
            known = topic is None or topic.present is not None
            if (is_whole or finding.kind in _DAMAGE) and not rotten and known:
                raise ViolationError(f"nothing was damaged, and a check reports: {finding}")

    def _judge_names(self, engine: LogManager) -> None:
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

    def _judge_topics(self, life: Life, engine: LogManager, *, settled: bool) -> None:
        faults, life.mount.faults = life.mount.faults, []
        for model in self.topics.values():
            found = engine.find(model.id if model.id is not None else -1)
            if found is not None and model.present:
                try:
                    reading = read_topic(found)
                except (OSError, Refusal) as error:
                    raise ViolationError(f"{model.name} cannot be read: {error!r}") from None
                self._judge_reading(model, reading, settled=settled)
                self._judge_settings(model, found)
        life.mount.faults = faults

    def _judge_reading(self, model: TopicModel, reading: Reading, *, settled: bool) -> None:
        if reading.damage and not model.rotten:
            raise ViolationError(f"{model.name}: reading finds damage at {reading.damage}")
        model.judge_floor(reading, self.world.now, self._stored(model))
        model.judge(reading, settled=settled)

    def _stored(self, model: TopicModel) -> int:
        files = self.disk.files(DATA_DIR / "segments" / str(model.id))
        return sum(len(file.content) for path, file in files if path.suffix == ".lnc")

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

    def _judge_second_recovery(self, engine: LogManager) -> None:
        """Judge that to start again after a kill, on a copy, changes nothing."""
        world = World(Random(1), self.plan.settings.pace)
        life = Life(world, self.disk.copy(), self.plan.settings, _never)
        with replaced(world.primitives()):
            world.spawn(life.open)
            world.rest(SHORT)
        if life.engine is None:
            raise ViolationError(f"a second start failed: {life.error}")
        mine = self.life
        assert mine is not None, "it was just started"
        for found in engine.topics_with_default():
            again = life.engine.find(found.id)
            if again is None:
                raise ViolationError(f"a second start lost topic {found.id}")
            first, second = read_topic(found), read_topic(again)
            if first.pieces != second.pieces:
                raise ViolationError(
                    f"a second start reads topic {found.id} in another way: {first} and {second}"
                )
        life.mount.dead = True
        world.end()

    def _judge_usable(self) -> None:
        for model in self.topics.values():
            if not model.present:
                continue
            last = max(model.batches.values(), key=lambda each: each.number, default=None)
            if last is None or last.state is not State.ACKED:
                raise ViolationError(f"{model.name} takes nothing after the faults: {last}")

    def _judge_handles(self, life: Life) -> None:
        """Judge that no more files are open than topics, cache and write-ahead log account for."""
        most = _FILES + 2 * len(self.topics) + self.plan.settings.open_segments
        wal = None if life.storage is None else life.storage.inner
        most += wal.lingering if isinstance(wal, WalStorage) else 0
        if len(life.mount.files) > most:
            paths = [str(path) for path, _ in life.mount.files.values()]
            raise ViolationError(f"{len(paths)} files are open: {paths}")
