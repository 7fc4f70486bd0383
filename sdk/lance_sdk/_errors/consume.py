"""Errors about the log at the place where it is consumed."""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from typing import Any

from lance_sdk._errors.base import LanceError
from lance_sdk.types import Record


class ConsumeError(LanceError):
    """The log cannot be consumed from where the consumer stands.

    Attributes:
        offset: the byte offset in the topic where the trouble is.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.offset)


class MisalignedOffset(ConsumeError):
    """The start offset lies inside a record (AMB-19); seek to a record's ``offset``."""


class CorruptRecord(ConsumeError):
    """The bytes at an offset are not a record (LWP section 8)."""


class OpaqueRecords(ConsumeError):
    """A batch that does not parse as records stands here (AMB-27).

    Attributes:
        next_offset: byte offset after it; ``on_opaque="skip"`` goes on there by itself, and
            ``on_opaque="bytes"`` hands it out.
    """

    def __init__(self, message: str, offset: int, next_offset: int) -> None:
        self.next_offset = next_offset
        super().__init__(message, offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.offset, self.next_offset)


class UndecodableRecord(ConsumeError):
    """A record's value is not what was to be read from it; the next record may be.

    Attributes:
        record: the record.
    """

    def __init__(self, message: str, record: Record) -> None:
        self.record = record
        super().__init__(message, record.offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.record)


class LogTruncated(ConsumeError):
    """The log ends before the consumer's position and does not grow (AMB-31)."""


class TopicChanged(ConsumeError):
    """The topic was deleted and created again: its old offsets mean nothing now (AMB-30)."""
