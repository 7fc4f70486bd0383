"""The server as a process: signals, the ready line, the end."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lance_server.config.settings import ServerConfig
from lance_server.errors import ConfigError
from lance_server.listeners.listener_api import Listener
from lance_server.runtime.service_manager import notify
from lance_server.server import Server
from lance_server.telemetry.diagnostic_dump import write_dump

if TYPE_CHECKING:
    from lance_server.cluster.member import ClusterMember

_log = logging.getLogger(__name__)


async def serve(
    config: ServerConfig,
    port_file: Path | None,
    read_again: Callable[[], ServerConfig],
    listeners: Sequence[Listener] = (),
    cluster: "ClusterMember | None" = None,
) -> None:
    """Run a server until a signal ends it.

    Args:
        config: what it is told.
        port_file: where to write the port, or None.
        read_again: returns what it would be told now; called at SIGHUP.
        listeners: other protocols to serve from the same log.
        cluster: what makes the server a node of a cluster.

    Raises:
        LanceServerError: it could not start, or did not stop cleanly.
    """
    server = Server(config, listeners=listeners, cluster=cluster)
    await server.start()
    signals = _Signals()
    signals.on(signal.SIGHUP, lambda: _reload(server, read_again))
    signals.on(signal.SIGQUIT, lambda: write_dump(server))
    if port_file is not None:
        _write_port(port_file, server.address.port)
    click.echo(_ready(server, listeners))
    notify("READY=1")
    await signals.first.wait()
    notify("STOPPING=1")
    stopping = asyncio.ensure_future(server.stop())
    second = asyncio.ensure_future(signals.second.wait())
    await asyncio.wait({stopping, second}, return_when=asyncio.FIRST_COMPLETED)
    second.cancel()
    if not stopping.done():
        os._exit(1)
    stopping.result()
    click.echo("lance-server stopped")


def _ready(server: Server, listeners: Sequence[Listener]) -> str:
    """Return the line that tells who waits for it where everything listens."""
    config = server.config
    facts = [f"data {config.data_dir}", f"dialect {config.dialect}", f"pid {os.getpid()}"]
    facts += [f"{each.name} {each.address}" for each in listeners]
    if server.http_address is not None:
        facts.append(f"http {server.http_address}")
    return f"lance-server ready on {server.address} ({', '.join(facts)})"


class _Signals:
    """Counts the signals that ask for an end."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self.on(number, self._received)

    def on(self, number: signal.Signals, action: Callable[[], object]) -> None:
        """Do something whenever a signal arrives."""
        self._loop.add_signal_handler(number, action)

    def _received(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def _reload(server: Server, read_again: Callable[[], ServerConfig]) -> None:
    """Load certificates, tokens and rules again; what is wrong with them changes nothing."""
    try:
        server.reload(read_again())
    except ConfigError as error:
        _log.error("nothing was reloaded: %s", error)
    else:
        _log.info("certificates, tokens and rules were loaded again")


def _write_port(path: Path, port: int) -> None:
    try:
        draft = path.with_name(path.name + ".tmp")
        draft.write_text(f"{port}\n")
        draft.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write the port to '{path}': {error.strerror}") from error
