"""Results that are kept, a JSON file for each kind; the documentation shows them."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import machine

FOLDER = Path(__file__).parent


class OtherMachine(Exception):  # noqa: N818 - said of the results, not of a failure
    """Only some results were measured, and the others are from another machine."""


def kept(path: Path, *, everything: bool) -> dict[str, Any]:
    """Return the results in a file that stay when others are measured again.

    Args:
        path: the file; it need not be there.
        everything: all of them are measured again.

    Raises:
        OtherMachine: they come from another machine, or other versions of the programs.
    """
    if everything or not path.exists():
        return {}
    old = load(path)
    if old["machine"] != machine.facts():
        raise OtherMachine(
            f"{path.name} has results of another machine, or of other versions: measure all again"
        )
    return dict(old["results"])


def save(path: Path, measured: dict[str, Any]) -> None:
    """Write results down, with the machine, the day and the load that they come from."""
    document = {
        "machine": machine.facts(),
        "date": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
        "results": measured,
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def load(path: Path) -> dict[str, Any]:
    """Return a file's content.

    Raises:
        OSError: there is no such file.
        ValueError: it is not JSON.
    """
    content: dict[str, Any] = json.loads(path.read_text())
    return content
