"""The seam between a producer and its journal (SF-32, SF-33).

A producer hands whole batches over and asks from time to time what became of them; what lies
behind the seam has its own connection, its own retries and its own threads. The producer keeps
the order: once it hands one batch over, it hands over everything until `Spill.drained`.

The producer promises:

1. `append` is called by one thread at a time, never under a lock, in the order of the records;
   in the async API in a worker thread.
2. The other methods are called from any thread and must not wait, except `open` and `close`.
"""

from dataclasses import dataclass
from typing import Protocol

from lance_sdk._errors.base import LanceError


@dataclass(frozen=True, slots=True)
class SpilledBatch:
    """One batch on its way into the journal, in the words of every dialect (SF-32).

    Attributes:
        record_count: number of records.
        payload: the records as TLV, never compressed.
        batch_id: the identifier under which the batch was sent already and which it must keep;
            0 when it was never sent and the journal gives it one.
        timestamp_ns: the header timestamp that belongs to that identifier; 0 with it.
    """

    record_count: int
    payload: bytes
    batch_id: int = 0
    timestamp_ns: int = 0


@dataclass(frozen=True, slots=True)
class SpillOutcome:
    """What became of one batch.

    Attributes:
        ticket: what `Spill.append` returned for it.
        batch_id: the identifier under which it was stored.
        topic_id: the topic it was stored in.
        error: why it was given up, or None when the server has acknowledged it.
        kept: whether the error ended the sending and not the batch: it stays in the journal,
            and the next process sends it.
    """

    ticket: int
    batch_id: int = 0
    topic_id: int = 0
    error: LanceError | None = None
    kept: bool = False


class Spill(Protocol):
    """A journal and the sender behind it, as a producer sees them."""

    @property
    def drained(self) -> bool:
        """Whether nothing is left: also of what an earlier process has stored."""
        ...

    def open(self) -> None:
        """Take the slot and recover it; never waits for the network.

        Raises:
            LanceError: the slot is in use, damaged, or cannot be written.
        """
        ...

    def append(self, batch: SpilledBatch) -> int:
        """Store a batch as durably as the journal was configured to.

        Returns:
            A ticket; each is greater than the one before.

        Raises:
            LanceError: nothing was stored. ``retryable`` when the journal is full, so that the
                producer keeps the batch and tries again later; else the batch fails.
        """
        ...

    def take_settled(self) -> list[SpillOutcome]:
        """Take what was acknowledged or given up since the last call, in order of tickets."""
        ...

    def close(self, timeout: float) -> int:
        """Go on sending for ``timeout`` seconds at most, then let the slot go.

        Returns:
            The number of records that stay in the journal; the next process sends them.
        """
        ...
