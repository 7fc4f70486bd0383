"""Records that were not delivered, and whether the application has noticed."""

from collections.abc import Sequence
from dataclasses import dataclass

from lance_sdk._errors.advice import advice
from lance_sdk._errors.base import LanceError
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk._protocol.situation import Situation
from lance_sdk.errors import (
    BufferFull,
    DeadlineExceeded,
    DeliveryExpired,
    ServerError,
    StillInJournal,
)
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


@dataclass(frozen=True, slots=True)
class Destination:
    """Where records go, for the texts of errors.

    Attributes:
        topic: the topic's label.
        situation: how the session to its server stands.
    """

    topic: str
    situation: Situation

    def __str__(self) -> str:
        return f"topic {self.topic!r} at {self.situation.server}"

    def why(self, cause: LanceError, batch: Batch) -> str:
        """Return what led to a failure, where its cause does not say, and what to do."""
        if isinstance(cause, ServerError):
            return advice(cause)
        last = batch.last_error or self.situation.cause
        if last is None or last is cause or str(last) in str(cause):
            return ""
        return self.situation.sentence(last)


def expired(batch: Batch, now: float, place: Destination, *, in_flight: bool) -> DeliveryExpired:
    """Return the error of a batch whose delivery timeout has passed.

    Args:
        batch: what was not acknowledged.
        now: the time.
        place: where it was going.
        in_flight: whether an answer to its last attempt was still waited for.
    """
    doubtful = batch.doubtful or in_flight
    stored = "may or may not have been stored" if doubtful else "nothing of it was stored"
    failure = DeliveryExpired(
        f"{_records(batch)} for {place} not acknowledged within {now - batch.created:.1f} s "
        f"(delivery_timeout); {_sent(batch, place)}, {stored}. "
        f"{place.situation.sentence(batch.last_error)}",
        batch_id=batch.batch_id,
        maybe_applied=doubtful,
        topic=place.topic,
        server=place.situation.server,
        attempts=batch.attempts,
    )
    failure.__cause__ = batch.last_error or place.situation.cause
    return failure


def waiting(batches: Sequence[Batch], timeout: float | None) -> DeadlineExceeded:
    """Return the error of who waited for batches of one producer that go on."""
    first = batches[0]
    place: Destination = first.waiter.place()
    records = sum(batch.count or len(batch.values) for batch in batches)
    what = "1 record" if records == 1 else f"{records} records"
    return DeadlineExceeded(
        f"{what} for {place} not acknowledged within {timeout} s; the delivery goes on. Its first "
        f"batch was {_sent(first, place)}. {place.situation.sentence(first.last_error)}",
        maybe_applied=True,
    )


def buffer_full(full: BufferFull, place: Destination) -> BufferFull:
    """Return the error of who does not wait for room in the buffer."""
    return BufferFull(f"{place}: {full}")


def no_room(
    full: BufferFull, waited: float, oldest: Batch | None, place: Destination
) -> BufferFull:
    """Return the error of who waited for room in the buffer."""
    last = None if oldest is None else oldest.last_error
    failure = BufferFull(
        f"no room for a record for {place} within {waited:g} s (block_timeout): "
        f"{str(full).partition(';')[0]}. "
        f"{place.situation.sentence(last)}"
    )
    failure.__cause__ = last or place.situation.cause
    return failure


def _records(batch: Batch) -> str:
    count = batch.count or len(batch.values)
    return "1 record" if count == 1 else f"{count} records"


def _sent(batch: Batch, place: Destination) -> str:
    if batch.attempts:
        return "sent once" if batch.attempts == 1 else f"sent {batch.attempts} times"
    if place.situation.ready:
        return "not sent, for the server had not taken what came before it"
    return "never sent: no connection"


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
