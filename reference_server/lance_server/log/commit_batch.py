"""Batches on their way to the disk together."""

from typing import TYPE_CHECKING

from lance_server.runtime.completion import Completion

if TYPE_CHECKING:
    from lance_spec.codec.ingest_runs import BatchMeta


class CommitBatch:
    """Batches that become durable together, or fail together.

    Attributes:
        data: their bytes, back to back.
        batches: what is known of each.
        digests: digest by id of those that other connections may repeat (AMB-25).
        outcome: their common fate.
        roll: whether the segment that was being written is closed before them.
        first_record: number of records in the topic before them, once they are stored.
    """

    __slots__ = ("batches", "data", "digests", "first_record", "outcome", "roll")

    def __init__(self) -> None:
        self.data = bytearray()
        self.batches: list[BatchMeta] = []
        self.digests: dict[int, bytes] = {}
        self.outcome: Completion[None] = Completion()
        self.roll = False
        self.first_record = 0

    def __repr__(self) -> str:
        return (
            f"<CommitBatch {len(self.batches)} batches, {len(self.data)} bytes, {self.outcome!r}>"
        )
