"""One message: its name and its fields, whatever form it is written in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["binary", "json"]
LONGEST = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer.

    Attributes:
        name: What it is, such as ``Produce``; ``Error`` for a refusal.
        fields: Its fields by name.
        form: How it is written.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    form: Form = "binary"

    def __str__(self) -> str:
        told = ", ".join(f"{name}={_shown(value)}" for name, value in self.fields.items())
        return f"{self.form} {self.name}({told})"


def _shown(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) > 4:
        return f"{len(value)} items"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class UnreadableError(ValueError):
    """Bytes are not a message.

    Args:
        reason: A machine reason code such as ``field:base_offset``.
        message: What is wrong, and where.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
