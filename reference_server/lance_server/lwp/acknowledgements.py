"""Acknowledgements: batches that wait until they are durable, and the frames that answer them."""

from array import array
from collections.abc import Callable, Sequence

from lance_server.lwp.refusals import Refusal
from lance_server.lwp.responses import Answer, error_frame, explained
from lance_server.runtime.completion import Completion
from lance_server.telemetry.counters import Counters
from lance_spec.dialect import Dialect
from lance_spec.frames import encode_acks


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


class Acknowledger:
    """Acknowledges the batches of one connection, or says why they are not stored.

    Args:
        counters: what the server counts.
        send: makes a frame ready to be written.
    """

    def __init__(self, counters: Counters, send: Callable[[Answer], None]) -> None:
        self._counters = counters
        self._send = send

    def answer(
        self,
        ids: Sequence[int],
        error: Exception | None,
        dialect: Dialect,
        began: float,
        now: float,
    ) -> Refusal | None:
        """Answer batches that are decided.

        Args:
            ids: the batches, in order.
            error: why they are not stored; None: they are durable.
            dialect: of the connection.
            began: when they came, in seconds.
            now: the current time in seconds.

        Returns:
            What was said of the error.
        """
        counters, count = self._counters, len(ids)
        counters.answered += count
        refusal: Refusal | None = None
        if error is None:
            counters.batches_acked += count
            self._send(encode_acks(dialect, ids))
        else:
            refusal = explained(error)
            counters.errors += count
            for batch_id in ids:
                self._send(error_frame(dialect, refusal, batch_id))
        took_ns = int((now - began) * 1e9)
        counters.ack_latency.observe(took_ns)
        counters.span("lance.ingest", took_ns, batches=count)
        return refusal
