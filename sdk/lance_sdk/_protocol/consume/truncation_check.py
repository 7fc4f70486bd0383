"""Whether the log still holds what was read from it (AMB-30, AMB-31)."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeAlias

from lance_sdk._protocol.consume.fetch_response import DecodedFetch
from lance_spec.checksum import Buffer
from lance_spec.limits import MAX_PAYLOAD


class LogFingerprint(Protocol):
    """What whole records are recognised by; `lance_sdk.offsets.contract.Fingerprint` is one."""

    @property
    def start(self) -> int:
        """Byte offset of the first record."""
        ...

    @property
    def length(self) -> int:
        """Bytes of the records."""
        ...

    def matches(self, data: Buffer) -> bool:
        """Whether these bytes are the records."""
        ...


TakeFingerprint: TypeAlias = Callable[[Buffer, int], LogFingerprint | None]
"""Makes a fingerprint of whole records and the offset after them; None when there is no record."""


class CheckResult(Enum):
    """What reading the records before a position again has shown."""

    OPEN = "not all of them are here yet"
    SAME = "they are the same"
    OTHER = "they are others"
    GONE = "they are not there any more, so that the topic's identity alone decides"
    SHORT = "the log ends before them"


class TruncationCheck:
    """Reads the fingerprinted records again, across any cut.

    Args:
        fingerprint: of the records before the position.
    """

    def __init__(self, fingerprint: LogFingerprint) -> None:
        self._fingerprint = fingerprint
        self._data = b""

    def __repr__(self) -> str:
        return f"<TruncationCheck of {self._fingerprint} {len(self._data)} read>"

    @property
    def next_fetch(self) -> int:
        """Offset of the next byte that is needed."""
        return self._fingerprint.start + len(self._data)

    @property
    def missing(self) -> int:
        """Bytes that are needed from there."""
        return self._fingerprint.length - len(self._data)

    def judge(self, answer: DecodedFetch) -> CheckResult:
        """Take the answer to a Fetch at `next_fetch`."""
        if answer.catching_up:
            return CheckResult.SHORT
        if not answer.data:
            gap = answer.next_offset > self.next_fetch
            return CheckResult.GONE if gap else CheckResult.SHORT
        if self._fingerprint.length > MAX_PAYLOAD:
            return CheckResult.OTHER  # longer than any response: no fetch can have read it
        self._data += answer.data[: self.missing]
        if self.missing:
            return CheckResult.OPEN
        return CheckResult.SAME if self._fingerprint.matches(self._data) else CheckResult.OTHER
