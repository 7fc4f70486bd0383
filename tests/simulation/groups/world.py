"""One run: members, their coordinator and their server, and what befalls them."""

import asyncio
import logging
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from unittest.mock import patch

from tests.simulation.groups.loop import PROCESS, SimulatedLoop, StuckError
from tests.simulation.groups.model import Model, ViolationError
from tests.simulation.groups.network import Network, ServerEnd
from tests.simulation.groups.plan import EXTEND, SESSION, Plan, is_mild
from tests.simulation.groups.server import ServerModel, Topic
from tests.simulation.groups.store import SimulatedStore

from lance_sdk._api import factory
from lance_sdk._errors.base import LanceError
from lance_sdk.errors import ClosedError, ConsumeError, TopicChanged, TopicDeleted, TopicNotFound
from lance_sdk.groups import AsyncGroupConsumer
from lance_sdk.groups._coordinator import service
from lance_sdk.groups._coordinator.connection import CoordinatorContext, PeerConnection
from lance_sdk.groups._coordinator.service import CoordinatorLink, GroupService
from lance_sdk.groups._member import factory as member_factory
from lance_sdk.groups._protocol.group import Group
from lance_sdk.groups._protocol.limits import Limits
from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY
from lance_sdk.offsets import Commit
from lance_spec.messages.groups import GroupErrorCode

_REAL: Final = time.monotonic
_CLOSING: Final = 12.0
"""Seconds that a member may take to leave: its ``close_timeout``, and what it needs to see it."""
_PARTITIONED: Final = "parts"
_GONE: Final = (TopicChanged, TopicDeleted, TopicNotFound)


@dataclass(eq=False)
class Process:
    """A process with a member in it.

    Attributes:
        name: of the process.
        task: runs it.
        consumer: the member; None before it is there.
        leaving: whether it is to leave.
        seen: what went wrong there, by kind.
    """

    name: str
    task: "asyncio.Task[None]"
    consumer: AsyncGroupConsumer | None = None
    leaving: bool = False
    seen: list[str] = field(default_factory=list)


class World:
    """Carries out a plan.

    Args:
        plan: what happens.
        loop: simulated time.
    """

    def __init__(self, plan: Plan, loop: SimulatedLoop) -> None:
        self._plan = plan
        self._loop = loop
        self._random = Random(plan.seed)
        self._network = Network(loop, Random(plan.seed + 1))
        self._hosts = ["server", "server2"][: plan.settings.hosts]
        self._server = ServerModel()
        self._server.hosts = self._alive_hosts
        self._model = Model()
        self._store = SimulatedStore(Random(plan.seed + 2), self._stored)
        self._processes: dict[int, Process] = {}
        self._old: list[Process] = []
        self._life = 0
        self._topics = [self._server.create(f"t{number}") for number in range(plan.settings.topics)]
        self._partitioned: list[str] = []
        self.violation: str | None = None

    # The run

    async def run(self) -> None:
        """Carry the plan out, let everything settle, and judge."""
        for topic in self._topics:
            topic.count = self._random.randint(0, 10)
        if any(each.name == EXTEND for each in self._plan.happenings):
            self._server.extend(_PARTITIONED)
            self._partitioned = [_PARTITIONED]
        self._start_servers()
        self._start_coordinator()
        begun = self._loop.now
        for happening in self._plan.happenings:
            await self._sleep_until(begun + happening.at)
            getattr(self, f"do_{happening.name}")(**happening.arguments)
        span = self._plan.settings.span
        await self._sleep_until(
            begun + max(span, *[each.at for each in self._plan.happenings], 0.0)
        )
        self._end_faults()
        slack = 0.0 if is_mild(self._plan) else 2.0 + self._plan.settings.rebalance
        await asyncio.sleep(2 * SESSION + slack)
        self._check_owners()
        for topic in self._server.alive:
            topic.count += 3
        await asyncio.sleep(SESSION)
        self._check_records()
        await self._close_all()

    def _alive_hosts(self) -> list[str]:
        return [name for name in self._hosts if name in self._network.services] or self._hosts

    async def _sleep_until(self, at: float) -> None:
        if at > self._loop.now:
            await asyncio.sleep(at - self._loop.now)

    def violate(self, what: str) -> None:
        """Take note that a promise was broken."""
        self.violation = self.violation or what

    # What happens

    def do_member(self, who: int) -> None:
        """Start a process, where there is none of this number."""
        if who not in self._processes:
            self._life += 1
            name = f"p{who}.{self._life}"
            task = self._spawn(name, self._live(who, name))
            self._processes[who] = Process(name, task)

    def do_leave(self, who: int) -> None:
        """Have a process end in good order."""
        if (process := self._processes.pop(who, None)) is not None:
            process.leaving = True
            self._old.append(process)

    def do_kill(self, who: int) -> None:
        """Kill a process: the system closes its connections."""
        if (process := self._processes.pop(who, None)) is not None:
            self._loop.stop_process(process.name, math.inf)
            for link in self._network.of(process.name):
                link.hang_up(link.far)

    def do_stop(self, who: int, seconds: float) -> None:
        """Stop a process for a while."""
        if (process := self._processes.get(who)) is not None:
            self._loop.stop_process(process.name, seconds)

    def do_suspend(self, who: int, seconds: float) -> None:
        """Suspend the machine of a process: its monotonic clock stands still."""
        if (process := self._processes.get(who)) is not None:
            self._loop.stop_process(process.name, seconds, suspended=True)

    def do_cut(self, who: int, host: str) -> None:
        """Break connections."""
        if (process := self._processes.get(who)) is not None:
            for link in self._network.of(process.name, host):
                link.cut()

    def do_silence(self, who: int, host: str) -> None:
        """Let connections fall silent; this end learns it, and the other does not."""
        if (process := self._processes.get(who)) is not None:
            for link in self._network.of(process.name, host):
                link.silent = True
                link.near.end(ConnectionResetError(104, "Connection reset by peer"))

    def do_append(self, topic: int, count: int) -> None:
        """Add records."""
        alive = self._server.alive
        alive[topic % len(alive)].count += count

    def do_extend(self, count: int) -> None:
        """Add a partition, with records in it; who is there finds it."""
        self._server.extend(_PARTITIONED).count = count

    def do_create_again(self, topic: int) -> None:
        """Delete a topic and create it again; processes started later read the later one."""
        alive = [each for each in self._server.alive if each.info.partition is None]
        self._server.create(alive[topic % len(alive)].info.name)
        for process in list(self._processes.values()):
            process.leaving = True  # it is deployed again, as one does
        self._old += self._processes.values()
        numbers = list(self._processes)
        self._processes.clear()
        for number in numbers:
            self._loop.call_later(self._random.uniform(0.0, 3.0), self.do_member, number)

    def do_coordinator(self, seconds: float) -> None:
        """Let the coordinator die, and come back."""
        self._stop_coordinator()
        self._loop.call_later(seconds, self._start_coordinator)

    def do_old_file(self, seconds: float) -> None:
        """Let the coordinator die, and come back with an old file."""
        self._stop_coordinator()
        self._loop.call_later(seconds, self._start_coordinator, True)

    def do_server(self, seconds: float, host: str = "server") -> None:
        """Let a server be away; another one has its topics meanwhile, where there is one."""
        self._network.drop_host(host)
        self._loop.call_later(seconds, self._start_servers, host)

    def _start_servers(self, *names: str) -> None:
        for name in names or self._hosts:
            self._network.services.setdefault(name, self._server.node(name))

    def do_slow_store(self, seconds: float) -> None:
        """Let the store take its time."""
        self._store.slow = seconds / 4
        self._loop.call_later(seconds, self._mend_store)

    def do_broken_store(self, seconds: float) -> None:
        """Let the store fail."""
        self._store.broken = True
        self._loop.call_later(seconds, self._mend_store)

    def do_slow_network(self, seconds: float) -> None:
        """Let bytes take their time."""
        self._network.slow = 20.0
        self._loop.call_later(seconds, setattr, self._network, "slow", 1.0)

    def _mend_store(self) -> None:
        self._store.slow, self._store.broken = 0.01, False

    def _end_faults(self) -> None:
        self._mend_store()
        self._network.slow = 1.0
        self._start_servers()
        if "coordinator" not in self._network.services:
            self._start_coordinator()
        if not self._processes:
            self.do_member(0)
        for process in self._processes.values():
            until = self._loop.stopped_until.get(process.name, 0.0)
            self._loop.stopped_until[process.name] = min(until, self._loop.now)

    # The coordinator

    def _stop_coordinator(self) -> None:
        self._network.drop_host("coordinator")
        self._store.crash()

    def _start_coordinator(self, old: bool = False) -> None:
        if "coordinator" in self._network.services:
            return
        commits = self._store.reopen(old=old)
        if old:
            self._model.restored(commits)
        self._store.remember()
        strategies = {each.name: each for each in (RANGE, ROUND_ROBIN, STICKY)}
        service = GroupService(
            self._store, strategies, Limits(), heartbeat_interval=0.5, clock=self._loop.monotonic
        )
        shared = CoordinatorContext(service, None, None)

        async def serve(stream: ServerEnd) -> None:
            peer: Any = stream  # has what a conversation needs of anyio's streams
            await PeerConnection(shared, peer, CoordinatorLink(stream.address)).run()

        self._network.services["coordinator"] = serve

    def _stored(self, commit: Commit) -> None:
        topic = self._server.topics[commit.topic.id]
        try:
            self._model.stored(commit, topic.count * 13)
        except ViolationError as violation:
            self.violate(str(violation))

    def judge_commit(self, group: Group, member: Any, commit: Commit) -> None:
        """Take note that a coordinator takes a commit."""
        owner = group.topics[commit.topic.id].owner
        with self._violations():
            self._model.taken(commit, member.name, member.joining.secret, owner)

    # Members

    def _spawn(self, name: str, work: Any) -> "asyncio.Task[None]":
        token = PROCESS.set(name)
        try:
            return self._loop.create_task(work)
        finally:
            PROCESS.reset(token)

    def _make(self, who: int) -> AsyncGroupConsumer:
        settings, name = self._plan.settings, PROCESS.get()
        names = [each.info.name for each in self._server.alive if each.info.partition is None]
        consumer = AsyncGroupConsumer(
            f"lance://{','.join(self._hosts)}",
            group="g",
            topics=[*self._partitioned, *names],
            coordinator="lance://coordinator",
            member=f"m{who}" if settings.named else "",
            session_timeout=SESSION,
            rebalance_timeout=settings.rebalance,
            start=settings.start,  # type: ignore[arg-type]
            auto_commit=settings.auto_commit,  # type: ignore[arg-type]
            on_lost=self._judge_loss,
            commit_interval=0.3,
            refresh_interval=1.0,
            mode="poll",
            dialect="specified",
            poll_interval=0.3,
            request_timeout=3.0,
            open_timeout=60.0,
            max_fetch_bytes=200,
            max_poll_records=5,
            close_timeout=5.0,
            backoff_base=0.05,
            backoff_cap=1.0,
            coordinator_options={
                "request_timeout": settings.request_timeout,
                "backoff_cap": 0.5,
            },
        )
        consumer._driver._dial = self._network.dial
        dial_in(consumer._reader, self._network)
        consumer._member._asleep = lambda: self._loop.asleep.get(name, 0.0)
        return consumer

    async def _live(self, who: int, name: str) -> None:
        await asyncio.sleep(0)
        process = next(
            each for each in (*self._processes.values(), *self._old) if each.name == name
        )
        while not process.leaving:
            try:
                process.consumer = consumer = self._make(who)
                await consumer.open()
            except LanceError as error:  # as a supervisor does: start it again
                process.seen.append(repr(error))
                await asyncio.sleep(0.5)
                continue
            try:
                await self._work(process, consumer)
            finally:
                began = self._loop.monotonic()
                await consumer.close()
                if self._loop.monotonic() - began > _CLOSING:
                    self.violate("close() took too long")

    async def _work(self, process: Process, consumer: AsyncGroupConsumer) -> None:
        while not process.leaving:
            try:
                batch = await consumer.poll(0.2)
                if batch is not None:
                    self._hand_out(consumer, batch)
                    await asyncio.sleep(self._random.random() * 0.05)
                    if self._random.random() < 0.4:
                        await self._commit(consumer)
            except ClosedError:
                return
            except _GONE:
                process.leaving = process.leaving or self._is_outdated(consumer)
                await self._help(consumer)
            except LanceError as error:
                process.seen.append(repr(error))
                if self._died(consumer):
                    self.violate(f"a member died: {type(error).__name__}: {error}"[:150])
                    return
                await asyncio.sleep(0.1)

    async def _commit(self, consumer: AsyncGroupConsumer) -> None:
        """Commit; what is confirmed is in the store, unless that has gone back meanwhile."""
        restores = self._model.restores
        before = {topic: consumer.committed(topic) for topic in consumer.assignment}
        await consumer.commit()
        if restores == self._model.restores:
            with self._violations():
                for topic in consumer.assignment:
                    if (now := consumer.committed(topic)) != before.get(topic):
                        self._model.confirmed(topic, now)

    def _judge_loss(self, topics: Any) -> None:
        """Take note that a member lost topics: others may have them, and read again."""
        if topics and is_mild(self._plan):
            self.violate(f"a member lost {len(topics)} topics though it went on all the time")

    def _is_outdated(self, consumer: AsyncGroupConsumer) -> bool:
        alive = {topic.info.id for topic in self._server.alive}
        return any(topic.id not in alive for topic in consumer._member._identities.values())

    async def _help(self, consumer: AsyncGroupConsumer) -> None:
        """Do as the documentation says: go on elsewhere in a topic that cannot be read on."""
        alive = {topic.info.id for topic in self._server.alive}
        for topic, error in consumer.errors.items():
            if topic.id in alive and isinstance(error, ConsumeError):
                await consumer.seek(topic, "beginning")
            else:
                await consumer.pause(topic)

    def _died(self, consumer: AsyncGroupConsumer) -> bool:
        """Whether a member is of no use any more, though nobody has made a mistake."""
        error = consumer._member.changes.error
        unknown = getattr(error, "code", None) == GroupErrorCode.UNKNOWN_TOPIC
        return error is not None and not isinstance(error, ClosedError) and not unknown

    def _hand_out(self, consumer: AsyncGroupConsumer, batch: Any) -> None:
        [topic] = [each for each in consumer.assignment if each.label == batch.topic]
        self._model.hand_out(topic, [int.from_bytes(each.value, "big") for each in batch])

    # Judgement

    def _check_owners(self) -> None:
        owned: dict[int, list[str]] = {}
        for process in self._processes.values():
            if process.consumer is not None:
                for topic in process.consumer.assignment:
                    owned.setdefault(topic.id, []).append(process.name)
        for alive in self._server.alive:
            names = owned.get(alive.info.id, [])
            if len(names) != 1:
                seen = [each.seen[-1:] for each in self._processes.values()]
                self.violate(f"topic {alive.info.name} has owners {names} after the faults; {seen}")

    def _check_records(self) -> None:
        for topic in self._server.alive:
            with self._violations():
                if self._begun(topic):
                    self._model.check_everything_came(topic.identity, topic.count)
                    if self._plan.settings.auto_commit == "processed":
                        self._model.check_committed(topic.identity, topic.count)

    def _begun(self, topic: Topic) -> bool:
        """Whether it is known where the group has begun."""
        from_end = self._plan.settings.start == "end"
        return not from_end or topic.info.id in self._model.begins

    @contextmanager
    def _violations(self) -> Iterator[None]:
        try:
            yield
        except ViolationError as violation:
            self.violate(str(violation))

    async def _close_all(self) -> None:
        for process in [*self._processes.values()]:
            process.leaving = True
        tasks = [process.task for process in (*self._processes.values(), *self._old)]
        done, waiting = await asyncio.wait(tasks, timeout=60.0)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.violate(f"a process ended by {error!r}"[:200])
        if waiting:
            self.violate(f"{len(waiting)} processes did not end")


def dial_in(reader: Any, network: Network) -> None:
    """Have what reads topics dial in a network, also the hosts that are named for topics."""
    drive, reader._driver._dial = reader._drive, network.dial

    def driven(session: Any) -> Any:
        driver = drive(session)
        driver._dial = network.dial
        return driver

    reader._drive = driven


def carry_out(plan: Plan) -> str | None:
    """Carry a plan out; return what promise was broken, or None."""
    loop = SimulatedLoop()
    begin = Group.begin_commit
    try:
        with simulated(loop, Random(plan.seed + 3)):
            world = World(plan, loop)

            def judged(
                group: Group, member: Any, commit: Commit, sequence: int = 0
            ) -> GroupErrorCode | None:
                code = begin(group, member, commit, sequence)
                if code is None:
                    world.judge_commit(group, member, commit)
                return code

            with patch.object(Group, "begin_commit", judged):
                try:
                    loop.run_until_complete(world.run())
                except StuckError as stuck:
                    world.violate(str(stuck))
            return world.violation
    finally:
        with suppress(Exception):
            end(loop)


def end(loop: SimulatedLoop) -> None:
    """Cancel what still runs, and close the loop."""
    loop.stopped_until.clear()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    for _ in range(50):
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()


@contextmanager
def simulated(loop: SimulatedLoop, random: Random) -> Iterator[None]:
    """Have the code under test look at the simulated clock, and draw what the seed decides."""
    names = [
        module
        for name, module in sys.modules.items()
        if name.startswith("lance_sdk") and getattr(module, "monotonic", None) is _REAL
    ]
    level = logging.getLogger("lance_sdk").level
    logging.getLogger("lance_sdk").setLevel(logging.CRITICAL + 1)
    with (
        patch.object(time, "monotonic", loop.monotonic),
        patch.object(factory, "_DICE", random),
        patch.object(member_factory, "_DICE", random),
        patch.object(service, "token_hex", lambda size: f"{random.getrandbits(8 * size):x}"),
    ):
        for module in names:
            module.monotonic = loop.monotonic  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for module in names:
                module.monotonic = _REAL  # type: ignore[attr-defined]
            logging.getLogger("lance_sdk").setLevel(level)
