"""The columns of a topic as a table: their names, and Spark's types of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lance_sdk.errors import ConfigError

DEFAULT_COLUMNS: Final = ("topic", "offset", "type", "key", "value", "timestamp")
STORED_COLUMNS: Final = ("topic", "offset", "type", "value")
"""What a query reads that asks for records as they are stored (``recordFormat=stored``)."""
TYPES: Final = {
    "topic": "string",
    "offset": "bigint",
    "type": "int",
    "value": "binary",
    "key": "binary",
    "timestamp": "timestamp",
    "time_source": "string",
    "raw": "binary",
    "ts_ns": "bigint",
    "size": "int",
    "segment": "string",
    "crc_ok": "boolean",
}
"""Spark's type of every column there is."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run of records comes from.

    Attributes:
        topic: the topic's name.
        offset: byte offset in the topic of the first record.
        segment: name of the file, where it is one.
        crc_ok: whether the bytes match their checksum.
        stored: whether ``value`` is to be what is stored, with key and time before the payload.
        skip: whether records that are not laid out as their types say are left out.
    """

    topic: str
    offset: int
    segment: str | None = None
    crc_ok: bool = True
    stored: bool = False
    skip: bool = False


def check_names(names: Iterable[str]) -> None:
    """Refuse what is not the name of a column.

    Raises:
        ConfigError: naming it.
    """
    for name in names:
        if name not in TYPES:
            raise ConfigError(f"there is no column {name!r}; the columns are {', '.join(TYPES)}")
