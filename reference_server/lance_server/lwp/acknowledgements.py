"""Batches of one connection that wait until they are durable."""

from array import array
from collections.abc import Sequence

from lance_server.runtime.completion import Completion


class UnackedBatches:
    """Ingest frames in a row whose acknowledgement one outcome decides."""

    __slots__ = ("began", "cost", "ids", "outcome")

    def __init__(self, outcome: Completion[None], began: float) -> None:
        self.outcome = outcome
        self.began = began
        self.ids = array("Q")
        self.cost = 0


class UnackedSpread:
    """Ingest frames in a row to several topics, each with the outcome that decides it."""

    __slots__ = ("began", "cost", "ids", "outcomes", "settled")

    def __init__(
        self, ids: Sequence[int], outcomes: Sequence[Completion[None]], cost: int, began: float
    ) -> None:
        self.began = began
        self.ids = ids
        self.outcomes = outcomes
        self.cost = cost
        self.settled = 0
        """How many of them were answered."""

    def next_decided(self) -> tuple[Sequence[int], Exception | None]:
        """Return the next batches that are decided alike, and their error; none where undecided."""
        outcomes, first, end = self.outcomes, self.settled, len(self.ids)
        place, error = first, outcomes[first].error
        while place < end and outcomes[place].done and outcomes[place].error is error:
            place += 1
        return self.ids[first:place], error
