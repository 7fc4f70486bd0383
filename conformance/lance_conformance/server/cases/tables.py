"""The cases that are data, read from ``server_case.json`` of the test vectors."""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.played import play
from lance_conformance.server.cases.registry import case

PACKAGE: Final = Path(__file__).resolve().parents[2]
NAME: Final = "server_case.json"


def path() -> Traversable:
    """Where the data is: in the single file, among the installed vectors, or in a checkout.

    It is read as a file, so that the kit loads none of the packages that it may be asked about.

    Raises:
        FileNotFoundError: The package was torn from its distribution.
    """
    own = files("lance_conformance").joinpath(NAME)  # release/single_file.py puts it there
    if own.is_file():
        return own
    for folder in (PACKAGE.parent / "lance_spec" / "_vectors", PACKAGE.parent.parent / "vectors"):
        if (folder / NAME).is_file():
            return folder / NAME
    raise FileNotFoundError(
        f"{NAME} is neither among the installed vectors nor in a checkout; "
        "install lance-sdk from a wheel, or work in a checkout"
    )


def rows() -> Iterator[Mapping[str, Any]]:
    """Every case as the file has it."""
    document = json.loads(path().read_text(encoding="utf-8"))
    for group in document["testGroups"]:
        yield from group["tests"]


def _register(row: Mapping[str, Any]) -> None:
    async def function(ctx: CaseContext) -> None:
        await play(ctx, row)

    function.__doc__ = f"{row['title']}\n\n{row.get('details', '')}".strip()
    case(
        row["id"],
        row["clause"],
        dialects=tuple(row["dialects"]) if "dialects" in row else None,
        pinned_only=row.get("pinned_only", False),
        quick=row.get("quick", False),
        needs=row.get("needs", ()),
        weight=row.get("weight", 1),
    )(function)


for each in rows():
    _register(each)
