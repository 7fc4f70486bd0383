"""Topics and partitions as RustLog's clients see them, and how they are made.

Which topics of the log they are is told by `lance_server.listeners.partition_names`, as it is for
Fluvio's clients; those that clients create here are ``name`` and ``name.n``.
"""

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import normalize

from lance_server.listeners.partition_names import part_name, shown_partition, shown_topics
from lance_server.listeners.rustlog.refusals import RustlogRefusal, internal
from lance_server.log.log_manager import LogManager, Topic
from lance_server.log.metadata.topic_file import Retention
from lance_server.lwp.refusals import Refusal
from lance_server.runtime.completion import settled
from lance_server.security.access import Right
from lance_server.security.authorizer import Authorizer
from lance_spec.enums import ErrorCode as LogCode
from lance_spec.errors import EncodeError
from lance_spec.messages.rustlog import ErrorCode
from lance_spec.names import check_topic_name


class Partitioned(NamedTuple):
    """A topic as RustLog's clients see it.

    Attributes:
        name: its name.
        parts: the log's topic of each partition.
    """

    name: str
    parts: Sequence[Topic]


class Topics:
    """The topics that one client may use.

    Args:
        engine: the log.
        authorizer: knows what the client may do.
        max_partitions: most partitions of a topic.
    """

    def __init__(self, engine: LogManager, authorizer: Authorizer, max_partitions: int) -> None:
        self._engine = engine
        self._authorizer = authorizer
        self._max_partitions = max_partitions

    def __repr__(self) -> str:
        return f"<Topics for {self._authorizer!r}>"

    def find(self, topic: str, partition: int, right: Right) -> Topic | None:
        """Return the log's topic of a partition, or None.

        Raises:
            RustlogRefusal: the client may not use it.
        """
        name = normalize("NFC", topic)
        try:
            found = shown_partition(self._engine, name, partition)
        except Refusal as refusal:  # another node of the cluster serves it
            self._check(right, None, name)
            raise internal(refusal) from refusal
        if found is not None:
            self._check(right, found.id, found.access_name)
        return found

    def named(self, name: str) -> Partitioned | None:
        """Return a topic that the client may read or write, or None."""
        parts = shown_topics(self._engine).get(normalize("NFC", name))
        if parts is None:
            self.find(name, 0, Right.READ)  # which says so where another node serves it
            return None
        found = Partitioned(name, parts)
        return found if self._may_see(found) else None

    def listed(self) -> list[Partitioned]:
        """Return the topics that the client may read or write, by name."""
        found = [Partitioned(*each) for each in sorted(shown_topics(self._engine).items())]
        return [each for each in found if self._may_see(each)]

    async def create(self, topic: str, partitions: int) -> None:
        """Create a topic with all its partitions; the first one last, so that it shows whole.

        Raises:
            RustlogRefusal: it cannot be created.
        """
        name = self._new_name(topic, partitions)
        try:
            for index in reversed(range(partitions)):
                await self._create_part(part_name(name, index), again=index > 0)
        except Refusal as refusal:
            if refusal.code is LogCode.TOPIC_ALREADY_EXISTS:
                raise _exists(topic) from refusal
            raise internal(refusal) from refusal

    async def _create_part(self, name: str, *, again: bool) -> None:
        """Create a part; an empty one that a creation which was cut short left is taken."""
        if not (again and self._engine.topic_named(name) is not None):
            await settled(self._engine.create_topic(name, Retention()))

    def _new_name(self, topic: str, partitions: int) -> str:
        if not 1 <= partitions <= self._max_partitions:
            raise RustlogRefusal(
                ErrorCode.INVALID_PARTITION_COUNT, f"Invalid partition count: {partitions}"
            )
        try:
            name = check_topic_name(topic)
            check_topic_name(part_name(name, partitions - 1))
        except EncodeError as error:
            text = f"Decode error: decode error: invalid topic: {error}"
            raise RustlogRefusal(ErrorCode.DECODE_ERROR, text) from error
        self._check(Right.ADMIN, None, name)
        try:
            found = [
                self._engine.topic_named(part_name(name, index)) for index in range(partitions)
            ]
        except Refusal as refusal:  # another node of the cluster serves one
            raise _exists(topic) from refusal
        whole = self._engine.partitioned.named(name)
        if (
            whole
            or found[0] is not None
            or any(each and each.partition.end_record for each in found)
        ):
            raise _exists(topic)
        return name

    def _check(self, right: Right, topic_id: int | None, name: str) -> None:
        try:
            self._authorizer.check(right, topic_id, name)
        except Refusal as refusal:
            raise internal(refusal) from refusal

    def _may_see(self, topic: Partitioned) -> bool:
        first = topic.parts[0].id
        return any(
            self._authorizer.may_see(each, first, topic.name) for each in (Right.READ, Right.WRITE)
        )


def _exists(topic: str) -> RustlogRefusal:
    return RustlogRefusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists")
