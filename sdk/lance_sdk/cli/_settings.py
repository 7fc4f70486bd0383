"""The options that every command takes, before or after its name."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import click

from lance_sdk.cli import _types
from lance_sdk.cli.console.streams import tell

_Function = TypeVar("_Function", bound=Callable[..., Any])

DEFAULT_URL: Final = "lance://127.0.0.1:1992"
"""Where `lwp` looks for a server when nothing else is said."""
_QUIET: Final = -1
_TRACEBACKS: Final = 2
_LOG_LEVELS: Final = {_QUIET: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}


@dataclass(slots=True)
class Settings:
    """What the shared options say.

    Attributes:
        url: where the server is, ``lance://host:port``, or None when no option said.
        dialect: ``auto``, ``specified`` or ``deployed``, or None when no option said.
        timeout: seconds until an answer is overdue, or None when no option said.
        token: what the server wants to be shown, or None.
        tls_ca: file of the certificates to trust, or None.
        tls_cert: file of this client's certificate, or None.
        tls_key: file of its private key, or None.
        tls_server_name: the name that the server's certificate must bear, or None.
        json: results go to stdout as JSON.
        verbosity: -1 quiet, 0 normal, 1 with log messages, 2 also with tracebacks.
    """

    url: str | None = None
    dialect: str | None = None
    timeout: float | None = None
    token: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_server_name: str | None = None
    json: bool = False
    verbosity: int = 0

    @property
    def quiet(self) -> bool:
        """Whether progress and summaries are unwanted."""
        return self.verbosity <= _QUIET

    @property
    def tracebacks(self) -> bool:
        """Whether an error shows where in the code it arose."""
        return self.verbosity >= _TRACEBACKS

    def named_url(self, what: str = "this") -> str:
        """Return the server's URL: the option ``--url``, or else ``LANCE_URL``.

        Args:
            what: the action that needs a server by name, for the message.

        Raises:
            click.UsageError: when neither gives one.
        """
        url = self.url or os.environ.get("LANCE_URL")
        if not url:
            raise click.UsageError(
                f"no server given; use --url lance://HOST:PORT or set LANCE_URL: {what} needs a "
                "server that you name"
            )
        return url

    def require_url(self) -> str:
        """Return the server's URL; the local server's where neither option nor environment says."""
        return self.url or os.environ.get("LANCE_URL") or DEFAULT_URL


def current_settings() -> Settings:
    """Return the settings of the command that is running."""
    return click.get_current_context().ensure_object(Settings)


class _StderrHandler(logging.Handler):
    """Writes to whatever stderr is at the time, so that a progress bar stays whole."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(self.format(record))


def start_logging(settings: Settings) -> None:
    """Send the SDK's log messages to stderr, as many as the verbosity asks for.

    Called again when an option after the command changes it: that one is read last.
    """
    handler = _StderrHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("lance_sdk")
    logger.handlers[:] = [handler]
    logger.setLevel(_LOG_LEVELS.get(settings.verbosity, logging.DEBUG))


def _store(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value is not None and param.name is not None:
        setattr(ctx.ensure_object(Settings), param.name, value)


def _louder(ctx: click.Context, _param: click.Parameter, value: int) -> None:
    if value:
        settings = ctx.ensure_object(Settings)
        settings.verbosity += value
        start_logging(settings)


def _hush(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        settings = ctx.ensure_object(Settings)
        settings.verbosity = _QUIET
        start_logging(settings)


def _tls_option(name: str, meaning: str, *, file: bool = True) -> Callable[[_Function], _Function]:
    return click.option(
        f"--{name}",
        type=click.Path(exists=True, dir_okay=False) if file else str,
        expose_value=False,
        callback=_store,
        metavar="FILE" if file else "NAME",
        help=f"{meaning}  [env: LANCE_{name.upper().replace('-', '_')}]",
    )


_OPTIONS: Final = (
    click.option(
        "--url",
        expose_value=False,
        callback=_store,
        metavar="URL",
        help=f"The server  [env: LANCE_URL; default: {DEFAULT_URL}]",
    ),
    click.option(
        "--dialect",
        type=click.Choice(["auto", "specified", "deployed"]),
        expose_value=False,
        callback=_store,
        help="How the server reads the specification  [default: auto]",
    ),
    click.option(
        "--timeout",
        type=_types.time,
        expose_value=False,
        callback=_store,
        metavar="TIME",
        help="Longest wait for an answer, e.g. 500ms or 5s  [default: 30s]",
    ),
    click.option(
        "--token",
        type=_types.token,
        expose_value=False,
        callback=_store,
        metavar="TOKEN",
        help="Token for the server, or @FILE that has it  [env: LANCE_TOKEN]",
    ),
    _tls_option("tls-ca", "Certificates to trust, for lances:// URLs"),
    _tls_option("tls-cert", "This client's certificate, where the server asks for one"),
    _tls_option("tls-key", "Its private key, where it is not in that file"),
    _tls_option("tls-server-name", "Name in the server's certificate", file=False),
    click.option(
        "--json",
        is_flag=True,
        default=None,
        expose_value=False,
        callback=_store,
        help="Print results as JSON on stdout.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_hush,
        help="Print no progress and no summaries.",
    ),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_louder,
        help="Print log messages on stderr; -vv also tracebacks.",
    ),
)


def common_options(function: _Function) -> _Function:
    """Add the shared options to a command; what they say is in `current_settings`.

    Every command takes them, so that they may stand before or after its name; the one
    nearest to the end of the line wins.
    """
    for add in reversed(_OPTIONS):
        function = add(function)
    return function
