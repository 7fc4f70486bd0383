"""How far a long command is: counters, and a bar on stderr when that is a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from lance_sdk.cli.console import number_format

_REFRESH: Final = 8  # times a second
_MEASURABLE: Final = 0.1  # seconds; below, a rate is mostly the cost of connecting


@dataclass(slots=True)
class Meter:
    """What went through so far.

    Attributes:
        records: how many.
        bytes: of their values.
        began: monotonic seconds.
        on_change: called after each count.
    """

    records: int = 0
    bytes: int = 0
    began: float = field(default_factory=time.monotonic)
    on_change: Callable[[], None] | None = field(default=None, repr=False)

    def add(self, records: int, data: int) -> None:
        """Count some more records and their bytes."""
        self.records += records
        self.bytes += data
        if self.on_change is not None:
            self.on_change()

    @property
    def elapsed(self) -> float:
        """Seconds since the meter began."""
        return time.monotonic() - self.began

    def summary(self) -> str:
        """Return what went through, and how fast when that can be told, in words."""
        elapsed = self.elapsed
        amount = f"{number_format.count(self.records, 'record')} ({number_format.size(self.bytes)})"
        text = f"{amount} in {number_format.seconds(elapsed)}"
        if elapsed < _MEASURABLE:
            return text
        return f"{text}: {number_format.rates(self.records, self.bytes, elapsed)}"


@contextmanager
def progress(
    label: str, meter: Meter, *, total: int | None = None, shown: bool = True
) -> Iterator[None]:
    """Show a meter as a bar on stderr while that is a terminal.

    Args:
        label: what is going on, for example ``producing``.
        meter: what counts.
        total: records to come, when known.
        shown: False suppresses the bar.
    """
    if not (shown and sys.stderr.isatty()):
        yield
        return
    with _bar(label, total) as draw:
        meter.on_change = lambda: draw(meter)
        yield
        meter.on_change = None


@contextmanager
def waiting(label: str, *, shown: bool = True) -> Iterator[None]:
    """Show on stderr, while that is a terminal, that something goes on.

    Args:
        label: what goes on.
        shown: False suppresses it.
    """
    if not (shown and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - as for the bar

    with Console(stderr=True).status(label):
        yield


@contextmanager
def _bar(label: str, total: int | None) -> Iterator[Callable[[Meter], None]]:
    from rich import progress as rich_progress  # noqa: PLC0415 - costs 100 ms, only a bar needs it
    from rich.console import Console  # noqa: PLC0415

    bar = rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.completed:,.0f} records"),
        rich_progress.TextColumn("{task.fields[rates]}"),
        console=Console(stderr=True),
        refresh_per_second=_REFRESH,
        transient=True,
    )
    with bar:
        task = bar.add_task(label, total=total, rates="")

        def draw(meter: Meter) -> None:
            rates = number_format.rates(meter.records, meter.bytes, meter.elapsed)
            bar.update(task, completed=meter.records, rates=rates)

        yield draw
