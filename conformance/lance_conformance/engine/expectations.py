"""Allowed outcomes of a case: ends of a connection, silence, and answers.

An expectation is a set of alternatives. Each says in words what it is and names the clause or the
ambiguity it rests on; each judges an event and, where it is nearly right, says in which field not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

ANOTHER_KIND = "another-kind"
"""The judgement of an event that is not even of the kind an alternative describes."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The target ended the connection; a reset is as good as a FIN."""

    how: Literal["fin", "rst"]

    def __str__(self) -> str:
        return f"the connection closed ({self.how.upper()})"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing came until the deadline of the case."""

    seconds: float

    def __str__(self) -> str:
        return f"nothing within {self.seconds * 1000:.0f} ms"


@dataclass(frozen=True, slots=True)
class Violation:
    """Bytes from the target that no frame may have.

    Attributes:
        reason: A machine reason code such as ``bad-crc:header``.
        message: The sentence that says what is wrong, where, and what would be right.
    """

    reason: str
    message: str

    def __str__(self) -> str:
        return f"bytes that are not a frame: {self.message}"


Matcher = Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class Allowed:
    """One allowed outcome.

    Attributes:
        what: The outcome in words.
        cite: The clause (``5.8/max-bytes``) or ambiguity (``AMB-18``) it rests on.
        judge: ``None`` when the event is this outcome, `ANOTHER_KIND` when it is nothing like it,
            otherwise the reason code of the part that is wrong.
    """

    what: str
    cite: str
    judge: Matcher

    def __str__(self) -> str:
        return f"{self.what} [{self.cite}]"


def closed(cite: str) -> Allowed:
    """The end of the connection, by FIN or by RST."""
    return Allowed(
        "the connection closed without a further frame",
        cite,
        lambda event: None if isinstance(event, Closed) else ANOTHER_KIND,
    )
