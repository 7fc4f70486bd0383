"""Results of the client."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

MAX_FRAME: Final = 10_485_760
"""Most bytes of a request or an answer (RustLog specification, Frame Structure)."""
DEFAULT_PORT: Final = 9092
Dialect: TypeAlias = Literal["binary", "json"]


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Where records were stored.

    Attributes:
        base_offset: offset of the first one; 0 when there was none.
        count: how many were stored; their offsets follow each other.
    """

    base_offset: int
    count: int


class RustlogRecord(NamedTuple):
    """A record that was read.

    Attributes:
        offset: its number in the partition.
        value: its bytes.
    """

    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class RustlogBatch:
    """What a Fetch returned.

    Attributes:
        records: the records, by rising offset; none at the end of the partition.
        next_offset: what to ask for next.
    """

    records: tuple[RustlogRecord, ...]
    next_offset: int

    def __bool__(self) -> bool:
        return bool(self.records)
