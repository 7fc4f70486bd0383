"""How far a command over a slot or a log is, on stderr while that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lance_sdk.cli._settings import current_settings


@contextmanager
def frames_bar(label: str, unit: str = "frames") -> Iterator[Callable[[int, int], object]]:
    """Yield what takes (frames done, frames in all) and draws them.

    Args:
        label: what goes on, for example ``verifying``.
        unit: what is counted, when it is not frames.
    """
    settings = current_settings()
    if settings.quiet or settings.json or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich import progress  # noqa: PLC0415 - costs 100 ms, only a bar needs it
    from rich.console import Console  # noqa: PLC0415 - likewise

    bar = progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + unit),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(label, total=0)
        yield lambda done, total: bar.update(task, completed=done, total=total)
