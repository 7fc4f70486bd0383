"""Carrying out a plan."""

import gc
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Final

from tests.simulation.disk import File, SimDisk
from tests.simulation.faults import Fault
from tests.simulation.model import ViolationError
from tests.simulation.mount import Mount
from tests.simulation.store.checks import SHORT, Checks
from tests.simulation.store.clients import Clients
from tests.simulation.store.life import DATA_DIR, Life, offline
from tests.simulation.store.plan import StorePlan
from tests.simulation.store.story import Result
from tests.simulation.world import World

from lance_server.errors import LanceServerError
from lance_server.log.segments.indexes import index_segment
from lance_server.offline.verifying import verify

__all__ = ["Result", "Run", "carry_out"]

_REST_SECONDS: Final = 10.0
"""Seconds after which nothing is on its way any more."""
_IN_A_TOPIC: Final = 5
"""Parts of a path in a topic's folder."""
_BEST_EFFORT: Final = 8
"""Largest batches that a limit must have room for, to be kept."""
_RECOVERY: Final = 120.0
"""Seconds after the last fault within which the store is to be whole again."""


class Run(Clients, Checks):
    """Carries out a plan.

    Args:
        plan: what happens.
    """

    def _note_stop(self) -> None:
        """End the life that a fault has ended."""
        if self.stopped is not None:
            kind, self.stopped = self.stopped, None
            self._crash(kind)

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
        if self.life is not None:
            running = self.life.engine is not None and not self.closing
            self.clean, self.killed = False, running
        self._end_life()
        for topic in self._all_topics():
            topic.lose_track()
        self.result.crashes += 1
        lost = kind == "power" or self.disk.has_lost()
        if kind == "power":
            self.disk.power(self.world.random)
        else:
            self.disk.kill(self.world.random)
        if lost and "os" in self.plan.settings.mode and not self.clean:
            for topic in self._all_topics():
                topic.doubt()

    def do_start(self) -> None:
        """Start the store; what is wrong with the disk may keep it from that."""
        for fault in self.faults:
            fault.paths.clear()
        if self.life is None and not self._start() and not self._may_stop_a_start():
            raise ViolationError("the store did not start")

    def _may_stop_a_start(self) -> bool:
        """Whether something went wrong that is not about the files of one topic alone.

        A write-ahead log must be repeated whole before anything is served.
        """
        if self.disk.room is not None or self.disk.read_only or "wal" in self.plan.settings.mode:
            return self._in_trouble()
        paths = [path for fault in self.faults for path in fault.paths]
        return any(len(path.parts) < _IN_A_TOPIC or path.parts[2] != "segments" for path in paths)

    def _start(self) -> bool:
        life = self.life = Life(self.world, self.disk, self.plan.settings, self._stop)
        life.mount.faults = self.faults
        self.world.spawn(life.open)
        self.world.rest(SHORT)
        self.closing = False
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
        self.closing, done = True, []
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
        if clean and self.calm and _left_open(life):
            gc.collect()  # errors hold what was being read
            self._release(life)
        left = _left_open(life)
        if clean and left and self.calm:
            raise ViolationError(f"files are open after a clean stop: {left}")
        self._end_life()
        self.clean, self.killed = clean, False
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
        self.calm = False
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
        self.disk.room, self.calm = room, False

    def do_read_only(self) -> None:
        """Let the disk take no change."""
        self.disk.read_only, self.calm = True, False

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
        sidecars = [each for path, each in files if path.suffix == ".batches"]
        if way == "copy" and len(sidecars) > 1:
            source, target = self.world.random.sample(sidecars, 2)
            target.content[:] = target.disk[:] = source.content
            target.pending = []
        elif way == "cut":
            self._cut(self.world.random.choice(sidecars or [file]))
        else:
            self._rot(file, way)
        model.rotten = True
        model.unclean_rot |= not self.clean

    def _cut(self, file: File) -> None:
        """Cut a file at a multiple of 64 bytes, as the entries of a sidecar stand."""
        del file.content[64 * self.world.random.randint(0, len(file.content) // 64) :]
        file.disk, file.pending = bytearray(file.content), []

    def _rot(self, file: File, way: str) -> None:
        place, length = 0, 64
        if way != "header":
            place = self.world.random.randrange(len(file.content))
            length = self.world.random.choice((1, 8, 200))
        changed = bytes(
            0 if way == "zero" else each ^ 0x55 for each in file.content[place : place + length]
        )
        file.content[place : place + len(changed)] = changed
        file.disk, file.pending = bytearray(file.content), []

    # Waiting ---------------------------------------------------------------------------------

    def _rest(self) -> None:
        self.world.rest(_REST_SECONDS)

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
        self._judge_handles(life)

    def do_probe(self) -> None:
        """Judge that the store takes batches again, some time after all faults."""
        if self.life is None or self.life.engine is None or self._in_trouble():
            return
        self.world.rest(_RECOVERY)
        self._check()
        for _ in range(2):
            for slot in range(len(self.topics)):
                self.do_append(slot, 1, 20)
            self._rest()
        self._check()
        if self.stopped is None:
            self._judge_usable()

    def do_weigh(self, topic: int) -> None:
        """Judge that a topic keeps no more than its limit and what came at once."""
        model, life = self._topic(topic), self.life
        if model is None or life is None or life.engine is None or self._in_trouble():
            return
        found = life.engine.find(model.id if model.id is not None else -1)
        if found is None or len(model.policies) > 1 or model.rotten:
            return
        limit = model.policies[0][0]
        largest = max((len(batch.raw) for batch in model.batches.values()), default=0)
        kept = found.partition.end_offset - found.partition.start_offset
        if limit and limit >= _BEST_EFFORT * largest and kept > limit + largest:
            raise ViolationError(f"{model.name}: it keeps {kept} bytes of at most {limit}")

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
            self.clean, self.killed = True, False

    def do_reindex(self) -> None:
        """Do what ``lance-server reindex`` does."""
        if self._may_be_offline():
            with self._offline() as (engine, _, mount):
                for topic in engine.topics_with_default():
                    for segment in topic.partition.segment_list:
                        index_segment(mount, segment, 0)
            self.clean, self.killed = True, False

    def do_verify(self) -> None:
        """Do what ``lance-server verify`` does, which changes nothing."""
        if self._may_be_offline():
            before = _image(self.disk)
            self._verify()
            if _image(self.disk) != before:
                raise ViolationError("verify changed something")

    def _verify(self) -> None:
        """Judge that verify finds nothing where nothing was changed on the disk."""
        world = World(Random(1), self.plan.settings.pace)
        findings = verify(DATA_DIR, storage=Mount(self.disk, world, "dsync", self._stop)).findings
        if self.clean:  # else there may be torn tails, which only a start cuts
            self._judge_findings(findings, is_whole=True)

    # The end ---------------------------------------------------------------------------------

    def _finale(self) -> None:
        """Judge that the store is whole after all faults, without a restart and with one."""
        self.do_heal()
        if self.life is None:
            self.do_start()
            self._note_stop()
        self.do_probe()
        self.do_settle()
        self.do_stop()
        self._check()
        if self.life is None and self.stopped is None:
            self._verify()
        self.do_power()
        self._note_stop() if "os" not in self.plan.settings.mode else None
        self.stopped = None
        self.do_start()
        self.do_settle()
        self._check()


def _left_open(life: Life) -> list[str]:
    """Return the files of topics that a stop has left open."""
    return [str(path) for path, _ in life.mount.files.values() if path.suffix != ".wal"]


def _image(disk: SimDisk) -> dict[str, bytes]:
    return {str(path): bytes(file.content) for path, file in disk.files(DATA_DIR)}


def carry_out(plan: StorePlan) -> Result:
    """Carry out a plan."""
    return Run(plan).carry_out()
