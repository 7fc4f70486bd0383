"""Scripts of a server, as data: triggers, and steps that replace the correct answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lance_conformance.wire.frame import Frame

Trigger: TypeAlias = Literal[
    "accept", "any", "keepalive", "ingest", "create", "delete", "list", "get", "retention",
    "create-limited", "status", "auth", "fetch", "tail", "subscribe", "unsubscribe", "commit",
]  # fmt: skip
"""What a client does: connect, or send a frame of this kind. A ``tail`` is a Fetch that asks where
the log ends (AMB-06)."""

How: TypeAlias = Literal["fin", "rst"]


@dataclass(frozen=True, slots=True)
class Xor:
    """A field's right value with some bits inverted."""

    mask: int


@dataclass(frozen=True, slots=True)
class Other:
    """A checksum of the polynomial that the dialect does not speak."""


@dataclass(frozen=True, slots=True)
class Plus:
    """A field's right value and a number."""

    number: int


@dataclass(frozen=True, slots=True)
class Swapped:
    """A checksum with its bytes in the other order."""


Change: TypeAlias = int | bytes | Xor | Other | Plus | Swapped


@dataclass(frozen=True, slots=True)
class Answer:
    """The right answer, or one that departs from it in what is said here.

    Attributes:
        header: Header fields that are replaced.
        payload: The whole payload instead; checksum and length follow it.
        body: Fields of a JSON payload that are replaced; None removes one.
        fetched: Fields of a FetchResponse header that are replaced.
        data: The data of a FetchResponse instead; its header follows.
        flipped: Bits of the payload that are inverted, counted from its beginning.
        cuts: Where its bytes are cut into pieces; ``(-n,)`` cuts after every n bytes.
        upto: Only so many of its bytes are sent.
        spread: How long its pieces take together, in parts of the time of an operation.
        hold: It waits for the next bytes of this connection and leaves in one piece with them.
        good: The client may rely on it all the same.
    """

    header: Mapping[str, Change] = field(default_factory=dict)
    payload: bytes | None = None
    body: Mapping[str, Any] | None = None
    fetched: Mapping[str, Change] | None = None
    data: bytes | None = None
    flipped: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()
    upto: int | None = None
    spread: float = 0.0
    hold: bool = False
    good: bool = False

    @property
    def right(self) -> bool:
        """Whether the client gets what it asked for."""
        whole = self.payload is None and self.data is None and self.upto is None
        changed = self.header or self.body or self.fetched or self.flipped
        return self.good or (whole and not changed)


@dataclass(frozen=True, slots=True)
class Say:
    """A frame that nobody asked for, ``times`` times in one write."""

    frame: Frame
    times: int = 1


@dataclass(frozen=True, slots=True)
class AckOf:
    """An Ack of the n-th batch that this connection brought; it is the right one."""

    nth: int
    times: int = 1


@dataclass(frozen=True, slots=True)
class Refuse:
    """An ErrorResponse in the form of the dialect.

    Attributes:
        code: Of LWP section 12.2.
        text: The sentence; where errors are text, it is all there is.
        details: More for the JSON form; ``BATCH`` stands for the id of the batch in question, and
            ``ELSEWHERE`` for the address of a second, well-behaved server, ``HERE`` for that of
            this one.
        nth: The batch it is about, counted from 1 on its connection; 0 is the frame at hand.
        header: Header fields that are replaced.
        cuts: Where its bytes are cut into pieces, see `Answer`.
    """

    code: int
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    nth: int = 0
    header: Mapping[str, Change] = field(default_factory=dict)
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Push:
    """A FetchResponse that a subscription brings.

    Attributes:
        data: What is in it.
        offset: Where that begins.
        topic: What it is of.
    """

    data: bytes
    offset: int
    topic: int


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the connection."""

    how: How = "fin"


@dataclass(frozen=True, slots=True)
class Stall:
    """From here on the server reads and says nothing on this connection."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What follows on this connection waits.

    Attributes:
        part: For how long, in parts of the time of an operation.
    """

    part: float


@dataclass(frozen=True, slots=True)
class Nothing:
    """No answer to this one frame."""


Step: TypeAlias = Answer | Say | AckOf | Refuse | Push | Close | Stall | Pause | Nothing
BATCH = "$batch"
ELSEWHERE = "$elsewhere"
HERE = "$here"


@dataclass(frozen=True, slots=True)
class On:
    """Steps that replace the right answer.

    Attributes:
        what: What the client does.
        steps: What the server does then.
        nth: At which time, counted over all connections of a case; 0 is every time.
    """

    what: Trigger
    steps: tuple[Step, ...]
    nth: int = 1


def on(what: Trigger, *steps: Step, nth: int = 1) -> On:
    """Steps in the place of the right answer, see `On`."""
    return On(what, steps, nth)
