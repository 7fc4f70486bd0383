"""Colours, where the reader can see them."""

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from lance_conformance.engine.run.verdict import Verdict

_CODES: Mapping[Verdict, str] = {
    Verdict.PASS: "32",
    Verdict.FAIL: "1;31",
    Verdict.WARN: "33",
    Verdict.BLOCKED: "35",
    Verdict.INCONCLUSIVE: "35",
    Verdict.FLAKY: "33",
    Verdict.XFAIL: "33",
    Verdict.ERROR: "1;31",
}


class Style:
    """Marks text, or leaves it as it is.

    Args:
        colour: Whether to mark at all.
    """

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def __repr__(self) -> str:
        return f"Style(colour={self._colour})"

    def _mark(self, code: str | None, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text

    def strong(self, text: str) -> str:
        """What matters."""
        return self._mark("1", text)

    def faint(self, text: str) -> str:
        """What matters less."""
        return self._mark("2", text)

    def verdict(self, verdict: Verdict, text: str) -> str:
        """Text in the colour of a verdict."""
        return self._mark(_CODES.get(verdict), text)


def style_for(stream: TextIO = sys.stdout) -> Style:
    """Colours for a terminal, none for anything else or when NO_COLOR is set."""
    return Style(colour=stream.isatty() and not os.environ.get("NO_COLOR"))
