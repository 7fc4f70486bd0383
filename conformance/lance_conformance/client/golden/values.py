"""Values that the parts of the golden client pass to each other."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

INGEST, KEEPALIVE, CONTROL, ACK, BACKPRESSURE = 0x04, 0x20, 0x40, 0x08, 0x10
Body = dict[str, Any]


class ProblemError(Exception):
    """An operation that failed.

    Args:
        kind: As drivers tell it.
        text: For people.
        details: What the server added.
    """

    def __init__(self, kind: str, text: str, details: Body | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.details = details or {}


class Record(NamedTuple):
    """One record."""

    type: int
    value: bytes


@dataclass(slots=True)
class Batch:
    """One batch on its way.

    Attributes:
        ticket: How the caller knows it.
        batch_id: Its id on the wire.
        data: Its frame; a retry sends the same.
        deadline: When it fails.
        acked: The server has it.
        problem: Why it failed.
        refused: Why the server would not take it the last time.
        not_before: When it may be sent again.
    """

    ticket: int
    batch_id: int
    data: bytes
    deadline: float
    acked: bool = False
    problem: ProblemError | None = None
    refused: ProblemError | None = None
    not_before: float = 0.0

    @property
    def settled(self) -> bool:
        """Whether anything may still come of it."""
        return self.acked or self.problem is not None


class Fetched(NamedTuple):
    """What one FetchResponse brings.

    Attributes:
        records: The whole records in it.
        next_offset: Where the next one begins.
        more: It has only a part of a record, which is larger than was asked for.
    """

    records: list[Record]
    next_offset: int
    more: bool = False


@dataclass(slots=True)
class Settings:
    """What connect was told.

    Attributes:
        host: Where the server is.
        port: Where the server is.
        timeout: Seconds for each operation.
        token: What to present, if anything.
        ca: Certificates to trust, as PEM; TLS is spoken when there are any.
        keepalive: Quiet seconds after which a Keepalive is sent; 0 is never.
    """

    host: str
    port: int
    timeout: float
    token: str | None = None
    ca: str | None = None
    keepalive: float = 0.0
    extra: Body = field(default_factory=dict)
