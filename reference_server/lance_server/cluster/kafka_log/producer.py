"""Appends records to a topic of Kafka, in order, and tells what came of each."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lance_server.cluster.kafka_log.client import make, told_by
from lance_server.cluster.kafka_log.settings import LARGEST_MESSAGE, KafkaAddress
from lance_server.cluster.replicated_log import (
    MAX_RECORD,
    AppendError,
    Delivered,
    LogUnavailableError,
    RecordTooLargeError,
)
from lance_spec.checksum import Buffer

_log = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.25
_PURGE_SECONDS: Final = 5.0
_QUEUE_KIB: Final = 128 * 1024
"""KiB of records that may wait for brokers; a node stops earlier as a rule."""
PRODUCER: Final[Mapping[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
    "request.timeout.ms": 5000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "linger.ms": 0,
    "message.max.bytes": LARGEST_MESSAGE,
    "queue.buffering.max.messages": 10_000_000,
    "queue.buffering.max.kbytes": _QUEUE_KIB,
}


class KafkaAppender:
    """Appends to the partitions of a topic.

    The library tells of a failure for good by an exception of the call that takes reports. Then
    everything outstanding fails as maybe applied, and another producer goes on.

    Args:
        address: the topic.
        settings: of all clients of it.
        is_gone: tells whether the topic is not the one that was opened; nothing is appended then.
    """

    def __init__(
        self, address: KafkaAddress, settings: Mapping[str, Any], is_gone: Callable[[], bool]
    ) -> None:
        self._address = address
        self._settings = {**settings, **PRODUCER}
        self._is_gone = is_gone
        self._sending = threading.Lock()
        self._producer = self._new_producer()
        self._failure = ""
        """What the library said when it failed for good; nothing while it works."""
        self._closed = threading.Event()
        self._polling = threading.Thread(target=self._poll, name="kafka-reports", daemon=True)
        self._polling.start()

    def __repr__(self) -> str:
        return f"<KafkaAppender to {self._address}>"

    def _new_producer(self) -> Producer:
        return make(Producer, self._settings, self._address)

    def append(self, shard: int, record: Buffer, delivered: Delivered) -> None:
        """Append a record; see `ReplicatedLog.append`.

        Raises:
            LogUnavailableError: the connection is closed, or too much waits for the brokers.
        """
        if len(record) > MAX_RECORD:
            delivered(RecordTooLargeError(len(record), MAX_RECORD))
            return
        with self._sending:
            if self._closed.is_set():
                raise LogUnavailableError(f"{self._address}: the connection is closed")
            if self._is_gone():
                raise LogUnavailableError(f"{self._address} is gone, or was made again")
            try:
                self._producer.produce(
                    self._address.topic,
                    bytes(record),
                    partition=shard,
                    on_delivery=partial(_report, delivered),
                )
            except (BufferError, KafkaException) as error:
                raise LogUnavailableError(
                    f"{self._address} accepts no more records at present ({error}); send it again "
                    "later"
                ) from error

    def _poll(self) -> None:
        """Take reports to whoever waits for them (thread)."""
        while not self._closed.is_set():
            self._take_reports()
            if self._is_gone():
                self._producer.purge()  # nothing of it belongs into a topic that is made again
            if self._failure:
                self._renew()
        self._purge()

    def _take_reports(self) -> None:
        try:
            self._producer.poll(_POLL_SECONDS)
        except KafkaException as error:
            self._failure = told_by(error)

    def _renew(self) -> None:
        """Answer everything that is outstanding, and go on with another producer."""
        with self._sending:
            text = "%s: the producer failed for good, another one goes on: %s"
            _log.warning(text, self._address, self._failure)
            self._purge()
            self._producer = self._new_producer()
            self._failure = ""

    def _purge(self) -> None:
        """Fail what is outstanding as maybe applied."""
        self._producer.purge()
        deadline = time.monotonic() + _PURGE_SECONDS
        while len(self._producer) and time.monotonic() < deadline:
            self._take_reports()

    def close(self) -> None:
        """Stop: appends that are not reported yet fail as maybe applied."""
        with self._sending:
            self._closed.set()
        self._polling.join()


def _report(delivered: Delivered, error: KafkaError | None, message: Message) -> None:
    if error is None:
        offset = message.offset()
        delivered(-1 if offset is None else offset)
    else:
        delivered(AppendError(f"the log answered: {error.str()}", maybe_applied=True))
