"""Exit codes of ``lwp``, and the line that it prints when something fails."""

from enum import IntEnum
from typing import Final

import click

from lance_sdk.cli.console.streams import tell


class ExitCode(IntEnum):
    """Exit codes of every ``lwp`` command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


EPILOG: Final = """\b
Exit codes:
    0  done; also when the reader of the output went away (| head)
    1  failed: the server refused, records were lost, or the input is bad
    2  wrong usage
    3  no server could be reached
  130  interrupted with Ctrl-C
  143  terminated

\b
Shell completion:
  eval "$(lwp completion bash)"
"""


class Failure(Exception):  # noqa: N818 - it is shown as "error: …", the name need not say it
    """One clear line for the user, and the exit code that goes with it.

    Attributes:
        code: the exit code.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def require_command(ctx: click.Context) -> None:
    """Show the help of a group that was called without a command: wrong usage.

    Args:
        ctx: of a group with ``invoke_without_command``.
    """
    if ctx.invoked_subcommand is None:
        tell(ctx.get_help())
        ctx.exit(ExitCode.USAGE)


def printable(text: str) -> str:
    """Return text from elsewhere with control characters escaped, safe for a terminal.

    Args:
        text: for example an error message that a server sent.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
