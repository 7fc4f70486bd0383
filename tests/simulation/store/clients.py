"""What clients do, and what they make of the answers."""

from tests.simulation.model import (
    Batch,
    State,
    TopicModel,
    ViolationError,
    make_batch,
    number_at,
)
from tests.simulation.store.life import Life
from tests.simulation.store.story import Story

from lance_server.log.log_manager import LogManager
from lance_server.log.metadata.topic_file import Retention
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import Completion


class Clients(Story):
    """The operations of clients."""

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

        def job(life: Life, _: LogManager) -> None:
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

    def do_roll(self, topic: int) -> None:
        """Have a topic's segment closed."""
        self._with_topic(topic, lambda _, found: found.partition.roll())

    def do_upkeep(self, topic: int) -> None:
        """Do what is due for a topic."""
        self._with_topic(topic, lambda engine, found: engine.upkeep.visit(found))

    def do_fetch(self, topic: int, share: float) -> None:
        """Read some of a topic while others write."""
        model = self._topic(topic)
        if model is None:
            return

        def work(engine: LogManager, found: Topic) -> None:
            low, high = found.partition.start_offset, found.partition.end_offset
            start = low + int(share * (high - low))
            known = [place for place in model.taken if low <= place <= start]
            start = max(known, default=low)
            try:
                fetched = engine.fetch(found, Range(start, 1 + int(share * 500)))
            except Refusal as refusal:
                self._judge_fetch(model, start, refusal)
            else:
                if isinstance(fetched, Completion):
                    outcome = fetched
                    outcome.wake(lambda: self._judge_fetched(model, start, outcome))
                else:
                    self._judge_fetch(model, start, fetched)

        self._on(model, work)

    def _judge_fetched(self, model: TopicModel, start: int, outcome: Completion[Fetched]) -> None:
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

        def work(engine: LogManager, found: Topic) -> None:
            outcome = engine.offset_for_time(found, stamp)
            outcome.wake(lambda: self._judge_seek(model, found, wanted, outcome))

        self._on(model, work)

    def _judge_seek(
        self, model: TopicModel, found: Topic, wanted: int, outcome: Completion[int]
    ) -> None:
        if outcome.error is not None:
            if not self._in_trouble() and not model.rotten and model.present:
                self.trouble.append(ViolationError(f"a time seek failed: {outcome.error}"))
            return
        place = outcome.result()
        unknown = any(batch.place is None for batch in model.batches.values())
        dropped = place <= found.partition.start_offset  # what is wanted went, then or meanwhile
        if place > wanted and not dropped and not model.rotten:
            self.trouble.append(
                ViolationError(f"{model.name}: a time seek went to {place}, beyond {wanted}")
            )
        elif place < wanted and not unknown and not any(b.resent for b in model.batches.values()):
            self.trouble.append(
                ViolationError(f"{model.name}: a time seek went to {place}, before {wanted}")
            )

    def do_create(self, name: int) -> None:
        """Create a topic."""
        text = f"topic-{name}"
        if text in self.creating or any(
            topic.name == text and topic.present is not False for topic in self.topics.values()
        ):
            return
        model = self.creating[text] = TopicModel(text)
        asked_at = self.world.now

        def job(life: Life, engine: LogManager) -> None:
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

        def job(life: Life, engine: LogManager) -> None:
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

        def work(engine: LogManager, found: Topic) -> None:
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

        def work(_: LogManager, found: Topic) -> None:
            self.number += 1
            offset, asked_at = self.number, self.world.now
            model.commits.setdefault(consumer, [None]).append(offset)
            try:
                outcome = found.consumers.commit(consumer, offset)
            except Refusal as refusal:
                self._committed(model, consumer, offset, asked_at, refusal)
                return
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
        elif not model.present:
            return
        elif self._state_after(error, asked_at) is State.REFUSED:
            known.remove(offset)
