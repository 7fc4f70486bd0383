"""Nodes of the simulation, their machines, and what can be read of them."""

import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simulation.cluster.logs import DATA_DIR

from lance_server.cluster.applying.mark import FOLDER, UNFINISHED, load_mark
from lance_server.cluster.copies.clone import clone
from lance_server.cluster.copies.offered import SEGMENTS, OfferedCopies
from lance_server.cluster.log_manager import ReplicatedLogManager
from lance_server.cluster.node_options import NodeOptions
from lance_server.errors import ConfigError, DataDirError, PeerError
from lance_server.log.copies import Offer
from lance_server.log.log_options import LogOptions
from lance_server.runtime.completion import Completion
from lance_server.testing import CrashError, ManualScheduler, MemoryStorage
from lance_server.testing.replicated_log import FaultyLog
from lance_spec.checksum import CRC32C

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World


_ENOUGH = 2
"""Nodes that must have what the log, or one more node, forgets."""


class WrongError(AssertionError):
    """An invariant does not hold."""


class WatchedLog(FaultyLog):
    """A node's connection, which tells the world before it trims, and reads shards unevenly."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.log)
        self._world = world

    def limit(self, shard: int, position: int) -> int:
        """Return how many entries the node may see; of several shards often none of one."""
        most = super().limit(shard, position)
        uneven = self.shards > 1 and not self._world.is_calm
        return 0 if uneven and self._world.random.random() < 0.5 else most

    def trim(self, shard: int, before: int) -> None:
        """Trim, after the world has looked; not before all nodes have joined."""
        if self._world.has_joined:
            look_at_trim(self._world, shard, before)
            super().trim(shard, before)


class Host:
    """A node and its machine.

    Attributes:
        number: of the node.
        disk: its disk.
        alive: whether it runs.
        skew: how far its clock is off, in nanoseconds.
        starts: how often it was started.
        clones: how often it got the files of another node.
        needs_clone: whether its disk is lost or damaged.
        told_durable: what it had made durable before its disk was lost, as others may believe.
        hosted: the shards that it hosts.
        ever_left: those that it did not host at some time.
    """

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.number = number
        self.disk = MemoryStorage()
        self.alive = False
        self.skew = 0
        self.starts = 0
        self.clones = 0
        self.needs_clone = False
        self.told_durable: dict[int, int] = {}
        self.hosted = frozenset(world.shards)
        self.ever_left: set[int] = set()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"host{self.number}:1992"

    def start(self) -> None:
        """Start a process on what the disk holds."""
        self.starts += 1
        self.scheduler = ManualScheduler()
        self.scheduler.now = self.world.seconds
        self.log = WatchedLog(self.world)
        options = NodeOptions(
            self.number,
            self.address,
            process=self.number * 1000 + self.starts,
            mark_bytes=self.world.random.choice((2000, 100_000)),
            mark_seconds=self.world.random.choice((1.0, 1.0, 60.0)),
            trims=True,
            shards=self.hosted,
        )
        self.manager = ReplicatedLogManager.join(
            DATA_DIR,
            self.disk,
            self.scheduler,
            log=self.log,
            node=options,
            options=LogOptions(open_segments=8),
            post=self.scheduler.call_soon,
            clock=lambda: self.world.now_ns + self.skew,
            now=lambda: self.scheduler.now,
        )
        self.copies = OfferedCopies(
            self.manager.node,
            DATA_DIR,
            self.disk,
            self.scheduler,
            now=lambda: self.scheduler.now,
            copies=self.disk,
            link=_no_link,
        )
        replica = self.manager.node.replica
        drop = replica.drop

        def watched(number: int) -> None:
            look_at_drop(self.world, self, number)
            drop(number)

        replica.drop = watched  # type: ignore[method-assign]
        self.alive = True

    def crash(self) -> None:
        """Lose the process and what the disk did not have to keep."""
        random = self.world.random
        arriving = random.randrange(len(self.log.pending) + 1)
        self.world.late += [(each.shard, each.record) for each in list(self.log.pending)[:arriving]]
        self.log.pending.clear()
        self.disk = self.disk.crash(random)
        self.alive = False

    def durable(self, shard: int) -> int:
        """Return the position of a shard that its disk has, whatever happens."""
        mark = load_mark(self.disk, DATA_DIR, shard) if self.starts else None
        return 0 if mark is None else mark.state.position

    def had_durable(self, shard: int) -> int:
        """Return the position of a shard that its disk has, or had before it was lost."""
        told = self.told_durable.get(shard, 0)
        return told if self.needs_clone else max(self.durable(shard), told)

    def is_member(self, shard: int) -> bool:
        """Whether the log must wait for it: its disk says that it is registered as a host."""
        if not self.starts or shard not in self.hosted or shard in self.ever_left:
            return False
        mark = load_mark(self.disk, DATA_DIR, shard)
        return mark is not None and self.number in mark.state.hosts

    def is_joining(self) -> bool:
        """Whether the log need not wait for it yet."""
        return not all(self.is_member(shard) for shard in self.hosted)

    def is_behind(self) -> bool:
        """Whether others may believe that it has more than it has, since its disk was lost."""
        return self.needs_clone or any(
            self.durable(shard) < told
            for shard, told in self.told_durable.items()
            if shard in self.hosted
        )

    def lose_disk(self) -> None:
        """Crash, and come back with an empty disk, or with a byte changed."""
        random = self.world.random
        self.crash()
        self.told_durable = {shard: self.durable(shard) for shard in self.world.shards}
        self.needs_clone = True
        files = [path for path in self.disk.files() if self.disk.peek(path)]
        if random.random() < 0.5 or not files:
            self.disk = MemoryStorage()
            return
        path = random.choice(files)
        content = bytearray(self.disk.peek(path))
        content[random.randrange(len(content))] ^= 1 + random.randrange(255)
        self.disk.poke(path, bytes(content))

    def shows_its_loss(self) -> bool:
        """Whether a start must notice by itself that the disk is lost, or a clone not whole."""
        self.disk.make_dir(DATA_DIR)
        if FOLDER not in self.disk.list_dir(DATA_DIR):
            return SEGMENTS not in self.disk.list_dir(DATA_DIR)
        return UNFINISHED in self.disk.list_dir(DATA_DIR / FOLDER)

    def clone(self, peer: "Host") -> None:
        """Get the files of another node; a crash may end it, a busy node may refuse it."""
        random = self.world.random
        if random.random() < 0.3:
            self.disk.crash_after = self.disk.operations + random.randrange(60)
        try:
            self.disk.make_dir(DATA_DIR)
            marks = self._marks()
            clone(self.disk, DATA_DIR, PeerSource(peer))
        except CrashError:
            self.disk = self.disk.crash(random)
        except (PeerError, DataDirError):
            pass  # it is tried again, with another one perhaps
        else:
            if not marks <= self._marks():
                raise WrongError(f"node {self.number} lost shards by a clone of {peer.number}")
            self.needs_clone = False
            self.clones += 1
        self.disk.crash_after = None

    def _marks(self) -> set[str]:
        """Return the names of the marks that its disk has."""
        if FOLDER not in self.disk.list_dir(DATA_DIR):
            return set()
        return {name for name in self.disk.list_dir(DATA_DIR / FOLDER) if name.endswith(".json")}

    def await_outcome(self, outcome: Completion[Any]) -> Any:
        """Let the node work until something is done.

        Raises:
            PeerError: it is not done for long.
        """
        for _ in range(40):
            if outcome.done:
                break
            self.scheduler.pass_time(0.05)
            self.work()
        else:
            raise PeerError("the node does not answer")
        if outcome.error is not None:
            raise PeerError(str(outcome.error))
        return outcome.result()

    def work(self) -> None:
        """Run one job of the worker, and what it leads to."""
        if self.scheduler.work:
            self.scheduler.run_work()
        self.scheduler.run_soon()

    def pass_time(self) -> None:
        """Let the node see what time it is."""
        late = self.world.seconds - self.scheduler.now
        if late > 0:
            self.scheduler.pass_time(late)
        self.scheduler.run_soon()


class PeerSource:
    """A node of the simulation that offers a copy.

    Args:
        host: the node.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def take(self) -> Offer:
        """Have a copy made."""
        try:
            made = self._host.copies.take()
        except ConfigError as error:
            raise PeerError(str(error)) from error
        offer = self._host.await_outcome(made)
        assert isinstance(offer, Offer), "it is made"
        return offer

    def piece(self, copy: str, name: str, start: int, size: int, known: int | None) -> bytes | None:
        """Return a piece of a file, or None where it is known."""
        data = self._host.await_outcome(self._host.copies.piece(copy, name, start, size))
        assert isinstance(data, bytes), "it is read"
        return None if known == CRC32C(data) else data

    def end(self, copy: str) -> None:
        """Say that the copy is needed no more."""
        self._host.copies.end(copy)


def _no_link(source: Path, target: Path) -> None:
    """Refuse to link, as a disk in memory does."""
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(source), 0, str(target))


def look_at_trim(world: "World", shard: int, before: int) -> None:
    """The log must never lose what a registered host lacks, or what fewer than two have.

    Raises:
        WrongError: it would.
    """
    for host in world.hosts:
        if not host.is_behind() and host.is_member(shard) and before > host.durable(shard):
            raise WrongError(f"trimmed to {before}, node {host.number} has less of {shard}")
    if sum(host.had_durable(shard) >= before for host in world.hosts) < _ENOUGH:
        raise WrongError(f"trimmed to {before} of {shard}, which fewer than two nodes have")


def look_at_drop(world: "World", leaving: Host, shard: int) -> None:
    """A node must never remove files that two others have not got.

    Raises:
        WrongError: it would.
    """
    needed = leaving.durable(shard)
    others = [host for host in world.hosts if host is not leaving]
    if sum(host.had_durable(shard) >= needed for host in others) < _ENOUGH:
        raise WrongError(f"node {leaving.number} drops shard {shard}, which others have not got")
    world.left += 1


def find_batches(host: Host, topic_id: int) -> dict[int, list[tuple[int, bytes]]]:
    """Return offset and data of every batch that readers of a node may see, by id."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    topic = host.manager.find(topic_id)
    if topic is None:
        return found
    for segment in topic.partition.segment_list:
        data = host.disk.peek(segment.data_path)
        entries = host.disk.peek(segment.sidecar_path)
        for place in range(64, len(entries), 64):
            offset = int.from_bytes(entries[place : place + 8], "little")
            length = int.from_bytes(entries[place + 8 : place + 12], "little")
            batch_id = int.from_bytes(entries[place + 16 : place + 24], "little")
            if offset + length <= segment.size:
                copy = (segment.base_offset + offset, data[offset : offset + length])
                found.setdefault(batch_id, []).append(copy)
    return found


def find_dropped(host: Host) -> set[int]:
    """Return the ids of batches that the default topic had, by the sidecars that it keeps."""
    folder = DATA_DIR / "segments" / "0"
    return {
        int.from_bytes(raw[place + 16 : place + 24], "little")
        for name in host.disk.list_dir(folder)
        if name.endswith(".window")
        for raw in (host.disk.peek(folder / name),)
        for place in range(64, len(raw), 64)
    }


class Catcher(logging.Handler):
    """Keeps what no part of a node expected."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error that came from nowhere."""
        if record.exc_info is not None:
            self._faults.append(f"{record.getMessage()}: {record.exc_info[1]!r}")
