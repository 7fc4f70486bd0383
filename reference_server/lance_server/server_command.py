"""The ``lance-server`` command: what it is told, and what it prints."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from lance_server.config.build import server_config
from lance_server.config.cluster import CLUSTER, build_member
from lance_server.config.file import SettingsFile, dotted
from lance_server.config.limits import LIMITS
from lance_server.config.listeners import LISTENERS, build_listeners
from lance_server.config.network import NETWORK
from lance_server.config.operation import OPERATION
from lance_server.config.option_types import FILE
from lance_server.config.security import SECURITY
from lance_server.config.settings import ServerConfig
from lance_server.config.storage import STORAGE
from lance_server.errors import ConfigError, LanceServerError
from lance_server.runtime.event_loop import loop_factory
from lance_server.runtime.process import serve
from lance_server.security.authorizer import Security
from lance_server.telemetry.logs import set_up_logging
from lance_spec.codec.buffers import keep_freed
from lance_spec.environment import meant_option, unknown_variables

_log = logging.getLogger(__name__)

_HELP: Final = """Serve a LANCE log.

The server keeps topics in the data directory, and acknowledges a batch when it is durable there.
SIGTERM and SIGINT end the server after it has finished the received requests; a second signal
ends it at once. SIGHUP loads certificates, tokens and rules again. SIGQUIT writes to the log what
the server is doing.

An option can be on the command line, in the environment (``--max-memory`` is
``LANCE_MAX_MEMORY``) or in the file that ``--config`` names (``max_memory``; ``--tls-cert-path``
is ``cert_path`` in the table ``[tls]``). The first of these that has the option counts.

With the name of a command instead of options lance-server runs that command: see the end, and
``lance-server COMMAND --help``.

Exit codes: 0 stopped cleanly; 1 stopped, but not everything could be finished in time; 2 wrong
options, or another server uses the data directory; 3 the data directory cannot be used; 4 the
server cannot listen on an address; 5 the log of the cluster cannot be used.
"""

_SECTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "Storage": STORAGE,
    "Network": NETWORK,
    "Limits": LIMITS,
    "Security": SECURITY,
    "Operation": OPERATION,
    "Other protocols": LISTENERS,
    "Cluster": CLUSTER,
}
"""How the help groups the options."""

_FILE_KEY: Final = "lance_server.file"
_ARGUMENTS_KEY: Final = "lance_server.arguments"


class _Command(click.Command):
    """Remembers its arguments, so that it can read its settings again."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        ctx.meta[_ARGUMENTS_KEY] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = [name for param in self.params for name in param.opts]
            if (meant := meant_option(error.option_name, known)) is None:
                raise
            told = f"No such option {error.option_name!r}. Did you mean {meant!r}?"
            raise click.NoSuchOption(error.option_name, told, ctx=ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by what they are about; see `click.Command`."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        titles = {name: title for title, add in _SECTIONS.items() for name in _names(add)}
        for param in self.get_params(ctx):
            if (line := param.get_help_record(ctx)) is not None:
                sections.setdefault(titles.get(param.name or "", "Options"), []).append(line)
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(lines)
        with formatter.section("Commands on data directories and running servers"):
            formatter.write_dl(_commands())


def _commands() -> list[tuple[str, str]]:
    """Return the words that may stand in the place of the options, and what each does."""
    from lance_server.offline.commands import offline  # noqa: PLC0415 - a server needs none of it

    return [(name, each.get_short_help_str(1000)) for name, each in offline.commands.items()]


def _names(add: Callable[[Any], Any]) -> list[str | None]:
    """Return the names of the options that a group of options adds."""
    return [param.name for param in click.command(add(lambda: None)).params]


def _read_file(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Let the file's values be the defaults of the options that follow."""
    if path is not None:
        try:
            file = SettingsFile.read(path)
            context.default_map = file.defaults(context.command, context)
        except ConfigError as error:
            raise click.UsageError(str(error), context) from error
        context.meta[_FILE_KEY] = file
    return path


@click.command(
    cls=_Command,
    help=_HELP,
    context_settings={"show_default": True, "auto_envvar_prefix": "LANCE"},
)
@click.option(
    "--config",
    type=FILE,
    is_eager=True,
    callback=_read_file,
    help="A TOML file with settings.",
)
@STORAGE
@NETWORK
@LIMITS
@SECURITY
@OPERATION
@LISTENERS
@CLUSTER
@click.option("--check-config", is_flag=True, help="Check and print all settings, then end.")
@click.version_option(package_name="lance-sdk")
@click.pass_context
def command(context: click.Context, /, check_config: bool, **options: Any) -> None:
    """Run a server until it is told to stop."""
    set_up_logging(options["log_level"], as_json=options["json_logs"])
    for told in unknown_variables(os.environ):
        _log.warning("%s", told)
    _allow_many_files()
    _keep_memory()
    try:
        config = _configured(context)
        if check_config:
            Security(config.tls, config.auth, config.access)
            _show(context)
            return
        arguments = context.meta[_ARGUMENTS_KEY]
        listeners = build_listeners(context.params, config)
        member = build_member(context.params, config)
        _collect_rarely()
        with asyncio.Runner(loop_factory=loop_factory(options["event_loop"])) as runner:
            read_again = partial(_read_again, arguments)
            runner.run(serve(config, options["port_file"], read_again, listeners, member))
    except LanceServerError as error:
        click.echo(f"lance-server: {error}", err=True)
        sys.exit(error.exit_code)


def _configured(context: click.Context) -> ServerConfig:
    config = server_config(context.params, context.meta.get(_FILE_KEY, SettingsFile()))
    set_up_logging(
        context.params["log_level"], as_json=context.params["json_logs"], node_id=config.node_id
    )
    return config


def _read_again(arguments: Sequence[str]) -> ServerConfig:
    """Return the configuration as command line, environment and file have it now."""
    try:
        with command.make_context("lance-server", list(arguments)) as context:
            return _configured(context)
    except click.UsageError as error:
        raise ConfigError(error.format_message()) from error


def _show(context: click.Context) -> None:
    """Print every setting and where it is from; secrets stand in files and are not printed."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in ("check_config", "version", "help", "config"):
            continue
        source = context.get_parameter_source(name)
        place = _SOURCES[source.name] if source else ""
        click.echo(f"{dotted(name)} = {context.params[name]}  # {place}")
    click.echo("the configuration is valid")


_SOURCES: Final = {
    "COMMANDLINE": "command line",
    "ENVIRONMENT": "environment",
    "DEFAULT_MAP": "file",
    "DEFAULT": "default",
    "PROMPT": "prompt",
}


def _collect_rarely() -> None:
    """Let the garbage collector look for cycles less often: what the server makes has none.

    With the usual thresholds it took an eighth of the time of small frames.
    """
    gc.freeze()  # modules and classes stay
    gc.set_threshold(10_000, 20, 20)


def _keep_memory() -> None:
    """Keep what answers were read into for the next ones, up to a bound.

    Four answers of 1 MiB at a time took twice as long while each was given back.
    """
    keep_freed(64 << 20, 32 << 20)


def _allow_many_files() -> None:
    """Use as many descriptors as the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):  # the soft limit will do
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
