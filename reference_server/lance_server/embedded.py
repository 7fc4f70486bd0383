"""A server inside this process, on its own thread: for tests, demos and programs."""

import asyncio
import atexit
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lance_server.config.settings import Address, ServerConfig
from lance_server.listeners.listener_api import Listener
from lance_server.log.recovery.recovery_report import RecoveryReport
from lance_server.server import Server
from lance_server.storage.contract import StorageBackend

if TYPE_CHECKING:
    from lance_server.cluster.member import ClusterMember

_JOIN_MARGIN: Final = 5.0
_EXIT_DRAIN: Final = 3.0


class EmbeddedServer:
    """A server that runs on a thread of its own.

    Args:
        config: what it is told.
        storage: the backend of the log, for tests that make disks fail.
        listeners: other protocols to serve from the same log.
        cluster: what makes the server a node of a cluster.

    Raises:
        LanceServerError: it cannot start.
    """

    def __init__(
        self,
        config: ServerConfig,
        storage: StorageBackend | None = None,
        listeners: Sequence[Listener] = (),
        cluster: "ClusterMember | None" = None,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._storage = storage
        self._listeners = tuple(listeners)
        self._ready = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lance-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._raise_error()
        atexit.register(self._stop_at_exit)

    def __repr__(self) -> str:
        return f"<EmbeddedServer {self.url} on {self.data_dir}>"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        bound = self._running.address
        return bound.host, bound.port

    @property
    def url(self) -> str:
        """The address as a ``lance://`` URL."""
        return f"lance://{self._running.address}"

    @property
    def http_url(self) -> str | None:
        """Where health, metrics and status are served, or None."""
        address = self._running.http_address
        return None if address is None else f"http://{address}"

    @property
    def data_dir(self) -> Path:
        """Where the data is."""
        return self._config.data_dir

    @property
    def report(self) -> RecoveryReport:
        """What was found when the log was opened."""
        return self._running.report

    @property
    def _running(self) -> Server:
        assert self._server is not None, "the server was started"
        return self._server

    def stats(self) -> dict[str, Any]:
        """Return what the server counts."""
        return self._running.stats()

    def stop(self, timeout: float | None = None) -> None:
        """Drain and stop; a second call does nothing.

        Args:
            timeout: seconds to wait for the thread; by default what the drain may take.

        Raises:
            UncleanStopError: not everything that was received could be stored in time.
            TimeoutError: the thread did not end in time.
        """
        atexit.unregister(self._stop_at_exit)
        if self._thread.is_alive() and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(self._config.drain_timeout + _JOIN_MARGIN if timeout is None else timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self!r} did not stop in time")
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _stop_at_exit(self) -> None:
        """Stop when the interpreter ends and nobody did; never hold it up for long."""
        try:
            self.stop(_EXIT_DRAIN)
        except Exception:  # noqa: BLE001 - an interpreter that ends has no use for it
            return

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asks
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        server = Server(self._config, self._storage, self._listeners, self._cluster)
        await server.start()
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._server = server
        self._ready.set()
        await self._stopping.wait()
        await server.stop()


@contextmanager
def running(
    data_dir: str | Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    dialect: str = "auto",
    storage: StorageBackend | None = None,
    listeners: Sequence[Listener] = (),
    **options: Any,
) -> Iterator[EmbeddedServer]:
    """Run a server for the length of a ``with`` block.

    Args:
        data_dir: where to keep the data; None means a temporary folder, removed at the end.
        host: the address to listen on.
        port: the port; 0 lets the system choose, see `EmbeddedServer.address`.
        dialect: ``specified``, ``deployed`` or ``auto``.
        storage: the backend of the log, for tests that make disks fail.
        listeners: other protocols to serve from the same log.
        options: any other field of `ServerConfig`, for example ``segment_size``.

    Raises:
        LanceServerError: it cannot start, or did not stop cleanly.
        TypeError: there is no such option.
    """
    if data_dir is None:
        with (
            tempfile.TemporaryDirectory(prefix="lance-server-") as folder,
            running(
                folder,
                host=host,
                port=port,
                dialect=dialect,
                storage=storage,
                listeners=listeners,
                **options,
            ) as server,
        ):
            yield server
        return
    config = ServerConfig(
        data_dir=Path(data_dir), listen=Address(host, port), dialect=dialect, **options
    )
    server = EmbeddedServer(config, storage, listeners)
    try:
        yield server
    finally:
        server.stop()
