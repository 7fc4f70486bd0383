"""The OpenTelemetry SDK, as far as this server uses it."""

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from lance_server.telemetry.otel_histograms import HistogramsAdded, HistogramSource, latency
from lance_server.telemetry.spans import SpanQueue, SpanRecord

if TYPE_CHECKING:
    from lance_server.config.settings import OtelConfig
    from lance_server.lwp.service import Service

_log = logging.getLogger(__name__)
_EXPORT_SECONDS: Final = 5.0

_OPERATIONS: Final = {"lance.ingest": ("send", "send"), "lance.fetch": ("fetch", "receive")}
"""Name and type in OpenTelemetry's conventions for messaging, by what the server calls it."""
COUNTERS: Final = {
    "lance_records_ingested": "records_in",
    "lance_bytes_ingested": "bytes_in",
    "lance_batches_acked": "batches_acked",
    "lance_reads": "fetches",
    "lance_read_bytes": "bytes_out",
    "lance_backpressure_events": "backpressure",
    "lance_errors": "errors",
    "lance_lwp_frames_received": "frames_in",
    "lance_connections": "connections_accepted",
}
"""Counts that are exported, by the name of the metric."""


class Telemetry:
    """Exports what one server counts and samples.

    Args:
        config: where to, how often, how much.
        service: what is counted.
        metric_exporter: sends metrics; by default to the collector.
        span_exporter: sends spans; by default to the collector.

    Attributes:
        spans: what waits to be sent.
    """

    def __init__(
        self,
        config: "OtelConfig",
        service: "Service",
        *,
        metric_exporter: MetricExporter | None = None,
        span_exporter: SpanExporter | None = None,
    ) -> None:
        self._service = service
        self._resource = Resource.create(
            {"service.name": "lance-server", "service.instance.id": str(service.config.node_id)}
        )
        self._span_exporter = span_exporter or _to_collector(config.endpoint, "trace", "Span")
        self.spans = SpanQueue(
            self._export, sample_rate=config.sample_rate, interval=min(1.0, config.interval)
        )
        sent_by = metric_exporter or _to_collector(config.endpoint, "metric", "Metric")
        reader = PeriodicExportingMetricReader(
            HistogramsAdded(sent_by, _histograms(service)),
            export_interval_millis=config.interval * 1000,
            export_timeout_millis=_EXPORT_SECONDS * 1000,
        )
        self._provider = MeterProvider([reader], resource=self._resource)
        self._declare()
        service.counters.on_span = self.spans.record
        self.spans.start()
        _log.info("telemetry goes to %s every %g s", config.endpoint, config.interval)

    def __repr__(self) -> str:
        return f"<Telemetry {self.spans!r}>"

    def _declare(self) -> None:
        meter = self._provider.get_meter("lance_server")
        counters = self._service.counters
        for name, source in COUNTERS.items():
            meter.create_observable_counter(name, [_observer(partial(getattr, counters, source))])
        gauges: Mapping[str, Callable[[], float]] = {
            "lance_connections_active": lambda: counters.connections_open,
            "lance_memory_used_bytes": lambda: self._service.memory.used,
            "lance_circuit_state": lambda: int(self._service.disk.breaker.state),
            "lance_sync_p99_ns": lambda: self._service.disk.latency["sync"].percentile(0.99),
        }
        for name, read in gauges.items():
            meter.create_observable_gauge(name, [_observer(read)])
        dropped = {
            "lance_telemetry_spans_dropped": lambda: self.spans.dropped,
            "lance_telemetry_spans_failed": lambda: self.spans.failed,
        }
        for name, read in dropped.items():
            meter.create_observable_counter(name, [_observer(read)])

    def _export(self, spans: Sequence[SpanRecord]) -> None:
        """Send spans (thread of the queue).

        Raises:
            ConnectionError: the collector did not take them.
        """
        result = self._span_exporter.export([self._readable(span) for span in spans])
        if result is not SpanExportResult.SUCCESS:
            raise ConnectionError("the collector did not accept the spans")

    def _readable(self, span: SpanRecord) -> ReadableSpan:
        name, kind = _OPERATIONS[span.name]
        return ReadableSpan(
            name,
            context=SpanContext(
                trace_id=secrets.randbits(127) + 1,
                span_id=secrets.randbits(63) + 1,
                is_remote=False,
                trace_flags=TraceFlags(TraceFlags.SAMPLED),
            ),
            resource=self._resource,
            attributes={
                "messaging.system": "lance",
                "messaging.operation.name": name,
                "messaging.operation.type": kind,
                "node_id": self._service.config.node_id,
                **span.attributes,
            },
            kind=SpanKind.SERVER,
            start_time=span.start_ns,
            end_time=span.end_ns,
        )

    def stop(self, timeout: float) -> None:
        """Send what waits, within a time."""
        self._service.counters.on_span = None
        self.spans.stop(timeout)
        self._provider.shutdown(timeout_millis=timeout * 1000)
        self._span_exporter.shutdown()


def _histograms(service: "Service") -> list[HistogramSource]:
    """Return the histograms, under the names that they have at ``/metrics``."""
    counters = service.counters
    return [
        HistogramSource(
            "lance_batch_size", "Records per batch.", "{record}", {"": counters.batch_size}
        ),
        latency(
            "lance_ingestion_latency_ns",
            "From a batch's receipt to its acknowledgement.",
            {"": counters.ack_latency},
        ),
        latency(
            "lance_read_latency_ns",
            "From a read's beginning to its answer.",
            {"": counters.read_latency},
        ),
        latency(
            "lance_io_latency_ns",
            "What an operation of the disk took.",
            service.disk.latency,
        ),
    ]


def _to_collector(endpoint: str, signal: str, kind: str) -> Any:
    """Return what sends one kind of telemetry to the collector.

    Raises:
        ModuleNotFoundError: the exporter is not installed.
    """
    module = import_module(f"opentelemetry.exporter.otlp.proto.grpc.{signal}_exporter")
    return getattr(module, f"OTLP{kind}Exporter")(endpoint=endpoint, timeout=_EXPORT_SECONDS)


def _observer(
    read: Callable[[], float],
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [Observation(read())]
