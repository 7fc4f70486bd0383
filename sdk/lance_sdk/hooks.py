"""What happens inside, told to whoever asks: for metrics, traces and tests.

Subclass `Hooks`, override what you want to know, and hand an object of it to a client::

    class Latency(Hooks):
        def on_batch_acked(self, event):
            histogram.observe(event.seconds)

    with Producer("lance://localhost:1992/orders", hooks=Latency()) as producer:
        ...

Rules that every client keeps:

- a hook runs on the I/O thread or in the I/O task, or where the application itself called;
  never under a lock; it must not block, nor wait for the client that calls it;
- the events of one client come one after the other, those of one batch in the order sent, acked;
- what a hook raises is logged once and counted, and never reaches the stream;
- an event comes after the fact: a batch is told as acknowledged after its handles are settled,
  a commit after it is durable.

Durations are seconds, sizes are bytes. A span of a trace can be drawn backwards from an event:
it ended now and began ``seconds`` ago.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lance_sdk._errors.base import LanceError

__all__ = [
    "BacklogEvent",
    "BackpressureEvent",
    "BatchAckedEvent",
    "BatchFailedEvent",
    "BatchSentEvent",
    "CallEvent",
    "CloseEvent",
    "CommitEvent",
    "ConnectEvent",
    "DisconnectEvent",
    "FetchEvent",
    "Hooks",
    "PushEvent",
    "RebalanceEvent",
    "RecordsEvent",
    "SpillEvent",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectEvent:
    """A connection passed its handshake.

    Attributes:
        source: the client, with its URL without secrets.
        peer: ``host:port`` that was dialled.
        dialect: what is spoken there.
        failures: attempts that failed since the last connection.
        again: whether there was a connection before.
    """

    source: str
    peer: str
    dialect: str
    failures: int
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectEvent:
    """A connection ended, or could not be made.

    Attributes:
        source: the client, with its URL without secrets.
        error: why.
        retry_in: seconds until the next attempt; None when there is none.
    """

    source: str
    error: Exception
    retry_in: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSentEvent:
    """A batch was handed to the connection.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        batch_id: its identifier on the wire (AMB-25).
        records: number of records.
        size: bytes of the records.
        wire_size: bytes of the payload as it was sent; smaller when it is compressed.
        attempt: 1 for the first sending.
        waited: seconds from the batch's first record until now.
    """

    source: str
    topic: str
    batch_id: int
    records: int
    size: int
    wire_size: int
    attempt: int
    waited: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAckedEvent:
    """The server has stored a batch.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        batch_id: its identifier on the wire.
        records: number of records.
        size: bytes of the records.
        attempts: how often it was sent.
        seconds: from its last sending until the acknowledgement.
        total_seconds: from its first record until the acknowledgement.
    """

    source: str
    topic: str
    batch_id: int
    records: int
    size: int
    attempts: int
    seconds: float
    total_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailedEvent:
    """A batch was given up, or nobody waits for it any longer.

    With a `StillInJournal` it is safe: the journal delivers it later.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        batch_id: its identifier on the wire; 0 when it was never sent.
        records: number of records.
        size: bytes of the records.
        attempts: how often it was sent.
        total_seconds: from its first record until now.
        error: why; see its ``maybe_applied``.
    """

    source: str
    topic: str
    batch_id: int
    records: int
    size: int
    attempts: int
    total_seconds: float
    error: LanceError


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogEvent:
    """Frames wait in a store-and-forward journal.

    It comes when an outage begins, every 10 seconds while the oldest frame has waited as long,
    and when an outage ends.

    Attributes:
        source: the sender, with its URL without secrets.
        frames: how many wait.
        size: bytes of their payloads.
        age: seconds since the oldest was stored.
        outage: seconds for which no server could be used; None when there is no outage.
    """

    source: str
    frames: int
    size: int
    age: float
    outage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillEvent:
    """A batch went to the journal instead of the connection.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        records: number of records.
        size: bytes of the records.
    """

    source: str
    topic: str
    records: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackpressureEvent:
    """The server asked for less (LWP section 4.4).

    Attributes:
        source: the client, with its URL without secrets.
        window: batches that may be in flight from now on.
    """

    source: str
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchEvent:
    """A Fetch was answered.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        offset: where it began.
        size: bytes of data in the answer.
        seconds: from the request until its answer.
        end: end of the log as far as it is known now.
    """

    source: str
    topic: str
    offset: int
    size: int
    seconds: float
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushEvent:
    """The server pushed records (AMB-21).

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        offset: where the data begins.
        size: bytes of data.
    """

    source: str
    topic: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsEvent:
    """Records were handed to the application.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        offset: byte offset of the first one.
        next_offset: byte offset after the last one.
        records: number of records.
        size: bytes of them.
        lag: bytes from ``next_offset`` to the end of the log, as far as it is known.
    """

    source: str
    topic: str
    offset: int
    next_offset: int
    records: int
    size: int
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEvent:
    """A position was committed, or could not be.

    Attributes:
        source: the client, with its URL without secrets.
        topic: name of the topic, or ``#id``.
        consumer: the name it was committed under.
        offset: byte offset of the next record to be read after a restart.
        seconds: what it took.
        error: why it was not committed, or None.
        generation: of the group's assignment; None outside a group.
    """

    source: str
    topic: str
    consumer: str
    offset: int
    seconds: float
    error: Exception | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEvent:
    """A group gave its member other topics.

    Attributes:
        source: the client.
        group: the group's name.
        member: the member's name.
        generation: number of the new assignment.
        assigned: topics that are new.
        revoked: topics that were given up in good order.
        lost: topics that were taken without asking.
        seconds: what it took, from the first word of it.
    """

    source: str
    group: str
    member: str
    generation: int
    assigned: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """A control request of a client was answered, or was given up.

    Attributes:
        source: the client, with its URL without secrets.
        command: the command's name.
        seconds: from the call until its end.
        error: why there is no answer, or None.
        details: what else is worth telling.
    """

    source: str
    command: str
    seconds: float
    error: Exception | None = None
    details: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseEvent:
    """A producer or store-and-forward sender ended: closed, dropped, or cut off.

    A sender counts frames, a producer records.

    Attributes:
        source: the client, with its URL without secrets.
        topic: the topic's label.
        delivered: how many were acknowledged in its life.
        unsent: how many were not delivered and whose failure nobody had looked at; those that
            stay in a journal do not count.
    """

    source: str
    topic: str
    delivered: int
    unsent: int


class Hooks:
    """Does nothing at every event; override what you want to know.

    One object may serve several clients; it is then called from several threads.
    """

    def on_connect(self, event: ConnectEvent) -> None:
        """A connection passed its handshake."""

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """A connection ended, or could not be made."""

    def on_batch_sent(self, event: BatchSentEvent) -> None:
        """A batch was handed to the connection."""

    def on_batch_acked(self, event: BatchAckedEvent) -> None:
        """The server has stored a batch."""

    def on_batch_failed(self, event: BatchFailedEvent) -> None:
        """A batch was given up, or nobody waits for it any longer."""

    def on_close(self, event: CloseEvent) -> None:
        """A producer or store-and-forward sender ended."""

    def on_spill(self, event: SpillEvent) -> None:
        """A batch went to the journal."""

    def on_backlog(self, event: BacklogEvent) -> None:
        """Frames wait in a store-and-forward journal."""

    def on_backpressure(self, event: BackpressureEvent) -> None:
        """The server asked for less."""

    def on_fetch(self, event: FetchEvent) -> None:
        """A Fetch was answered."""

    def on_push(self, event: PushEvent) -> None:
        """The server pushed records."""

    def on_records(self, event: RecordsEvent) -> None:
        """Records were handed to the application."""

    def on_commit(self, event: CommitEvent) -> None:
        """A position was committed, or could not be."""

    def on_rebalance(self, event: RebalanceEvent) -> None:
        """A group gave its member other topics."""

    def on_call(self, event: CallEvent) -> None:
        """A control request was answered, or was given up."""
