"""State of the golden server."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lance_conformance.server.golden.codec import Reply


@dataclass(slots=True)
class Topic:
    """A topic and its log."""

    id: int
    name: str
    created_at: int = 1_706_918_400
    log: bytes = b""
    limits: tuple[int, int] | None = None
    epoch: int = 1
    made_by: "Connection | None" = None
    partition: "Body | None" = None
    """Which partition of which topic it is."""
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    """When batches arrived, each with the offset at which it begins."""


class Member(Protocol):
    """A connection, as the others see it."""

    @property
    def unfinished(self) -> bool:
        """Whether it is in the middle of a frame."""
        ...

    @property
    def unread(self) -> int:
        """Bytes that it was sent and has not taken."""
        ...

    def push(self) -> None:
        """Send what is there for its subscriptions."""

    def hang_up(self) -> None:
        """Close the connection."""


@dataclass(slots=True)
class Subscription:
    """A topic that is pushed: where the next push begins, and how much it may bring."""

    topic: int
    consumer: int
    cursor: int
    max_bytes: int
    notes: set[str] = field(default_factory=set)
    """What a mutant remembers of it."""


@dataclass(slots=True)
class Connection:
    """What belongs to one connection.

    Attributes:
        tail: The beginning of a frame that is not complete.
        batches: What was stored under each topic and batch id: timestamp and payload.
        subscriptions: What is pushed, by topic.
        notes: What a mutant remembers of it.
        counts: What a mutant counts of it.
        trusted: It has shown a right token.
        closing: Nothing is read any more.
    """

    tail: bytes = b""
    batches: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    trusted: bool = False
    closing: bool = False


@dataclass(slots=True)
class PartitionedTopic:
    """A topic of several partitions, and the ids of the topics that they are."""

    name: str
    partitioner: str
    ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """Everything that outlives a connection.

    Attributes:
        topics: The topics by id.
        default: Topic 0, which is not one of them.
        deleted: Ids that existed once.
        last_id: The highest id given away.
        epochs: How often each name was created.
        commits: Offsets by topic and consumer.
        batches: What was stored under each topic and batch id, on any connection.
        groups: The members of consumer groups, by group and name.
        partitioned: The partitioned topics, by name.
        clock: Nanoseconds; each batch arrives a moment after the one before.
        crowd: All connections.
        speaker: The connection whose frame is being served.
        scars: What a mutant remembers of earlier stimuli.
        kept: Answers that a mutant gives again.
        counts: What a mutant counts.
        tokens: The tokens that get in; none means that everybody does.
        write_only: Reading needs no token.
        handshakes: TLS handshakes that are not finished.
        silent: Connections to a TLS port that have not begun.
        mute: Connections that ended without a word.
    """

    topics: dict[int, Topic] = field(default_factory=dict)
    default: Topic = field(default_factory=lambda: Topic(0, "default"))
    deleted: set[int] = field(default_factory=set)
    last_id: int = 0
    scars: set[str] = field(default_factory=set)
    kept: dict[object, Any] = field(default_factory=dict)
    counts: Counter[object] = field(default_factory=Counter)
    epochs: dict[str, int] = field(default_factory=dict)
    commits: dict[tuple[int, int], int] = field(default_factory=dict)
    batches: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    groups: dict[str, dict[str, Connection]] = field(default_factory=dict)
    partitioned: dict[str, PartitionedTopic] = field(default_factory=dict)
    clock: int = 1_706_918_400_000_000_000
    crowd: list[Member] = field(default_factory=list)
    speaker: Connection = field(default_factory=Connection)
    tokens: frozenset[bytes] = frozenset()
    write_only: bool = False
    handshakes: int = 0
    silent: int = 0
    mute: int = 0


class Refusal(NamedTuple):
    """Why a request is refused: the code and the details for JSON, the words for text."""

    code: int
    words: str
    details: dict[str, object]


class Refused(Exception):  # noqa: N818 - a way out of a handler, not an error of the server
    """Carries a refusal out of a handler."""

    def __init__(self, code: int, words: str, details: dict[str, object] | None = None) -> None:
        super().__init__(words)
        self.refusal = Refusal(code, words, details or {})


Replies = list[Reply]
Body = dict[str, Any]
