"""The interfaces of systems to copy from and to."""

import hashlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self, runtime_checkable

from lance_sdk.errors import LanceError


class Envelope(NamedTuple):
    """A record on its way, as the log has it (LWP section 8).

    Attributes:
        kind: its TLV type.
        value: its bytes, with key and time where the type has them.
        offset: where in the source it stands.
        following: where in the source to go on after it.
    """

    kind: int
    value: bytes
    offset: int
    following: int


class CopyPosition(NamedTuple):
    """How far a copy is: after a record, which can be recognised.

    Attributes:
        offset: where in the source the last copied record stands.
        following: where to go on after it.
        digest: of that record.
    """

    offset: int
    following: int
    digest: str

    @classmethod
    def behind(cls, record: Envelope) -> Self:
        """Return the place after a record."""
        data = record.kind.to_bytes(2, "big") + record.value
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return cls(record.offset, record.following, digest)


class RecordsGoneError(LanceError):
    """The source does not keep the records any more that it was asked for."""


class SourceChangedError(LanceError):
    """The source is not what was copied before: its places mean something else now."""


class Closing(Protocol):
    """What is used in a ``with`` block."""

    def __enter__(self) -> Self:
        """Open it."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        ...


class Source(Closing, Protocol):
    """Where records come from."""

    def batches(self) -> Iterator[Sequence[Envelope]]:
        """Yield the records in order.

        A source that is followed goes on for ever, and yields nothing, an empty sequence, a few
        times a second while there are none. Any other ends where it ended at first.

        Raises:
            RecordsGoneError: the first ones are not kept any more.
            LanceError: they cannot be read.
        """
        ...


class Target(Closing, Protocol):
    """Where records go."""

    @property
    def stores_once(self) -> bool:
        """Whether records that are written again, with the same flushes between, are stored once.

        Known once the target is open.
        """
        ...

    def write(self, records: Sequence[Envelope]) -> None:
        """Take records, in order; they may be sent later.

        Raises:
            LanceError: they cannot be stored.
        """
        ...

    def flush(self) -> None:
        """Return when everything that was taken is stored.

        Raises:
            LanceError: not all of it is.
        """
        ...


@runtime_checkable
class ComparedTarget(Target, Protocol):
    """A target whose end is compared with the source after a restart."""

    @property
    def end(self) -> int | None:
        """Where it ends after what the copy stored, or None where that cannot be told.

        Known once the target is open.
        """
        ...

    def stored(self, records: Sequence[Envelope], since: int) -> int:
        """Return how many of these records, from the first on, it has at a former end of it.

        Raises:
            LanceError: they cannot be read.
        """
        ...
