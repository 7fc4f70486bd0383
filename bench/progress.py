"""How far a long run is: a bar on a terminal, lines elsewhere, all on standard error."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_Thing = TypeVar("_Thing")


def told(things: list[_Thing], names: Iterable[str]) -> Iterator[_Thing]:
    """Yield things, saying which one it is; at the end, how long all of them took.

    Args:
        things: what is worked on, one after the other.
        names: what they are called.
    """
    began = time.monotonic()
    with _progress() as progress:
        task = progress.add_task("", total=len(things))
        for thing, name in zip(things, names, strict=True):
            progress.update(task, description=name)
            start = time.monotonic()
            yield thing
            progress.advance(task)
            if not progress.console.is_terminal:
                print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    print(f"took {time.monotonic() - began:.0f} s", file=sys.stderr)


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)
