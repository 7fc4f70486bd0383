"""Output on stdout: records as bytes, results as JSON, tables for people."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from lance_sdk._api.interruptible import LOOK
from lance_sdk._io.platform import has_lost_reader, wait_for
from lance_sdk.cli.console.exit_codes import Failure, printable
from lance_sdk.cli.console.streams import discard


class OutputClosed(Exception):  # noqa: N818 - it is not an error: the reader has seen enough
    """The reader of stdout went away."""


class Output:
    """Stdout as a stream of bytes that arrive whole or not at all.

    It writes to the descriptor itself, because what Python gives as ``sys.stdout.buffer`` is
    unbuffered under ``PYTHONUNBUFFERED``, and then writes only part of what it is given.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = _descriptor()
        self._write = self._writer()

    def write(self, data: bytes) -> None:
        """Write everything.

        Raises:
            OutputClosed: when nobody reads any more.
            Failure: when it cannot be written, for example to a full disk.
        """
        left = memoryview(data)
        while left:
            try:
                left = left[self._write(left) :]
            except BlockingIOError:
                self._wait_for_room()
            except BrokenPipeError:
                self._abandon()
            except OSError as error:
                raise Failure(f"cannot write to stdout: {error.strerror}") from None

    def check(self) -> None:
        """Notice a reader who went away although there is nothing to write.

        Raises:
            OutputClosed: when nobody reads any more.
        """
        if self._descriptor is not None and has_lost_reader(self._descriptor):
            self._abandon()

    def _writer(self) -> Callable[[memoryview], int]:
        descriptor, stream = self._descriptor, sys.stdout
        if descriptor is None:
            return stream.buffer.write
        return lambda data: os.write(descriptor, data)

    def _wait_for_room(self) -> None:
        """Wait where another program made the shared descriptor non-blocking."""
        assert self._descriptor is not None
        wait_for(self._descriptor, write=True, seconds=LOOK)  # the next write finds out

    def _abandon(self) -> NoReturn:
        discard(sys.stdout)
        raise OutputClosed from None


def _descriptor() -> int | None:
    """Return stdout's file descriptor; None where it is memory, as in tests."""
    try:
        return sys.stdout.fileno()
    except OSError:
        return None


def print_line(text: str) -> None:
    """Print one line on stdout.

    Raises:
        OutputClosed: when nobody reads any more.
    """
    encoding = sys.stdout.encoding or "utf-8"
    Output().write(f"{text}\n".encode(encoding, "backslashreplace"))


def print_json(value: Any) -> None:
    """Print a result as one line of JSON.

    Raises:
        OutputClosed: when nobody reads any more.
    """
    print_line(json.dumps(value, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> None:
    """Print rows under headings: drawn on a terminal, else plain and never cut.

    Args:
        columns: the headings.
        rows: cells, as many as there are headings.
        right: the letters ``<`` and ``>`` per column; ``>`` aligns right, the rest left.

    Raises:
        OutputClosed: when nobody reads any more.
    """
    align = right.ljust(len(columns), "<")
    safe = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(columns, safe, align)
    else:
        print_line("\n".join(_plain([list(columns), *safe], align)))


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], align: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - costs 100 ms, only tables need it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415 - cells are text, never markup

    table = Table(header_style="bold")
    for name, side in zip(columns, align, strict=True):
        table.add_column(name, justify="right" if side == ">" else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _plain(lines: Sequence[Sequence[str]], align: str) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = [
        [f"{cell:{side}{width}}" for cell, side, width in zip(line, align, widths, strict=True)]
        for line in lines
    ]
    return ["  ".join(line).rstrip() for line in cells]
