"""Spans on their way to the exporter, bounded."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Attributes: TypeAlias = Mapping[str, str | int | float]
_CAPACITY: Final = 2048
_BATCH: Final = 512


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """Something that took time.

    Attributes:
        name: what it was.
        start_ns: when it began, nanoseconds since the Unix epoch.
        end_ns: when it ended.
        attributes: more about it.
    """

    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes


class SpanQueue:
    """Takes spans from the event loop and hands them to a thread of its own.

    Args:
        export: sends spans; may take its time, and may raise.
        sample_rate: the share of spans that is kept, 0 to 1.
        interval: seconds between two exports.
        capacity: spans that may wait; what comes beyond is dropped and counted.

    Attributes:
        exported: spans that were sent.
        dropped: spans that found the queue full.
        failed: spans that could not be sent.
    """

    def __init__(
        self,
        export: Callable[[Sequence[SpanRecord]], None],
        *,
        sample_rate: float = 0.01,
        interval: float = 1.0,
        capacity: int = _CAPACITY,
    ) -> None:
        self._export = export
        self._sample_rate = sample_rate
        self._interval = interval
        self._capacity = capacity
        self._waiting: deque[SpanRecord] = deque()
        self._dice = random.Random()  # noqa: S311 - it chooses samples, no secrets
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lance-spans", daemon=True)
        self.exported = self.dropped = self.failed = 0

    def __repr__(self) -> str:
        return (
            f"<SpanQueue {len(self._waiting)} waiting, {self.exported} exported, "
            f"{self.dropped} dropped, {self.failed} failed>"
        )

    def start(self) -> None:
        """Begin to export."""
        self._thread.start()

    def record(self, name: str, took_ns: int, attributes: Attributes) -> None:
        """Keep what just ended, if it is one of the samples and there is room."""
        if self._dice.random() >= self._sample_rate:
            return
        if len(self._waiting) >= self._capacity:
            self.dropped += 1
            return
        now = time.time_ns()
        self._waiting.append(SpanRecord(name, now - took_ns, now, attributes))

    def stop(self, timeout: float) -> None:
        """Export what waits, within a time, and end."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            try:
                self._export(batch)
            except Exception:  # noqa: BLE001 - telemetry never harms the server; it is counted
                self.failed += len(batch)
            else:
                self.exported += len(batch)
