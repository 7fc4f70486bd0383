"""The standard streams of a command, which may be closed, full, or left by their readers."""

import os
import sys
from pathlib import Path
from typing import Final, TextIO

import click

CLOSED: Final = "error: stdout is closed; send it somewhere, for example > /dev/null\n"
"""What a command says that could not even answer."""


def settle() -> bool:
    """Have a stderr to write to; return whether there is a stdout too.

    A descriptor that is closed when a program starts is given to whatever it opens next, so a
    message could end up in the middle of a connection.
    """
    if sys.stderr is None:  # `2>&-` asks for silence
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    return sys.stdout is not None


def tell(text: str) -> None:
    """Print a line on stderr; that nobody can read it is not a reason to fail.

    What was stored is stored, and a caller who saw a failure would store it twice.

    Args:
        text: a summary, a message, advice.
    """
    try:
        click.echo(text, err=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Let what is still buffered for a stream vanish: nobody can read it."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)
