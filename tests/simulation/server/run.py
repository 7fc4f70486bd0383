"""Carrying out a plan against the whole server."""

from contextlib import AbstractContextManager
from random import Random
from typing import Any, Final

from tests.simulation.faults import Fault
from tests.simulation.model import ViolationError
from tests.simulation.plan import Operation
from tests.simulation.server.judging import OVER, Judging
from tests.simulation.server.plan import ServerPlan
from tests.simulation.server.server import ServerLife, simulated
from tests.simulation.server.story import ServerResult

_START: Final = 5.0
"""Seconds in which the server starts."""
_STOP: Final = 12.0
"""Seconds in which it stops, and answers what it has received."""
_RECOVERY: Final = 120.0
"""Seconds after the last fault of the disk in which the server is whole again."""
_BUSY_STEPS: Final = (5, 40, 200)
"""Turns of threads between two operations, at most."""


class ServerRun(Judging):
    """Carries out a plan.

    Args:
        plan: what happens.
    """

    def _inside(self) -> AbstractContextManager[None]:
        return simulated(self.world)

    def _carry_out(self) -> None:
        try:
            super()._carry_out()
        finally:
            self._end_life()

    def _do(self, operation: Operation) -> None:
        getattr(self, f"do_{operation.name}")(**operation.arguments)
        random = self.world.random
        self.world.run(
            steps=random.randrange(random.choice(_BUSY_STEPS)),
            until=self.world.now + random.choice((0.0, 0.001, 0.02)),
        )
        self._note_stop()

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

    # Trouble ---------------------------------------------------------------------------------

    def do_fault(self, **arguments: Any) -> None:
        """Plan a fault of the disk."""
        self.faults.append(Fault(**arguments))

    def do_heal(self) -> None:
        """End all faults of the disk."""
        self.count_faults()
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

    # The end ---------------------------------------------------------------------------------

    def _finale(self) -> None:
        """Judge that everyone who behaves is served after the attack, and nothing is left of it."""
        self.do_heal()
        for peer in self.attackers:
            self._end_peer(peer, self.world.random.choice(("reset", "leave", "vanish", "stay")))
        if self.life is None:
            self.do_start()
        self.world.run(until=max(self.world.now + OVER, self._troubled_until))
        self._check()
        self._probe()
        self._judge_emptiness()
        self.do_stop()
        self._check()
        self.do_start()
        self._check()
        self.do_stop()


def carry_out(plan: ServerPlan) -> ServerResult:
    """Carry out a plan."""
    return ServerRun(plan).carry_out()
