"""What is judged of the whole server: who is served, what is stored, what is left."""

from collections.abc import Sequence
from typing import Any, Final

from tests.simulation.model import ViolationError
from tests.simulation.server.attacks import Attacks
from tests.simulation.server.peers import Peer
from tests.simulation.server.server import IDLE, SLOW, SimServer
from tests.simulation.store.life import read_topic

from lance_server.listeners.qwp.listener import QwpListener
from lance_server.lwp.connection import Connection
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.memory_quota import Quota

_RELIEF: Final = 0.5
"""Seconds in which who waits for memory learns that there is some."""
OVER: Final = IDLE + SLOW + 3.0
"""Seconds after which nothing is left of an attack."""
_WORK: Final = 60.0
"""Seconds in which the longest pipeline is carried out, one batch after the other."""
_SERVED: Final = 1.0
"""Seconds in which a peer that behaves is served when no attack is under way."""


class Judging(Attacks):
    """The rules that hold while the server runs, and when its peers are gone."""

    def do_settle(self, *, soon: bool = False) -> None:
        """Wait until every peer that behaves was served, and look at everything."""
        if self.life is None or self.life.server is None:
            return
        patience = _SERVED if soon else OVER
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
        for written in self.written.values():
            written.judge(life.server.engine)
        life.mount.faults = faults

    def _probe(self) -> None:
        """Judge that peers that behave are served at once."""
        self._wait_for(self.good, _SERVED)
        self._judge_waiting(self.good, 0.0)
        self._judge_waiting([peer for peer in self.attackers if _waits(peer)], OVER)
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

    def _is_at_work(self) -> bool:
        assert self.life is not None, "it runs"
        assert self.life.server is not None, "it runs"
        connected = any(getattr(listener, "_open", None) for listener in self.life.listeners)
        return connected or bool(self.life.server.engine.backlog.size)

    def _judge_emptiness(self) -> None:
        """Judge that nothing is held for peers that have left."""
        assert self.life is not None, "it runs"
        for peer in [*self.good, *self.attackers]:
            self._end_peer(peer, "leave")
        self.world.run(until=self.world.now + SLOW + 2.0)
        self._check()
        server = self.life.server
        assert server is not None, "it runs"
        # What was received of them is still carried out, as fast as the disk takes it.
        self._run_until(lambda: not self._is_at_work(), _WORK)
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
        for quota in (each for each in map(_quota, self.life.listeners) if each.used):
            raise ViolationError(f"memory is held for nobody: {quota!r}")
        if server.service.stall.reason is not None:
            raise ViolationError(f"the server is not ready: {server.service.stall.reason}")


def _quota(listener: Any) -> Quota:
    """Return the memory quota of a listener."""
    shared = getattr(listener, "_shared", None)
    if isinstance(listener, QwpListener):
        return listener.quota
    quota: Quota = listener._cluster.quota if shared is None else shared.memory
    return quota


def _served(server: SimServer) -> list[Connection]:
    return list(server.connection_manager)


def _waits(peer: Peer) -> bool:
    """Whether a peer is there and reads, so that it is to be answered."""
    return peer.link is not None and not peer.link.vanished and peer.reads and not peer.nonsense
