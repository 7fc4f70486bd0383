"""State of the golden server."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

CommitKey = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(slots=True)
class Memory:
    """Everything that outlives a connection.

    Attributes:
        topics: The records of each partition, by topic.
        commits: What groups have committed.
        scars: What a mutant remembers of earlier stimuli.
    """

    topics: dict[str, list[list[bytes]]] = field(default_factory=dict)
    commits: dict[object, int] = field(default_factory=dict)
    scars: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Connection:
    """What belongs to one connection.

    Attributes:
        tail: The beginning of a frame that is not complete.
        stored: How many records came on it.
        closing: Nothing is read any more.
    """

    tail: bytearray = field(default_factory=bytearray)
    stored: int = 0
    closing: bool = False


class Request(NamedTuple):
    """What is asked: the name and the fields, whatever form they came in."""

    name: str
    fields: dict[str, Any]


class Fetched(NamedTuple):
    """Records from an offset on, and where to go on."""

    start: int
    records: list[bytes]
    following: int


class Refused(Exception):  # noqa: N818 - a way out of a handler, not an error of the server
    """Carries a refusal out of a handler.

    Args:
        code: Why, for programs.
        text: Why, for people.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
