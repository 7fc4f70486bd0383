"""Batches that were made already, sent by a producer's own machinery.

A producer collects records into batches. Here the batches exist, some with the id and the time
under which they have to be sent however often that is tried (AMB-25), so they go straight into
its queue; window, retries, deadlines and acknowledgements are the producer's.
"""

from time import monotonic
from typing import Any, Final

from lance_sdk._api.room_wait import RoomWait
from lance_sdk._protocol.produce.delivery import Batch, first_failure
from lance_sdk.config import RetryPolicy
from lance_sdk.delivery import wait_for_all
from lance_sdk.errors import BufferFull, ConnectionLost, UnsafeRecordType
from lance_sdk.producer import Producer
from lance_sdk.types import Buffer
from lance_sdk.url import URL
from lance_spec.enums import RecordType
from lance_spec.limits import BATCH_COUNTER_BITS
from lance_spec.records import record_bounds

_LOOK: Final = 1024
"""Batches after which it is looked what became of them."""
_UNSAFE: Final = frozenset({0x00, int(RecordType.NULL)})


class _MadeBatch(Batch):
    """A batch that is sealed from the start."""

    __slots__ = ()

    def __init__(self, payload: bytes, count: int, deadline: float, waiter: object) -> None:
        super().__init__(int(RecordType.RAW_DATA), monotonic(), deadline, waiter)
        self._payload = payload
        self.count = count
        self.size = len(payload)
        self.sealed = True


class FrameProducer(Producer):
    """Sends batches that are made already to one topic, in order.

    Args:
        url: the topic.
        nonce: upper 24 bits of the batch ids of all batches, when they were given some.
        batches: how many of those there are.
        repeats: whether a batch is sent again by itself. Without, one is sent at a time and once:
            where its acknowledgement does not come, only a look tells whether it arrived.
        **options: settings of the producer.
    """

    def __init__(
        self,
        url: str | URL,
        *,
        nonce: int = 0,
        batches: int = 0,
        repeats: bool = True,
        **options: Any,
    ) -> None:
        once = {} if repeats else {"max_in_flight": 1, "retry": RetryPolicy(max_attempts=1)}
        super().__init__(url, **{**options, **once})
        if not repeats:
            self._sender.lost = self._give_up  # type: ignore[method-assign]  # fails them
        if nonce:  # acknowledgements of what an earlier attempt sent are not strangers
            self._sender._nonce = nonce << BATCH_COUNTER_BITS  # noqa: SLF001 - of its own parts
            self._sender._counter = batches  # noqa: SLF001 - likewise
        self._pending: list[Batch] = []
        self._settle_at = _LOOK

    def send_batch(
        self, payload: bytes, count: int, *, batch_id: int = 0, timestamp_ns: int = 0
    ) -> None:
        """Hand a batch over; waits while too much is not acknowledged.

        Args:
            payload: its records, as a chain (LWP section 8).
            count: how many there are.
            batch_id: the id to send it under, each time; 0 takes the producer's next.
            timestamp_ns: the time that goes with it.

        Raises:
            DeliveryError: an earlier batch could not be delivered.
            BufferFull: there was no room within ``block_timeout``.
            UnsafeRecordType: a record's type cannot be sent to this server (AMB-13).
            UsageError: the producer is not open.
        """
        self._check_types(payload)
        batch = _MadeBatch(payload, count, monotonic() + self._limit, self._driver)
        batch.batch_id, batch.timestamp_ns = batch_id, timestamp_ns
        self._wait_for_room(batch.size)
        with self._driver.lock:
            self._driver.check()
            self._batcher.put(batch)
        self._driver.wake()
        self._pending.append(batch)
        if len(self._pending) >= self._settle_at:
            self._settle()

    def _give_up(self, now: float) -> None:
        """Fail what was sent on a connection that is lost."""
        sender = self._sender
        sender._connection = None  # noqa: SLF001 - of its own parts
        lost = ConnectionLost("the connection was lost before the acknowledgement")
        for batch in list(sender._in_flight.values()):  # noqa: SLF001 - likewise
            sender._fail(batch, lost, now, maybe_applied=True)  # noqa: SLF001 - likewise
        sender._in_flight.clear()  # noqa: SLF001 - likewise

    def finish(self) -> None:
        """Wait until everything is acknowledged.

        Raises:
            DeliveryError: the first batch that could not be delivered.
        """
        wait_for_all(self._pending, None)
        self._settle()

    @property
    def _limit(self) -> float:
        config = self._core.config
        return float(config.delivery_timeout)  # type: ignore[arg-type]  # seconds by now

    def _settle(self) -> None:
        """Forget what was delivered; raise what was not."""
        done = [batch for batch in self._pending if batch.done]
        self._pending = [batch for batch in self._pending if not batch.done]
        self._settle_at = _LOOK + 2 * len(self._pending)
        if (failure := first_failure(done)) is not None:
            raise failure

    def _wait_for_room(self, size: int) -> None:
        waiting = RoomWait(self._core, size)
        while True:
            with self._driver.lock:
                if self._batcher.fits(size):
                    return
                gate = waiting.gate()
            self._driver.wake()
            if not self._driver.wait(gate, waiting.left()):
                raise BufferFull(
                    f"no room for a batch of {size} bytes for {self._sender.place()} within "
                    f"{waiting.limit:g} s (block_timeout)"
                )
            self._settle()

    def _check_types(self, payload: Buffer) -> None:
        """Refuse what a server at hand would cut its log at (AMB-13)."""
        dialect = self._session.dialect
        if dialect is None or dialect.all_record_types:
            return
        data = memoryview(payload)
        starts = memoryview(record_bounds(payload)).cast("q")[:-1]
        unsafe = next((data[at] for at in starts if data[at] in _UNSAFE), None)
        if unsafe is not None:
            raise UnsafeRecordType(
                f"record type {unsafe:#04x}: a server of dialect {dialect.name!r} cuts its log "
                "there when it recovers; write other types, or values that are not null"
            )
