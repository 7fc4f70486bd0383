"""State of the golden servers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lance_conformance.fluvio.golden.codec import Entry


@dataclass(slots=True)
class Partition:
    """The records of a partition, as batches.

    Attributes:
        batches: Offset of the first record and the records, in order.
        commits: Last record read, by consumer.
    """

    batches: list[tuple[int, list[Entry]]] = field(default_factory=list)
    commits: dict[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Offset after the last record."""
        if not self.batches:
            return 0
        base, entries = self.batches[-1]
        return base + len(entries)


@dataclass(slots=True)
class Topic:
    """A topic."""

    name: str
    partitions: list[Partition]


@dataclass(slots=True)
class Memory:
    """Everything that outlives a connection.

    Attributes:
        topics: The topics by name.
        spu_port: Where the SPU listens.
        epoch: Rises with every change of topics.
        streams: How many streams there were.
        wakers: Called when there may be something to push.
        connections: The connections that stand.
        dead: Nobody is served any more.
        scars: What a mutant remembers of earlier stimuli.
    """

    topics: dict[str, Topic] = field(
        default_factory=lambda: {"consumer-offset": Topic("consumer-offset", [Partition()])}
    )
    spu_port: int = 0
    epoch: int = 0
    streams: int = 0
    wakers: dict[Callable[[], None], None] = field(default_factory=dict)
    connections: "list[Connection]" = field(default_factory=list)
    dead: bool = False
    scars: set[str] = field(default_factory=set)

    def wake(self) -> None:
        """Let every connection look whether it has something to push."""
        for waker in list(self.wakers):
            waker()


@dataclass(slots=True)
class Stream:
    """One stream of one connection.

    Attributes:
        number: Its id.
        correlation: The id of the request that opened it.
        version: The version of that request.
        topic: What it reads.
        partition: Which part of that.
        wanted: Offset of the next record to send.
        max_bytes: Most bytes in a piece.
        isolation: 0 or 1.
        consumer: Who reads.
        waiting: A piece was sent and not acknowledged.
        ended: Nothing comes any more.
    """

    number: int
    correlation: int
    version: int
    topic: str
    partition: int
    wanted: int
    max_bytes: int
    isolation: int
    consumer: str | None
    waiting: bool = False
    ended: bool = False


@dataclass(slots=True)
class Watch:
    """One watch of one connection.

    Attributes:
        correlation: The id of the request that opened it.
        version: The version of that request.
        kind: What is watched.
        known: The topics that were told of.
    """

    correlation: int
    version: int
    kind: str
    known: dict[str, Topic]


@dataclass(slots=True, eq=False)
class Connection:
    """What belongs to one connection.

    Attributes:
        role: ``sc`` or ``spu``.
        tail: The beginning of a frame that is not complete.
        streams: Its streams by id.
        watches: Its watches.
        seen: Correlation ids that a mutant remembers.
        closing: Nothing is read any more.
    """

    role: str
    tail: bytes = b""
    streams: dict[int, Stream] = field(default_factory=dict)
    watches: list[Watch] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    closing: bool = False


class Refused(Exception):  # noqa: N818 - a way out of a handler, not an error of the server
    """Carries an error out of a handler.

    Args:
        outcome: The code with its fields, as bytes.
    """

    def __init__(self, outcome: bytes) -> None:
        super().__init__(outcome.hex())
        self.outcome = outcome
