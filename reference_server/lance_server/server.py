"""The server: a listening socket, the connections, and the log behind them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from lance_server.config import Address, ServerConfig
from lance_server.connection import Connection
from lance_server.datadir import DataDirLock
from lance_server.errors import DataDirError, UncleanStopError
from lance_server.listening import bind, not_listening
from lance_server.log.engine import Engine
from lance_server.log.report import RecoveryReport
from lance_server.outcome import Outcome
from lance_server.scheduling import LoopScheduler
from lance_server.session import Session
from lance_server.stats import Counters
from lance_server.storage.contract import StorageBackend
from lance_server.storage.pwritev import PwritevStorage

if TYPE_CHECKING:
    import socket

_log = logging.getLogger(__name__)
_RECEIVE_BUFFER: Final = 1024 * 1024
_BACKLOG: Final = 512
_TICK: Final = 0.25
_TURNS: Final = 3
_THREAD_END: Final = 1.0


class Server:
    """A server within a running event loop.

    Args:
        config: what it was told.
        storage: the backend of the log; by default positioned I/O on ordinary files.

    Attributes:
        config: what it was told.
        receive_buffer: the buffer that every connection receives into.
        only_dialect: the dialect that every peer must speak, or None when each may choose.
    """

    def __init__(self, config: ServerConfig, storage: StorageBackend | None = None) -> None:
        self.config = config
        self._storage = storage or PwritevStorage()
        self._dialects = config.dialects
        self._counters = Counters()
        self._connections: set[Connection] = set()
        self._partial_bytes = 0
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._loop = asyncio.get_running_loop()
        self._scheduler = LoopScheduler(self._loop)
        self._lock: DataDirLock | None = None
        self._engine: Engine | None = None
        self._bound: list[socket.socket] = []
        self._listeners: list[asyncio.Server] = []
        self._stopping = False
        self._ticking: asyncio.TimerHandle | None = None
        self._started_at = time.monotonic()
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BUFFER))
        self.only_dialect = self._dialects[0] if len(self._dialects) == 1 else None
        self.address = config.listen

    def __repr__(self) -> str:
        return f"<Server {self.address} {len(self._connections)} connections {self._engine!r}>"

    # Life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the log and listen.

        Raises:
            DataDirBusyError: another server has the data directory.
            DataDirError: it cannot be used.
            ListenError: the address cannot be listened on.
        """
        self._lock = DataDirLock(self.config.data_dir)
        try:
            # Bound first: an address in use must not cost the log its mark of a clean stop.
            self._bound = bind(self.config.listen)
            self._engine = self._open_log()
            await self._listen()
        except BaseException:
            for each in self._bound:
                each.close()
            self._release()
            raise
        self._tick()
        _log.info("serving %s on %s", self.config.data_dir, self.address)

    def _open_log(self) -> Engine:
        data_dir = self.config.data_dir
        try:
            return Engine.open(data_dir, self._storage, self._scheduler, self.config.log_options)
        except OSError as error:
            raise DataDirError(f"cannot use '{data_dir}' as data directory: {error}") from error

    async def _listen(self) -> None:
        try:
            for each in self._bound:
                listener = await self._loop.create_server(
                    lambda: Connection(self), sock=each, backlog=_BACKLOG
                )
                self._listeners.append(listener)
        except OSError as error:
            raise not_listening(self.config.listen, error) from error
        self.address = Address(*self._bound[0].getsockname()[:2])

    async def stop(self) -> None:
        """Stop accepting, answer what was received, make it durable, leave a clean mark.

        Raises:
            UncleanStopError: not everything was done within the drain timeout, or the disk
                refused; the next start checks the log.
        """
        deadline = self._loop.time() + self.config.drain_timeout
        await self._stop_accepting()
        for connection in list(self._connections):
            connection.drain()
        try:
            drained = await self._wait(self._all_gone.wait(), deadline)
            for connection in list(self._connections):
                connection.abort()
            closed = self._closing()
            finished = await self._wait(closed.wait(), deadline)
        finally:
            self._release()
        if not drained or not finished:
            raise UncleanStopError(
                f"not everything was stored within {self.config.drain_timeout:g} s; "
                "the next start checks the log"
            )

    async def _stop_accepting(self) -> None:
        self._stopping = True
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

    def _closing(self) -> "_Waiting":
        return _Waiting(self.engine.close())

    def _release(self) -> None:
        """Give up whatever is still held, in whatever state it is."""
        if self._ticking is not None:
            self._ticking.cancel()
        for listener in self._listeners:
            listener.close()
        if self._scheduler.close(_THREAD_END) and self._engine is not None:
            self._engine.release()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # What connections ask ----------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The log."""
        assert self._engine is not None, "the server was started"
        return self._engine

    def now(self) -> float:
        """Return the loop's time in seconds."""
        return self._loop.time()

    def new_session(self, wake: Callable[[], None]) -> Session:
        """Return the protocol state of a new connection."""
        return Session(
            self.engine, self.config, self._dialects, self._counters, wake=wake, now=self.now()
        )

    def admit(self, connection: Connection) -> bool:
        """Take a connection in; return whether it is to be served."""
        if self._stopping or len(self._connections) >= self.config.max_connections:
            self._counters.connections_refused += 1
            return False
        self._connections.add(connection)
        self._all_gone.clear()
        self._counters.connections_open += 1
        self._counters.connections_accepted += 1
        return True

    def forget(self, connection: Connection) -> None:
        """Let a connection go."""
        if connection not in self._connections:
            return  # it was refused
        self._connections.remove(connection)
        self._counters.connections_open -= 1
        if not self._connections:
            self._all_gone.set()

    def hold_partial(self, grown: int) -> bool:
        """Account for bytes of unfinished frames; return whether they are within the limit."""
        self._partial_bytes += grown
        return grown <= 0 or self._partial_bytes <= self.config.max_partial_bytes

    def has_memory(self) -> bool:
        """Whether batches may be taken in, or too many wait for the disk."""
        return self.engine.flusher.pending_bytes < self.config.max_pending_bytes

    # Time and figures --------------------------------------------------------------------------

    def _tick(self) -> None:
        now = self.now()
        for connection in list(self._connections):
            connection.tick(now)
        pause = min(_TICK, self.config.idle_timeout / 4)
        self._ticking = self._loop.call_later(pause, self._tick)

    @property
    def report(self) -> RecoveryReport:
        """What was found when the log was opened."""
        return self.engine.report

    def stats(self) -> dict[str, Any]:
        """Return what is counted; safe to call from any thread."""
        engine = self.engine
        return {
            **self._counters.snapshot(),
            "uptime_seconds": round(time.monotonic() - self._started_at, 3),
            "backend": self._storage.name,
            "flushes": engine.flusher.flushes,
            "pending_bytes": engine.flusher.pending_bytes,
            "partial_bytes": self._partial_bytes,
            "recovery": str(engine.report),
            "topics": engine.topic_figures(),
        }


class _Waiting:
    """Lets a coroutine wait for an outcome."""

    def __init__(self, outcome: Outcome[None]) -> None:
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
