"""Counters of the server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from lance_server.telemetry.distribution import COUNT_BOUNDS, NANOSECOND_BOUNDS, Distribution
from lance_spec.frames import FaultKind


@dataclass(slots=True)
class Counters:
    """Running totals since the server started.

    Attributes:
        connections_accepted: connections that were served.
        connections_refused: connections over the limit.
        connections_open: connections being served now.
        frames_in: frames received.
        batches_in: Ingest frames accepted for storing.
        bytes_in: bytes of records accepted for storing.
        batches_acked: Ingest frames acknowledged.
        duplicates: batches that were stored already and only acknowledged again (AMB-25).
        conflicts: batches whose id stood for other content (AMB-25).
        opaque_batches: batches stored although they do not parse as records (AMB-27).
        answered: requests that were completed, whatever the answer.
        fetches: Fetch requests answered with data or an end.
        bytes_out: bytes of records returned.
        bytes_pushed: of these, to subscribers.
        errors: ErrorResponses sent.
        protocol_faults: connections closed because the stream broke a rule (AMB-17).
        ignored_frames: frames that a client has no business sending (AMB-33).
        keepalives_deferred: keepalives answered later than at once (AMB-23).
        backpressure: Backpressure frames sent (AMB-28).
        idle_closed: connections closed because nothing arrived.
        shed: connections closed because they held memory and moved nothing.
        refused_for_memory: requests refused because memory was short.
        throttled: reads refused or delayed because their connection had read enough.
        records_in: records accepted for storing.
        keepalives: keepalives received.
        bad_magic: connections closed because of bytes that begin no frame.
        bad_header_crc: connections closed because of a header checksum.
        bad_payload_crc: connections closed because of a payload checksum.
        auth_failures: tokens that were not valid.
        denied: requests refused for want of a token or a rule.
        batch_size: records in each batch.
        ack_latency: nanoseconds from the receipt of a batch to its acknowledgement.
        read_latency: nanoseconds from the receipt of a Fetch to its answer.
        on_span: called with name, nanoseconds and attributes of what has ended, when somebody
            traces.
    """

    connections_accepted: int = 0
    connections_refused: int = 0
    connections_open: int = 0
    frames_in: int = 0
    batches_in: int = 0
    bytes_in: int = 0
    batches_acked: int = 0
    duplicates: int = 0
    conflicts: int = 0
    opaque_batches: int = 0
    answered: int = 0
    fetches: int = 0
    bytes_out: int = 0
    bytes_pushed: int = 0
    errors: int = 0
    protocol_faults: int = 0
    ignored_frames: int = 0
    keepalives_deferred: int = 0
    backpressure: int = 0
    idle_closed: int = 0
    shed: int = 0
    refused_for_memory: int = 0
    throttled: int = 0
    records_in: int = 0
    keepalives: int = 0
    bad_magic: int = 0
    bad_header_crc: int = 0
    bad_payload_crc: int = 0
    auth_failures: int = 0
    denied: int = 0
    batch_size: Distribution = field(default_factory=lambda: Distribution(COUNT_BOUNDS))
    ack_latency: Distribution = field(default_factory=lambda: Distribution(NANOSECOND_BOUNDS))
    read_latency: Distribution = field(default_factory=lambda: Distribution(NANOSECOND_BOUNDS))
    on_span: Callable[[str, int, Mapping[str, str | int]], None] | None = None

    def span(self, name: str, took_ns: int, **attributes: str | int) -> None:
        """Tell whoever traces that something has ended."""
        if self.on_span is not None:
            self.on_span(name, took_ns, attributes)

    def count_fault(self, kind: FaultKind) -> None:
        """Count a stream that broke a rule (AMB-17)."""
        self.protocol_faults += 1
        if kind is FaultKind.BAD_MAGIC:
            self.bad_magic += 1
        elif kind is FaultKind.BAD_HEADER_CRC:
            self.bad_header_crc += 1
        elif kind is FaultKind.BAD_PAYLOAD_CRC:
            self.bad_payload_crc += 1

    def snapshot(self) -> dict[str, int]:
        """Return all counts by name."""
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in values if isinstance(value, int)}
