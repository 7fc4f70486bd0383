"""Errors of offset stores, under `lance_sdk.errors.LanceError`.

::

    OffsetStoreError
    ├─ StoreLocked         another consumer uses the same offset; names the holder's pid
    ├─ StaleGeneration     the topic belongs to a later generation of the group
    ├─ StaleTopic          the topic was created again, and the later one has a commit
    ├─ OffsetMoved         the last commit is not where this one goes on
    ├─ StoreUnavailable    the store cannot be reached or written just now (retryable)
    └─ StoreCorrupt        what is stored cannot be read; names file or key, and the field
"""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat the module's name

from typing import Any

from lance_sdk._errors.base import LanceError

__all__ = [
    "OffsetMoved",
    "OffsetStoreError",
    "StaleGeneration",
    "StaleTopic",
    "StoreCorrupt",
    "StoreLocked",
    "StoreUnavailable",
]


class OffsetStoreError(LanceError):
    """Base of what offset stores raise."""


class StoreLocked(OffsetStoreError):
    """Another consumer uses the same offset.

    Attributes:
        place: what is locked, for example the lock file.
        holder: process id of the holder; None where it is not known.
    """

    retryable = True

    def __init__(self, place: str, holder: int | None) -> None:
        self.place = place
        self.holder = holder
        who = "another process" if holder is None else f"process {holder}"
        super().__init__(
            f"the offset is in use by {who} [{place}]; end that consumer, or give this one a "
            f"name of its own"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.place, self.holder)


class StaleGeneration(OffsetStoreError):
    """The topic belongs to a later generation of the group: this member lost it.

    Attributes:
        topic: the topic's name.
        generation: what was offered.
        current: what the store has seen.
    """

    def __init__(self, topic: str, generation: int, current: int) -> None:
        self.topic = topic
        self.generation = generation
        self.current = current
        super().__init__(
            f"topic {topic!r} was given away in generation {current}: a commit of generation "
            f"{generation} is refused, its records are processed again by the topic's new owner"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic, self.generation, self.current)


class StaleTopic(OffsetStoreError):
    """The topic was created again, and the later one has a commit already (AMB-30).

    Attributes:
        topic: the topic's name.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic!r} was created again: an offset of the earlier one is refused, because "
            f"it means nothing in the later one, which has a commit already; end this consumer"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic,)


class OffsetMoved(OffsetStoreError):
    """The last commit is not where this one goes on: somebody else has moved it.

    Attributes:
        topic: the topic's name.
        expected: where the last commit had to stand.
        found: where it stands; None where there is none.
    """

    def __init__(self, topic: str, expected: int, found: int | None) -> None:
        self.topic = topic
        self.expected = expected
        self.found = found
        where = "is none" if found is None else f"stands at {found}"
        super().__init__(
            f"topic {topic!r}: the last commit was to stand at {expected} and {where}; roll "
            f"back, claim the offset again and go on from there"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.topic, self.expected, self.found)


class StoreUnavailable(OffsetStoreError):
    """The store cannot be reached or written just now."""

    retryable = True

    def __init__(self, message: str, *, maybe_applied: bool = False) -> None:
        self.maybe_applied = maybe_applied
        super().__init__(message)


class StoreCorrupt(OffsetStoreError):
    """What is stored cannot be read.

    Attributes:
        place: file or key at fault.
    """

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place}: {problem}; repair it, or remove it to begin again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.place, self.problem)
