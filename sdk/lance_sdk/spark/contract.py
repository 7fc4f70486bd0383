"""What a log is to the pipeline, wherever it is: at a server, in files, or in a slot."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from lance_sdk.offsets.contract import TopicIdentity
from lance_sdk.spark.marks import Mark
from lance_sdk.spark.options import RecordFormat


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as it is now.

    Attributes:
        identity: which topic it is.
        start: the earliest offset that can be read.
        end: the offset behind its last durable byte.
    """

    identity: TopicIdentity
    start: int
    end: int

    @property
    def name(self) -> str:
        """The topic's name, or ``#id``."""
        return self.identity.label


class Piece(Protocol):
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

    def shown_as(self, form: RecordFormat) -> "Piece":
        """Return the same piece whose column ``value`` is the payload, or what is stored."""
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

    def plan(self, view: TopicView, start: int, end: int) -> Sequence[Piece]:
        """Cut a range of a topic into pieces."""
        ...

    def advance(self, mark: Mark, view: TopicView, limit: int) -> Mark:
        """Return the mark of the next micro-batch.

        Args:
            mark: how far the query is.
            view: the topic as it is now; what came later is left.
            limit: bytes to take at most, but at least one record.

        Raises:
            DataLost: the records before the mark are not those that were read.
        """
        ...

    def pieces(self, mark: Mark) -> Sequence[Piece]:
        """Return the pieces of a micro-batch."""
        ...
