"""Why producers are to slow down (design section 6.1)."""

from typing import Final

from lance_server.lwp.service import Service
from lance_server.runtime.memory_quota import MemoryLevel

_QUIET: Final = 10.0


class PressureGauge:
    """Looks at memory, queue and disk.

    Args:
        service: what they belong to.
        now: the current time in seconds.
    """

    def __init__(self, service: Service, now: float) -> None:
        self._service = service
        self._flushes = 0
        self._flushed_at = now

    def __repr__(self) -> str:
        return f"<PressureGauge {self._service.pressure}>"

    def read(self, queue_depth: int, now: float) -> str | None:
        """Return what is short, or None.

        Args:
            queue_depth: batches that wait for the disk.
            now: the current time in seconds.
        """
        config = self._service.config
        if self._service.memory.level is not MemoryLevel.NORMAL:
            return "memory"
        if queue_depth > config.max_queue:
            return "queue"
        latency = self._service.disk.latency["sync"]
        if self._is_quiet(now):
            latency.forget_recent()
        return "disk" if latency.percentile(0.99) > config.max_disk_latency * 1e9 else None

    def _is_quiet(self, now: float) -> bool:
        """Whether nothing was flushed for a while: old latencies say nothing about now."""
        flushes = self._service.engine.flusher.flushes
        if flushes != self._flushes:
            self._flushes, self._flushed_at = flushes, now
        return now - self._flushed_at >= _QUIET
