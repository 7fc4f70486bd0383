"""What the golden server remembers."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lance_conformance.golden.codec import Reply


@dataclass(slots=True)
class Topic:
    """A topic and its log."""

    id: int
    name: str
    created_at: int = 1_706_918_400
    log: bytes = b""
    limits: tuple[int, int] | None = None


@dataclass(slots=True)
class Memory:
    """Everything that outlives a connection.

    Attributes:
        topics: The topics by id.
        deleted: Ids that existed once.
        last_id: The highest id given away.
        scars: What a mutant remembers of earlier stimuli.
    """

    topics: dict[int, Topic] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    last_id: int = 0
    scars: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Connection:
    """What belongs to one connection.

    Attributes:
        tail: The beginning of a frame that is not complete.
        batches: What was stored under each topic and batch id: timestamp and payload.
        closing: Nothing is read any more.
    """

    tail: bytes = b""
    batches: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    closing: bool = False


class Refusal(NamedTuple):
    """Why a request is refused: the code for JSON, the words for text."""

    code: int
    words: str


class Refused(Exception):  # noqa: N818 - a way out of a handler, not an error of the server
    """Carries a refusal out of a handler."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.refusal = Refusal(code, words)


Replies = list[Reply]
Body = dict[str, Any]
