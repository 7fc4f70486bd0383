"""What was not delivered and whether anybody has noticed."""

from lance_sdk._core.delivery import Batch
from lance_sdk._tree import LanceError
from lance_sdk.errors import DeliveryExpired, StillInJournal
from lance_sdk.types import CloseReport

_KEPT = 1024
"""Failed batches remembered one by one, so that a long outage does not fill the memory."""


class FailureLog:
    """Failed batches, for the report at the end.

    Attributes:
        records: records that failed, whether noticed or not.
        journaled: records that stay in the journal: they are not lost.
    """

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._overflow = 0
        self.records = 0
        self.journaled = 0

    def __repr__(self) -> str:
        return f"<FailureLog records={self.records} unseen={self.count_unseen()}>"

    def add(self, batch: Batch) -> None:
        """Take note of a failed batch."""
        self.records += batch.count
        if len(self._batches) < _KEPT:
            self._batches.append(batch)
        else:
            self._overflow += batch.count

    def count_unseen(self) -> int:
        """Return the number of failed records that nobody has looked at yet."""
        return self._overflow + sum(batch.count for batch in self._unseen())

    def _unseen(self) -> list[Batch]:
        return [batch for batch in self._batches if not batch.observed]

    def take_unseen(self) -> LanceError | None:
        """Return the first failure that no one has looked at; from now on all are looked at."""
        unseen = self._unseen()
        for batch in unseen:
            batch.observed = True
        return unseen[0].failure() if unseen else None

    def report(self, delivered: int) -> CloseReport:
        """Return what nobody has looked at yet; whoever gets the report has."""
        unseen, lost = self._unseen(), self.count_unseen()
        doubtful = sum(
            batch.count for batch in unseen if batch.error is not None and batch.error.maybe_applied
        )
        self._batches.clear()
        self._overflow = 0
        error = unseen[0].failure() if unseen else None
        return CloseReport(
            delivered=delivered,
            lost=lost,
            maybe_applied=doubtful,
            error=error,
            journaled=self.journaled,
        )


def expired(batch: Batch, now: float) -> DeliveryExpired:
    """Return the error of a batch whose delivery timeout has passed."""
    waited = now - batch.created
    sent = f"sent {batch.attempts} times" if batch.attempts else "never sent: no connection"
    return DeliveryExpired(
        f"not acknowledged within {waited:.1f} s (delivery_timeout); {sent}",
        batch_id=batch.batch_id,
        maybe_applied=batch.attempts > 0,
    )


def kept_in_journal(batch: Batch, cause: LanceError | None = None) -> StillInJournal:
    """Return the error of a batch that nobody waits for any longer, but that is safe."""
    because = "" if cause is None else f" ({cause})"
    kept = StillInJournal(
        f"{batch.count} records stay in the journal and are sent when a server takes "
        f"them{because}; do not send them again",
        batch_id=batch.batch_id,
        maybe_applied=True,
    )
    kept.__cause__ = cause
    return kept
