"""OpenTelemetry: what is exported, and what happens when nobody takes it (design section 12)."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lance_server import running
from lance_server.config.settings import OtelConfig
from lance_server.errors import ConfigError
from lance_server.telemetry.spans import SpanQueue, SpanRecord
from lance_server.testing import RawClient, SessionPeer, eventually, free_port

otel = pytest.importorskip("lance_server.telemetry.otel", reason="the extra otel is not installed")
metrics_export = pytest.importorskip("opentelemetry.sdk.metrics.export")
memory_spans = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

CONFIG = OtelConfig(endpoint="http://127.0.0.1:4317", interval=0.05, sample_rate=1.0)


class Collected(metrics_export.MetricExporter):  # type: ignore[misc,name-defined]
    """Keeps the last points and value of each metric, and what was exported last."""

    def __init__(self) -> None:
        super().__init__()
        self.points: dict[str, Any] = {}
        self.values: dict[str, float] = {}
        self.last: Any = None

    def export(self, metrics_data: Any, timeout_millis: float = 0, **_: Any) -> Any:
        """Take metrics."""
        del timeout_millis
        self.last = metrics_data
        for resource in metrics_data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.points[metric.name] = metric.data.data_points
        self.values = {
            name: points[0].value
            for name, points in self.points.items()
            if hasattr(points[0], "value")
        }
        return metrics_export.MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        """There is nothing to flush."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:
        """There is nothing to end."""
        del timeout_millis


def test_counts_and_spans_are_exported() -> None:
    """Under the names of the design, with the node they are from."""
    peer = SessionPeer(node_id=4)
    metrics, spans = Collected(), memory_spans.InMemorySpanExporter()
    telemetry = otel.Telemetry(CONFIG, peer.service, metric_exporter=metrics, span_exporter=spans)
    peer.exchange(peer.ingest(1, [b"one", b"two"]), peer.fetch())
    telemetry.stop(5.0)
    assert metrics.values["lance_records_ingested"] == 2
    assert metrics.values["lance_telemetry_spans_dropped"] == 0
    finished = {span.name: span for span in spans.get_finished_spans()}
    assert set(finished) == {"send", "fetch"}
    assert finished["send"].attributes == {
        "messaging.system": "lance",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "node_id": 4,
        "batches": 1,
    }
    topic = peer.service.engine.find(0)
    assert topic is not None
    assert finished["fetch"].attributes["messaging.destination.name"] == topic.file.identity.name
    assert finished["fetch"].end_time >= finished["fetch"].start_time


def test_histograms_are_exported() -> None:
    """Of batches, acknowledgements, reads, writes and syncs, in the collector's protocol."""
    encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.metrics_encoder")
    peer = SessionPeer(node_id=4)
    metrics, spans = Collected(), memory_spans.InMemorySpanExporter()
    telemetry = otel.Telemetry(CONFIG, peer.service, metric_exporter=metrics, span_exporter=spans)
    peer.exchange(peer.ingest(1, [b"one", b"two"]), peer.fetch())
    telemetry.stop(5.0)
    for name in ("lance_batch_size", "lance_ingestion_latency_ns", "lance_read_latency_ns"):
        assert [point.count for point in metrics.points[name]] == [1], name
    assert metrics.points["lance_batch_size"][0].bucket_counts[:3] == [0, 1, 0]
    disk = {point.attributes["op"]: point for point in metrics.points["lance_io_latency_ns"]}
    assert set(disk) == {"sync", "write"}
    sent = encoder.encode_metrics(metrics.last).resource_metrics[0].scope_metrics[0].metrics
    histograms = {each.name: each for each in sent if each.HasField("histogram")}
    assert len(histograms) == 4
    assert histograms["lance_batch_size"].histogram.data_points[0].sum == 2
    assert not histograms["lance_batch_size"].histogram.data_points[0].HasField("max")


# Overflow ---------------------------------------------------------------------------------------


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    """An exporter that hangs costs spans, and nothing else."""
    hangs, sent = threading.Event(), []

    def export(spans: Sequence[SpanRecord]) -> None:
        assert hangs.wait(10)
        sent.extend(spans)

    queue = SpanQueue(export, sample_rate=1.0, interval=0.001, capacity=10)
    for number in range(30):
        queue.record(f"span {number}", 1, {})
    assert queue.dropped == 20
    queue.start()
    hangs.set()
    queue.stop(10.0)
    assert ([span.name for span in sent], queue.exported) == (
        [f"span {number}" for number in range(10)],
        10,
    )


def test_what_cannot_be_sent_is_counted() -> None:
    """And does not come back."""

    def export(_: Sequence[SpanRecord]) -> None:
        raise ConnectionError("no collector")

    queue = SpanQueue(export, sample_rate=1.0, interval=0.001)
    queue.record("span", 1, {})
    queue.start()
    queue.stop(10.0)
    assert (queue.failed, queue.exported, queue.dropped) == (1, 0, 0)


@pytest.mark.parametrize(
    ("rate", "least", "most"), [(0.0, 0, 0), (1.0, 2000, 2000), (0.1, 100, 300)]
)
def test_a_share_of_the_spans_is_kept(rate: float, least: int, most: int) -> None:
    """None, all, or about a tenth."""
    queue = SpanQueue(lambda _: None, sample_rate=rate, capacity=5000)
    for _ in range(2000):
        queue.record("span", 1, {})
    assert least <= len(queue._waiting) <= most


def test_a_collector_that_is_not_there_holds_up_nobody(tmp_path: Path) -> None:
    """The server serves, and ends in time."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    config = OtelConfig(endpoint=f"http://127.0.0.1:{free_port()}", interval=0.1, sample_rate=1.0)
    with running(tmp_path, otel=config) as server:
        with RawClient(server.address) as client:
            for batch in range(1, 20):
                client.store([b"one"], batch_id=batch)
        eventually(lambda: server.stats()["batches_acked"] == 19)
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < 10
    assert server.report.clean


def test_settings_that_make_no_sense_are_told() -> None:
    """An endpoint is a URL; a rate is a share."""
    with pytest.raises(ConfigError, match="must be a URL"):
        OtelConfig(endpoint="collector:4317")
    with pytest.raises(ConfigError, match="must be 0 to 1, not 2"):
        OtelConfig(endpoint="http://collector:4317", sample_rate=2)
