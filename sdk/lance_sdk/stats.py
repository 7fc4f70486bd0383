"""Counters as one consistent snapshot, taken by ``stats()`` of each client."""

from dataclasses import dataclass

__all__ = ["ClientStats", "ConsumerStats", "ProducerStats", "TopicsStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStats:
    """What every client counts.

    Attributes:
        state: where the session stands, for example ``ready``.
        peer_dialect: dialect of the last connection, or None before the first.
        connects: connections that became ready.
        rtt: seconds of the last Keepalive's round trip on this connection, or None.
        bytes_sent: over all connections.
        bytes_received: over all connections.
    """

    state: str
    peer_dialect: str | None
    connects: int
    rtt: float | None
    bytes_sent: int
    bytes_received: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStats(ClientStats):
    """What a producer counts beside.

    Attributes:
        acked_records: records acknowledged.
        acked_batches: batches acknowledged.
        failed_records: records that failed.
        retries: batches sent more than once.
        backpressure: Backpressure frames received.
        buffered_bytes: record bytes not settled.
        in_flight: batches sent and not acknowledged.
        window: batches that may be in flight now.
        journaled_batches: batches of this producer that wait in the journal.
    """

    acked_records: int
    acked_batches: int
    failed_records: int
    retries: int
    backpressure: int
    buffered_bytes: int
    in_flight: int
    window: int
    journaled_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStats(ClientStats):
    """What a consumer counts beside.

    Attributes:
        records: records received.
        fetches: Fetch requests sent.
        pushes: answers that the server pushed.
        pushing: whether the server pushes at the moment.
        fetched_bytes: bytes of record data received.
        buffered_bytes: bytes waiting for the application.
        position: offset of the next record to be handed out, once known.
        end: end of the log as far as it is known.
    """

    records: int
    fetches: int
    pushes: int
    pushing: bool
    fetched_bytes: int
    buffered_bytes: int
    position: int | None
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsStats:
    """Counters of a consumer of several topics.

    Attributes:
        topics: how many topics it reads.
        records: records that arrived.
        fetched_bytes: bytes that arrived.
        buffered_bytes: bytes that wait for the application.
        fetches: Fetch requests.
        pushes: batches that the server pushed.
        commits: positions that were committed.
        server: of the connections to servers: ``connects`` and bytes of all, the other fields of
            the one to a server of the URL.
    """

    topics: int
    records: int
    fetched_bytes: int
    buffered_bytes: int
    fetches: int
    pushes: int
    commits: int
    server: ClientStats
