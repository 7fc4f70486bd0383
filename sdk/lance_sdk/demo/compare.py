"""Compares what comes back with what was sent: count, order, digest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

_SLICE: Final = 1024  # records joined at a time, so that the whole is never held twice


def digest(records: Sequence[bytes]) -> str:
    """Return the SHA-256 of the records as lines, as ``lwp consume … | sha256sum`` gives it."""
    total = sha256()
    for start in range(0, len(records), _SLICE):
        total.update(b"\n".join([*records[start : start + _SLICE], b""]))
    return total.hexdigest()


@dataclass(slots=True)
class Comparison:
    """Takes records as they are consumed and holds each against the one that was sent.

    What was received takes the place of what was sent in ``records``, so that both need no
    more memory than one.

    Attributes:
        records: what was sent; after the last ``take`` what was received.
        received: how many came back.
        first_difference: number of the first record that is not the one sent, from 1.
    """

    records: list[bytes]
    received: int = 0
    first_difference: int | None = None
    _expected: int = field(init=False)
    _sent_digest: str = field(init=False)
    _digest: Any = field(init=False, default_factory=sha256, repr=False)

    def __post_init__(self) -> None:
        """Remember what makes up the whole before it is replaced."""
        self._expected = len(self.records)
        self._sent_digest = digest(self.records)

    def take(self, values: list[bytes]) -> None:
        """Compare the next records that came back, and keep them."""
        place = slice(self.received, self.received + len(values))
        expected = self.records[place]
        if self.first_difference is None and values != expected:
            self.first_difference = self.received + 1 + _first_difference(values, expected)
        self.records[place] = values
        self.received += len(values)
        self._digest.update(b"\n".join([*values, b""]))

    @property
    def same_count(self) -> bool:
        """Whether as many records came back as were sent."""
        return self.received == self._expected

    @property
    def same_digest(self) -> bool:
        """Whether the SHA-256 over all records is the same."""
        return self.received_digest == self._sent_digest

    @property
    def equal(self) -> bool:
        """Whether everything came back as it was sent."""
        return self.same_count and self.first_difference is None and self.same_digest

    @property
    def received_digest(self) -> str:
        """SHA-256 of what came back, in hexadecimal."""
        return str(self._digest.hexdigest())

    def verdict(self) -> str:
        """Return the outcome in words."""
        if self.equal:
            return f"equal in count, order and SHA-256 ({self._sent_digest[:16]}…)"
        parts = [] if self.same_count else [f"{self.received:,} of {self._expected:,} came back"]
        if self.first_difference is not None:
            parts.append(f"record {self.first_difference:,} is not the one sent")
        return f"DIFFERENT: {', '.join(parts)}; SHA-256 {self.received_digest[:16]}…"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return {
            "equal": self.equal,
            "sent": self._expected,
            "received": self.received,
            "first_difference": self.first_difference,
            "sha256_sent": self._sent_digest,
            "sha256_received": self.received_digest,
        }


def _first_difference(values: list[bytes], expected: list[bytes]) -> int:
    for index, (value, other) in enumerate(zip(values, expected, strict=False)):
        if value != other:
            return index
    return min(len(values), len(expected))
