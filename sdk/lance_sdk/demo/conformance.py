"""Has the conformance kit judge a server, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.exit_codes import Failure, printable
from lance_sdk.url import Endpoint

_DEADLINE: Final = 120.0  # seconds; the quick profile takes under 5
_TIMEOUT_SCALE: Final = "5"  # the demo may share its machine; what is slow is not wrong
_KIT: Final = "lance_conformance"


@dataclass(frozen=True, slots=True)
class KitVerdict:
    """What the kit says.

    Attributes:
        exit_code: the kit's exit code; 0 when every selected MUST case passed.
        summary: the kit's JSON summary.
        notes: what it wrote to stderr.
    """

    exit_code: int
    summary: dict[str, Any]
    notes: str

    @property
    def passed(self) -> bool:
        """Whether the server does what the specification asks for, as far as the profile looks."""
        return self.exit_code == 0

    def __str__(self) -> str:
        told = self.summary
        counts = ", ".join(
            f"{count} {str(name).lower()}" for name, count in told.get("totals", {}).items()
        )
        seconds = number_format.seconds(float(told.get("seconds", 0)))
        cases = f"{told.get('selected', 0)} conformance cases in {seconds}"
        return printable(f"{cases}: {counts or 'none passed'}")

    @property
    def sentence(self) -> str:
        """What the kit concludes."""
        return printable(str(self.summary.get("verdict", f"exit code {self.exit_code}")))

    def problems(self) -> Iterator[str]:
        """Yield a line for each case that broke a rule."""
        for each in self.summary.get("problems", []):
            yield printable(f"{each['verdict']} {each['id']} [{each['clause']}] {each['rule']}")

    def to_json(self) -> dict[str, Any]:
        """Return the kit's summary with its exit code."""
        return {"exit_code": self.exit_code, **self.summary}


def judge(server: Endpoint, dialect: str) -> KitVerdict:
    """Run the kit's quick profile against a server.

    Args:
        server: its address.
        dialect: which dialect it is expected to speak.

    Raises:
        Failure: when the kit does not end in time or does not say anything.
    """
    command = [sys.executable, "-m", _KIT, "--target", str(server), "--profile", "quick"]
    command += ["--timeout-scale", _TIMEOUT_SCALE]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, and an address that was parsed
            [*command, "--dialect", dialect, "--json"],
            capture_output=True,
            check=False,
            timeout=_DEADLINE,
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"the conformance kit did not end within {_DEADLINE:.0f} s") from None
    notes = done.stderr.decode(errors="replace")
    try:
        summary = json.loads(done.stdout)
    except ValueError:
        last = printable((notes.strip().splitlines() or ["it said nothing"])[-1])
        raise Failure(
            f"the conformance kit ended with exit code {done.returncode} and no summary: {last}"
        ) from None
    return KitVerdict(done.returncode, summary, notes)
