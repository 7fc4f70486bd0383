"""Handles on records that were sent, for threads."""

from time import monotonic

from lance_sdk._api.deadlines import deadline_after
from lance_sdk._protocol.produce.delivery import Batch, DeliveryHandle, first_failure
from lance_sdk._protocol.produce.delivery_failures import waiting
from lance_sdk.types import RecordMetadata

__all__ = ["Deliveries", "Delivery"]


class Delivery(DeliveryHandle):
    """The delivery of one record; see `Producer.send`."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Returns:
            Its receipt.

        Raises:
            DeliveryError: the record was not delivered, see ``maybe_applied``.
            DeadlineExceeded: it is not settled yet; the delivery goes on.
        """
        if timeout is not None:
            deadline_after(timeout)  # says what is wrong with it
        if not self._batch.waiter.wait(self._batch, timeout):
            raise waiting([self._batch], timeout)
        return self._metadata()


class Deliveries:
    """The delivery of many records; see `Producer.send_many`.

    Attributes:
        count: number of records.
    """

    __slots__ = ("_batches", "count")

    def __init__(self, batches: list[Batch], count: int) -> None:
        self._batches = batches
        self.count = count

    def __repr__(self) -> str:
        return f"<Deliveries records={self.count} done={self.done()}>"

    def done(self) -> bool:
        """Whether every record was acknowledged or failed."""
        return all(batch.done for batch in self._batches)

    def result(self, timeout: float | None = None) -> int:
        """Wait until every record is acknowledged.

        Args:
            timeout: seconds to wait; by default as long as ``delivery_timeout`` allows.

        Returns:
            The number of records.

        Raises:
            DeliveryError: the first failure among them.
            DeadlineExceeded: not all are settled yet; the delivery goes on.
        """
        wait_for_all(self._batches, timeout)
        if (failure := first_failure(self._batches)) is not None:
            raise failure
        return self.count


def wait_for_all(batches: list[Batch], timeout: float | None) -> None:
    """Wait for batches of one producer.

    Raises:
        DeadlineExceeded: when not all are settled in time.
    """
    deadline = None if timeout is None else deadline_after(timeout)
    for done, batch in enumerate(batches):
        left = None if deadline is None else max(0.0, deadline - monotonic())
        if not batch.waiter.wait(batch, left):
            raise waiting(batches[done:], timeout)
