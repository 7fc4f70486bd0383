"""What the server counts."""

from dataclasses import asdict, dataclass


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
        fetches: Fetch requests answered with data or an end.
        bytes_out: bytes of records returned.
        bytes_pushed: of these, to subscribers.
        errors: ErrorResponses sent.
        protocol_faults: connections closed because the stream broke a rule (AMB-17).
        ignored_frames: frames that a client has no business sending (AMB-33).
        keepalives_deferred: keepalives answered later than at once (AMB-23).
        backpressure: Backpressure frames sent (AMB-28).
        idle_closed: connections closed because nothing arrived.
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
    fetches: int = 0
    bytes_out: int = 0
    bytes_pushed: int = 0
    errors: int = 0
    protocol_faults: int = 0
    ignored_frames: int = 0
    keepalives_deferred: int = 0
    backpressure: int = 0
    idle_closed: int = 0

    def snapshot(self) -> dict[str, int]:
        """Return all counts by name."""
        return asdict(self)
