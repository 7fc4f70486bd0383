"""What a right server knows: topics, batches, commits and subscriptions."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.peer import Peer
from lance_conformance.wire.frame import Frame
from lance_conformance.wire.tlv import boundaries

PLAIN_NAMES = "", "-a", "-A", "-aa"
"""How the names of topics end; one that is deleted may come again under its name."""
ODD_NAMES = "", '-"quoted"\\', "-\u00e9-\U0001d518-<&>", "-" + 150 * "l"
"""Names that a target may refuse to give; those that it gives are kept as they are."""
PRODUCERS = 3
"""Connections that write and ask."""
CONSUMERS = 3
EVERYWHERE = 1 << 40
"""From here on a batch id is known on every connection (AMB-25)."""


@dataclass(slots=True, eq=False)
class TopicFacts:
    """A topic that is there.

    Attributes:
        topic: Its id and name.
        told: What its creation said of it that does not change.
        data: Its bytes.
        batches: Batches that it holds, in order, each with the connection that sent it.
        commits: Offsets by consumer.
        limits: Its retention, where one was set.
        closed: Nothing more is written: after a restart a log may go on after a gap (AMB-29).
    """

    topic: Topic
    told: dict[str, object]
    data: bytes = b""
    batches: list[tuple[Frame, Peer | None]] = field(default_factory=list)
    commits: dict[int, int] = field(default_factory=dict)
    limits: tuple[int, int] | None = None
    closed: bool = False

    @property
    def ends(self) -> list[int]:
        """Where records begin, and the end."""
        return boundaries(self.data)


@dataclass(slots=True, eq=False)
class SubscriptionFacts:
    """A subscription.

    Attributes:
        log: What it reads.
        consumer: As whom.
        at: The next byte that it gets.
        most: Most bytes of one push.
    """

    log: TopicFacts
    consumer: int
    at: int
    most: int


@dataclass(slots=True, eq=False)
class Producer:
    """A connection that writes and asks.

    Attributes:
        peer: The connection.
        known: Batches that were stored over it, by topic and batch id.
        last: The last small batch id that was used.
        refused: What was meant by the batch that was refused last.
    """

    peer: Peer
    known: dict[tuple[int, int], Frame] = field(default_factory=dict)
    last: int = 0
    refused: Frame | None = None


class Facts:
    """The target as it must be now.

    Args:
        ctx: The context of the case.
        strict: What only the register decides is judged, too.
        mixed: Batches are compressed now and then, subscribers ask, too, and every field of an
            answer is looked at.

    Attributes:
        rng: What the step that is carried out draws from.
        now: The connection whose turn it is.
        words: What the step asked.
        contents: The records of each compressed payload.
    """

    now: Producer

    def __init__(self, ctx: CaseContext, *, strict: bool, mixed: bool = False) -> None:
        self.ctx = ctx
        self.strict = strict
        self.mixed = mixed
        self.contents: dict[bytes, bytes] = {}
        self.names = [ctx.name(tail) for tail in (ODD_NAMES if strict else PLAIN_NAMES)]
        self.logs: dict[int, TopicFacts] = {}
        self.deleted: list[int] = []
        self.epochs: dict[int, int] = {}
        self.producers: list[Producer] = []
        self.rng = ctx.rng
        self.words: list[str] = []
        self.sent: list[Frame] = []
        self.subscribers: dict[Peer, list[SubscriptionFacts]] = {}
        self.nonce = EVERYWHERE * (ctx.rng.randrange(1, 1 << 23))
        self.consumers = [ctx.consumer + number for number in range(CONSUMERS)]
        if mixed:
            self.consumers = [ctx.consumer, ctx.consumer ^ 1 << 63, ctx.consumer ^ 1 << 40]

    def __repr__(self) -> str:
        return f"<Facts {len(self.logs)} logs, {len(self.deleted)} deleted>"

    async def connect(self) -> None:
        """Open the connections that are asked."""
        self.producers = [Producer(await self.ctx.open()) for _ in range(PRODUCERS)]

    def hang_up(self) -> None:
        """End all connections."""
        for peer in (*(each.peer for each in self.producers), *self.subscribers):
            peer.drop()

    def turn(self) -> Peer:
        """It is the turn of one of the connections."""
        self.now = self.rng.choice(self.producers)
        return self.now.peer

    def log(self, *, open_only: bool = False) -> TopicFacts | None:
        """One of the topics that are there."""
        logs = [log for log in self.logs.values() if not (open_only and log.closed)]
        return self.rng.choice(logs) if logs else None

    def stored(self, log: TopicFacts, frame: Frame) -> None:
        """A batch is stored over the connection whose turn it is."""
        log.data += self.contents.get(frame.payload, frame.payload)
        log.batches.append((frame, self.now.peer))
        self.now.known[log.topic.id, frame.batch_id] = frame

    def readers(self, log: TopicFacts) -> Iterator[tuple[Peer, SubscriptionFacts]]:
        """All subscriptions to a topic."""
        for peer, readers in self.subscribers.items():
            for reader in readers:
                if reader.log is log:
                    yield peer, reader

    def can(self, what: str) -> bool:
        """Whether the target has a feature or a capability."""
        conditions = self.ctx.conditions
        if what in ("push", "offset-for-time"):
            return what in conditions.capabilities
        return what not in conditions.missing | conditions.without
