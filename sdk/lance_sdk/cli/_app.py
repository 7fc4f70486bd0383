"""The ``lwp`` command group, and how it ends: one clear line and an exit code."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final

import click

from lance_sdk.cli._lazy import LazyGroup
from lance_sdk.cli._settings import Settings, common_options, start_logging
from lance_sdk.cli.console.error_messages import describe
from lance_sdk.cli.console.exit_codes import EPILOG, ExitCode, printable, require_command
from lance_sdk.cli.console.output import OutputClosed
from lance_sdk.cli.console.streams import discard, tell
from lance_spec.environment import made_by_kubernetes, meant_option, unknown_variables

_COMMANDS: Final = {
    "topics": "lance_sdk.cli.admin.topics:topics",
    "produce": "lance_sdk.cli.records.produce:produce",
    "consume": "lance_sdk.cli.records.consume:consume",
    "tail": "lance_sdk.cli.records.tail:tail",
    "replay": "lance_sdk.cli.records.replay:replay",
    "bridge": "lance_sdk.bridge.command:bridge",
    "offsets": "lance_sdk.cli.admin.offsets:offsets",
    "group": "lance_sdk.cli.admin.group:group",
    "ping": "lance_sdk.cli.admin.ping:ping",
    "status": "lance_sdk.cli.admin.status:status",
    "top": "lance_sdk.cli.top.command:top",
    "sf": "lance_sdk.cli.journal.commands:sf",
    "pipeline": "lance_sdk.cli._pipeline:pipeline",
    "bench": "lance_sdk.cli.bench.bench:bench",
    "explain": "lance_sdk.cli._explain:explain",
    "vectors": "lance_sdk.cli._vectors:vectors",
    "completion": "lance_sdk.cli._completion:completion",
}


_SECTIONS: Final = {
    "Topics and records": ("topics", "produce", "consume", "tail", "replay", "bridge"),
    "Consumers": ("offsets", "group"),
    "Servers": ("ping", "status", "top", "cluster"),
    "Files": ("sf", "pipeline"),
    "Tools": ("bench", "explain", "vectors", "completion", "demo"),
}
"""How the help groups the commands; the others stand last."""


class _Application(LazyGroup):
    """Turns whatever a command raises into one line on stderr and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line; see `click.Command.make_context`."""
        try:
            return super().make_context(*arguments, **options)
        except OSError as error:  # the help and the version of ``lwp`` itself
            raise click.exceptions.Exit(_unprintable(error)) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are about; see `click.Group`."""
        named = [name for names in _SECTIONS.values() for name in names]
        rest = tuple(name for name in self.list_commands(ctx) if name not in named)
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for title, names in {**_SECTIONS, "Others": rest}.items():
            found = ((name, self.get_command(ctx, name)) for name in names)
            lines = [(name, each.get_short_help_str(limit)) for name, each in found if each]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; any end but a good one goes through ``ctx.exit``."""
        try:
            return super().invoke(ctx)
        except OutputClosed:
            ctx.exit(ExitCode.OK)
        except BrokenPipeError as error:  # click's own output: the help of a command
            ctx.exit(_unprintable(error))
        except KeyboardInterrupt:
            _say("interrupted")
            ctx.exit(ExitCode.INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the last stop before the user
            ctx.exit(_report(error, ctx.ensure_object(Settings)))


def _report(error: Exception, settings: Settings) -> ExitCode:
    if settings.tracebacks:
        traceback.print_exception(error)
    message, code = describe(error)
    _say(message)
    return code


def _say(message: str) -> None:
    tell(f"error: {message}")


@click.group(
    cls=_Application,
    lazy=_COMMANDS,
    extensions="lance_sdk.commands",
    epilog=EPILOG,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@common_options
@click.version_option(package_name="lance-sdk", message="%(prog)s %(version)s")
@click.pass_context
def lwp(ctx: click.Context) -> None:
    """Work with a LANCE streaming log: topics, records, and the bytes on the wire."""
    settings = ctx.ensure_object(Settings)
    start_logging(settings)
    if not settings.quiet:
        _tell_unknown_variables()
    require_command(ctx)


def _tell_unknown_variables() -> None:
    """Warn of misspelt variables; those that Kubernetes makes are not a mistake of the user."""
    made = made_by_kubernetes(os.environ)
    for told in unknown_variables({k: v for k, v in os.environ.items() if k not in made}):
        tell(f"warning: {told}")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run ``lwp`` and return its exit code.

    Args:
        arguments: what stands after the command's name; those of the process by default.
    """
    try:
        result = lwp.main(arguments, prog_name="lwp", standalone_mode=False)
    except click.UsageError as error:
        return _refuse(error)
    except click.ClickException as error:
        _say(error.format_message())
        return ExitCode.FAILED
    except click.Abort:
        return ExitCode.INTERRUPTED
    return _flush(result if isinstance(result, int) else ExitCode.OK)


def _refuse(error: click.UsageError) -> ExitCode:
    path = error.ctx.command_path if error.ctx else "lwp"
    if isinstance(error, click.NoSuchOption) and meant_option(error.option_name, ["--url"]):
        error = click.UsageError(f"No such option {error.option_name!r}. Did you mean '--url'?")
    text = printable(error.format_message().replace("\n", " ").strip().rstrip("."))
    _say(f"{text[:1].lower()}{text[1:]} (see '{path} --help')")
    return ExitCode.USAGE


def _flush(code: int) -> int:
    """Flush stdout here, where a reader who went away is not an error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return code or _unprintable(error)
    return code


def _unprintable(error: OSError) -> ExitCode:
    """Judge that stdout took not everything: a reader may leave, a disk must not be full."""
    discard(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return ExitCode.OK
    _say(f"cannot write to stdout: {error.strerror}")
    return ExitCode.FAILED
