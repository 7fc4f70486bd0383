"""Traces and metrics through OpenTelemetry, with its names for messaging.

::

    from lance_sdk import Producer
    from lance_sdk.otel import OpenTelemetryHooks

    with Producer("lance://localhost:1992/orders", hooks=OpenTelemetryHooks()) as producer:
        producer.send(b"first")

Needs the extra ``otel``. The providers are those that the program set up, or the ones given.

A span stands for a batch, not for a record: it is drawn when the server has answered, on the
thread that heard it, and so it has no parent. LWP carries no headers, so a trace does not pass
through a record by itself; put ``traceparent`` into the value where it must. No record carries the
context of the span of its batch, so that span is of kind ``CLIENT``, as the conventions have it;
``PRODUCER`` is for one that the consumer's span links to.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

try:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider, get_meter
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider, get_tracer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lance_sdk.otel needs OpenTelemetry; install it with: pip install 'lance-sdk[otel]'",
        name=error.name,
    ) from None

from lance_sdk import __version__
from lance_sdk.hooks import (
    BackpressureEvent,
    BatchAckedEvent,
    BatchFailedEvent,
    CallEvent,
    CommitEvent,
    ConnectEvent,
    DisconnectEvent,
    FetchEvent,
    Hooks,
    RebalanceEvent,
    RecordsEvent,
    SpillEvent,
)

__all__ = ["OpenTelemetryHooks"]

_NAME: Final = "lance_sdk"
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of the histogram: a batch on a local disk takes a millisecond, a bad day many seconds."""

_Attributes = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class _Operation:
    """Something that took time.

    Attributes:
        name: what was done, for example ``send``.
        kind: how OpenTelemetry classes it, for example ``send`` or ``receive``; "" for neither.
        target: the topic, or the group.
        seconds: how long it took until now.
        error: why it failed, or None.
    """

    name: str
    kind: str
    target: str
    seconds: float
    error: Exception | None = None

    def attributes(self) -> _Attributes:
        """Return what spans and metrics of it have in common."""
        found: _Attributes = {"messaging.system": "lance", "messaging.operation.name": self.name}
        if self.kind:
            found["messaging.operation.type"] = self.kind
        if self.target:
            found["messaging.destination.name"] = self.target
        if self.error is not None:
            found["error.type"] = type(self.error).__name__
        return found


class _Instruments:
    """The metrics."""

    def __init__(self, meter: Meter) -> None:
        self.duration: Histogram = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Time from the first record of a batch, or from a request, to its answer.",
            explicit_bucket_boundaries_advisory=list(_SECONDS),
        )
        self.sent = _counter(meter, "messaging.client.sent.messages", "Records settled.")
        self.consumed = _counter(
            meter, "messaging.client.consumed.messages", "Records handed to the application."
        )
        self.spilled = _counter(meter, "lance.client.spilled.messages", "Records journaled.")
        self.retries = _counter(meter, "lance.client.retries", "Batches sent once more.", "{batch}")
        self.connects = _counter(meter, "lance.client.connects", "Connections made.", "{connect}")
        self.disconnects = _counter(
            meter, "lance.client.disconnects", "Connections lost or not made.", "{disconnect}"
        )
        self.backpressure = _counter(
            meter, "lance.client.backpressure", "Times the server asked for less.", "{frame}"
        )
        self.lag = meter.create_gauge(
            "lance.client.lag", unit="By", description="Bytes between position and end of a topic."
        )


def _counter(meter: Meter, name: str, description: str, unit: str = "{message}") -> Counter:
    return meter.create_counter(name, unit=unit, description=description)


class OpenTelemetryHooks(Hooks):
    """Makes a span of every batch, fetch, commit and request, and counts all of them.

    One object serves any number of clients.

    Args:
        tracer_provider: where spans go; by default the program's.
        meter_provider: where metrics go; by default the program's.
        clock_ns: the time of day in nanoseconds.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._tracer = get_tracer(_NAME, __version__, tracer_provider)
        self._count = _Instruments(get_meter(_NAME, __version__, meter_provider))
        self._clock_ns = clock_ns
        self._peers: dict[str, _Attributes] = {}

    def __repr__(self) -> str:
        return f"<OpenTelemetryHooks sources={len(self._peers)}>"

    def on_connect(self, event: ConnectEvent) -> None:
        """Count it, and remember the server's address for what follows."""
        host, _, port = event.peer.rpartition(":")
        peer: _Attributes = {"server.address": host.strip("[]")}
        if port.isdecimal():
            peer["server.port"] = int(port)
        self._peers[event.source] = peer
        self._count.connects.add(1, {**peer, "lance.dialect": event.dialect})

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """Count it, by the kind of error."""
        peer = self._peers.get(event.source, {})
        self._count.disconnects.add(1, {**peer, "error.type": type(event.error).__name__})

    def on_batch_acked(self, event: BatchAckedEvent) -> None:
        """A span from the batch's first record until now."""
        done = _Operation("send", "send", event.topic, event.total_seconds)
        self._sent(event, done)

    def on_batch_failed(self, event: BatchFailedEvent) -> None:
        """A span with the error."""
        done = _Operation("send", "send", event.topic, event.total_seconds, event.error)
        self._sent(event, done)

    def _sent(self, event: BatchAckedEvent | BatchFailedEvent, done: _Operation) -> None:
        self._record(
            event.source,
            done,
            SpanKind.CLIENT,
            {
                "messaging.batch.message_count": event.records,
                "lance.batch.id": f"{event.batch_id:016x}",
                "lance.batch.size": event.size,
                "lance.batch.attempts": event.attempts,
            },
        )
        common = {**done.attributes(), **self._peers.get(event.source, {})}
        self._count.sent.add(event.records, common)
        if event.attempts > 1:
            self._count.retries.add(event.attempts - 1, common)

    def on_spill(self, event: SpillEvent) -> None:
        """Count the records."""
        self._count.spilled.add(event.records, _Operation("spill", "", event.topic, 0).attributes())

    def on_backpressure(self, event: BackpressureEvent) -> None:
        """Count it."""
        self._count.backpressure.add(1, self._peers.get(event.source, {}))

    def on_fetch(self, event: FetchEvent) -> None:
        """A span where the answer holds data; those that ask again at the end are too many."""
        if event.size:
            done = _Operation("fetch", "receive", event.topic, event.seconds)
            extra: _Attributes = {"lance.offset": event.offset, "lance.fetch.size": event.size}
            self._record(event.source, done, SpanKind.CLIENT, extra)

    def on_records(self, event: RecordsEvent) -> None:
        """Count them, and tell how far after the end the application is."""
        done = _Operation("poll", "receive", event.topic, 0)
        common = {**done.attributes(), **self._peers.get(event.source, {})}
        self._count.consumed.add(event.records, common)
        if event.lag is not None:
            self._count.lag.set(event.lag, common)

    def on_commit(self, event: CommitEvent) -> None:
        """A span, with the error where there is one."""
        done = _Operation("commit", "settle", event.topic, event.seconds, event.error)
        extra: _Attributes = {
            "messaging.consumer.group.name": event.consumer,
            "lance.offset": event.offset,
        }
        self._record(event.source, done, SpanKind.CLIENT, extra)

    def on_rebalance(self, event: RebalanceEvent) -> None:
        """A span, with how many topics came and went."""
        done = _Operation("rebalance", "", "", event.seconds)
        extra: _Attributes = {
            "messaging.consumer.group.name": event.group,
            "messaging.client.id": event.member,
            "lance.group.generation": event.generation,
            "lance.group.assigned": len(event.assigned),
            "lance.group.revoked": len(event.revoked),
            "lance.group.lost": len(event.lost),
        }
        self._record(event.source, done, SpanKind.INTERNAL, extra)

    def on_call(self, event: CallEvent) -> None:
        """A span, named after the command."""
        done = _Operation(event.command.lower(), "", "", event.seconds, event.error)
        self._record(event.source, done, SpanKind.CLIENT, dict(event.details))

    def _record(self, source: str, done: _Operation, kind: SpanKind, extra: _Attributes) -> None:
        """Draw the span that ends now, and note its duration."""
        common = {**done.attributes(), **self._peers.get(source, {})}
        self._count.duration.record(done.seconds, common)
        end = self._clock_ns()
        span = self._tracer.start_span(
            f"{done.name} {done.target}".rstrip(),
            context=Context(),  # not the one in which the I/O thread or task was started
            kind=kind,
            attributes={**common, **extra},
            start_time=end - round(done.seconds * 1e9),
        )
        if done.error is not None:
            span.record_exception(done.error)
            span.set_status(Status(StatusCode.ERROR, str(done.error)))
        span.end(end)
