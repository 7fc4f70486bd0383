"""One life of the server: the real one, from a start to a stop, in the simulated world."""

import asyncio
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from tests.simulation.disk import SimDisk
from tests.simulation.mount import Mount
from tests.simulation.server.loop import POLLING, NoLock, SimLoop, bind
from tests.simulation.server.network import Link, SimTransport
from tests.simulation.server.plan import ServerSettings
from tests.simulation.store.life import DATA_DIR, log_options, make_backend
from tests.simulation.world import Pools, World

from lance_server import server as server_module
from lance_server.config.settings import Address, ServerConfig
from lance_server.errors import LanceServerError
from lance_server.listeners.fluvio import listener as fluvio_module
from lance_server.listeners.fluvio.cluster import Cluster
from lance_server.listeners.fluvio.listener import fluvio_listeners
from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.listener_api import Listener
from lance_server.listeners.qwp import listener as qwp_module
from lance_server.listeners.qwp import session as qwp_session
from lance_server.listeners.qwp.listener import QwpListener
from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.rustlog import listener as rustlog_module
from lance_server.listeners.rustlog.listener import RustlogListener
from lance_server.listeners.rustlog.options import RustlogOptions
from lance_server.log.log_manager import LogManager
from lance_server.lwp import connection as connection_module
from lance_server.network.fairness import WorkSlice
from lance_server.runtime.circuit_breaker import CircuitBreaker
from lance_server.runtime.completion import Completion, T
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.runtime.idle_memory_trim import IdleMemoryTrim
from lance_server.runtime.scheduling import Job, Timer
from lance_server.server import Server

LWP_PORT: Final = 1992
SLOW: Final = 1.5
"""Seconds after which a peer is let go that takes nothing."""
IDLE: Final = 3.0
"""Seconds after which a peer is let go that says nothing."""
_TOPICS: Final = 12
_PORTS: Final = {"rustlog": 9092, "fluvio-sc": 9003, "fluvio-spu": 9010, "qwp": 9000}
_OTHER_MEMORY: Final = 1 << 16


class _Scheduler:
    """When the server's work runs, see `lance_server.runtime.scheduling.LoopScheduler`."""

    def __init__(self, world: World, loop: SimLoop) -> None:
        self._loop = loop
        self._pools = Pools(world, loop.call_soon_threadsafe)

    def begin(self) -> None:
        """Do nothing: the threads are there."""

    def call_soon(self, job: Job) -> object:
        """Run a job on the loop's thread."""
        return self._loop.call_soon(job)

    def call_later(self, delay: float, job: Job) -> Timer:
        """Run a job on the loop's thread after a while."""
        return self._loop.call_later(delay, job)

    def run(self, pool: str, work: Callable[[], T]) -> Completion[T]:
        """Run work on a thread of a pool."""
        return self._pools.run(pool, work)

    def close(self, timeout: float) -> bool:
        """Return True: the threads have nothing to do any more."""
        del timeout
        return True


def _other_listeners() -> list[Listener]:
    """Return the listeners of other protocols."""
    rustlog = RustlogListener(
        Address("server", _PORTS["rustlog"]),
        RustlogOptions(max_memory=_OTHER_MEMORY, idle_timeout=IDLE, frame_timeout=SLOW),
    )
    cluster = Cluster(
        FluvioOptions(max_memory=_OTHER_MEMORY, idle_timeout=IDLE, frame_timeout=SLOW)
    )
    sc, spu = (Address("server", _PORTS[name]) for name in ("fluvio-sc", "fluvio-spu"))
    qwp = QwpListener(
        Address("server", _PORTS["qwp"]),
        QwpOptions(max_memory=_OTHER_MEMORY, idle_timeout=IDLE, handshake_timeout=SLOW),
    )
    return [rustlog, *fluvio_listeners(sc, spu, cluster), qwp]


class SimServer(Server):
    """The server, over the simulated disk and the simulated clocks."""

    def __init__(self, config: ServerConfig, life: "ServerLife") -> None:
        super().__init__(config, life.mount, life.listeners)
        world = self._world = life.world
        self._life = life
        breaker = CircuitBreaker(config.breaker, clock=world.seconds)
        self._disk = WatchedStorage(life.mount, breaker, world.nanoseconds)
        self._scheduler = _Scheduler(world, life.loop)  # type: ignore[assignment]  # its likeness

    def _open_log(self) -> LogManager:
        world, settings = self._world, self._life.settings.store
        self._disk.use(make_backend(world, self._life.mount, settings))
        return LogManager.open(
            DATA_DIR,
            self._disk,
            self._scheduler,
            log_options(settings, max_topics=_TOPICS),
            world.wall_ns,
            stopwatch=world.seconds,
            boottime=world.nanoseconds,
        )


class ServerLife:
    """The server, from a start to a stop.

    Args:
        world: whose threads it runs on.
        disk: what it stands on.
        settings: how it is set up.
        stop: called when a fault of the disk ends it.

    Attributes:
        mount: what it sees of the disk.
        loop: its event loop.
        listeners: those of other protocols.
        server: once it was started.
        error: why it could not be started, or stopped cleanly.
        opened: whether it was started, or could not be.
        stopped: whether it has stopped, or could not.
        transports: its ends of connections.
    """

    def __init__(
        self, world: World, disk: SimDisk, settings: ServerSettings, stop: Callable[[str], None]
    ) -> None:
        self.world = world
        self.settings = settings
        self.mount = Mount(disk, world, settings.store.kind, stop)
        self.loop = SimLoop(world)
        self.listeners: list[Listener] = []
        self.server: SimServer | None = None
        self.error: Exception | None = None
        self.opened = self.stopped = False
        self.transports: list[SimTransport] = []
        self._stopping = asyncio.Event()
        world.spawn(self._run)

    def _run(self) -> None:
        self.loop.create_task(self._main())
        self.loop.run_forever()

    def _config(self) -> ServerConfig:
        limits = self.settings.limits
        return ServerConfig(
            data_dir=DATA_DIR,
            listen=Address("server", LWP_PORT),
            dialect="specified",
            max_payload=1024,
            max_memory=limits.memory,
            max_unacked_bytes=limits.unacked,
            max_connections=limits.connections,
            consumer_rate=limits.rate,
            slow_peer_timeout=SLOW,
            idle_timeout=IDLE,
            shed_after=1.0,
            drain_timeout=5.0,
        )

    async def _main(self) -> None:
        try:
            if self.settings.others:
                self.listeners += _other_listeners()
            server = SimServer(self._config(), self)
            await server.start()
            server.service.work_clock = self.world.seconds
            self.server = server
        except (OSError, LanceServerError) as error:
            self.error = error
        self.opened = True
        await self._stopping.wait()
        try:
            if self.server is not None:
                await self.server.stop()
        except (OSError, LanceServerError) as error:
            self.error = error
        self.stopped = True

    def port_of(self, name: str) -> int:
        """Return the port of a listener."""
        return _PORTS[name]

    def ask_to_stop(self) -> None:
        """Have it stop cleanly."""
        self.loop.call_soon_threadsafe(self._stopping.set)

    def accept(self, name: str, port: int, link: Link) -> None:
        """Take a connection in, if somebody listens there."""
        factory = self.loop.doors.get(port)
        if factory is None or self.loop.dead:
            link.to_peer.reset()
            return

        def serve() -> None:
            self.transports.append(SimTransport(self.loop, link, factory(), name, port))

        self.loop.call_soon_threadsafe(serve)

    def die(self) -> None:
        """End at once: nothing has an effect any more, and the system closes its connections."""
        self.mount.dead = self.loop.dead = True
        for transport in self.transports:
            transport.hang_up()


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Have the server use the simulated network and clock inside a ``with`` block."""
    trim = functools.partial(IdleMemoryTrim, give_back=lambda: None)
    with ExitStack() as stack:
        for owner, name, value in (
            (server_module, "bind", bind),
            (server_module, "DataDirLock", NoLock),
            (server_module, "IdleMemoryTrim", trim),
            (rustlog_module, "bind", bind),
            (fluvio_module, "bind", bind),
            (qwp_module, "bind", bind),
            (qwp_session, "time", SimpleNamespace(time_ns=world.wall_ns)),
            (connection_module, "select", POLLING),
            (WorkSlice.__init__, "__defaults__", (world.seconds,)),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield
