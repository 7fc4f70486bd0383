"""The server: a listening socket, the connections, and the log behind them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from lance_server.config.settings import Address, ServerConfig
from lance_server.errors import DataDirError, UncleanStopError
from lance_server.fault_injection.simulation import Simulation
from lance_server.http.startup import open_web
from lance_server.listeners.listener_api import Listener, Reloading
from lance_server.log.disk_reserve import DiskReserve
from lance_server.log.log_manager import LogManager
from lance_server.log.recovery.recovery_report import Finding, RecoveryReport
from lance_server.lwp.connection import Connection
from lance_server.lwp.service import Service
from lance_server.network.connection_manager import ConnectionManager
from lance_server.network.sockets import bind, not_listening
from lance_server.network.tls_acceptor import TlsAcceptor
from lance_server.runtime.circuit_breaker import CircuitBreaker
from lance_server.runtime.completion import Completion
from lance_server.runtime.directory_lock import DataDirLock
from lance_server.runtime.disk_monitor import WatchedStorage
from lance_server.runtime.idle_memory_trim import IdleMemoryTrim
from lance_server.runtime.memory_pressure import PressureGauge
from lance_server.runtime.scheduling import LoopScheduler
from lance_server.security.authorizer import Security
from lance_server.storage.backend_selection import open_storage
from lance_server.storage.contract import StorageBackend
from lance_server.storage.pwritev import PwritevStorage
from lance_server.telemetry.startup import open_telemetry

if TYPE_CHECKING:
    import socket

    from lance_server.cluster.member import ClusterMember
    from lance_server.storage.wal_replay import WalDamage
    from lance_server.telemetry.otel import Telemetry

_log = logging.getLogger(__name__)
_RECEIVE_BUFFER: Final = 1024 * 1024
_BACKLOG: Final = 512
_TICK: Final = 0.25
_TURNS: Final = 3
_THREAD_END: Final = 1.0
_CLIENTS_SHARE: Final = 0.6
_HANDSHAKE_SECONDS: Final = 10.0


class Server:
    """A server within a running event loop.

    Args:
        config: what it was told.
        storage: the backend of the log; by default positioned I/O on ordinary files.
        listeners: other protocols to serve from the same log.
        cluster: what makes the server a node of a cluster; None for a server of its own.

    Attributes:
        config: what it was told.
        dialects: what a peer may speak.
        receive_buffer: the buffer that every connection receives into.
        stopping: whether the server is about to end.
        now: returns the loop's time in seconds.
        address: where it listens.
        repeated_writes: writes that the start repeated from a write-ahead log.
        actions: further changes over HTTP, by their paths.
        storage_rates: bytes a second that each storage backend managed in the trial, if there was.

    Raises:
        ConfigError: a certificate, key or token file cannot be used.
    """

    def __init__(
        self,
        config: ServerConfig,
        storage: StorageBackend | None = None,
        listeners: Sequence[Listener] = (),
        cluster: "ClusterMember | None" = None,
    ) -> None:
        if cluster is not None:
            cluster.judge(config, listeners)
        self.config = config
        self._cluster = cluster
        self._others = tuple(listeners)
        self._given_storage = storage
        self._disk = WatchedStorage(storage or PwritevStorage(), CircuitBreaker(config.breaker))
        self._security = Security(config.tls, config.auth, config.access)
        self._simulation = Simulation()
        self.actions = self._simulation.actions
        self._web = open_web(self)
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self._scheduler = LoopScheduler(self._loop, None if cluster is None else cluster.pools)
        self._lock: DataDirLock | None = None
        self._engine: LogManager | None = None
        self._service: Service | None = None
        self._connection_manager: ConnectionManager | None = None
        self._telemetry: Telemetry | None = None
        self._bound: list[socket.socket] = []
        self._listeners: list[asyncio.Server | TlsAcceptor] = []
        self._ticking: asyncio.TimerHandle | None = None
        self._started_at = time.monotonic()
        self.dialects = config.dialects
        self.stopping = False
        self.storage_rates: dict[str, float] = {}
        self.repeated_writes = 0
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BUFFER))
        self.address = config.listen

    def __repr__(self) -> str:
        return f"<Server {self.address} {self._connection_manager!r} {self._engine!r}>"

    # Life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the log and listen.

        Raises:
            DataDirBusyError: another server has the data directory.
            DataDirError: it cannot be used.
            ListenError: the address cannot be listened on.
        """
        if not self.config.data_dir.exists():
            self._try_addresses()
        self._lock = DataDirLock(self.config.data_dir)
        try:
            # Bound first: an address in use must not cost the log its mark of a clean stop.
            self._bound = bind(self.config.listen)
            self._disk.check_with(self._lock.check)
            self._scheduler.begin()
            self._engine = self._open_log()
            self._service = Service(self._engine, self.config, self._disk, self._security)
            self._service.more_reasons = self._simulation.unready_reasons
            self._telemetry = open_telemetry(self._service)
            self._connection_manager = ConnectionManager(self._service, self._loop.call_soon)
            self._gauge = PressureGauge(self._service, self.now())
            self._memory_trim = IdleMemoryTrim(self._service.counters, self.now())
            self._engine.on_dismissal(self._connection_manager.drain)
            await self._listen()
            await self._start_others()
        except BaseException:
            await self._close_unused_log()
            self._release()
            for each in self._bound:
                each.close()
            raise
        self._tick()
        self.engine.start_upkeep(self.config.upkeep_interval)
        _log.info("serving %s on %s", self.config.data_dir, self.address)
        for other in self._others:
            _log.info("serving %s on %s", other.name, other.address)
        if self._web is not None:
            _log.info("serving health, metrics and status on http://%s", self._web.address)

    def _try_addresses(self) -> None:
        """Listen everywhere for a moment: where an address is taken, no data directory is made.

        All at once, so that an address which is given twice is noticed, too.
        """
        wanted = [self.config.listen, *(other.address for other in self._others)]
        if self.config.http is not None:
            wanted.append(self.config.http)
        with contextlib.ExitStack() as held:
            for address in wanted:
                for each in bind(address):
                    held.enter_context(each)
                    try:
                        each.listen(1)
                    except OSError as error:
                        raise not_listening(address, error) from error

    async def _close_unused_log(self) -> None:
        """Leave the mark of a clean stop where the log was opened and nobody served."""
        if self._engine is not None:
            with contextlib.suppress(UncleanStopError):  # the next start checks it
                await self._wait(self._closing().wait(), self._loop.time() + _THREAD_END)

    async def _start_others(self) -> None:
        """Start the other protocols and the HTTP port, all of them or none."""
        started: list[Listener] = []
        try:
            for other in self._others:
                await other.start(self.engine)
                started.append(other)
            if self._web is not None:
                await self._web.start()
                if self.config.admin and self._lock is not None:
                    self._lock.tell(str(self._web.address))
        except BaseException:
            for other in started:
                await other.stop(self._loop.time())
            raise

    def _open_log(self) -> LogManager:
        config, data_dir = self.config, self.config.data_dir
        damage: tuple[WalDamage, ...] = ()
        try:
            if self._cluster is not None:
                address = Address(*self._bound[0].getsockname()[:2])
                return self._cluster.join(self._disk, self._scheduler, self._loop, address)
            if self._given_storage is None:
                # What a write-ahead log holds may need room in its files on a full disk.
                reserve = DiskReserve(PwritevStorage(), data_dir, 0)
                choice = reserve.with_room(
                    lambda: open_storage(config.storage, config.durability, data_dir)
                )
                self._disk.use(choice.storage)
                self.storage_rates = choice.rates
                self.repeated_writes = choice.repeated
                _log.info("storage %s: %s", choice.storage.name, choice.reason)
                damage = choice.damage
            engine = LogManager.open(data_dir, self._disk, self._scheduler, config.log_options)
        except OSError as error:
            raise DataDirError(f"cannot use '{data_dir}' as data directory: {error}") from error
        for each in damage:
            engine.report.add(Finding("damage", None, *each))
        return engine

    async def _listen(self) -> None:
        try:
            for each in self._bound:
                self._listeners.append(await self._start_accepting(each))
        except OSError as error:
            raise not_listening(self.config.listen, error) from error
        self.address = Address(*self._bound[0].getsockname()[:2])

    def _new_connection(self) -> Connection:
        """Return a connection; one that simulates only where changes over HTTP are allowed."""
        return self._simulation.connection(self) if self.config.admin else Connection(self)

    async def _start_accepting(self, listening: "socket.socket") -> asyncio.Server | TlsAcceptor:
        context = self._security.context
        if context is None:
            return await self._loop.create_server(
                self._new_connection, sock=listening, backlog=_BACKLOG
            )
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        timeout = min(_HANDSHAKE_SECONDS, self.config.idle_timeout)
        return TlsAcceptor(listening, self._new_connection, context, timeout)

    async def stop(self) -> None:
        """Stop accepting, answer what was received, make it durable, leave a clean mark.

        Clients have a share of the time for taking their answers; the rest is the log's.

        Raises:
            UncleanStopError: not everything was stored within the drain timeout, or the disk
                refused; the next start checks the log.
        """
        deadline = self._loop.time() + self.config.drain_timeout
        share = self._loop.time() + self.config.drain_timeout * _CLIENTS_SHARE
        _log.info("stopping: %d connections are served to their end", len(self.connection_manager))
        await self._stop_accepting()
        self.connection_manager.drain()
        try:
            await asyncio.gather(*(other.stop(share) for other in self._others))
            await self._wait(self.connection_manager.all_closed.wait(), share)
            self.connection_manager.abort()
            closed = self._closing()
            finished = await self._wait(closed.wait(), deadline)
        finally:
            if self._web is not None:
                await self._web.stop()
            self._release()
        if not finished:
            raise UncleanStopError(
                f"not everything was stored within {self.config.drain_timeout:g} s; "
                "the next start checks the log"
            )
        _log.info("stopped: everything is stored")

    async def _stop_accepting(self) -> None:
        self.stopping = self.service.stopping = True
        for listening in self._bound:
            self._loop.remove_reader(listening)
        # What was accepted a moment ago must become a connection before its listener goes:
        # asyncio would lose the socket otherwise.
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        for listener in self._listeners:
            listener.close()

    async def _wait(self, awaited: Awaitable[object], deadline: float) -> bool:
        try:
            async with asyncio.timeout_at(deadline):
                await awaited
        except TimeoutError:
            return False
        return True

    def _closing(self) -> "_Awaited":
        return _Awaited(self.engine.close())

    def _release(self) -> None:
        """Give up whatever is still held, in whatever state it is."""
        if self._telemetry is not None:
            self._telemetry.stop(_THREAD_END)
        if self._ticking is not None:
            self._ticking.cancel()
        for listener in self._listeners:
            listener.close()
        if self._scheduler.close(_THREAD_END) and self._engine is not None:
            self._engine.release()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def reload(self, config: ServerConfig) -> None:
        """Take the certificates, tokens and rules of a configuration; nothing else of it.

        Raises:
            ConfigError: one of them cannot be used; all stay as they were.
        """
        self._security.reload(config.tls, config.auth, config.access)
        for other in self._others:
            if isinstance(other, Reloading):
                other.reload(config)

    def call_soon(self, job: Callable[[], None]) -> None:
        """Do something after what is already due."""
        self._loop.call_soon(job)

    def call_at(self, when: float, job: Callable[[], None]) -> None:
        """Do something at a time of the loop."""
        self._loop.call_at(when, job)

    # What connections ask ----------------------------------------------------------------------

    @property
    def engine(self) -> LogManager:
        """The log."""
        assert self._engine is not None, "the server was started"
        return self._engine

    @property
    def connection_manager(self) -> ConnectionManager:
        """Everyone who is connected."""
        assert self._connection_manager is not None, "the server was started"
        return self._connection_manager

    @property
    def service(self) -> Service:
        """What all connections share."""
        assert self._service is not None, "the server was started"
        return self._service

    # Time and figures --------------------------------------------------------------------------

    def _tick(self) -> None:
        now, service = self.now(), self.service
        self.connection_manager.tick(now)
        service.pressure = self._gauge.read(self.connection_manager.queue_depth, now)
        service.sampler.sample(now)
        self._memory_trim.tick(now)
        pause = min(_TICK, self.config.idle_timeout / 4)
        self._ticking = self._loop.call_later(pause, self._tick)

    @property
    def report(self) -> RecoveryReport:
        """What was found when the log was opened."""
        return self.engine.report

    @property
    def http_address(self) -> Address | None:
        """Where health, metrics and status are served, or None."""
        return None if self._web is None else self._web.address

    def addresses(self) -> list[tuple[str, Address]]:
        """Return what is served where."""
        return [("LWP", self.address), *((each.name, each.address) for each in self._others)]

    def stats(self) -> dict[str, Any]:
        """Return what is counted; safe to call from any thread."""
        engine = self.engine
        return {
            **self.service.counters.snapshot(),
            "uptime_seconds": round(time.monotonic() - self._started_at, 3),
            "backend": self._disk.name,
            "flushes": engine.flusher.flushes,
            "pending_bytes": engine.backlog.size,
            "memory": self.service.memory.used,
            "memory_held": self.service.memory.held,
            "recovery": str(engine.report),
            "topics": engine.topic_figures(),
        }


class _Awaited:
    """Lets a coroutine wait for an outcome."""

    def __init__(self, outcome: Completion[None]) -> None:
        self._outcome = outcome
        self._done = asyncio.Event()
        outcome.wake(self._done.set)

    async def wait(self) -> None:
        await self._done.wait()
        if self._outcome.error is not None:
            raise UncleanStopError(
                f"the log could not be closed cleanly: {self._outcome.error}; "
                "the next start checks it"
            )
