"""The OpenTelemetry bridge: what the in-memory exporters get."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from lance_sdk import Consumer, Producer
from lance_sdk.errors import DeliveryExpired, TopicNotFound
from lance_sdk.hooks import (
    BackpressureEvent,
    BatchAckedEvent,
    BatchFailedEvent,
    CallEvent,
    CommitEvent,
    ConnectEvent,
    DisconnectEvent,
    FetchEvent,
    RebalanceEvent,
    RecordsEvent,
    SpillEvent,
)
from lance_sdk.otel import OpenTelemetryHooks
from lance_sdk.testing import FakeServer

SOURCE = "Producer lance://db:1992/orders"
NOW = 1_700_000_000_000_000_000
CONNECTED = ConnectEvent(
    source=SOURCE, peer="192.0.2.1:1992", dialect="specified", failures=0, again=False
)
ACKED = BatchAckedEvent(
    source=SOURCE,
    topic="orders",
    batch_id=0xABC,
    records=10,
    size=500,
    attempts=3,
    seconds=0.25,
    total_seconds=0.5,
)
FAILED = BatchFailedEvent(
    source=SOURCE,
    topic="orders",
    batch_id=7,
    records=4,
    size=100,
    attempts=1,
    total_seconds=2.0,
    error=DeliveryExpired("too late", batch_id=7),
)


class Telemetry:
    """The bridge, and what it exported."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self._traces = TracerProvider()
        self._traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self._metrics = MeterProvider([self._reader])
        self.hooks = OpenTelemetryHooks(
            tracer_provider=self._traces, meter_provider=self._metrics, clock_ns=lambda: NOW
        )

    @property
    def span(self) -> ReadableSpan:
        """The only span."""
        (span,) = self._spans.get_finished_spans()
        return span

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All spans."""
        return self._spans.get_finished_spans()

    def points(self) -> dict[str, list[Any]]:
        """The data points of every metric that has some."""
        data = self._reader.get_metrics_data()
        assert data is not None
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics]
        return {metric.name: list(metric.data.data_points) for s in scopes for metric in s.metrics}

    def shutdown(self) -> None:
        """End the providers."""
        self._traces.shutdown()
        self._metrics.shutdown()


@pytest.fixture
def telemetry() -> Any:
    """The bridge with in-memory exporters."""
    found = Telemetry()
    yield found
    found.shutdown()


def test_a_batch_is_a_client_span(telemetry: Telemetry) -> None:
    """With the names that OpenTelemetry has for messaging; no record carries its context."""
    telemetry.hooks.on_connect(CONNECTED)
    telemetry.hooks.on_batch_acked(ACKED)
    assert (telemetry.span.name, telemetry.span.kind) == ("send orders", SpanKind.CLIENT)
    assert telemetry.span.status.status_code is StatusCode.UNSET
    assert dict(telemetry.span.attributes or {}) == {
        "messaging.system": "lance",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.batch.message_count": 10,
        "server.address": "192.0.2.1",
        "server.port": 1992,
        "lance.batch.id": "0000000000000abc",
        "lance.batch.size": 500,
        "lance.batch.attempts": 3,
    }


def test_a_span_lasts_from_the_first_record_to_the_answer(telemetry: Telemetry) -> None:
    """It is drawn backwards from the moment of the answer."""
    telemetry.hooks.on_batch_acked(ACKED)
    assert telemetry.span.start_time == NOW - 500_000_000
    assert telemetry.span.end_time == NOW


def test_a_span_has_no_parent(telemetry: Telemetry) -> None:
    """Not even where the hook happens to run inside another span."""
    tracer = telemetry._traces.get_tracer("app")
    with tracer.start_as_current_span("request"):
        telemetry.hooks.on_batch_acked(ACKED)
    assert [span.parent for span in telemetry.spans] == [None, None]


def test_a_failed_batch_tells_why(telemetry: Telemetry) -> None:
    """As status, as exception and as attribute."""
    telemetry.hooks.on_batch_failed(FAILED)
    assert telemetry.span.status.status_code is StatusCode.ERROR
    assert telemetry.span.status.description == "too late"
    assert (telemetry.span.attributes or {})["error.type"] == "DeliveryExpired"
    (event,) = telemetry.span.events
    assert (event.attributes or {})["exception.message"] == "too late"


def test_records_are_counted_by_their_fate(telemetry: Telemetry) -> None:
    """Those that failed have the kind of error."""
    telemetry.hooks.on_batch_acked(ACKED)
    telemetry.hooks.on_batch_failed(FAILED)
    points = telemetry.points()["messaging.client.sent.messages"]
    assert {point.attributes.get("error.type"): point.value for point in points} == {
        None: 10,
        "DeliveryExpired": 4,
    }


def test_retries_are_counted(telemetry: Telemetry) -> None:
    """A batch that was sent three times was retried twice."""
    telemetry.hooks.on_batch_acked(ACKED)
    (point,) = telemetry.points()["lance.client.retries"]
    assert point.value == 2


def test_durations_are_a_histogram_in_seconds(telemetry: Telemetry) -> None:
    """With bounds that a log's latencies fall between."""
    telemetry.hooks.on_batch_acked(ACKED)
    (point,) = telemetry.points()["messaging.client.operation.duration"]
    assert (point.count, point.sum) == (1, 0.5)
    assert point.explicit_bounds[0] == 0.0005


def test_a_fetch_with_data_is_a_client_span(telemetry: Telemetry) -> None:
    """Those that find nothing are not drawn: a quiet consumer asks twenty times a second."""
    common = {"source": SOURCE, "topic": "orders", "offset": 64, "seconds": 0.1, "end": 96}
    telemetry.hooks.on_fetch(FetchEvent(**common, size=0))
    telemetry.hooks.on_fetch(FetchEvent(**common, size=32))
    assert (telemetry.span.name, telemetry.span.kind) == ("fetch orders", SpanKind.CLIENT)
    assert (telemetry.span.attributes or {})["lance.fetch.size"] == 32


def test_consumed_records_and_lag_are_measured(telemetry: Telemetry) -> None:
    """Lag is in bytes, as offsets are."""
    event = RecordsEvent(
        source=SOURCE, topic="orders", offset=0, next_offset=96, records=3, size=96, lag=32
    )
    telemetry.hooks.on_records(event)
    points = telemetry.points()
    assert [point.value for point in points["messaging.client.consumed.messages"]] == [3]
    assert [point.value for point in points["lance.client.lag"]] == [32]


def test_an_unknown_lag_is_not_measured(telemetry: Telemetry) -> None:
    """Rather than 0."""
    event = RecordsEvent(
        source=SOURCE, topic="orders", offset=0, next_offset=96, records=3, size=96, lag=None
    )
    telemetry.hooks.on_records(event)
    assert "lance.client.lag" not in telemetry.points()


def test_a_commit_settles(telemetry: Telemetry) -> None:
    """Under the consumer's name."""
    telemetry.hooks.on_commit(
        CommitEvent(source=SOURCE, topic="orders", consumer="billing", offset=96, seconds=0.01)
    )
    attributes = telemetry.span.attributes or {}
    assert telemetry.span.name == "commit orders"
    assert attributes["messaging.operation.type"] == "settle"
    assert attributes["messaging.consumer.group.name"] == "billing"


def test_a_rebalance_tells_what_moved(telemetry: Telemetry) -> None:
    """As numbers: names of topics would be too many values."""
    telemetry.hooks.on_rebalance(
        RebalanceEvent(
            source="GroupConsumer", group="g", member="m", generation=4, assigned=("a", "b")
        )
    )
    attributes = telemetry.span.attributes or {}
    assert (attributes["lance.group.assigned"], attributes["lance.group.generation"]) == (2, 4)


def test_a_refused_request_is_a_span_with_the_error(telemetry: Telemetry) -> None:
    """Named after the command."""
    telemetry.hooks.on_call(
        CallEvent(
            source="Client", command="GET_TOPIC", seconds=0.1, error=TopicNotFound("no topic")
        )
    )
    assert telemetry.span.name == "get_topic"
    assert telemetry.span.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize(
    ("tell", "metric"),
    [
        (lambda hooks: hooks.on_connect(CONNECTED), "lance.client.connects"),
        (
            lambda hooks: hooks.on_disconnect(
                DisconnectEvent(source=SOURCE, error=OSError("gone"), retry_in=1.0)
            ),
            "lance.client.disconnects",
        ),
        (
            lambda hooks: hooks.on_backpressure(BackpressureEvent(source=SOURCE, window=4)),
            "lance.client.backpressure",
        ),
        (
            lambda hooks: hooks.on_spill(
                SpillEvent(source=SOURCE, topic="orders", records=1, size=9)
            ),
            "lance.client.spilled.messages",
        ),
    ],
    ids=["connect", "disconnect", "backpressure", "spill"],
)
def test_what_happens_to_connections_is_counted(
    telemetry: Telemetry, tell: Callable[[OpenTelemetryHooks], None], metric: str
) -> None:
    """One each."""
    tell(telemetry.hooks)
    assert [point.value for point in telemetry.points()[metric]] == [1]


def test_apis_tell_the_bridge(telemetry: Telemetry) -> None:
    """Records that are sent, fetched and handed out leave spans and counts."""
    with FakeServer() as server:
        with Producer(server.url(), hooks=telemetry.hooks) as producer:
            producer.send_many([b"one", b"two"])
        with Consumer(server.url(), hooks=telemetry.hooks, stop_at_end=True) as consumer:
            assert len(list(consumer)) == 2
    assert {"send orders", "fetch orders"} <= {span.name for span in telemetry.spans}
    points = telemetry.points()
    for name in ("messaging.client.sent.messages", "messaging.client.consumed.messages"):
        (point,) = points[name]
        assert (point.value, point.attributes["server.port"]) == (2, server.port)
    assert sum(point.value for point in points["lance.client.connects"]) == 2


def test_without_opentelemetry_the_import_names_the_remedy() -> None:
    """The extra is optional, and the error says how to get it."""
    program = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "opentelemetry":
            raise ModuleNotFoundError("No module named 'opentelemetry'", name=name)
sys.meta_path.insert(0, Blocked())
try:
    import lance_sdk.otel
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "lance_sdk.otel needs OpenTelemetry; install it with: pip install 'lance-sdk[otel]'\n"
    )
