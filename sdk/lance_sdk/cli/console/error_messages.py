"""Which sentence and which exit code an exception becomes."""

from typing import Final

from lance_sdk import errors
from lance_sdk.cli.console.exit_codes import ExitCode, Failure, printable

_OPTIONAL: Final = frozenset({"click", "rich"})
"""Packages of the extra ``cli`` that are imported when a command needs them."""


_SHELL_WORDS: Final = {
    "pass create_topic=True": "say --create-topic",
    "seek, or use on_truncation='reset'": "begin elsewhere with --from",
    "seek to an `offset` or `next_offset` that a record had": (
        "give --from an offset that --json shows"
    ),
    "the `dialect` option": "the option --dialect",
    "set fetch_header=": "add to the URL: ?fetch_header=",
}
"""What the client advises to those who write code, and what that is on a command line."""

_CODES: Final = (
    (errors.ConnectFailed, ExitCode.UNREACHABLE),
    (errors.ConfigError, ExitCode.USAGE),
    (errors.LanceError, ExitCode.FAILED),
    (OSError, ExitCode.FAILED),
)
"""The first kind that fits decides."""


def describe(error: Exception) -> tuple[str, ExitCode]:
    """Return one line for the user, and the exit code.

    Args:
        error: what a command raised.
    """
    line = _in_shell_words(_one_line(error))
    if isinstance(error, Failure):
        return line, error.code
    if isinstance(error, ModuleNotFoundError) and error.name in _OPTIONAL:
        return f"{line}; install it with: pip install 'lance-sdk[cli]'", ExitCode.USAGE
    for kind, code in _CODES:
        if isinstance(error, kind):
            return line, code
    kind_name = type(error).__name__
    return f"internal fault: {kind_name}: {line} (-vv shows where)", ExitCode.FAILED


def _in_shell_words(text: str) -> str:
    for code, shell in _SHELL_WORDS.items():
        text = text.replace(code, shell)
    return text


def _one_line(error: Exception) -> str:
    """Join the lines of a message."""
    lines = [printable(line.strip()) for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    for line in lines[1:]:
        text += f"{_joint(text, line)}{line}"
    return text


def _joint(before: str, after: str) -> str:
    if before.endswith((":", ".")):
        return " "
    return ". " if after[:1].isupper() else "; "
