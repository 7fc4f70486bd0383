"""Carrying out a plan against the whole server."""

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.disk import Folder, Move, SimDisk
from tests.simulation.faults import Fault
from tests.simulation.model import TopicModel, ViolationError, make_batch
from tests.simulation.plan import Operation
from tests.simulation.run import heard
from tests.simulation.server.framed import KINDS
from tests.simulation.server.network import Link
from tests.simulation.server.peers import LwpPeer, Peer, batches_in
from tests.simulation.server.plan import ServerPlan
from tests.simulation.server.qwp import judge_tables
from tests.simulation.server.server import IDLE, LWP_PORT, SLOW, ServerLife, SimServer, simulated
from tests.simulation.store import DATA_DIR, read_topic
from tests.simulation.world import EPOCH_NS, StuckError, World

from lance_server.listeners.qwp.listener import QwpListener
from lance_server.lwp.connection import Connection
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.memory_quota import Quota
from lance_server.runtime.sync import replaced

_START: Final = 5.0
"""Seconds in which the server starts."""
_STOP: Final = 12.0
"""Seconds in which it stops, and answers what it has received."""
_AGAIN: Final = (0.01, 0.3)
"""Seconds after which a peer that behaves connects again."""
_RELIEF: Final = 0.5
"""Seconds in which who waits for memory learns that there is some."""
_BEAT: Final = 1.0
"""Seconds between two keepalives of a peer that behaves."""
_LOOK: Final = 0.02
"""Seconds between two looks at whether something has happened."""
_OVER: Final = IDLE + SLOW + 3.0
"""Seconds after which nothing is left of an attack."""
_SERVED: Final = 1.0
"""Seconds in which a peer that behaves is served when no attack is under way."""
_RECOVERY: Final = 120.0
"""Seconds after the last fault of the disk in which the server is whole again."""
_MOST_PIECES: Final = 700
"""Answers that one peer may get in one turn of the event loop, before the others have theirs."""
_BUSY_STEPS: Final = (5, 40, 200)
"""Turns of threads between two operations, at most."""


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


class ServerRun:
    """Carries out a plan.

    Args:
        plan: what happens.

    Attributes:
        plan: what happens.
        result: what came of it so far.
        world: whose threads the server runs on.
        disk: what it stands on.
        life: the server, while it runs.
        topics: by id.
        good: the peers that behave.
        attackers: the others.
        trouble: promises that were broken in the middle of something.
    """

    def __init__(self, plan: ServerPlan) -> None:
        self.plan = plan
        self.result = ServerResult()
        self.world = World(Random(plan.seed), plan.settings.pace)
        self.disk = SimDisk()
        self.disk.root.change(Move(None, DATA_DIR.name, Folder()))
        self.disk.root.sync()
        self.life: ServerLife | None = None
        self.topics = {0: TopicModel("default", 0, present=True)}
        self.good = [LwpPeer(self, number) for number in range(3)]
        self.attackers: list[Peer] = []
        self.trouble: list[ViolationError] = []
        self.faults: list[Fault] = []
        self._mine: dict[Peer, TopicModel] = {}
        self._number = 0
        self._stopped: str | None = None
        self._troubled_until = 0.0
        self._calm = False

    def carry_out(self) -> ServerResult:
        """Do all of it; what was broken stands in the result."""
        gc.disable()
        try:
            with (
                heard(self.world.errors),
                replaced(self.world.primitives()),
                simulated(self.world),
            ):
                try:
                    self._carry_out()
                finally:
                    self._end_life()
        except ViolationError as error:
            self.result.violation = str(error)
        except (StuckError, AssertionError, RecursionError) as error:
            self.result.violation = f"{type(error).__name__}: {error}"
        finally:
            gc.enable()
        for fault in self.faults:
            if fault.fired:
                self.result.fired[f"{fault.error} {fault.method}"] += 1
        return self.result

    def _carry_out(self) -> None:
        for operation in self.plan.operations:
            self.world.random = Random(operation.seed)
            self._do(operation)
            self.result.operations += 1
            self._check()
        self.world.random = Random(self.plan.seed)
        self._finale()

    def _do(self, operation: Operation) -> None:
        getattr(self, f"do_{operation.name}")(**operation.arguments)
        random = self.world.random
        self.world.run(
            steps=random.randrange(random.choice(_BUSY_STEPS)),
            until=self.world.now + random.choice((0.0, 0.001, 0.02)),
        )
        self._note_stop()

    def _check(self) -> None:
        if self.trouble:
            raise self.trouble[0]
        if self.world.errors:
            error = self.world.errors[0]
            raise ViolationError(f"a callback raised {type(error).__name__}: {error}")
        for transport in [] if self.life is None else self.life.transports:
            if transport.most_pieces > _MOST_PIECES:
                raise ViolationError(
                    f"one peer got {transport.most_pieces} answers in a turn of the event loop"
                )

    # Lives -----------------------------------------------------------------------------------

    def do_start(self) -> None:
        """Start the server; peers that behave connect to it."""
        if self.life is not None:
            return
        life = self.life = ServerLife(self.world, self.disk, self.plan.settings, self._stop)
        life.mount.faults = self.faults
        self.result.starts += 1
        self._run_until(lambda: life.opened, _START)
        if self._stopped is not None:
            return
        if not life.opened:
            self._check()
            raise ViolationError("a start never ended")
        if life.error is not None or life.server is None:
            if not self._in_trouble():
                raise ViolationError(f"the server did not start: {life.error!r}")
            self._end_life()
            return
        if not self._in_trouble():
            self._judge_topics()
        for peer in self.good:
            self._connect(peer)

    def _stop(self, kind: str) -> None:
        self._stopped = kind
        if self.life is not None:
            self.life.die()

    def _note_stop(self) -> None:
        if self._stopped is None:
            return
        kind, self._stopped = self._stopped, None
        random, self.world.random = self.world.random, Random(self.world.random.getrandbits(32))
        self._end_life()
        self.world.random = random
        self.result.crashes += 1
        if kind == "power":
            self.disk.power(self.world.random)
        else:
            self.disk.kill(self.world.random)

    def _end_life(self) -> None:
        life, self.life = self.life, None
        if life is None:
            self.world.end()
            return
        life.die()
        self.world.end()
        life.loop.dispose()
        for peer in [*self.good, *self.attackers]:  # those who wait learn it at once
            if peer.link is not None:
                peer.lose()
        for topic in self.topics.values():
            topic.lose_track()

    def do_kill(self) -> None:
        """End the process."""
        self._stop("kill")

    def do_power(self) -> None:
        """End the machine."""
        self._stop("power")

    def do_stop(self) -> None:
        """Stop the server cleanly: what it has received is answered."""
        life = self.life
        if life is None or life.server is None:
            return
        life.ask_to_stop()
        self._run_until(lambda: life.stopped, _STOP)
        if self._stopped is not None:
            return
        if not life.stopped:
            self._check()
            raise ViolationError("a clean stop never ended")
        if life.error is not None and not self._in_trouble():
            raise ViolationError(f"a clean stop failed: {life.error!r}")
        self._end_life()

    # Peers -----------------------------------------------------------------------------------

    def _connect(self, peer: Peer, port: int = LWP_PORT) -> None:
        """Connect a peer, if there is somebody to connect to."""
        if self.life is None or peer.link is not None:
            return
        link = Link(self.world, self.plan.settings.limits.room)
        peer.connect(link)
        life, name = self.life, peer.name
        self.world.call_later(1e-4, lambda: life.accept(name, port, link))
        if peer in self.good:
            self._beat(peer, link)
            self._go_on(peer)

    def _beat(self, peer: Peer, link: Link) -> None:
        """Have a peer that behaves show that it is alive."""
        if peer.link is link and isinstance(peer, LwpPeer):
            if not peer.owed:
                peer.ask_alive()
            self.world.call_later(_BEAT, lambda: self._beat(peer, link))

    def _go_on(self, peer: Peer) -> None:
        """Have a peer that behaves send again what was never answered."""
        if not isinstance(peer, LwpPeer):
            return
        model = self._mine.get(peer)
        if model is None:
            model = self._mine[peer] = TopicModel(f"topic-{peer.number}")
        if model.id is None:
            peer.create(model)
            return
        for owner, batch in list(peer.unanswered.values()):
            batch.resent = True
            peer.append(owner, batch)

    def lost(self, peer: Peer) -> None:
        """Have a peer that behaves connect again."""
        if peer in self.good and not self._calm:
            pause = self.world.random.uniform(*_AGAIN)
            self.world.call_later(pause, lambda: self._connect(peer))

    def created(self, model: TopicModel, topic_id: int) -> None:
        """Note that a topic was created."""
        if topic_id in self.topics:
            self.trouble.append(ViolationError(f"topic id {topic_id} was given twice"))
        model.id, model.present = topic_id, True
        self.topics[topic_id] = model

    def committed(self, model: TopicModel, consumer: int, offset: int) -> None:
        """Note that a commit was acknowledged."""
        known = model.commits[consumer]
        model.commits[consumer] = known[known.index(offset) :] if offset in known else known

    def refused(self, peer: Peer, message: str) -> None:
        """Note that a request was refused: at the end nobody who behaves is."""
        if self._calm and peer in self.good:
            self.trouble.append(ViolationError(f"{peer.name} is refused: {message}"))

    def judge_data(self, model: TopicModel, start: int, data: bytes) -> None:
        """Judge what was read, and note what stands where, for ever."""
        for place, batch in batches_in(model, start, data).items():
            known = model.taken.setdefault(place, batch.number)
            if known != batch.number or batch.place not in {None, place}:
                raise ViolationError(
                    f"{model.name}: at {place} stands {batch}; before it was batch {known}"
                )
            batch.place, batch.seen = place, True

    def may_be_hole(self, model: TopicModel, first: int, behind: int) -> bool:
        """Whether a crash may have retired a range of offsets: nothing was ever seen there."""
        return self.result.crashes > 0 and not any(first <= at < behind for at in model.taken)

    def do_append(self, peer: int, count: int, size: int) -> None:
        """Have a peer send batches."""
        client = self.good[peer]
        model = self._mine.get(client)
        if model is None or model.id is None or client.link is None:
            return
        for _ in range(count):
            self._append(client, model, size)

    def _append(self, client: LwpPeer, model: TopicModel, size: int) -> None:
        self._number += 1
        batch = make_batch(self._number, 1, size, self.world.now)
        batch.resent = model.id == 0  # many write there, in no order
        model.batches[batch.number] = batch
        client.append(model, batch)

    def do_fetch(self, peer: int, share: float, size: int) -> None:
        """Have a peer fetch what stands somewhere."""
        client, model = self.good[peer], self._some_topic(share)
        places = [0, *model.taken]
        client.fetch(model, places[int(share * len(places))], size)

    def _some_topic(self, share: float) -> TopicModel:
        topics = list(self.topics.values())
        return topics[int(share * 7919) % len(topics)]

    def do_request(self, peer: int, kind: str) -> None:
        """Have a peer ask for something."""
        self._ask(self.good[peer], kind, 0)

    def _ask(self, client: LwpPeer, kind: str, index: int) -> None:
        model = self._some_topic(self.world.random.random())
        if kind == "fetch":
            client.fetch(model, next(iter(model.taken), 0), 2000)
        elif kind == "append":
            self._append(client, self.topics[0], 40)
        elif kind == "get":
            client.get_topic(model)
        elif kind == "list":
            client.list_topics()
        elif kind == "commit":
            places = [0, *model.taken]
            client.commit(model, places[index % len(places)])
        elif kind == "seek":
            client.seek(model, EPOCH_NS + round(self.world.random.random() * self.world.now * 1e9))
        elif kind == "token":
            client.authenticate()
        elif kind == "create":
            client.create(TopicModel(f"t-{client.number}-{index}"))
        elif kind == "subscribe":
            client.subscribe(model, 100)
        else:
            client.ask_alive()

    # Attacks ---------------------------------------------------------------------------------

    def _new_attacker(self) -> LwpPeer:
        peer = LwpPeer(self, 10 + len(self.attackers))
        self.attackers.append(peer)
        self._connect(peer)
        return peer

    def do_pipeline(self, listener: str, count: int, *, reads: bool) -> None:
        """Have a new peer of another listener send many requests at once."""
        if self.life is None:
            return
        peer = KINDS[listener](self, 10 + len(self.attackers))
        self.attackers.append(peer)
        peer.reads = reads
        self.result.floods += 1
        self._connect(peer, self.life.port_of(listener))
        if peer.link is not None:
            peer.corked = True
            peer.ask(count)
            peer.uncork()

    def do_flood(self, kind: str, count: int, *, reads: bool, shut: bool) -> None:
        """Have a new peer send many requests at once, and perhaps end its side after them."""
        peer = self._new_attacker()
        peer.reads = reads
        self.result.floods += 1
        if kind == "nonsense":
            peer.babble(self.world.random.randbytes(count))
            return
        peer.corked = True
        if kind == "waiting":  # those after the first have to wait
            self._ask(peer, "seek", 0)
        plain = {"part": "get", "waiting": "fetch"}.get(kind, kind)
        for index in range(count):
            self._ask(peer, plain, index)
        if kind == "part":
            frame = peer.raw_ingest(bytes(1000), 1)
            peer.babble(frame[: self.world.random.randrange(1, len(frame))])
        peer.uncork()
        if shut:
            self._end_peer(peer, "shut")

    def do_crowd(self, count: int) -> None:
        """Have new peers connect that say nothing, or little."""
        for _ in range(count):
            peer = self._new_attacker()
            if self.world.random.random() < 0.5:
                peer.list_topics()

    def do_subscribe(self, size: int, topic: int) -> None:
        """Have a new peer subscribe."""
        model = self._mine.get(self.good[topic])
        if model is not None and model.id is not None:
            self._new_attacker().subscribe(model, size)

    def _attacker(self, back: int) -> Peer | None:
        there = [peer for peer in self.attackers if peer.link is not None]
        return there[-1 - back % len(there)] if there else None

    def do_reader(self, back: int, reads: bool) -> None:
        """Have a peer stop reading, or begin again."""
        peer = self._attacker(back)
        if peer is not None:
            peer.reads = reads
            if reads:
                peer.read_again()

    def do_fate(self, back: int, fate: str) -> None:
        """Let a connection end in some way, as its peer does it."""
        peer = self._attacker(back)
        if peer is not None:
            self._end_peer(peer, fate)

    def _end_peer(self, peer: Peer, fate: str) -> None:
        link = peer.link
        if link is None or fate == "stay":
            return
        if fate == "shut":
            peer.end()
            return
        {"reset": link.reset, "leave": link.close, "vanish": link.vanish}[fate]()
        peer.lose()

    # Trouble ---------------------------------------------------------------------------------

    def _in_trouble(self) -> bool:
        return any(fault.struck for fault in self.faults) or self.world.now < self._troubled_until

    def do_fault(self, **arguments: Any) -> None:
        """Plan a fault of the disk."""
        self.faults.append(Fault(**arguments))

    def do_heal(self) -> None:
        """End all faults of the disk."""
        for fault in self.faults:
            if fault.fired:
                self.result.fired[f"{fault.error} {fault.method}"] += 1
        if self._in_trouble():
            self._troubled_until = self.world.now + _RECOVERY
        self.faults.clear()

    def do_roll(self, topic: int) -> None:
        """Have a topic's segment closed, as it is when it is full."""
        life, model = self.life, self._mine.get(self.good[topic])
        if life is None or life.server is None or model is None or model.id is None:
            return
        found = life.server.engine.find(model.id)
        if found is not None:
            life.loop.call_soon_threadsafe(found.partition.roll)

    def do_wait(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run(until=self.world.now + seconds)

    # Judging ---------------------------------------------------------------------------------

    def do_settle(self, *, soon: bool = False) -> None:
        """Wait until every peer that behaves was served, and look at everything."""
        if self.life is None or self.life.server is None:
            return
        patience = _SERVED if soon else _OVER
        self._wait_for(self.good, patience)
        if self._stopped is not None or self._in_trouble() or self.life is None:
            return
        self._judge_waiting(self.good, patience)
        self._judge_memory_waiters()

    def _wait_for(self, peers: Sequence[Peer], seconds: float) -> None:
        def served() -> bool:
            self._check()
            return all(peer.waits_since() is None and peer.link is not None for peer in peers)

        self._run_until(served, seconds)

    def _run_until(self, happened: Callable[[], bool], seconds: float) -> None:
        """Let things go on until something has happened, or for so long."""
        until = self.world.now + seconds
        while self.world.now < until and self._stopped is None and not happened():
            self.world.run(until=min(until, self.world.now + _LOOK))

    def _judge_waiting(self, peers: Sequence[Peer], seconds: float) -> None:
        for peer in peers:
            waits = peer.waits_since()
            if waits is not None and self.world.now - waits[0] >= seconds:
                raise ViolationError(
                    f"{waits[1]} was not answered in {self.world.now - waits[0]:.1f} s"
                )

    def _judge_memory_waiters(self) -> None:
        """Judge that nobody waits for memory that only waiters hold."""
        assert self.life is not None, "it runs"
        assert self.life.server is not None, "it runs"
        memory = self.life.server.service.memory
        waiting = list(memory._waiters)
        if waiting and not self._is_on_its_way(self.life.server):
            self.world.run(until=self.world.now + _RELIEF)
        still = [each for each in waiting if each in memory._waiters]
        if still and not self._is_on_its_way(self.life.server):
            raise ViolationError(f"requests wait for memory that nobody gives back: {memory}")

    def _is_on_its_way(self, server: SimServer) -> bool:
        """Whether memory is held that the disk, or a peer that reads, gives back."""
        answers = sum(each.session.other_bytes + each._buffered() for each in _served(server))
        return bool(answers or server.engine.backlog.size)

    def _judge_topics(self) -> None:
        """Judge that what was acknowledged is there, at its offset, and nothing else is."""
        life = self.life
        assert life is not None, "it runs"
        assert life.server is not None, "it runs"
        faults, life.mount.faults = life.mount.faults, []
        for model in self.topics.values():
            found = life.server.engine.find(model.id or 0)
            if found is None:
                raise ViolationError(f"{model.name} is gone")
            try:
                reading = read_topic(found)
            except (OSError, Refusal) as error:
                raise ViolationError(f"{model.name} cannot be read: {error!r}") from None
            model.judge(reading, settled=False)
            for consumer, possible in model.commits.items():
                if (committed := found.consumers.committed(consumer)) not in possible:
                    raise ViolationError(
                        f"{model.name}: consumer {consumer} has {committed}, not {possible}"
                    )
        judge_tables(self.attackers, life.server.engine)
        life.mount.faults = faults

    # The end ---------------------------------------------------------------------------------

    def _finale(self) -> None:
        """Judge that everyone who behaves is served after the attack, and nothing is left of it."""
        self.do_heal()
        for peer in self.attackers:
            self._end_peer(peer, self.world.random.choice(("reset", "leave", "vanish", "stay")))
        if self.life is None:
            self.do_start()
        self.world.run(until=max(self.world.now + _OVER, self._troubled_until))
        self._check()
        self._probe()
        self._judge_emptiness()
        self.do_stop()
        self._check()
        self.do_start()
        self._check()
        self.do_stop()

    def _probe(self) -> None:
        """Judge that peers that behave are served at once."""
        self._wait_for(self.good, _SERVED)
        self._judge_waiting(self.good, 0.0)
        self._judge_waiting([peer for peer in self.attackers if _waits(peer)], _OVER)
        for peer in self.good:
            if peer.link is None:
                raise ViolationError(f"{peer.name} is not let in after the attack")
        self._calm = True
        for number, peer in enumerate(self.good):
            self.do_append(number, 2, 30)
            peer.fetch(self.topics[0], 0, 1000)
            peer.list_topics()
            peer.ask_alive()
        self._wait_for(self.good, _SERVED)
        self._judge_waiting(self.good, 0.0)
        self._judge_reserves()
        self._judge_topics()

    def _judge_reserves(self) -> None:
        """Judge that no memory is set aside for reads where none is under way."""
        assert self.life is not None, "it runs"
        assert self.life.server is not None, "it runs"
        for each in _served(self.life.server):
            session = each.session
            if not session.owed and not session.subscribed_topics and session._reads.reserved:
                raise ViolationError(f"memory is set aside for nothing: {each!r}")

    def _judge_emptiness(self) -> None:
        """Judge that nothing is held for peers that have left."""
        assert self.life is not None, "it runs"
        for peer in [*self.good, *self.attackers]:
            self._end_peer(peer, "leave")
        self.world.run(until=self.world.now + SLOW + 2.0)
        self._check()
        server = self.life.server
        assert server is not None, "it runs"
        memory, left = server.service.memory, len(server.connection_manager)
        for topic in server.engine.topics_with_default():
            if topic.partition._watchers:
                raise ViolationError(f"somebody who left is told of topic {topic.id}")
        if left or server.service.counters.connections_open:
            raise ViolationError(f"{left} connections are left of peers that are gone")
        if memory.used or memory.idle or memory._waiters:
            raise ViolationError(f"memory is held for nobody: {memory}, {memory.idle}")
        for listener in self.life.listeners:
            if getattr(listener, "_open", None):
                raise ViolationError(f"connections are left of peers that are gone: {listener!r}")
        for budget in (each for each in map(_budget, self.life.listeners) if each.used):
            raise ViolationError(f"memory is held for nobody: {budget!r}")
        if server.service.stall.reason is not None:
            raise ViolationError(f"the server is not ready: {server.service.stall.reason}")


def _budget(listener: Any) -> Quota:
    """Return the memory account of a listener."""
    shared = getattr(listener, "_shared", None)
    if isinstance(listener, QwpListener):
        return listener.budget
    budget: Quota = listener._cluster.budget if shared is None else shared.memory
    return budget


def _served(server: SimServer) -> list[Connection]:
    return list(server.connection_manager)


def _waits(peer: Peer) -> bool:
    """Whether a peer is there and reads, so that it is to be answered."""
    return peer.link is not None and not peer.link.vanished and peer.reads and not peer.nonsense


def carry_out(plan: ServerPlan) -> ServerResult:
    """Carry out a plan."""
    return ServerRun(plan).carry_out()
