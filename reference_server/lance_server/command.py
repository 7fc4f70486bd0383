"""The options of ``lance-server`` and what it prints."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from lance_server.config import Address, ServerConfig, parse_size
from lance_server.errors import ConfigError, LanceServerError
from lance_server.logs import set_up_logging
from lance_server.server import Server
from lance_spec.dialect import DIALECTS
from lance_spec.limits import DEFAULT_PORT, IDLE_TIMEOUT

_HELP: Final = """Serve a LANCE log.

Topics are kept in the data directory; a batch is acknowledged when it is durable there. SIGTERM
and SIGINT finish what was received, then end the server; a second one ends it at once.

Exit codes: 0 stopped cleanly; 1 stopped, but not everything could be finished in time; 2 wrong
options, or another server has the data directory; 3 the data directory cannot be used; 4 the
address cannot be listened on.
"""


class _Parsed(click.ParamType[Any]):
    """A parameter that a function of ours reads."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value, or fail with our own words."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


_SIZE: Final = _Parsed("size", parse_size)
_ADDRESS: Final = _Parsed("host:port", Address.parse)
_SECONDS: Final = click.FloatRange(min=0)


@click.command(help=_HELP, context_settings={"show_default": True})
@click.option(
    "--data-dir",
    required=True,
    type=click.Path(path_type=Path),
    help="Where topics are kept; created when it is not there.",
)
@click.option(
    "--listen",
    default=f"127.0.0.1:{DEFAULT_PORT}",
    type=_ADDRESS,
    help="Where to accept connections; port 0 lets the system choose.",
)
@click.option(
    "--dialect",
    default="auto",
    type=click.Choice([*DIALECTS, "auto"]),
    help="What clients speak; auto: each connection's first header decides.",
)
@click.option("--max-payload", type=_SIZE, help="Largest payload; by default the dialect's limit.")
@click.option(
    "--strict-topic-names/--any-topic-names",
    default=None,
    help="Allow only letters, digits and '-' in names; by default the dialect's rule.",
)
@click.option("--segment-size", default="1GiB", type=_SIZE, help="Close segments of this size.")
@click.option(
    "--dedup-entries",
    default=1_000_000,
    type=click.IntRange(min=0),
    help="Batches per topic that are recognised when they are sent again; 0 is off.",
)
@click.option(
    "--max-connections", default=4096, type=click.IntRange(min=1), help="Connections at once."
)
@click.option(
    "--idle-timeout",
    default=IDLE_TIMEOUT,
    type=click.FloatRange(min=0, min_open=True),
    help="Close a connection after so many seconds without a frame.",
)
@click.option(
    "--drain-timeout",
    default=25.0,
    type=_SECONDS,
    help="Seconds for finishing what was received when the server is stopped.",
)
@click.option(
    "--port-file", type=click.Path(path_type=Path), help="Write the port here once it is bound."
)
@click.option(
    "--log-level",
    default="info",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What to log on standard error.",
)
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
@click.version_option(package_name="lance-sdk")
def command(port_file: Path | None, log_level: str, json_logs: bool, **options: Any) -> None:
    """Run a server until it is told to stop."""
    set_up_logging(log_level, as_json=json_logs)
    _allow_many_files()
    try:
        asyncio.run(_serve(ServerConfig(**options), port_file))
    except LanceServerError as error:
        click.echo(f"lance-server: {error}", err=True)
        sys.exit(error.exit_code)


async def _serve(config: ServerConfig, port_file: Path | None) -> None:
    server = Server(config)
    await server.start()
    signals = _Signals()
    if port_file is not None:
        _write_port(port_file, server.address.port)
    click.echo(
        f"lance-server ready on {server.address} "
        f"(data {config.data_dir}, dialect {config.dialect}, pid {os.getpid()})"
    )
    await signals.first.wait()
    stopping = asyncio.ensure_future(server.stop())
    second = asyncio.ensure_future(signals.second.wait())
    await asyncio.wait({stopping, second}, return_when=asyncio.FIRST_COMPLETED)
    second.cancel()
    if not stopping.done():
        os._exit(1)
    stopping.result()
    click.echo("lance-server stopped")


class _Signals:
    """Counts the signals that ask for an end."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._received)

    def _received(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def _write_port(path: Path, port: int) -> None:
    try:
        draft = path.with_name(path.name + ".tmp")
        draft.write_text(f"{port}\n")
        draft.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write the port to '{path}': {error.strerror}") from error


def _allow_many_files() -> None:
    """Use as many descriptors as the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):  # the soft limit will do
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
