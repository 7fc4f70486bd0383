"""The demo's output while it runs: numbered steps for people."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from lance_sdk.cli._settings import Settings
from lance_sdk.cli.console.output import print_line
from lance_sdk.cli.console.progress import Meter, progress, waiting
from lance_sdk.cli.console.streams import tell


@dataclass(slots=True)
class Story:
    """Prints steps as they end: on stdout, or on stderr when stdout is for JSON.

    Attributes:
        settings: the shared options.
        steps: how many numbered steps there will be.
        step: how many were told.
    """

    settings: Settings
    steps: int
    step: int = 0

    @property
    def shows_tables(self) -> bool:
        """Whether stdout is for people."""
        return not (self.settings.json or self.settings.quiet)

    def say(self, text: str) -> None:
        """Print a line of the story."""
        if self.settings.quiet:
            return
        if self.settings.json:
            tell(text)
        else:
            print_line(text)

    def tell(self, verb: str, text: str) -> None:
        """Print the outcome of the next step."""
        self.step += 1
        self.say(f"[{self.step}/{self.steps}] {verb:<8} {text}")

    def add(self, verb: str, text: str) -> None:
        """Print something more about the step before."""
        self.say(f"      {verb:<8} {text}")

    @contextmanager
    def counting(self, label: str, total: int) -> Iterator[Meter]:
        """Count records, with a bar on a terminal.

        Args:
            label: what is going on.
            total: records to come.
        """
        meter = Meter()
        with progress(label, meter, total=total, shown=not self.settings.quiet):
            yield meter

    def waiting(self, label: str) -> AbstractContextManager[None]:
        """Show on a terminal that something goes on."""
        return waiting(label, shown=not self.settings.quiet)
