"""The interface and the promises of an offset store.

A consumer has a name. Under that name and the topic's, a store keeps one `Commit`: the offset
up to which the consumer is done, and enough to notice that the log under it is not the one it
was (AMB-30).

::

    commit = store.claim("billing", topic)      # at the start: whose offset, and where to go on
    store.save(Commit(...))                     # whenever records have been processed
    store.release("billing", topic)             # at the end

A store promises:

1. What `OffsetStore.save` has returned from, a later `claim` returns, in this process or
   another; a crash in the middle leaves the old commit or the new one.
2. A commit of a lower generation than the topic was last claimed or saved with is refused with
   `StaleGeneration`: whoever lost a topic to another member of its group cannot move it back.
3. A commit of an earlier topic never takes the place of one of a later topic of the same name,
   in which its offset means nothing (AMB-30): it is refused with `StaleTopic`, or kept beside it.
4. Its methods may be called from any thread, one at a time or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from time import time_ns
from typing import Final, Protocol, Self

from lance_sdk._api.arguments.unit_parsing import shorten
from lance_sdk.errors import ConfigError, TopicChanged
from lance_sdk.types import RecordBatch
from lance_spec.bodies import TopicInfo
from lance_spec.checksum import Buffer
from lance_spec.errors import EncodeError
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.names import check_topic_name

__all__ = [
    "AsyncOffsetStore",
    "Commit",
    "Fingerprint",
    "OffsetStore",
    "TopicIdentity",
    "check_consumer_name",
]

FINGERPRINT_BYTES: Final = 64 * 1024
"""Bytes of records that a fingerprint covers at most, unless the last record alone is larger."""
_DIGEST_SIZE: Final = 16
MAX_OFFSET: Final = 2**63 - 1
"""What a signed column of a database holds; a topic of 8 EiB would be larger."""
MAX_GENERATION: Final = 2**53 - 1
"""What every store can compare exactly, Redis included."""


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """Which topic an offset is an offset of (AMB-30).

    Attributes:
        id: the topic's number.
        name: its name; None where it is not known, as in a file of another program.
        created_at: seconds since the Unix epoch, where known.
        epoch: how often the name was created, where known.
    """

    id: int
    name: str | None = None
    created_at: int | None = None
    epoch: int | None = None

    @classmethod
    def of(cls, topic: TopicInfo) -> Self:
        """Return the identity of a topic as its server tells it."""
        return cls(topic.id, topic.name, topic.created_at, topic.topic_epoch)

    @property
    def label(self) -> str:
        """The topic's name, or ``#id``: the key under which a store keeps its commit."""
        return f"#{self.id}" if self.name is None else self.name

    def difference(self, other: "TopicIdentity") -> str | None:
        """Return how the topics differ, in words; None when all that both know is equal."""
        pairs = (
            ("name", self.name, other.name),
            ("id", self.id, other.id),
            ("created_at", self.created_at, other.created_at),
            ("epoch", self.epoch, other.epoch),
        )
        for what, mine, theirs in pairs:
            if mine is not None and theirs is not None and mine != theirs:
                return f"{what} {theirs!r} instead of {mine!r}"
        return None

    def older_than(self, other: "TopicIdentity") -> bool:
        """Return whether the other is a later topic of the same name (AMB-30)."""
        if self.name is None or self.name != other.name:
            return False
        pairs = (
            (self.epoch, other.epoch),
            (self.created_at, other.created_at),
            (self.id, other.id),
        )
        for mine, theirs in pairs:
            if mine is not None and theirs is not None and mine != theirs:
                return mine < theirs
        return False


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The whole records before an offset, so that other data is not taken for them (AMB-30).

    Attributes:
        start: byte offset of the first record that is covered.
        length: bytes that are covered; they end at the committed offset.
        digest: their BLAKE2b-128 in hexadecimal.
    """

    start: int
    length: int
    digest: str

    @classmethod
    def of(cls, records: Buffer, end: int) -> Self | None:
        """Return the fingerprint of the last records before an offset.

        Args:
            records: whole records that end at ``end``, the more the better; at least the last.
            end: byte offset after them.

        Returns:
            The fingerprint of as many of the last ones as fit in 64 KiB, but at least of one;
            None when there is no record.
        """
        if not records:
            return None
        covered = memoryview(records)[_first_covered(records) :]
        return cls(end - len(covered), len(covered), _digest(covered))

    @classmethod
    def over(cls, data: Buffer, end: int) -> Self:
        """Return the fingerprint of bytes before an offset, wherever in a record they begin."""
        return cls(end - len(data), len(data), _digest(data))

    @property
    def end(self) -> int:
        """Byte offset after what is covered, which is the committed offset."""
        return self.start + self.length

    def matches(self, data: Buffer) -> bool:
        """Return whether these bytes, read at `start`, are the ones that were covered."""
        return len(data) == self.length and _digest(data) == self.digest


def _first_covered(records: Buffer) -> int:
    """Return where the last records that fit in a fingerprint begin."""
    size, view, position = len(records), memoryview(records), 0
    while size - position > FINGERPRINT_BYTES:
        length = int.from_bytes(view[position + 1 : position + RECORD_HEADER_SIZE], "little")
        following = position + RECORD_HEADER_SIZE + length
        if following >= size:
            break  # the last record alone is larger
        position = following
    return position


def _digest(data: Buffer) -> str:
    return blake2b(data, digest_size=_DIGEST_SIZE).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """How far a consumer has come in a topic.

    Attributes:
        consumer: name of the consumer, or of its group.
        topic: the topic.
        offset: byte offset of the first record that is not done.
        fingerprint: of the records before the offset, where they were at hand.
        generation: under which a member of a group was given the topic; 0 outside groups.
        committed_at_ns: when, by the clock of the one who committed; nanoseconds since the
            Unix epoch, 0 where it is not known.

    Raises:
        ConfigError: when a number is out of range; every store can keep what is in range.
    """

    consumer: str
    topic: TopicIdentity
    offset: int
    fingerprint: Fingerprint | None = None
    generation: int = 0
    committed_at_ns: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        """Refuse numbers that not every store can keep."""
        _require("offset", self.offset, MAX_OFFSET)
        _require("generation", self.generation, MAX_GENERATION)
        _require("committed_at_ns", self.committed_at_ns, MAX_OFFSET)
        if self.fingerprint is not None and self.fingerprint.end != self.offset:
            raise ConfigError(
                f"fingerprint: it ends at {self.fingerprint.end} and not at the offset "
                f"{self.offset} that is committed"
            )

    @classmethod
    def of(
        cls, batch: RecordBatch, *, consumer: str, topic: TopicIdentity, generation: int = 0
    ) -> Self:
        """Return the commit that says that a batch is done, and everything before it.

        Args:
            batch: as a consumer handed it out.
            consumer: name of the consumer, or of its group.
            topic: the batch's topic.
            generation: under which a member of a group was given the topic.
        """
        return cls(
            consumer=consumer,
            topic=topic,
            offset=batch.next_offset,
            fingerprint=Fingerprint.of(b"" if batch.opaque else batch.data, batch.next_offset),
            generation=generation,
            committed_at_ns=time_ns(),
        )

    def check_topic(self, topic: TopicIdentity) -> None:
        """Refuse to go on in another topic than the one that was read (AMB-30).

        Args:
            topic: the topic as its server tells it now.

        Raises:
            TopicChanged: it is another one, for example because it was created again.
        """
        if (difference := self.topic.difference(topic)) is not None:
            raise TopicChanged(
                f"{self.consumer!r} committed offset {self.offset} in topic {self.topic.label!r}, "
                f"which is another one now: {difference}. {self._advice}",
                self.offset,
            )

    def check_records(self, data: Buffer) -> None:
        """Refuse to go on after other records than the ones that were read (AMB-30).

        Args:
            data: the log's bytes from ``fingerprint.start`` to the offset, as they are now.

        Raises:
            TopicChanged: the log holds something else there.
        """
        if self.fingerprint is not None and not self.fingerprint.matches(data):
            raise TopicChanged(
                f"the records before offset {self.offset} of topic {self.topic.label!r} are not "
                f"those that {self.consumer!r} had read when it committed that offset. "
                f"{self._advice}",
                self.offset,
            )

    @property
    def _advice(self) -> str:
        return (
            "Old offsets mean nothing there: seek to where you want to go on and commit, or "
            "remove the commit with `lwp offsets reset`"
        )


class OffsetStore(Protocol):
    """Where consumers keep their offsets; see the promises above.

    Every method raises `OffsetStoreError` when the store cannot be used, and one of its
    subclasses where that is said.
    """

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Begin to use an offset, and return where to go on.

        Args:
            consumer: name of the consumer, or of its group.
            topic: the topic as its server tells it. The commit is looked up by its name.
            generation: under which a member of a group was given the topic.

        Returns:
            The last commit, possibly of another topic of the same name (`Commit.check_topic`);
            None when there is none.

        Raises:
            StoreLocked: somebody else uses it, where the store can tell.
            StaleGeneration: it was claimed or saved with a higher generation.
        """
        ...

    def save(self, commit: Commit) -> None:
        """Keep a commit in place of the last one; durable when it returns.

        Raises:
            StaleGeneration: the topic was claimed or saved with a higher generation.
            StaleTopic: there is a commit of a later topic of the same name.
        """
        ...

    def release(self, consumer: str, topic: TopicIdentity) -> None:
        """End the use of an offset; without a claim it does nothing."""
        ...

    def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return the commits of one consumer, or of all, sorted by consumer and topic."""
        ...

    def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; return whether there was one."""
        ...

    def close(self) -> None:
        """Release everything and disconnect; closing twice does no harm."""
        ...


class AsyncOffsetStore(Protocol):
    """The same for tasks; `lance_sdk.offsets.in_threads` makes one of an `OffsetStore`."""

    async def claim(
        self, consumer: str, topic: TopicIdentity, generation: int = 0
    ) -> Commit | None:
        """Begin to use an offset; see `OffsetStore.claim`."""
        ...

    async def save(self, commit: Commit) -> None:
        """Keep a commit; see `OffsetStore.save`."""
        ...

    async def release(self, consumer: str, topic: TopicIdentity) -> None:
        """End the use of an offset; see `OffsetStore.release`."""
        ...

    async def commits(self, consumer: str | None = None) -> Sequence[Commit]:
        """Return commits; see `OffsetStore.commits`."""
        ...

    async def forget(self, consumer: str, topic: TopicIdentity) -> bool:
        """Remove a commit; see `OffsetStore.forget`."""
        ...

    async def close(self) -> None:
        """Release everything; see `OffsetStore.close`."""
        ...


def _require(name: str, value: int, most: int) -> None:
    if type(value) is not int or not 0 <= value <= most:
        raise ConfigError(f"{name}={shorten(value)}: expected 0 to {most}")


def check_consumer_name(name: str) -> str:
    """Return a consumer's name in the form in which names are compared (Unicode NFC).

    The rules are those of topics (AMB-24), because stores make file names and keys of it.

    Raises:
        ConfigError: naming the rule that is broken.
    """
    if not isinstance(name, str):
        raise ConfigError(f"a consumer's name must be text, not {type(name).__name__}")
    try:
        return check_topic_name(name)
    except EncodeError as error:
        raise ConfigError(
            f"a consumer cannot be called {name[:80]!r}: expected {error.expected}, got {error.got}"
        ) from None
