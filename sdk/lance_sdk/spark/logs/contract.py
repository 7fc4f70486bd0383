"""What a log is to the pipeline, wherever it is: at a server, in files, or in a slot."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import pyarrow as pa

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.options import RecordFormat
from lance_sdk.spark.streaming.checkpoint import TopicCheckpoint

EVERYTHING: Final = 2**62
"""More bytes, and more records, than any log has."""


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as it is now.

    Attributes:
        identity: which topic it is.
        start: the earliest offset that can be read.
        end: the offset after its last durable byte.
        records: how many there are between the two, where that is known at no cost.
    """

    identity: TopicIdentity
    start: int
    end: int
    records: int | None = None

    @property
    def name(self) -> str:
        """The topic's name, or ``#id``."""
        return self.identity.label


@dataclass(frozen=True, slots=True)
class Unread:
    """What lies between a query's offset and the end of a topic, beside its bytes.

    Attributes:
        records: how many, about; None where nothing tells.
        since_ns: when the first of them was stored, in nanoseconds since the Unix epoch; None
            where nothing tells.
    """

    records: int | None = None
    since_ns: int | None = None


class InputSplit(Protocol):
    """What one task reads; it is pickled to wherever that runs."""

    @property
    def topic(self) -> str:
        """The topic's name."""
        ...

    @property
    def start(self) -> int:
        """Byte offset at which it begins."""
        ...

    @property
    def end(self) -> int:
        """Byte offset at which it ends."""
        ...

    @property
    def size(self) -> int:
        """Bytes to read for it, about."""
        ...

    def shown_as(self, form: RecordFormat) -> "InputSplit":
        """Return the same split whose column ``value`` is the payload, or what is stored."""
        ...

    def read(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the records as batches with exactly these columns.

        Raises:
            LanceError: they cannot be read.
        """
        ...


class Log(Protocol):
    """Topics that can be read."""

    def look(self, known: Collection[str] = ()) -> list[TopicView]:
        """Return the topics that the query is about, by name.

        Args:
            known: topics that were there before, and are left out when they are gone.

        Raises:
            LanceError: they cannot be seen, or another one that was named is not there.
        """
        ...

    def at(self, view: TopicView, moment: datetime) -> int:
        """Return the offset of the first record that arrived at a time or later."""
        ...

    def plan(self, view: TopicView, start: int, end: int) -> Sequence[InputSplit]:
        """Cut a range of a topic into splits."""
        ...

    def advance(
        self, checkpoint: TopicCheckpoint, view: TopicView, limit: int, records: int = EVERYTHING
    ) -> TopicCheckpoint:
        """Return the checkpoint of the next micro-batch.

        Args:
            checkpoint: how far the query is.
            view: the topic as it is now; what came later is left.
            limit: bytes to take at most, but at least one record.
            records: how many to take at most; in files whole batches, and at least one.

        Raises:
            DataLost: the records before the checkpoint are not those that were read.
        """
        ...

    def splits(self, checkpoint: TopicCheckpoint) -> Sequence[InputSplit]:
        """Return the splits of a micro-batch."""
        ...

    def unread(self, view: TopicView, offset: int) -> Unread:
        """Return what there is from an offset before the topic's end on.

        Raises:
            LanceError: it cannot be found out now.
            OSError: likewise.
        """
        ...
