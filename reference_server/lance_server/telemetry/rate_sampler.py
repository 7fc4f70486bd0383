"""Rates, from counts that are looked at once a second."""

from collections import deque
from itertools import pairwise
from typing import Final

from lance_server.log.log_manager import LogManager
from lance_server.telemetry.counters import Counters

_SECONDS: Final = 120
_WATCHED: Final = (
    "records_in",
    "bytes_in",
    "batches_acked",
    "bytes_out",
    "bytes_pushed",
    "fetches",
)


class Sampler:
    """Remembers the counts of the last two minutes.

    Args:
        counters: what is counted.
        engine: the log, for the rates of topics.
    """

    def __init__(self, counters: Counters, engine: LogManager) -> None:
        self._counters = counters
        self._engine = engine
        self._samples: deque[tuple[float, dict[str, int]]] = deque(maxlen=_SECONDS + 1)
        self._ends: dict[int, int] = {}
        self._topic_rates: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"<Sampler {len(self._samples)} samples>"

    def sample(self, now: float) -> None:
        """Look at the counts, unless that was done within the last second."""
        last = self._samples[-1][0] if self._samples else now - 1
        passed = now - last
        if passed < 1:
            return
        self._samples.append((now, {name: getattr(self._counters, name) for name in _WATCHED}))
        ends = {
            topic.id: topic.partition.end_offset for topic in self._engine.topics_with_default()
        }
        known = self._ends
        self._topic_rates = {
            key: (end - known[key]) / passed
            for key, end in ends.items()
            if key in known and end != known[key]
        }
        self._ends = ends

    def rates(self) -> dict[str, float]:
        """Return what each count gains per second, over the last five seconds."""
        if len(self._samples) < 2:
            return dict.fromkeys(_WATCHED, 0.0)
        (begun, first), (ended, last) = (
            self._samples[-min(6, len(self._samples))],
            self._samples[-1],
        )
        return {name: (last[name] - first[name]) / (ended - begun) for name in _WATCHED}

    def history(self) -> dict[str, list[float]]:
        """Return what each count gained in each of the last seconds, oldest first."""
        samples = list(self._samples)
        pairs = list(pairwise(samples))
        return {
            name: [(b[1][name] - a[1][name]) / (b[0] - a[0]) for a, b in pairs] for name in _WATCHED
        }

    def topic_rate(self, topic_id: int) -> float:
        """Return how many bytes a topic gained per second, lately."""
        return self._topic_rates.get(topic_id, 0.0)
