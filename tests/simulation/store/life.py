"""One life of the store: the real engine, from a start to a stop, on a simulated disk."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.simulation.disk import SimDisk
from tests.simulation.model import Batch, Reading
from tests.simulation.mount import Mount
from tests.simulation.store.plan import Settings
from tests.simulation.world import Loop, World

from lance_server.log.flusher import FlushPolicy
from lance_server.log.log_manager import LogManager, LogOptions
from lance_server.log.reading.reader import Fetched, Range
from lance_server.log.segments.compaction import CompactionPolicy
from lance_server.log.topic import Topic
from lance_server.lwp.refusals import Refusal
from lance_server.offline.sync_scheduler import opened_on
from lance_server.runtime.circuit_breaker import CircuitBreaker
from lance_server.runtime.completion import Completion
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.storage.contract import StorageBackend
from lance_server.storage.wal import WalStorage
from lance_server.storage.wal_replay import repeat, with_held
from lance_server.storage.ways import FixedWays, Ways
from lance_spec.checksum import CRC32C
from lance_spec.codec.ingest_runs import BatchMeta

DATA_DIR: Final = Path("/data")
_WHOLE: Final = 1 << 20
_INLINE_BYTES: Final = 4096
_MIXED_BYTES: Final = 300
_LARGE: Final = 1 << 20
_LOG_SHARE: Final = 0.7
"""How likely a topic's next commits take the write-ahead log where that is drawn."""


def log_options(settings: Settings, max_topics: int = LogOptions().max_topics) -> LogOptions:
    """Return how the log of a run behaves."""
    compaction = None
    if settings.merge:
        compaction = CompactionPolicy(settings.merge, settings.merge + 3, settings.segment_size)
    return LogOptions(
        segment_size=settings.segment_size,
        flush=FlushPolicy(lone_bytes=_INLINE_BYTES if "inline" in settings.mode else 0),
        open_segments=settings.open_segments,
        compaction=compaction,
        synced="os" not in settings.mode,
        max_topics=max_topics,
    )


class DrawnWays(FixedWays):
    """Each topic takes a way that is drawn, for some commits that are drawn, too.

    Args:
        world: whose random source decides.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._drawn: dict[bytes, tuple[bool, int]] = {}

    def takes_log(self, name: bytes, size: int) -> bool:
        """Return whether a topic's next commit takes the log."""
        del size
        takes, left = self._drawn.get(name, (False, 0))
        if not left:
            takes, left = self._world.random.random() < _LOG_SHARE, self._world.random.randint(1, 4)
        self._drawn[name] = takes, left - 1
        return takes


def make_backend(world: World, mount: Mount, settings: Settings) -> StorageBackend:
    """Return the storage backend of a run; what a write-ahead log holds is repeated."""
    if "wal" not in settings.mode:
        return with_held(mount, DATA_DIR, repeat(mount, DATA_DIR))
    ways: Ways = DrawnWays(world)
    if "drawn" not in settings.mode:
        ways = FixedWays(_MIXED_BYTES if "mixed" in settings.mode else _LARGE)
    return WalStorage(
        mount, DATA_DIR, settings.wal_size, 2 * settings.wal_size, ways=ways,
        lazy="drawn" in settings.mode,
        clock=world.seconds, random_bytes=world.marks.randbytes,
    )  # fmt: skip


def read_topic(topic: Topic) -> Reading:
    """Go through a topic; nothing may be on its way.

    Raises:
        OSError: the disk refused.
        Refusal: likewise.
    """
    partition = topic.partition
    found = Reading(partition.start_offset, partition.end_offset)
    place = found.start
    while place < found.end:
        try:
            fetched: Fetched = partition.reading(Range(place, _WHOLE))()
        except Refusal as refusal:
            following = refusal.details.get("next_offset")
            if not isinstance(following, int):
                raise
            found.damage.append((place, following))
        else:
            following = fetched.next_offset
            if fetched.buffer:
                found.add(place, bytes(fetched.buffer))
        if following <= place:
            raise AssertionError(f"no progress at offset {place}: {following}")
        place = following
    return found


class Life:
    """The store, from a start to a stop.

    Args:
        world: whose threads it runs on.
        disk: what it stands on.
        settings: how it is set up.
        stop: called when a fault ends it.

    Attributes:
        mount: what it sees of the disk.
        loop: its event loop.
        engine: the log, once it is open.
        storage: the storage backend that the log uses.
        error: why it could not be opened.
        opened: whether it was opened, or could not be.
    """

    def __init__(
        self, world: World, disk: SimDisk, settings: Settings, stop: Callable[[str], None]
    ) -> None:
        self.world = world
        self.settings = settings
        kind = "cache" if "os" in settings.mode else settings.kind
        self.mount = Mount(disk, world, kind, stop)
        self.loop = Loop(world)
        self.mount.is_loop = self.loop.is_current
        self.engine: LogManager | None = None
        self.storage: WatchedStorage | None = None
        self.error: Exception | None = None
        self.opened = False

    def open(self) -> None:
        """Bring the data directory back (on a thread of the world)."""
        try:
            self.storage = WatchedStorage(
                make_backend(self.world, self.mount, self.settings),
                CircuitBreaker(clock=self.world.seconds),
                self.world.nanoseconds,
            )
            self.engine = LogManager.open(
                DATA_DIR,
                self.storage,
                self.loop,
                log_options(self.settings),
                self.world.wall_ns,
                stopwatch=self.world.seconds,
                boottime=self.world.nanoseconds,
            )
        except Exception as error:  # noqa: BLE001 - the run judges it
            self.error = error
        self.opened = True

    # What a connection does ------------------------------------------------------------------

    def append(self, topic_id: int, batch: Batch) -> Completion[None]:
        """Store a batch as `Ingest` does.

        Raises:
            Refusal: it is not taken.
        """
        engine, storage = self._parts()
        topic = engine.topic(topic_id)
        digest = self._digest(batch)
        if topic.partition.may_know(batch.id):
            duplicate = topic.partition.find_duplicate(batch.id, digest)
            if duplicate is not None and duplicate.same:
                return duplicate.outcome or _settled()
        refusal = storage.refusal()
        if refusal is not None:
            raise refusal
        batch.stamp_ns = engine.now_ns(topic)
        meta = self._meta(batch)
        return topic.partition.append(batch.raw, meta)

    def _digest(self, batch: Batch) -> bytes:
        return self._meta(batch).digest

    def _meta(self, batch: Batch) -> BatchMeta:
        return BatchMeta(
            len(batch.raw),
            batch.records,
            batch.id,
            batch.number,
            batch.stamp_ns,
            CRC32C.compute(batch.raw),
            0,
        )

    def _parts(self) -> tuple[LogManager, WatchedStorage]:
        assert self.engine is not None, "it is open"
        assert self.storage is not None, "it is open"
        return self.engine, self.storage

    def release(self) -> None:
        """Give all files up."""
        if self.engine is not None:
            self.engine.release()


@contextmanager
def offline(world: World, disk: SimDisk, settings: Settings) -> Iterator[tuple[Any, Any, Mount]]:
    """Open the log as an offline tool does, and close it cleanly."""
    mount = Mount(disk, world, "dsync", _never)
    with opened_on(mount, DATA_DIR, log_options(settings), world.wall_ns) as (engine, scheduler):
        yield engine, scheduler, mount


def _never(kind: str) -> None:
    raise AssertionError(f"nothing stops an offline tool here: {kind}")


def _settled() -> Completion[None]:
    outcome: Completion[None] = Completion()
    outcome.settle(None)
    return outcome
