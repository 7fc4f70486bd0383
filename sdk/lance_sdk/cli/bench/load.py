"""The two ends of ``lwp bench``: a producer with a schedule, and a consumer that reads along."""

import os
import threading
import time
from dataclasses import dataclass, field
from struct import Struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from lance_sdk._api.interruptible import join, pause
from lance_sdk.cli.bench.latencies import Latencies
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.hooks import BatchAckedEvent, Hooks
from lance_spec.limits import RECORD_HEADER_SIZE

if TYPE_CHECKING:
    from lance_sdk import Consumer
    from lance_sdk.cli.console.progress import Meter
    from lance_sdk.url import URL

_SLICE: Final = 512
"""Records that are handed over at a time when there is no schedule."""
_LIMIT: Final = 30.0
_GLANCE: Final = 0.5  # seconds between two looks whether to stop
_STEP: Final = 0.01
_STAMP: Final = Struct("<Q")


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent.

    Attributes:
        records: how many.
        size: bytes of a record's value: the time at which it is due, and noise.
        rate: records a second, or None for as many as go.
        began_ns: monotonic time at which the schedule begins.
    """

    records: int
    size: int
    rate: int | None
    began_ns: int = field(default_factory=time.monotonic_ns)

    def pace(self) -> str:
        """Return the schedule in words."""
        return f"at {self.rate:,} a second"

    def layout(self) -> Struct:
        """Return how a record lies in a batch: its header, its time, its noise."""
        return Struct(f"<{RECORD_HEADER_SIZE}xQ{self.size - _STAMP.size}x")


class _AckTimes(Hooks):
    """Notes how long each batch took."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies

    def on_batch_acked(self, event: BatchAckedEvent) -> None:
        """Count the batch's time for each of its records."""
        self._latencies.add(round(event.total_seconds * 1e9), event.records)


class Producing:
    """The producer.

    Attributes:
        load: what it sends.
        latencies: from a batch's first record to its acknowledgement.
        elapsed: seconds until the last acknowledgement.
        lateness: seconds that it was behind its schedule at worst.
    """

    def __init__(self, load: Load, url: "URL", options: dict[str, Any]) -> None:
        self.load = load
        self._url = url
        self.latencies = Latencies()
        self._options = {**options, "hooks": _AckTimes(self.latencies)}
        self._noise = os.urandom(load.size - _STAMP.size)
        self.elapsed = 0.0
        self.lateness = 0.0

    def run(self, meter: "Meter") -> None:
        """Send everything, and wait until it is acknowledged."""
        from lance_sdk import Producer  # noqa: PLC0415 - the network is loaded when it is needed

        with Producer(self._url, **self._options) as producer:
            began = time.monotonic_ns()
            sent = 0
            while sent < self.load.records:
                due = self._due(sent, began)
                producer.send_many(_STAMP.pack(when) + self._noise for when in due)
                sent += len(due)
                meter.add(len(due), len(due) * self.load.size)
            producer.flush()
            self.elapsed = (time.monotonic_ns() - began) / 1e9

    def _due(self, sent: int, began: int) -> list[int]:
        """Return the times of the records that are to be sent now, after waiting for the first."""
        left = self.load.records - sent
        if self.load.rate is None:
            return [time.monotonic_ns()] * min(_SLICE, left)
        step = 1_000_000_000 / self.load.rate
        first = began + round(sent * step)
        if (early := first - time.monotonic_ns()) > 0:
            pause(early / 1e9)
        behind = time.monotonic_ns() - first
        self.lateness = max(self.lateness, behind / 1e9)
        count = min(1 + int(behind / step), _SLICE, left)
        return [first + round(number * step) for number in range(count)]


class Consuming:
    """The consumer, on a thread of its own; use it in a ``with`` block around the sending.

    Attributes:
        latencies: from the moment a record was due until it was here.
        elapsed: seconds from the first record to the last.
    """

    def __init__(self, load: Load, url: "URL", options: dict[str, Any]) -> None:
        from lance_sdk import Consumer  # noqa: PLC0415 - as for Producer

        self._load = load
        self._url = url
        self._consumer = Consumer(url, **options, start="end")
        self._stopped = False
        self._error: Exception | None = None
        self._seen = 0
        self._thread = threading.Thread(target=self._run, name="lwp-bench", daemon=True)
        self.latencies = Latencies()
        self.elapsed = 0.0

    def __enter__(self) -> Self:
        self._consumer.open()
        self._await_end()
        self._thread.start()
        return self

    def _await_end(self) -> None:
        """Let the consumer find the end while it is still where the first record will stand."""
        deadline = time.monotonic() + _LIMIT
        while self._consumer.position is None:
            if time.monotonic() > deadline:
                raise Failure(f"the server did not report the end of {self._url}")
            self._consumer.poll(_STEP)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped = True
        join(self._thread)
        self._consumer.close()

    def finish(self, timeout: float | None) -> None:
        """Wait until every record has come.

        Args:
            timeout: seconds without any record after which it is given up.

        Raises:
            Failure: when they do not come.
        """
        limit = timeout or _LIMIT
        seen = -1
        while self._thread.is_alive() and self._seen > seen:
            seen = self._seen
            join(self._thread, limit)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise Failure(f"{seen} of {self._load.records} records came, and no more")

    def _run(self) -> None:
        try:
            self._read(self._consumer)
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error

    def _read(self, consumer: "Consumer") -> None:
        layout = self._load.layout()
        began = 0
        while self._seen < self._load.records and not self._stopped:
            batch = consumer.poll(_GLANCE)
            if batch is None:
                continue
            if len(batch.data) != batch.count * layout.size:
                raise Failure(f"another client writes to {self._url}; name a topic of your own")
            now = time.monotonic_ns()
            began = began or now
            self.latencies.add_all(now - due for (due,) in layout.iter_unpack(batch.data))
            self._seen += batch.count
            self.elapsed = (time.monotonic_ns() - began) / 1e9
