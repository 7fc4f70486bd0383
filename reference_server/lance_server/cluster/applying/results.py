"""Results of a record."""

from enum import Enum, auto
from typing import NamedTuple


class Status(Enum):
    """What came of a record, as far as its sender needs to know."""

    DONE = auto()
    """It did what it says."""
    STORED = auto()
    """The batch is stored."""
    DUPLICATE = auto()
    """The batch was stored before, and is the same."""
    NO_TOPIC = auto()
    """The shard has no such topic, or none any more."""
    EXISTS = auto()
    """There is a topic of this name."""
    FULL = auto()
    """There are as many as there may be."""
    STALE = auto()
    """It relies on a version that is not the current one, or on an end that has moved."""
    DAMAGED = auto()
    """Its data is not what its checksum says."""
    IGNORED = auto()
    """It changes nothing here."""


class Result(NamedTuple):
    """What came of a record.

    Attributes:
        status: what came of it.
        topic_id: the topic that was created, that exists, or that was written to.
        offset: where the batch begins in its topic, in bytes; for STALE the current version.
        record: number of the batch's first record in its topic.
    """

    status: Status
    topic_id: int = 0
    offset: int = 0
    record: int = 0


class Applied(NamedTuple):
    """A record that was applied, as whoever sent it recognises it.

    Attributes:
        position: of the record.
        process: random number of the process that sent it.
        counter: number of the record among those of its process.
        result: what came of it.
    """

    position: int
    process: int
    counter: int
    result: Result
