"""Metrics of the listener, in Prometheus' text form, for RustLog's clients."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Counts:
    """Counters of one listener.

    Attributes:
        produced: records that were stored.
        fetched: records that were sent.
        failed: requests that were answered with an error.
        connections: connections that are open.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.produced = Counter(
            "messages_produced", "Records that were stored.", registry=self._registry
        )
        self.fetched = Counter(
            "messages_fetched", "Records that were sent.", registry=self._registry
        )
        self.failed = Counter(
            "requests_failed", "Requests answered with an error.", registry=self._registry
        )
        self.connections = Gauge(
            "connections", "Connections that are open.", registry=self._registry
        )

    def __repr__(self) -> str:
        return f"<Counts {len(self.text())} bytes of text>"

    def text(self) -> str:
        """Return all of them."""
        return generate_latest(self._registry).decode()
