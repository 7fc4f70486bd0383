"""One run: a producer, consumers and their server, and what befalls them."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

import anyio.to_thread
from tests.simulation.delivery.journal import SimulatedJournal
from tests.simulation.delivery.model import Model, ViolationError
from tests.simulation.delivery.plan import SPAN, Plan
from tests.simulation.delivery.server import RECORD, ServerModel, other
from tests.simulation.groups.loop import PROCESS, SimulatedLoop, StuckError
from tests.simulation.groups.network import Network
from tests.simulation.groups.world import end, simulated

from lance_sdk import AsyncConsumer, AsyncProducer
from lance_sdk._api import factory, producer_core
from lance_sdk._errors.base import LanceError
from lance_sdk._io.event_dispatcher import DELIVERY
from lance_sdk.errors import DeadlineExceeded, TopicChanged, TopicDeleted, TopicNotFound
from lance_sdk.offsets import MemoryStore
from lance_spec.dialect import DEPLOYED, SPECIFIED
from lance_spec.enums import ErrorCode

_SETTLE: Final = 25.0
"""Seconds after the faults in which everything must have come to its end."""
_SEEN: Final = 3.0
"""Seconds in which consumers must have seen what was stored last."""
_GONE: Final = (TopicChanged, TopicDeleted, TopicNotFound)
_COMMON: Final = {
    "request_timeout": 3.0,
    "open_timeout": 90.0,
    "backoff_base": 0.05,
    "backoff_cap": 1.0,
    "keepalive_interval": 1.0,
    "idle_timeout": 3.0,
}


class World:
    """Carries a plan out.

    Args:
        plan: what happens.
        loop: simulated time.
    """

    def __init__(self, plan: Plan, loop: SimulatedLoop) -> None:
        self._plan = plan
        self._loop = loop
        self._random = Random(plan.seed)
        self._network = Network(loop, Random(plan.seed + 1))
        dialect = DEPLOYED if plan.settings.deployed else SPECIFIED
        self._server = ServerModel(loop, Random(plan.seed + 2), dialect)
        self._model = Model()
        self._store = MemoryStore()
        self.journal = SimulatedJournal(self._server, loop)
        self._producer: Any = None
        self._work: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._number = 0
        self._sent_before: dict[int, int] = {}
        self._warned: set[str] = set()
        self._lives = 0
        self._consumer: tuple[str, asyncio.Task[None]] | None = None
        self._unfinished: list[asyncio.Task[None]] = []
        self._leaving: set[str] = set()
        self.violation: str | None = None

    # The run

    async def run(self) -> None:
        """Carry the plan out, let everything settle, and judge."""
        self._server.create()
        self._network.services["server"] = self._server.serve
        producing = self._spawn("producer", self._produce())
        self.do_consumer()
        begun = self._loop.now
        for happening in self._plan.happenings:
            await self._sleep_until(begun + happening.at)
            getattr(self, f"do_{happening.name}")(**happening.arguments)
        await self._sleep_until(begun + SPAN + 1.0)
        self._end_faults()
        self.do_send(3)
        self.do_flush()
        await asyncio.sleep(_SETTLE)
        self._work.put_nowait(None)
        await self._ended("the producer", producing)
        await asyncio.sleep(_SEEN)
        self._judge()
        if self._consumer is not None:
            self._leave_consumer()
        for each in self._unfinished:
            await self._ended("a consumer", each)

    async def _ended(self, who: str, task: "asyncio.Task[None]") -> None:
        done, _ = await asyncio.wait([task], timeout=150.0)
        if not done:
            self.violate(f"{who} did not end")
        elif not task.cancelled() and (error := task.exception()) is not None:
            self.violate(f"{who} ended by {error!r}"[:200])

    async def _sleep_until(self, at: float) -> None:
        if at > self._loop.now:
            await asyncio.sleep(at - self._loop.now)

    def violate(self, what: str) -> None:
        """Take note that a promise was broken."""
        self.violation = self.violation or what

    def _spawn(self, name: str, work: Any) -> "asyncio.Task[None]":
        token = PROCESS.set(name)
        try:
            return self._loop.create_task(work)
        finally:
            PROCESS.reset(token)

    def warned(self, message: str, *arguments: Any, **_: Any) -> None:
        """Take note of a warning in the log."""
        self._warned.add(str(message % arguments if arguments else message))

    # What happens

    def do_send(self, count: int) -> None:
        """Send records."""
        self._work.put_nowait(lambda: self._send(count))

    def do_flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._work.put_nowait(self._flush)

    def do_cut(self, who: str) -> None:
        """Break connections."""
        for link in self._network.links:
            if link.who.startswith(who) and not link.over:
                link.cut()

    def do_silence(self, who: str) -> None:
        """Let connections fall silent; nobody is told."""
        for link in self._network.links:
            if link.who.startswith(who):
                link.silent = True

    def do_server(self, seconds: float) -> None:
        """Let the server crash, and come back."""
        self._network.drop_host("server")
        self._server.crash()
        self.journal.away = True
        self._loop.call_later(seconds, self._serve)

    def _serve(self) -> None:
        self._network.services.setdefault("server", self._server.serve)
        self.journal.away = False

    def do_other_dialect(self, seconds: float) -> None:
        """Let the server crash, and come back speaking another dialect for a while."""
        self.do_server(0.2)
        self._server.dialect = other(self._server.usual)
        self._loop.call_later(seconds, self._back_in_its_dialect)

    def _back_in_its_dialect(self) -> None:
        self._network.drop_host("server")
        self._server.dialect = self._server.usual
        self._serve()

    def do_slow_sync(self, seconds: float) -> None:
        """Let syncs take their time."""
        self._server.sync_time = seconds / 2
        self._loop.call_later(seconds, setattr, self._server, "sync_time", 0.01)

    def do_slow_network(self, seconds: float) -> None:
        """Let bytes take their time."""
        self._network.slow = 20.0
        self._loop.call_later(seconds, setattr, self._network, "slow", 1.0)

    def do_refuse(self, seconds: float) -> None:
        """Let the server refuse batches for the moment."""
        self._model.troubled = True
        self._server.refusing = ErrorCode.RATE_LIMITED
        self._loop.call_later(seconds, setattr, self._server, "refusing", None)

    def do_limit(self, seconds: float) -> None:
        """Let the server be started again with a small limit of batches."""
        self.do_server(0.1)
        self._server.limit = 3 * RECORD
        self._loop.call_later(seconds, self._limit_ends)

    def _limit_ends(self) -> None:
        self._server.limit = 1 << 20

    def do_full_disk(self, seconds: float) -> None:
        """Let the journal's disk be full."""
        self.journal.full = True
        self._loop.call_later(seconds, setattr, self.journal, "full", False)

    def do_create_again(self) -> None:
        """Delete the topic and create it again."""
        self._model.troubled = True
        self._sent_before[self._server.create().info.id] = self._number
        self._store = MemoryStore()
        self._model.place = None

    def do_consumer(self, seconds: float = 0.0) -> None:
        """Deploy the consumer again; it is away meanwhile."""
        if self._consumer is not None:
            self._leave_consumer()
        self._loop.call_later(seconds, self._start_consumer)

    def _start_consumer(self) -> None:
        if self._consumer is not None:
            return
        self._lives += 1
        name = f"consumer{self._lives}"
        self._consumer = name, self._spawn(name, self._consume(name, self._unfinished[-1:]))

    def _leave_consumer(self) -> None:
        assert self._consumer is not None
        self._leaving.add(self._consumer[0])
        self._unfinished.append(self._consumer[1])
        self._consumer = None

    def do_kill_consumer(self) -> None:
        """Kill the consumer; it is started again."""
        if self._consumer is not None:
            name, _ = self._consumer
            self._loop.stop_process(name, math.inf)
            for link in self._network.of(name):
                link.hang_up(link.far)
            self._consumer = None
            self._store = _copy(self._store)
        self.do_consumer()

    def do_second_consumer(self) -> None:
        """Start another consumer of the name, which must be refused."""
        if self._consumer is not None and self._model.place is not None:
            self._spawn("second", self._intrude(self._consumer[0]))

    def _end_faults(self) -> None:
        self._network.slow = 1.0
        self._server.mend()
        self.journal.full = False
        self._network.drop_host("server")
        self._serve()

    # The producer

    async def _produce(self) -> None:
        settings = self._plan.settings
        options: dict[str, Any] = dict(_COMMON)
        if settings.journal:
            options |= {"journal": Path("journal"), "on_full": "journal"}
        self._producer = producer = AsyncProducer(
            "lance://server/orders",
            max_in_flight=settings.in_flight,
            delivery_timeout=settings.delivery_timeout,
            batch_bytes=8 * RECORD,
            buffer_bytes=(16 if settings.journal else 4000) * RECORD,
            block_timeout=30.0,
            close_timeout=20.0,
            **options,
        )
        producer._driver._dial = self._network.dial
        await producer.open()
        while (work := await self._work.get()) is not None:
            await work()
        began = self._loop.now
        await producer.close()
        if self._loop.now - began > 22.0:
            self.violate("close() took too long")

    async def _send(self, count: int) -> None:
        for _ in range(count):
            number, self._number = self._number, self._number + 1
            try:
                delivery = await self._producer.send(number.to_bytes(8, "big"))
            except LanceError as error:
                if not error.retryable:
                    self.violate(f"send() raised {error!r}"[:200])
                return
            self._model.sent[number] = delivery._batch

    async def _flush(self) -> None:
        count = self._number
        try:
            await self._producer.flush(self._plan.settings.delivery_timeout + 5.0)
        except DeadlineExceeded as error:
            self.violate(f"flush() waited too long: {error}"[:200])
        except LanceError:
            self._model.flush_failed(count)
        else:
            with self._violations():
                self._model.flush_ended_well(count)

    # Consumers

    def _make(self) -> AsyncConsumer:
        consumer = AsyncConsumer(
            "lance://server/orders",
            consumer="c",
            offsets=self._store,
            start=self._plan.settings.start,  # type: ignore[arg-type]
            mode="poll",
            poll_interval=0.2,
            max_fetch_bytes=4 * RECORD,
            commit_interval=0.4,
            close_timeout=5.0,
            **_COMMON,  # type: ignore[arg-type]
        )
        consumer._driver._dial = self._network.dial
        return consumer

    async def _consume(self, name: str, before: "list[asyncio.Task[None]]") -> None:
        if before:
            await asyncio.wait(before)
        while name not in self._leaving:
            consumer = self._make()
            try:
                await consumer.open()
                self._model.place = self._resumed(consumer)
                await self._read(name, consumer)
            except _GONE:
                self._model.place = None
                await asyncio.sleep(0.3)
            except LanceError as error:
                self.violate(f"a consumer raised {error!r}"[:200])
                return
            finally:
                await consumer.close()

    def _resumed(self, consumer: AsyncConsumer) -> int | None:
        topic, at = self._server.topic, consumer.committed
        if self._is_of_earlier(consumer):
            return None
        if at is not None and self._plan.settings.start == "end":
            self._model.begins.setdefault(topic.info.id, at // RECORD)
        return None if at is None else at // RECORD

    async def _read(self, name: str, consumer: AsyncConsumer) -> None:
        while name not in self._leaving:
            batch = await consumer.poll(0.3)
            topic = self._server.topic
            if self._is_of_earlier(consumer):
                continue
            self._note_begin(consumer)
            if batch is not None:
                numbers = [int.from_bytes(each.value, "big") for each in batch]
                with self._violations():
                    self._model.hand_out(topic, batch.offset, numbers)
            await asyncio.sleep(self._random.random() * 0.1)

    def _note_begin(self, consumer: AsyncConsumer) -> None:
        """Take note where reading begins, which is decided once."""
        offset = consumer._fetcher.offset
        if self._plan.settings.start == "end" and consumer._plan._found and offset is not None:
            self._model.begins.setdefault(self._server.topic.info.id, offset // RECORD)

    def _is_of_earlier(self, consumer: AsyncConsumer) -> bool:
        return consumer._plan.topic.id != self._server.topic.info.id

    async def _intrude(self, first: str) -> None:
        intruder = self._make()
        store = self._store
        try:
            await intruder.open()
        except LanceError:
            return
        finally:
            there = self._consumer is not None and self._consumer[0] == first
            if intruder._driver.usage_error is None and there and store is self._store:
                self.violate("a second consumer of one name was let in")
            await intruder.close()

    # Judgement

    @contextmanager
    def _violations(self) -> Iterator[None]:
        try:
            yield
        except ViolationError as violation:
            self.violate(str(violation))

    def _check_notice(self) -> None:
        told = any("created again" in each for each in self._warned)
        for topic_id, count in self._sent_before.items():
            early = any(number < count for number in self._server.topics[topic_id].log)
            if early and not told and not self._plan.settings.journal:
                raise ViolationError("records went into a topic created again without a word")

    def _judge(self) -> None:
        topics = list(self._server.topics.values())
        for check in (
            lambda: self._model.check_deliveries(topics),
            lambda: self._model.check_order(topics),
            self._check_notice,
            lambda: self._model.check_everything_came(self._server.topic),
        ):
            with self._violations():
                check()


def _copy(store: MemoryStore) -> MemoryStore:
    """Return what another process would find."""
    copy = MemoryStore()
    copy._commits, copy._generations = dict(store._commits), dict(store._generations)
    return copy


async def _inline(work: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    """Do at once what takes a thread: threads do not live in simulated time."""
    await asyncio.sleep(0)
    return work(*arguments)


def carry_out(plan: Plan) -> str | None:
    """Carry a plan out; return what promise was broken, or None."""
    loop = SimulatedLoop()
    try:
        with simulated(loop, Random(plan.seed + 3)), ExitStack() as stack:
            world = World(plan, loop)
            for change in (
                patch.object(anyio.to_thread, "run_sync", _inline),
                patch.object(factory, "speaks_http", lambda *_: False),
                patch.object(producer_core, "open_spill", lambda *_: world.journal),
                patch.object(producer_core, "_DICE", Random(plan.seed + 4)),
                patch.object(DELIVERY, "warning", world.warned),
            ):
                stack.enter_context(change)
            try:
                loop.run_until_complete(world.run())
            except StuckError as stuck:
                world.violate(str(stuck))
            return world.violation
    finally:
        with suppress(Exception):
            end(loop)
