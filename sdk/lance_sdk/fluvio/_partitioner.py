"""Which partition a record goes to."""

import zlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from lance_sdk.errors import ConfigError
from lance_spec.codec.siphash import fluvio_partition

Partitioner: TypeAlias = Callable[[bytes, int], int]
"""Takes a key and the number of partitions, returns the number of one."""


def crc32(key: bytes, partitions: int) -> int:
    """Return where the first release of this package put a key."""
    return zlib.crc32(key) % partitions


_NAMED: Final[dict[str, Partitioner]] = {"siphash": fluvio_partition, "crc32": crc32}


def partitioner_of(chosen: str | Partitioner) -> Partitioner:
    """Return a partitioner by its name, or the one that was given.

    Raises:
        ConfigError: there is none of this name.
    """
    if callable(chosen):
        return chosen
    if chosen not in _NAMED:
        expected = ", ".join(_NAMED)
        raise ConfigError(f"partitioner={chosen!r}: expected one of {expected}, or a function")
    return _NAMED[chosen]


class RoundRobin:
    """Chooses partitions for records without a key, in turn."""

    def __init__(self) -> None:
        self._turn = 0

    def __repr__(self) -> str:
        return f"<RoundRobin at {self._turn}>"

    def next(self, available: Sequence[int]) -> int:
        """Return the next of the partitions that can be written now."""
        found = available[self._turn % len(available)]
        self._turn += 1
        return found
