"""A producer without socket and thread, under a clock that moves by hand."""

from collections.abc import Callable
from typing import Any, Final

from lance_sdk._api.arguments.signature import shows_options
from lance_sdk._api.producer_core import build_producer
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk.config import ProducerConfig
from lance_sdk.delivery import Delivery
from lance_sdk.options import ProducerOptions
from lance_sdk.stats import ProducerStats
from lance_sdk.testing.clock import ManualClock
from lance_sdk.testing.wire import Wire
from lance_sdk.url import parse_url
from lance_spec.bodies import TopicInfo
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import ErrorCode, Flag, RecordType
from lance_spec.frames import Frame, FrameKind, encode_keepalive
from lance_spec.records import decode_records

_URL: Final = "lance://rehearsal/orders"
_STEP: Final = 1.0
"""Seconds between two looks for keepalives: silence ends a connection after thirty."""


@shows_options((ProducerConfig, ProducerOptions.__annotations__.keys() - {"compression"}))
class ProducerRehearsal:
    """The real producer, with a network and a server that the test plays.

    ::

        rehearsal = ProducerRehearsal(linger=0.5)
        delivery = rehearsal.send(b"one")
        assert rehearsal.sent == [[b"one"]]  # nothing was in flight
        rehearsal.send(b"two")
        rehearsal.advance(0.5)
        assert rehearsal.sent == [[b"one"], [b"two"]]
        rehearsal.acknowledge()
        assert delivery.done()

    It is connected from the beginning. Nothing waits, so every run is the same.

    Args:
        url: what the producer is told; nothing is dialled.
        clock: its clock; by default a new one.
        dialect: what the server speaks.
        **options: the fields of `lance_sdk.config.ProducerConfig`, but for compression.

    Attributes:
        clock: move it with `advance`.
        sent: the values in each batch that was sent, in order, also when it is sent again.
    """

    def __init__(
        self,
        url: str = _URL,
        *,
        clock: ManualClock | None = None,
        dialect: Dialect = SPECIFIED,
        **options: Any,
    ) -> None:
        self.clock = ManualClock() if clock is None else clock
        self.sent: list[list[bytes]] = []
        self._unanswered: list[int] = []
        self._dialect = dialect
        self._core = build_producer(url, {"dialect": dialect, "compression": "none", **options})
        self._core.batcher.waiter = self._callbacks = _Callbacks(self._core.sender.place)
        self._core.session.open(self.clock.now)
        topic = TopicInfo(id=1, name=parse_url(url).topic or "", created_at=1)
        self._wire = Wire(self._core.session, self.clock, dialect, topic)
        self._wire.connect()

    def __repr__(self) -> str:
        waiting = len(self._unanswered)
        return f"<ProducerRehearsal sent={len(self.sent)} unanswered={waiting} {self.clock}>"

    def send(self, value: bytes, *, record_type: int = RecordType.RAW_DATA) -> Delivery:
        """Hand one record over; see `Producer.send`.

        Returns:
            A handle as `Producer.send` gives it, but for one thing: ``result()`` does not wait.

        Raises:
            DeliveryError: the record is not accepted, for example by a full buffer.
        """
        batcher = self._core.batcher
        index = batcher.append(value, record_type, self.clock.now)
        delivery = Delivery(batcher.last, index)
        self._turn()
        return delivery

    def advance(self, seconds: float) -> None:
        """Let time pass; what becomes due happens in its order, and keepalives are answered."""
        until = self.clock.now + seconds
        while (left := until - self.clock.now) > 0:
            self._wire.advance(min(left, _STEP))
            for _ in self._wire.take(FrameKind.KEEPALIVE):
                self._wire.send(encode_keepalive(self._dialect))
        self._collect()

    def acknowledge(self) -> None:
        """Acknowledge every batch that was sent and not answered."""
        answered, self._unanswered = self._unanswered, []
        self._wire.ack(*answered)
        self._collect()

    def refuse(self, code: ErrorCode, message: str = "refused by the test") -> None:
        """Refuse every batch that was sent and not answered."""
        answered, self._unanswered = self._unanswered, []
        for batch_id in answered:
            self._wire.error(code, message, batch_id=batch_id)
        self._collect()

    def lose_connection(self) -> None:
        """End the connection; the producer will ask for another when its delay is over."""
        self._unanswered.clear()
        self._wire.cut(ConnectionResetError("the test ended the connection"))

    def reconnect(self) -> None:
        """Take the connection that the producer asks for, when its delay is over.

        Raises:
            AssertionError: it asks for none; let time pass first.
        """
        self._wire.connect()
        self._collect()

    def stats(self) -> ProducerStats:
        """Return the producer's counters."""
        return self._core.stats()

    def _turn(self) -> None:
        self._wire.turn()
        self._collect()

    def _collect(self) -> None:
        for frame in self._wire.take(FrameKind.INGEST):
            self._unanswered.append(frame.batch_id)
            self.sent.append(_values(frame))
        self._callbacks.run()


class _Callbacks:
    """What a driver does for deliveries, without waiting.

    Args:
        place: returns where records go, for the texts of errors.
    """

    def __init__(self, place: Callable[[], object]) -> None:
        self.place = place
        self._waiting: list[tuple[Batch, Callable[[], object]]] = []

    def wait(self, batch: Batch, _timeout: float | None) -> bool:
        """Return whether a batch is settled."""
        return batch.done

    def add_callback(self, batch: Batch, callback: Callable[[], object]) -> bool:
        """Keep a callback for later; False when its batch is settled already."""
        if not batch.done:
            self._waiting.append((batch, callback))
        return not batch.done

    def run(self) -> None:
        """Call those whose batches are settled now."""
        ready = [callback for batch, callback in self._waiting if batch.done]
        self._waiting = [each for each in self._waiting if not each[0].done]
        for callback in ready:
            callback()


def _values(frame: Frame) -> list[bytes]:
    assert not frame.flags & Flag.COMPRESSED, "a rehearsal reads plain batches"
    return [value for _, value in decode_records(bytes(frame.payload))]
