"""Batches on their way to the disk together."""

from typing import TYPE_CHECKING

from lance_server.log.dedup import is_lasting
from lance_server.runtime.completion import Completion
from lance_spec.codec.ingest_runs import ROW_SIZE, BatchTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_server.log.segments.segment_files import Segment
    from lance_server.storage.contract import Write


class CommitBatch:
    """Batches that become durable together, or fail together.

    Attributes:
        data: their bytes, back to back.
        batches: what is known of each.
        lasting: how many of them other connections may repeat (AMB-25).
        outcome: their common fate.
        roll: whether the segment that was being written is closed before them.
        first_record: number of records in the topic before them, once they are stored.
        writes: what must become durable for them, once that is known.
        segment: where they went.
        error: why they are not durable.
        is_concluded: whether the disk has decided about them.
    """

    __slots__ = (
        "_digests",
        "_looked_at",
        "batches",
        "data",
        "error",
        "first_record",
        "is_concluded",
        "lasting",
        "outcome",
        "roll",
        "segment",
        "writes",
    )

    def __init__(self) -> None:
        self.data = bytearray()
        self.batches = BatchTable()
        self.lasting = 0
        self._digests: dict[int, bytes] | None = None
        self._looked_at = 0
        """How many of the batches are among the digests that were looked for."""
        self.outcome: Completion[None] = Completion()
        self.roll = False
        self.first_record = 0
        self.writes: Sequence[Write] = ()
        self.segment: Segment | None = None
        self.error: OSError | None = None
        self.is_concluded = False

    def __repr__(self) -> str:
        return (
            f"<CommitBatch {len(self.batches)} batches, {len(self.data)} bytes, {self.outcome!r}>"
        )

    def find(self, batch_id: int) -> bytes | None:
        """Return the digest of a batch that other connections may repeat, by its id."""
        if self._digests is None:  # seldom: something is sent again while it is stored
            self._digests = {}
        for batch in self.batches.since(self._looked_at):
            if is_lasting(batch):
                self._digests[batch.batch_id] = batch.digest
        self._looked_at = len(self.batches)
        return self._digests.get(batch_id)

    @property
    def lasting_batches(self) -> BatchTable:
        """Those that other connections may repeat."""
        if self.lasting * ROW_SIZE == len(self.batches.rows):
            return self.batches
        return BatchTable.of(filter(is_lasting, self.batches)) if self.lasting else BatchTable()
