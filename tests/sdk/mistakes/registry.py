"""Where the programs that make a mistake are registered, each under the id of its row."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

MISTAKES: Final[dict[str, Callable[[Path], object]]] = {}
URL: Final = "lance://127.0.0.1:1/orders"
"""Where nobody listens."""


def mistake(cause: Callable[[Path], object]) -> Callable[[Path], object]:
    """Register a program under its name."""
    MISTAKES[cause.__name__.replace("_", "-")] = cause
    return cause


def wrong(name: str, cause: Callable[[], object]) -> None:
    """Register one that needs nothing."""
    MISTAKES[name] = lambda _folder: cause()
