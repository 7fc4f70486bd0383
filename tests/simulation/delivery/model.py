"""What was sent, acknowledged and handed out, and what must never happen."""

from dataclasses import dataclass, field

from tests.simulation.delivery.server import RECORD, Topic

from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk.errors import DeliveryError, DeliveryExpired, StillInJournal


class ViolationError(AssertionError):
    """A promise was broken."""


@dataclass(eq=False)
class Model:
    """Watches one producer, and the consumers of its topic.

    Attributes:
        sent: by record the batch that it travels in.
        flushed: records that a flush which ended well was asked for.
        handed: by topic number the records that consumers got, in their order.
        begins: by topic number the record at which reading has begun.
        place: in the log of its topic, of the next record of the consumer at hand.
        troubled: whether something refused batches for a while, which may change their order.
    """

    sent: dict[int, Batch] = field(default_factory=dict)
    flushed: int = 0
    handed: dict[int, list[int]] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    place: int | None = None
    troubled: bool = False

    def flush_ended_well(self, count: int) -> None:
        """Take note that a flush returned, with so many records sent before it.

        Raises:
            ViolationError: one of them is not acknowledged, and nobody was told so.
        """
        for number in range(self.flushed, count):
            batch = self.sent.get(number)
            if batch is None or isinstance(batch.error, StillInJournal):
                continue  # what stays in the journal is not lost
            if not batch.done or batch.error is not None:
                raise ViolationError(f"flush() ended well, and record {number} is not stored")
        self.flushed = count

    def flush_failed(self, count: int) -> None:
        """Take note that a flush has told of failures among so many records."""
        self.flushed = count

    def hand_out(self, topic: Topic, offset: int, numbers: list[int]) -> None:
        """Take note that a consumer got a batch.

        Raises:
            ViolationError: it is not what comes next, or not what is there.
        """
        first = offset // RECORD
        if self.place is not None and first != self.place:
            raise ViolationError(f"a consumer at record {self.place} got record {first}")
        if numbers != topic.log[first : first + len(numbers)]:
            raise ViolationError(f"a consumer got other records than there are at {first}")
        self.place = first + len(numbers)
        self.begins.setdefault(topic.info.id, first)
        self.handed.setdefault(topic.info.id, []).extend(range(first, self.place))

    def check_deliveries(self, topics: list[Topic]) -> None:
        """Check what became of each record.

        Raises:
            ViolationError: one is acknowledged and not there, or there twice, or said not to be
                there; or nobody knows what became of it.
        """
        for number, batch in self.sent.items():
            times = max(topic.log.count(number) for topic in topics)
            if not batch.done:
                raise ViolationError(f"nobody knows what became of record {number}")
            if times > 1 or (batch.error is None and not times):
                raise ViolationError(f"record {number} was sent once, and is there {times} times")
            self._check_failure(number, batch, times)

    def _check_failure(self, number: int, batch: Batch, times: int) -> None:
        error = batch.error
        if error is None or isinstance(error, StillInJournal):
            return
        if not isinstance(error, DeliveryError):
            raise ViolationError(f"record {number} failed by {error!r}")
        if times and not error.maybe_applied:
            raise ViolationError(f"record {number} is said not to be stored, and is there")
        if isinstance(error, DeliveryExpired) and error.__cause__ is None and batch.attempts > 1:
            raise ViolationError(f"record {number} expired, and nobody says why: {error}")

    def check_order(self, topics: list[Topic]) -> None:
        """Check that records are in the order in which they were sent.

        Raises:
            ViolationError: they are not, though nothing was refused.
        """
        for topic in topics:
            if not self.troubled and topic.log != sorted(topic.log):
                raise ViolationError(f"records of topic {topic.info.id} are out of order")

    def check_everything_came(self, topic: Topic) -> None:
        """Check that every record was handed out from where reading began.

        Raises:
            ViolationError: one was passed over.
        """
        begin = self.begins.get(topic.info.id, len(topic.log))
        missing = set(range(begin, len(topic.log))) - set(self.handed.get(topic.info.id, ()))
        if missing:
            raise ViolationError(f"{len(missing)} records were passed over, first {min(missing)}")
