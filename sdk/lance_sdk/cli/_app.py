"""The ``lwp`` command group, and how it ends: one clear line and an exit code."""

import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final

import click

from lance_sdk.cli._errors import describe
from lance_sdk.cli._exit import EPILOG, ExitCode, printable, require_command
from lance_sdk.cli._lazy import LazyGroup
from lance_sdk.cli._output import OutputClosed
from lance_sdk.cli._settings import Settings, common_options, start_logging
from lance_sdk.cli._streams import discard, tell

_COMMANDS: Final = {
    "topics": "lance_sdk.cli._topics:topics",
    "produce": "lance_sdk.cli._produce:produce",
    "consume": "lance_sdk.cli._consume:consume",
    "tail": "lance_sdk.cli._tail:tail",
    "replay": "lance_sdk.cli._replay:replay",
    "bridge": "lance_sdk.bridge.command:bridge",
    "offsets": "lance_sdk.cli._offsets:offsets",
    "group": "lance_sdk.cli._group:group",
    "ping": "lance_sdk.cli._ping:ping",
    "status": "lance_sdk.cli._status:status",
    "sf": "lance_sdk.cli._sf:sf",
    "pipeline": "lance_sdk.cli._pipeline:pipeline",
    "bench": "lance_sdk.cli._bench:bench",
    "explain": "lance_sdk.cli._explain:explain",
    "vectors": "lance_sdk.cli._vectors:vectors",
    "completion": "lance_sdk.cli._completion:completion",
}


class _Application(LazyGroup):
    """Turns whatever a command raises into one line on stderr and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line; see `click.Command.make_context`."""
        try:
            return super().make_context(*arguments, **options)
        except OSError as error:  # the help and the version of ``lwp`` itself
            raise click.exceptions.Exit(_unprintable(error)) from None

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
    start_logging(ctx.ensure_object(Settings))
    require_command(ctx)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run ``lwp`` and return its exit code.

    Args:
        arguments: what stands behind the command's name; those of the process by default.
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
    text = printable(error.format_message().replace("\n", " ").strip().rstrip("."))
    _say(f"{text[:1].lower()}{text[1:]} (see '{path} --help')")
    return ExitCode.USAGE


def _flush(code: int) -> int:
    """Flush stdout here, where a reader who went away is no error."""
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
